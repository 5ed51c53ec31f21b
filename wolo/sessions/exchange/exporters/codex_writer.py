"""Exports a session in Codex's format: a rollout of Responses API items and events as JSON lines."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence

from wolo.formats.encoding.wire_forms import IdPolicy
from wolo.formats.openai_responses.encode import ENCRYPTED
from wolo.messages.message import Message
from wolo.messages.parts import AudioPart, FilePart, MediaPart, TextPart, ThinkingPart, blob_of
from wolo.messages.roles import AssistantMessage, ToolMessage
from wolo.sessions.exchange.exporters import record_writer
from wolo.sessions.exchange.importers import builder, codex, responses_items
from wolo.sessions.exchange.json_files import Record

VERSION = "0.128.0"
"""The Codex version whose files these resemble."""


class _CodexWriter:
    id_policy: IdPolicy = "responses"

    def __init__(self) -> None:
        self._total_tokens = 0

    def user(self, parts: Sequence[TextPart | MediaPart], at: float) -> list[Record]:
        content = [_input(part) for part in parts]
        words = builder.words_of(responses_items.parts_of({"content": content})).strip()
        shown = [_line("event_msg", {"type": "user_message", "message": words, "kind": "plain"}, at)] if words else []
        return [_line("response_item", {"type": "message", "role": "user", "content": content}, at), *shown]

    def results(self, message: ToolMessage) -> list[Record]:
        lines: list[Record] = []
        for result in message.contents:
            blocks = [_input(TextPart(text=result.content)), *map(_input, result.media)]
            output = blocks if result.media else result.content
            payload = {"type": "function_call_output", "call_id": result.id, "output": output}
            lines.append(_line("response_item", payload, message.timestamp))
        return lines

    def answer(self, message: AssistantMessage) -> list[Record]:
        at = message.timestamp
        thoughts = [_line("response_item", _reasoning(part), at) for part in message.thinking() if part.text.strip()]
        texts = [part.text for part in message.contents if isinstance(part, TextPart) and not record_writer.is_blank(part)]
        content = [{"type": "output_text", "text": text} for text in texts]
        words = [_line("response_item", {"type": "message", "role": "assistant", "content": content}, at)] if texts else []
        shown = [_line("event_msg", {"type": "agent_message", "message": "".join(texts).strip()}, at)] if texts else []
        lines = [*thoughts, *words, *shown]
        for part in message.tool_calls():
            arguments = json.dumps(part.input, ensure_ascii=False)
            call = {"type": "function_call", "name": part.tool, "arguments": arguments, "call_id": part.call_id}
            lines.append(_line("response_item", call, at))
        usage = message.usage
        if not lines or usage is None or not usage.context_tokens:
            return lines
        self._total_tokens += usage.context_tokens
        last = {
            "input_tokens": usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens,
            "cached_input_tokens": usage.cache_read_tokens,
            "output_tokens": usage.output_tokens,
            "reasoning_output_tokens": usage.reasoning_tokens,
            "total_tokens": usage.context_tokens,
        }
        totals = {"total_token_usage": {**last, "total_tokens": self._total_tokens}, "last_token_usage": last}
        return [*lines, _line("event_msg", {"type": "token_count", "info": totals}, at)]

    def read(self, records: Sequence[Record]) -> Sequence[Message]:
        return record_writer.read_records(codex.CodexReader(), records)

    def frame(self, records: Iterable[Record], header: record_writer.SessionHeader) -> Iterator[Record]:
        provider, _, model = header.model.partition("/")
        meta = {
            "id": record_writer.stable_uuid(header.id),
            "timestamp": record_writer.iso(header.created),
            "cwd": header.cwd,
            "originator": "codex_cli_rs",
            "cli_version": VERSION,
            "source": "cli",
            "model_provider": record_writer.provider_name(provider),
        }
        yield _line("session_meta", meta, header.created)
        turn = {
            "cwd": header.cwd,
            "approval_policy": "on-request",
            "sandbox_policy": {"type": "workspace-write"},
            "model": model,
            "summary": "auto",
        }
        yield _line("turn_context", turn, header.created)
        yield from records
        if header.title:
            yield _line("event_msg", {"type": "thread_name_updated", "thread_name": header.title}, header.updated)


def _line(type: str, payload: Record, at: float) -> Record:
    return {"timestamp": record_writer.iso(at), "type": type, "payload": payload}


def _reasoning(part: ThinkingPart) -> Record:
    sealed = blob_of(part.blobs, ENCRYPTED)
    return {
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": part.text}],
        **({"encrypted_content": sealed} if sealed else {}),
    }


def _input(part: TextPart | MediaPart) -> Record:
    if isinstance(part, TextPart):
        return {"type": "input_text", "text": part.text}
    if isinstance(part, AudioPart | FilePart):
        return {"type": "input_text", "text": f"[{part.type} {part.media_type}]"}
    return {"type": "input_image", "image_url": record_writer.address(part)}


write = record_writer.line_export(_CodexWriter)
