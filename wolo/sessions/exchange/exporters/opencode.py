"""A session as `opencode export` prints it and `opencode import` takes it: one JSON document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wolo.formats.anthropic.encode import SIGNATURE
from wolo.formats.encoding.wire_names import IdPolicy
from wolo.formats.gemini.encode import THOUGHT_SIGNATURE
from wolo.formats.openai_responses.encode import ENCRYPTED
from wolo.messages.message import Message, Usage
from wolo.messages.parts import AnyPart, FilePart, MediaPart, TextPart, ThinkingPart, ToolPart, blob_of
from wolo.messages.roles import AgentMessage, AssistantMessage, ToolMessage, ToolResult
from wolo.sessions.exchange.exporters.common_fields import (
    about,
    address,
    is_said_by_user,
    milliseconds,
    provider_name,
    stable_uuid,
)
from wolo.sessions.exchange.importers import opencode_messages
from wolo.sessions.exchange.importers.jsonl_lines import Record
from wolo.sessions.exchange.importers.round_trip import encoded, written
from wolo.sessions.exchange.jsonl import Write
from wolo.sessions.exchange.message_stream import Said
from wolo.sessions.exchange.redaction import Redactor
from wolo.sessions.listing import SessionInfo
from wolo.sessions.store import Store

VERSION = "1.2.10"
"""Of the program whose export this looks like."""
STOPS = {"stop": "stop", "length": "length", "tool_calls": "tool-calls", "refused": "content-filter", "error": "error"}
SIGNED = {
    SIGNATURE: ("anthropic", "signature"),
    ENCRYPTED: ("openai", "reasoningEncryptedContent"),
    THOUGHT_SIGNATURE: ("google", "thoughtSignature"),
}


def write(store: Store, info: SessionInfo, out: Write, redactor: Redactor | None) -> None:
    session, known = _id("ses", info.id), about(info, redactor)
    head = {
        "id": session,
        "projectID": "global",
        "directory": known.cwd,
        "title": known.title,
        "version": VERSION,
        "time": {"created": milliseconds(info.created), "updated": milliseconds(info.updated)},
    }
    between = b'{"info": ' + encoded(head) + b',\n"messages": [\n'
    for number, record in enumerate(written(Said(store, info.id, redactor), OpenCode(known.cwd))):
        message = _id("msg", info.id, f"{number:08}")
        named = {**record["info"], "id": message, "sessionID": session}
        parts = [
            {"id": f"{message.replace('msg', 'prt')}{at:04}", "sessionID": session, "messageID": message, **part}
            for at, part in enumerate(record["parts"])
        ]
        out(between + encoded({"info": named, "parts": parts}))
        between = b",\n"
    out(b"\n]}\n")


class OpenCode:
    id_policy: IdPolicy = "anthropic"

    def __init__(self, cwd: str) -> None:
        self._cwd = cwd
        self._answer: Record = {}
        """The last one: its results are in its parts."""

    def records(self, spoken: AgentMessage) -> list[Record]:
        if isinstance(spoken, ToolMessage):
            for result in spoken.contents:
                self._put(result, spoken.timestamp)
            return []
        time = {"created": milliseconds(spoken.timestamp), "completed": milliseconds(spoken.timestamp)}
        if isinstance(spoken, AssistantMessage):
            parts = [each for part in spoken.contents for each in _said(part)]
            self._answer = {"info": {**self._about(spoken), "time": time}, "parts": [{"type": "step-start"}, *parts]}
            return [self._answer] if parts else []
        said = [_part(part) for part in spoken.contents if isinstance(part, TextPart | MediaPart)]
        model = {"providerID": "", "modelID": ""}
        user = {"info": {"role": "user", "time": time, "agent": "build", "model": model}, "parts": said}
        return [user] if said and is_said_by_user(spoken) else []

    def read(self, records: Sequence[Record]) -> Sequence[Message]:
        told = [opencode_messages.Told(record["info"], record["parts"]) for record in records]
        return opencode_messages.gather(told, "")[0].messages()

    def holder(self, record: Record) -> Record:
        info: Record = record["info"]
        return info

    def _about(self, spoken: AssistantMessage) -> Record:
        usage, wrote = spoken.usage or Usage(), spoken.producer
        return {
            "role": "assistant",
            "providerID": provider_name(wrote.provider) if wrote else "",
            "modelID": wrote.model if wrote else "",
            "mode": "build",
            "agent": "build",
            "path": {"cwd": self._cwd, "root": self._cwd},
            "cost": usage.cost.total if usage.cost else 0,
            "tokens": {
                "input": usage.input_tokens,
                "output": usage.output_tokens,
                "reasoning": usage.reasoning_tokens,
                "cache": {"read": usage.cache_read_tokens, "write": usage.cache_write_tokens},
            },
            "finish": STOPS.get(spoken.stop_reason, "stop"),
        }

    def _put(self, result: ToolResult, at: float) -> None:
        call: Any = next(part for part in self._answer["parts"] if part.get("callID") == result.id)
        state, time = call["state"], {"start": milliseconds(at), "end": milliseconds(at)}
        if result.is_error:
            call["state"] = {"status": "error", "input": state["input"], "error": result.content, "time": time}
            return
        attached = {"attachments": [_part(part) for part in result.media]} if result.media else {}
        shown = {"output": result.content, "title": "", "metadata": {}, "time": time}
        call["state"] = {"status": "completed", "input": state["input"], **shown, **attached}


def _said(part: AnyPart) -> list[Record]:
    if isinstance(part, ToolPart):
        return [{"type": "tool", "callID": part.call_id, "tool": part.tool, "state": {"status": "pending", "input": part.input}}]
    if isinstance(part, ThinkingPart):
        signed = {name: {key: sealed} for kind, (name, key) in SIGNED.items() if (sealed := blob_of(part.blobs, kind))}
        return [{"type": "reasoning", "text": part.text, "metadata": signed, "time": {"start": 0}}] if part.text.strip() else []
    return [_part(part)] if not isinstance(part, TextPart) or part.text.strip() else []


def _part(part: TextPart | MediaPart) -> Record:
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    name = part.name if isinstance(part, FilePart) else ""
    return {"type": "file", "mime": part.media_type, "filename": name, "url": address(part)}


def _id(kind: str, *names: str) -> str:
    """Sorts as it was said."""
    return f"{kind}_{names[-1] if len(names) > 1 else ''}{stable_uuid(*names).replace('-', '')[:18]}"
