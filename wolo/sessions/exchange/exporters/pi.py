"""A session as pi keeps it: a header, then JSON lines, each linked to the one before."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from wolo.formats.anthropic.encode import REDACTED, SIGNATURE
from wolo.formats.encoding.attachments import base64_text
from wolo.formats.encoding.wire_names import IdPolicy
from wolo.formats.gemini.encode import THOUGHT_SIGNATURE
from wolo.messages.message import Message, Usage, UsageCost
from wolo.messages.parts import AnyPart, ImagePart, MediaPart, TextPart, ThinkingPart, ToolPart, blob_of
from wolo.messages.roles import AgentMessage, AssistantMessage, ToolMessage
from wolo.sessions.exchange.exporters.common_fields import (
    About,
    about,
    is_said_by_user,
    iso,
    milliseconds,
    provider_name,
    stable_uuid,
)
from wolo.sessions.exchange.importers import pi
from wolo.sessions.exchange.importers.jsonl_lines import Record
from wolo.sessions.exchange.importers.round_trip import as_lines, written
from wolo.sessions.exchange.jsonl import Write
from wolo.sessions.exchange.message_stream import Said
from wolo.sessions.exchange.redaction import Redactor
from wolo.sessions.listing import SessionInfo
from wolo.sessions.store import Store

APIS = {format: api for api, format in pi.FORMATS.items()}
STOPS = {"stop": "stop", "length": "length", "tool_calls": "toolUse"}


def write(store: Store, info: SessionInfo, out: Write, redactor: Redactor | None) -> None:
    as_lines(_linked(written(Said(store, info.id, redactor), Pi()), about(info, redactor)), out)


class Pi:
    id_policy: IdPolicy = "openai"

    def __init__(self) -> None:
        self._tools: dict[str, str] = {}
        """The name of the tool of each call, by its id."""

    def records(self, spoken: AgentMessage) -> list[Record]:
        if isinstance(spoken, ToolMessage):
            return [self._result(result, spoken.timestamp) for result in spoken.contents]
        at = spoken.timestamp
        if isinstance(spoken, AssistantMessage):
            content = [block for part in spoken.contents for block in self._said(part)]
            return [_entry(self._answer(spoken, content), at)] if content else []
        if not is_said_by_user(spoken):
            return []
        said = [_block(part) for part in spoken.contents if isinstance(part, TextPart | MediaPart)]
        return [_entry({"role": "user", "content": said}, at)] if said else []

    def read(self, records: Sequence[Record]) -> Sequence[Message]:
        return pi.alone(records)

    def holder(self, record: Record) -> Record:
        return record

    def _answer(self, spoken: AssistantMessage, content: list[Record]) -> Record:
        wrote = spoken.producer
        has_calls = any(block["type"] == "toolCall" for block in content)
        return {
            "role": "assistant",
            "content": content,
            "api": APIS.get(wrote.format, "openai-completions") if wrote else "openai-completions",
            "provider": provider_name(wrote.provider) if wrote else "",
            "model": wrote.model if wrote else "",
            "usage": _usage(spoken.usage or Usage()),
            "stopReason": "toolUse" if has_calls else STOPS.get(spoken.stop_reason, "stop"),
        }

    def _said(self, part: AnyPart) -> Iterator[Record]:
        if isinstance(part, ToolPart):
            self._tools[part.call_id] = part.tool
            yield {"type": "toolCall", "id": part.call_id, "name": part.tool, "arguments": part.input}
        elif isinstance(part, ThinkingPart):
            signature = blob_of(part.blobs, SIGNATURE) or blob_of(part.blobs, THOUGHT_SIGNATURE)
            signed = {"thinkingSignature": signature} if signature else {}
            if part.text.strip() and not blob_of(part.blobs, REDACTED):
                yield {"type": "thinking", "thinking": part.text, **signed}
        elif not isinstance(part, TextPart) or part.text.strip():
            yield _block(part)

    def _result(self, result: Any, at: float) -> Record:
        content = [{"type": "text", "text": result.content}, *map(_block, result.media)]
        name = self._tools.get(result.id, "")
        said = {"role": "toolResult", "toolCallId": result.id, "toolName": name, "content": content, "isError": result.is_error}
        return _entry(said, at)


def _entry(message: Record, at: float) -> Record:
    return {"type": "message", "timestamp": iso(at), "message": {**message, "timestamp": milliseconds(at)}}


def _block(part: TextPart | MediaPart) -> Record:
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    if isinstance(part, ImagePart) and part.data:
        return {"type": "image", "data": base64_text(part.data), "mimeType": part.media_type or "image/png"}
    return {"type": "text", "text": f"[{part.type} {part.media_type}]"}


def _usage(usage: Usage) -> Record:
    cost = usage.cost or UsageCost()
    counts = {
        "input": usage.input_tokens,
        "output": usage.output_tokens,
        "cacheRead": usage.cache_read_tokens,
        "cacheWrite": usage.cache_write_tokens,
    }
    prices = {"input": cost.input, "output": cost.output, "cacheRead": cost.cache_read, "cacheWrite": cost.cache_write}
    return {**counts, "totalTokens": usage.context_tokens, "cost": {**prices, "total": cost.total}}


def _linked(records: Iterable[Record], info: About) -> Iterator[Record]:
    yield {"type": "session", "version": 3, "id": stable_uuid(info.id), "timestamp": iso(info.created), "cwd": info.cwd}
    before: Any = None
    for number, record in enumerate(records, 1):
        id = f"{number:08x}"
        yield {**record, "id": id, "parentId": before}
        before = id
    if info.title:
        yield {"type": "session_info", "id": "ffffffff", "parentId": before, "timestamp": iso(info.updated), "name": info.title}
