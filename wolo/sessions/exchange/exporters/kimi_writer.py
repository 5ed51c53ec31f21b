"""Exports a session in Kimi CLI's format: `context.jsonl`, the messages its model is sent."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence

from wolo.formats.encoding.wire_forms import IdPolicy
from wolo.messages.message import Message
from wolo.messages.parts import AudioPart, FilePart, MediaPart, TextPart, ThinkingPart
from wolo.messages.roles import AssistantMessage, ToolMessage
from wolo.sessions.exchange.exporters.record_writer import SessionHeader, address, is_blank, line_export, read_records, text_block
from wolo.sessions.exchange.importers import kimi
from wolo.sessions.exchange.json_files import Record


class _KimiWriter:
    id_policy: IdPolicy = "anthropic"

    def user(self, parts: Sequence[TextPart | MediaPart], at: float) -> list[Record]:
        return [{"role": "user", "content": [_block(part) for part in parts]}]

    def results(self, message: ToolMessage) -> list[Record]:
        lines: list[Record] = []
        for result in message.contents:
            text = f"{kimi.ERROR}: {result.content}</system>" if result.is_error else result.content
            content = [text_block(text), *map(_block, result.media)]
            lines.append({"role": "tool", "content": content, "tool_call_id": result.id})
        return lines

    def answer(self, message: AssistantMessage) -> list[Record]:
        content: list[Record] = []
        for part in message.contents:
            if isinstance(part, ThinkingPart):
                content += [{"type": "think", "think": part.text, "encrypted": None}] if part.text else []
            elif isinstance(part, TextPart | MediaPart) and not is_blank(part):
                content.append(_block(part))
        calls: list[Record] = []
        for part in message.tool_calls():
            function = {"name": part.tool, "arguments": json.dumps(part.input, ensure_ascii=False)}
            calls.append({"type": "function", "id": part.call_id, "function": function})
        line: Record = {"role": "assistant", "content": content, **({"tool_calls": calls} if calls else {})}
        return [line] if content or calls else []

    def read(self, records: Sequence[Record]) -> Sequence[Message]:
        return read_records(kimi.KimiReader(), records)

    def frame(self, records: Iterable[Record], header: SessionHeader) -> Iterator[Record]:
        """Begins with one of Kimi's checkpoint records, which tell the file from other lists of messages."""
        yield {"role": "_checkpoint", "id": 0}
        yield from records


def _block(part: TextPart | MediaPart) -> Record:
    if isinstance(part, TextPart):
        return text_block(part.text)
    if isinstance(part, FilePart):
        return text_block(f"[{part.name or part.media_type}]")
    kind = "audio_url" if isinstance(part, AudioPart) else "image_url"
    return {"type": kind, kind: {"url": address(part)}}


write = line_export(_KimiWriter)
