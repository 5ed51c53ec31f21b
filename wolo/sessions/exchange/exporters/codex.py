"""A session as Codex keeps it: a rollout, JSON lines of items of the Responses API and of events that show them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence

from wolo.formats.encoding.wire_names import IdPolicy
from wolo.formats.openai_responses.encode import ENCRYPTED
from wolo.messages.message import Message, Usage
from wolo.messages.parts import AudioPart, FilePart, MediaPart, TextPart, ThinkingPart, ToolPart, blob_of
from wolo.messages.roles import AgentMessage, AssistantMessage, ToolMessage
from wolo.sessions.exchange.exporters.common_fields import (
    About,
    about,
    address,
    is_said_by_user,
    iso,
    provider_name,
    stable_uuid,
)
from wolo.sessions.exchange.importers import codex
from wolo.sessions.exchange.importers.jsonl_lines import Record
from wolo.sessions.exchange.importers.responses import parts_of, words_of
from wolo.sessions.exchange.importers.round_trip import as_lines, written
from wolo.sessions.exchange.jsonl import Write
from wolo.sessions.exchange.message_stream import Said
from wolo.sessions.exchange.redaction import Redactor
from wolo.sessions.listing import SessionInfo
from wolo.sessions.store import Store

VERSION = "0.128.0"
"""Of the program whose lines these look like."""


def write(store: Store, info: SessionInfo, out: Write, redactor: Redactor | None) -> None:
    as_lines(_with_head(written(Said(store, info.id, redactor), Codex()), about(info, redactor)), out)


class Codex:
    id_policy: IdPolicy = "responses"

    def __init__(self) -> None:
        self._tokens = 0
        """So far, of all answers."""

    def records(self, spoken: AgentMessage) -> list[Record]:
        at = spoken.timestamp
        if isinstance(spoken, ToolMessage):
            return [_result(result.id, result.content, result.media, at) for result in spoken.contents]
        if isinstance(spoken, AssistantMessage):
            return self._answer(spoken)
        if not is_said_by_user(spoken):
            return []
        said = [_input(part) for part in spoken.contents if isinstance(part, TextPart | MediaPart)]
        words = words_of(parts_of({"content": said}))
        shown = [_line("event_msg", {"type": "user_message", "message": words, "kind": "plain"}, at)] if words else []
        return [_line("response_item", {"type": "message", "role": "user", "content": said}, at), *shown] if said else []

    def read(self, records: Sequence[Record]) -> Sequence[Message]:
        return codex.alone(records)

    def holder(self, record: Record) -> Record:
        return record

    def _answer(self, spoken: AssistantMessage) -> list[Record]:
        at = spoken.timestamp
        thoughts = [_line("response_item", _reasoning(part), at) for part in spoken.thinking() if part.text.strip()]
        texts = [part.text for part in spoken.contents if isinstance(part, TextPart) and part.text.strip()]
        content = [{"type": "output_text", "text": text} for text in texts]
        words = [_line("response_item", {"type": "message", "role": "assistant", "content": content}, at)] if texts else []
        shown = [_line("event_msg", {"type": "agent_message", "message": "".join(texts).strip()}, at)] if texts else []
        calls = [_line("response_item", _call(part), at) for part in spoken.tool_calls()]
        lines = [*thoughts, *words, *shown, *calls]
        return [*lines, *self._count(spoken.usage, at)] if lines else []

    def _count(self, usage: Usage | None, at: float) -> list[Record]:
        tokens = usage.context_tokens if usage else 0
        if usage is None or not tokens:
            return []
        self._tokens += tokens
        cached = usage.cache_read_tokens
        last = {
            "input_tokens": usage.input_tokens + cached + usage.cache_write_tokens,
            "cached_input_tokens": cached,
            "output_tokens": usage.output_tokens,
            "reasoning_output_tokens": usage.reasoning_tokens,
            "total_tokens": tokens,
        }
        info = {"total_token_usage": {**last, "total_tokens": self._tokens}, "last_token_usage": last}
        return [_line("event_msg", {"type": "token_count", "info": info}, at)]


def _line(type: str, payload: Record, at: float) -> Record:
    return {"timestamp": iso(at), "type": type, "payload": payload}


def _reasoning(part: ThinkingPart) -> Record:
    sealed = blob_of(part.blobs, ENCRYPTED)
    return {
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": part.text}],
        **({"encrypted_content": sealed} if sealed else {}),
    }


def _call(part: ToolPart) -> Record:
    arguments = json.dumps(part.input, ensure_ascii=False)
    return {"type": "function_call", "name": part.tool, "arguments": arguments, "call_id": part.call_id}


def _result(call_id: str, text: str, media: Sequence[MediaPart], at: float) -> Record:
    output = [_input(TextPart(text=text)), *map(_input, media)] if media else text
    return _line("response_item", {"type": "function_call_output", "call_id": call_id, "output": output}, at)


def _input(part: TextPart | MediaPart) -> Record:
    if isinstance(part, TextPart):
        return {"type": "input_text", "text": part.text}
    if isinstance(part, AudioPart | FilePart):
        return {"type": "input_text", "text": f"[{part.type} {part.media_type}]"}
    return {"type": "input_image", "image_url": address(part)}


def _with_head(records: Iterable[Record], info: About) -> Iterator[Record]:
    provider, _, model = info.model.partition("/")
    meta = {
        "id": stable_uuid(info.id),
        "timestamp": iso(info.created),
        "cwd": info.cwd,
        "originator": "codex_cli_rs",
        "cli_version": VERSION,
        "source": "cli",
        "model_provider": provider_name(provider),
    }
    yield _line("session_meta", meta, info.created)
    turn = {
        "cwd": info.cwd,
        "approval_policy": "on-request",
        "sandbox_policy": {"type": "workspace-write"},
        "model": model,
        "summary": "auto",
    }
    yield _line("turn_context", turn, info.created)
    yield from records
    if info.title:
        yield _line("event_msg", {"type": "thread_name_updated", "thread_name": info.title}, info.updated)
