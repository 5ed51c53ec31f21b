"""Exports a session in pi's format: a header, then JSON lines, each linked to the previous one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from wolo.formats.anthropic.encode import REDACTED, SIGNATURE
from wolo.formats.encoding.attachments import base64_text
from wolo.formats.encoding.wire_forms import IdPolicy
from wolo.formats.gemini.encode import THOUGHT_SIGNATURE
from wolo.messages.message import Message, Usage, UsageCost
from wolo.messages.parts import AnyPart, ImagePart, MediaPart, TextPart, ThinkingPart, ToolPart, blob_of
from wolo.messages.roles import AssistantMessage, ToolMessage
from wolo.sessions.exchange.exporters import record_writer
from wolo.sessions.exchange.importers import pi
from wolo.sessions.exchange.json_files import Record

APIS = {format: api for api, format in pi.FORMATS.items()}
STOPS = {"stop": "stop", "length": "length", "tool_calls": "toolUse"}


class _PiWriter:
    id_policy: IdPolicy = "openai"

    def __init__(self) -> None:
        self._tools: dict[str, str] = {}
        """Tool names by call id."""

    def user(self, parts: Sequence[TextPart | MediaPart], at: float) -> list[Record]:
        return [_entry({"role": "user", "content": [_block(part) for part in parts]}, at)]

    def results(self, message: ToolMessage) -> list[Record]:
        lines: list[Record] = []
        for result in message.contents:
            content = [record_writer.text_block(result.content), *map(_block, result.media)]
            about = {"role": "toolResult", "toolCallId": result.id, "toolName": self._tools.get(result.id, "")}
            lines.append(_entry({**about, "content": content, "isError": result.is_error}, message.timestamp))
        return lines

    def answer(self, message: AssistantMessage) -> list[Record]:
        content = [block for part in message.contents for block in self._answer_blocks(part)]
        if not content:
            return []
        producer = message.producer
        has_calls = any(block["type"] == "toolCall" for block in content)
        usage = message.usage or Usage()
        cost = usage.cost or UsageCost()
        counts = {
            "input": usage.input_tokens,
            "output": usage.output_tokens,
            "cacheRead": usage.cache_read_tokens,
            "cacheWrite": usage.cache_write_tokens,
        }
        prices = {"input": cost.input, "output": cost.output, "cacheRead": cost.cache_read, "cacheWrite": cost.cache_write}
        body = {
            "role": "assistant",
            "content": content,
            "api": APIS.get(producer.format, "openai-completions") if producer else "openai-completions",
            "provider": record_writer.provider_name(producer.provider) if producer else "",
            "model": producer.model if producer else "",
            "usage": {**counts, "totalTokens": usage.context_tokens, "cost": {**prices, "total": cost.total}},
            "stopReason": "toolUse" if has_calls else STOPS.get(message.stop_reason, "stop"),
        }
        return [_entry(body, message.timestamp)]

    def read(self, records: Sequence[Record]) -> Sequence[Message]:
        return record_writer.read_records(pi.PiReader(), records)

    def frame(self, records: Iterable[Record], header: record_writer.SessionHeader) -> Iterator[Record]:
        yield {
            "type": "session",
            "version": 3,
            "id": record_writer.stable_uuid(header.id),
            "timestamp": record_writer.iso(header.created),
            "cwd": header.cwd,
        }
        parent: str | None = None
        for number, record in enumerate(records, 1):
            id = f"{number:08x}"
            yield {**record, "id": id, "parentId": parent}
            parent = id
        if header.title:
            at = record_writer.iso(header.updated)
            yield {"type": "session_info", "id": "ffffffff", "parentId": parent, "timestamp": at, "name": header.title}

    def _answer_blocks(self, part: AnyPart) -> Iterator[Record]:
        if isinstance(part, ToolPart):
            self._tools[part.call_id] = part.tool
            yield {"type": "toolCall", "id": part.call_id, "name": part.tool, "arguments": part.input}
        elif isinstance(part, ThinkingPart):
            signature = blob_of(part.blobs, SIGNATURE) or blob_of(part.blobs, THOUGHT_SIGNATURE)
            signed = {"thinkingSignature": signature} if signature else {}
            if part.text.strip() and not blob_of(part.blobs, REDACTED):
                yield {"type": "thinking", "thinking": part.text, **signed}
        elif not record_writer.is_blank(part):
            yield _block(part)


def _entry(message: Record, at: float) -> Record:
    return {
        "type": "message",
        "timestamp": record_writer.iso(at),
        "message": {**message, "timestamp": record_writer.milliseconds(at)},
    }


def _block(part: TextPart | MediaPart) -> Record:
    if isinstance(part, TextPart):
        return record_writer.text_block(part.text)
    if isinstance(part, ImagePart) and part.data:
        return {"type": "image", "data": base64_text(part.data), "mimeType": part.media_type or "image/png"}
    return record_writer.text_block(f"[{part.type} {part.media_type}]")


write = record_writer.line_export(_PiWriter)
