"""Exports a session in Claude Code's format: JSON lines, each linked to the previous one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from wolo.formats.anthropic.encode import REDACTED, SIGNATURE
from wolo.formats.encoding.attachments import base64_text
from wolo.formats.encoding.wire_forms import IdPolicy
from wolo.messages.message import Message, Usage
from wolo.messages.parts import AnyPart, ImagePart, MediaPart, TextPart, ThinkingPart, ToolPart, blob_of
from wolo.messages.roles import AssistantMessage, ToolMessage
from wolo.sessions.exchange.exporters import record_writer
from wolo.sessions.exchange.importers import claude_code
from wolo.sessions.exchange.json_files import Record

VERSION = "2.1.40"
"""The Claude Code version whose files these resemble."""
STOPS = {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens", "refused": "refusal", "paused": "pause_turn"}


class _ClaudeWriter:
    id_policy: IdPolicy = "anthropic"

    def user(self, parts: Sequence[TextPart | MediaPart], at: float) -> list[Record]:
        return [_line("user", {"role": "user", "content": [_block(part) for part in parts]}, at)]

    def results(self, message: ToolMessage) -> list[Record]:
        blocks: list[Record] = []
        for result in message.contents:
            content = [record_writer.text_block(result.content), *map(_block, result.media)]
            block = {"type": "tool_result", "tool_use_id": result.id, "content": content if result.media else result.content}
            blocks.append(block | ({"is_error": True} if result.is_error else {}))
        return [_line("user", {"role": "user", "content": blocks}, message.timestamp)] if blocks else []

    def answer(self, message: AssistantMessage) -> list[Record]:
        blocks = [block for part in message.contents for block in _answer_blocks(part)]
        if not blocks:
            return []
        usage = message.usage or Usage()
        body = {
            "id": f"msg_{record_writer.stable_uuid(message.id).replace('-', '')[:24]}",
            "type": "message",
            "role": "assistant",
            "model": message.producer.model if message.producer else "",
            "content": blocks,
            "stop_reason": STOPS.get(message.stop_reason, "end_turn"),
            "stop_sequence": None,
            "usage": {
                "input_tokens": usage.input_tokens,
                "output_tokens": usage.output_tokens,
                "cache_read_input_tokens": usage.cache_read_tokens,
                "cache_creation_input_tokens": usage.cache_write_tokens,
            },
        }
        return [_line("assistant", body, message.timestamp)]

    def read(self, records: Sequence[Record]) -> Sequence[Message]:
        return record_writer.read_records(claude_code.ClaudeReader(), records)

    def frame(self, records: Iterable[Record], header: record_writer.SessionHeader) -> Iterator[Record]:
        session = record_writer.stable_uuid(header.id)
        parent: str | None = None
        for number, record in enumerate(records):
            uuid = record_writer.stable_uuid(header.id, str(number))
            yield {
                "parentUuid": parent,
                "isSidechain": False,
                "userType": "external",
                "cwd": header.cwd,
                "sessionId": session,
                "version": VERSION,
                "gitBranch": "",
                "uuid": uuid,
                **record,
            }
            parent = uuid
        if header.title:
            yield {"type": "custom-title", "customTitle": header.title, "sessionId": session}


def _line(type: str, message: Record, at: float) -> Record:
    return {"type": type, "message": message, "timestamp": record_writer.iso(at)}


def _answer_blocks(part: AnyPart) -> Iterator[Record]:
    """Thinking without a signature is left out: it could not be sent again."""
    if isinstance(part, ToolPart):
        yield {"type": "tool_use", "id": part.call_id, "name": part.tool, "input": part.input}
    elif isinstance(part, ThinkingPart):
        if redacted := blob_of(part.blobs, REDACTED):
            yield {"type": "redacted_thinking", "data": redacted}
        elif signature := blob_of(part.blobs, SIGNATURE):
            yield {"type": "thinking", "thinking": part.text, "signature": signature}
    elif not record_writer.is_blank(part):
        yield _block(part)


def _block(part: TextPart | MediaPart) -> Record:
    if isinstance(part, TextPart):
        return record_writer.text_block(part.text)
    source: Record = {"type": "base64", "media_type": part.media_type or "image/png", "data": base64_text(part.data)}
    if isinstance(part, ImagePart) and not part.data:
        source = {"type": "url", "url": part.url}
    return {"type": "image" if isinstance(part, ImagePart) else "document", "source": source}


write = record_writer.line_export(_ClaudeWriter)
