"""A session as Kimi CLI keeps what its model is sent: `context.jsonl`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence

from wolo.formats.encoding.wire_names import IdPolicy
from wolo.messages.message import Message
from wolo.messages.parts import AudioPart, FilePart, MediaPart, TextPart, ThinkingPart, ToolPart
from wolo.messages.roles import AgentMessage, AssistantMessage, ToolMessage
from wolo.sessions.exchange.exporters.common_fields import address, is_said_by_user
from wolo.sessions.exchange.importers import kimi
from wolo.sessions.exchange.importers.jsonl_lines import Record
from wolo.sessions.exchange.importers.round_trip import as_lines, written
from wolo.sessions.exchange.jsonl import Write
from wolo.sessions.exchange.message_stream import Said
from wolo.sessions.exchange.redaction import Redactor
from wolo.sessions.listing import SessionInfo
from wolo.sessions.store import Store


def write(store: Store, info: SessionInfo, out: Write, redactor: Redactor | None) -> None:
    as_lines(_with_mark(written(Said(store, info.id, redactor), Kimi())), out)


class Kimi:
    id_policy: IdPolicy = "anthropic"

    def records(self, spoken: AgentMessage) -> list[Record]:
        if isinstance(spoken, ToolMessage):
            return [
                {
                    "role": "tool",
                    "content": [
                        *([_text(f"{kimi.ERROR}: {result.content}</system>")] if result.is_error else [_text(result.content)]),
                        *map(_block, result.media),
                    ],
                    "tool_call_id": result.id,
                }
                for result in spoken.contents
            ]
        if isinstance(spoken, AssistantMessage):
            return self._answer(spoken)
        said = [_block(part) for part in spoken.contents if isinstance(part, TextPart | MediaPart)]
        return [{"role": "user", "content": said}] if said and is_said_by_user(spoken) else []

    def read(self, records: Sequence[Record]) -> Sequence[Message]:
        return kimi.alone(records)

    def holder(self, record: Record) -> Record:
        return record

    def _answer(self, spoken: AssistantMessage) -> list[Record]:
        content: list[Record] = []
        for part in spoken.contents:
            if isinstance(part, ThinkingPart):
                content += [{"type": "think", "think": part.text, "encrypted": None}] if part.text else []
            elif isinstance(part, TextPart | MediaPart) and (not isinstance(part, TextPart) or part.text.strip()):
                content.append(_block(part))
        calls = [_call(part) for part in spoken.contents if isinstance(part, ToolPart)]
        line: Record = {"role": "assistant", "content": content, **({"tool_calls": calls} if calls else {})}
        return [line] if content or calls else []


def _call(part: ToolPart) -> Record:
    function = {"name": part.tool, "arguments": json.dumps(part.input, ensure_ascii=False)}
    return {"type": "function", "id": part.call_id, "function": function}


def _block(part: TextPart | MediaPart) -> Record:
    if isinstance(part, TextPart):
        return _text(part.text)
    if isinstance(part, FilePart):
        return _text(f"[{part.name or part.media_type}]")
    kind = "audio_url" if isinstance(part, AudioPart) else "image_url"
    return {"type": kind, kind: {"url": address(part)}}


def _text(text: str) -> Record:
    return {"type": "text", "text": text}


def _with_mark(records: Iterable[Record]) -> Iterator[Record]:
    """Kimi's own marks tell such a file from other lists of messages."""
    yield {"role": "_checkpoint", "id": 0}
    yield from records
