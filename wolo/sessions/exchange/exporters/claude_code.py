"""A session as Claude Code keeps it: JSON lines, each linked to the one before."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from wolo.formats.anthropic.encode import REDACTED, SIGNATURE
from wolo.formats.encoding.attachments import base64_text
from wolo.formats.encoding.wire_names import IdPolicy
from wolo.messages.message import Message, Usage
from wolo.messages.parts import AnyPart, ImagePart, MediaPart, TextPart, ThinkingPart, ToolPart, blob_of
from wolo.messages.roles import AgentMessage, AssistantMessage, ToolMessage
from wolo.sessions.exchange.exporters.common_fields import About, about, is_said_by_user, iso, stable_uuid
from wolo.sessions.exchange.importers import claude_code
from wolo.sessions.exchange.importers.jsonl_lines import Record
from wolo.sessions.exchange.importers.round_trip import as_lines, written
from wolo.sessions.exchange.jsonl import Write
from wolo.sessions.exchange.message_stream import Said
from wolo.sessions.exchange.redaction import Redactor
from wolo.sessions.listing import SessionInfo
from wolo.sessions.store import Store

VERSION = "2.1.40"
"""Of the program whose lines these look like."""
STOPS = {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens", "refused": "refusal", "paused": "pause_turn"}


def write(store: Store, info: SessionInfo, out: Write, redactor: Redactor | None) -> None:
    as_lines(_linked(written(Said(store, info.id, redactor), ClaudeCode()), about(info, redactor)), out)


class ClaudeCode:
    id_policy: IdPolicy = "anthropic"

    def records(self, spoken: AgentMessage) -> list[Record]:
        if isinstance(spoken, AssistantMessage):
            return self._answer(spoken)
        blocks: list[Record] = []
        if isinstance(spoken, ToolMessage):
            for result in spoken.contents:
                content = [_text(result.content), *map(_block, result.media)]
                block = {"type": "tool_result", "tool_use_id": result.id, "content": content if result.media else result.content}
                blocks.append(block | ({"is_error": True} if result.is_error else {}))
        elif is_said_by_user(spoken):
            blocks = [_block(part) for part in spoken.contents if isinstance(part, TextPart | MediaPart)]
        message = {"role": "user", "content": blocks}
        return [{"type": "user", "message": message, "timestamp": iso(spoken.timestamp)}] if blocks else []

    def read(self, records: Sequence[Record]) -> Sequence[Message]:
        return claude_code.alone(records)

    def holder(self, record: Record) -> Record:
        return record

    def _answer(self, spoken: AssistantMessage) -> list[Record]:
        blocks = [block for part in spoken.contents for block in _said(part)]
        if not blocks:
            return []
        message = {
            "id": f"msg_{stable_uuid(spoken.id).replace('-', '')[:24]}",
            "type": "message",
            "role": "assistant",
            "model": spoken.producer.model if spoken.producer else "",
            "content": blocks,
            "stop_reason": STOPS.get(spoken.stop_reason, "end_turn"),
            "stop_sequence": None,
            "usage": _usage(spoken.usage or Usage()),
        }
        return [{"type": "assistant", "message": message, "timestamp": iso(spoken.timestamp)}]


def _said(part: AnyPart) -> Iterator[Record]:
    """Thinking goes along with its signature only: without one it could not be sent again."""
    if isinstance(part, ToolPart):
        yield {"type": "tool_use", "id": part.call_id, "name": part.tool, "input": part.input}
    elif isinstance(part, ThinkingPart):
        if redacted := blob_of(part.blobs, REDACTED):
            yield {"type": "redacted_thinking", "data": redacted}
        elif signature := blob_of(part.blobs, SIGNATURE):
            yield {"type": "thinking", "thinking": part.text, "signature": signature}
    elif not isinstance(part, TextPart) or part.text.strip():
        yield _block(part)


def _block(part: TextPart | MediaPart) -> Record:
    if isinstance(part, TextPart):
        return _text(part.text)
    source: Record = {"type": "base64", "media_type": part.media_type or "image/png", "data": base64_text(part.data)}
    if isinstance(part, ImagePart) and not part.data:
        source = {"type": "url", "url": part.url}
    return {"type": "image" if isinstance(part, ImagePart) else "document", "source": source}


def _text(text: str) -> Record:
    return {"type": "text", "text": text}


def _usage(usage: Usage) -> Record:
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cache_read_input_tokens": usage.cache_read_tokens,
        "cache_creation_input_tokens": usage.cache_write_tokens,
    }


def _linked(records: Iterable[Record], info: About) -> Iterator[Record]:
    session = stable_uuid(info.id)
    before: Any = None
    for number, record in enumerate(records):
        uuid = stable_uuid(info.id, str(number))
        yield {
            "parentUuid": before,
            "isSidechain": False,
            "userType": "external",
            "cwd": info.cwd,
            "sessionId": session,
            "version": VERSION,
            "gitBranch": "",
            "uuid": uuid,
            **record,
        }
        before = uuid
    if info.title:
        yield {"type": "custom-title", "customTitle": info.title, "sessionId": session}
