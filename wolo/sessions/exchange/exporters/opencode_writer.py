"""Exports a session as the JSON document that `opencode export` prints and `opencode import` reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wolo.formats.anthropic.encode import SIGNATURE
from wolo.formats.encoding.wire_forms import IdPolicy
from wolo.formats.gemini.encode import THOUGHT_SIGNATURE
from wolo.formats.openai_responses.encode import ENCRYPTED
from wolo.messages.message import Message, Usage
from wolo.messages.parts import AnyPart, FilePart, MediaPart, TextPart, ThinkingPart, ToolPart, blob_of
from wolo.messages.roles import AssistantMessage, ToolMessage
from wolo.sessions.exchange.export_stream import MessageStream, Write
from wolo.sessions.exchange.exporters import record_writer
from wolo.sessions.exchange.importers import opencode_messages
from wolo.sessions.exchange.json_files import Record
from wolo.sessions.exchange.redaction import Redactor
from wolo.sessions.listing import SessionInfo
from wolo.sessions.store import Store

VERSION = "1.2.10"
"""The OpenCode version whose exports these resemble."""
STOPS = {"stop": "stop", "length": "length", "tool_calls": "tool-calls", "refused": "content-filter", "error": "error"}
SIGNATURES = {
    SIGNATURE: ("anthropic", "signature"),
    ENCRYPTED: ("openai", "reasoningEncryptedContent"),
    THOUGHT_SIGNATURE: ("google", "thoughtSignature"),
}


def write(store: Store, info: SessionInfo, out: Write, redactor: Redactor | None) -> None:
    session, header = _id("ses", info.id), record_writer.header_of(info, redactor)
    head = {
        "id": session,
        "projectID": "global",
        "directory": header.cwd,
        "title": header.title,
        "version": VERSION,
        "time": {"created": record_writer.milliseconds(info.created), "updated": record_writer.milliseconds(info.updated)},
    }
    between = b'{"info": ' + record_writer.encode(head) + b',\n"messages": [\n'
    for number, record in enumerate(
        record_writer.session_records(MessageStream(store, info.id, redactor), _OpenCodeWriter(header.cwd))
    ):
        message = _id("msg", info.id, f"{number:08}")
        named = {**record["info"], "id": message, "sessionID": session}
        parts = [
            {"id": f"{message.replace('msg', 'prt')}{at:04}", "sessionID": session, "messageID": message, **part}
            for at, part in enumerate(record["parts"])
        ]
        out(between + record_writer.encode({"info": named, "parts": parts}))
        between = b",\n"
    out(b"\n]}\n")


class _OpenCodeWriter:
    id_policy: IdPolicy = "anthropic"

    def __init__(self, cwd: str) -> None:
        self._cwd = cwd
        self._answer: Record = {}
        """The last answer: results go into its parts."""

    def user(self, parts: Sequence[TextPart | MediaPart], at: float) -> list[Record]:
        info = {"role": "user", "time": _span(at), "agent": "build", "model": {"providerID": "", "modelID": ""}}
        return [{"info": info, "parts": [_part(part) for part in parts]}]

    def results(self, message: ToolMessage) -> list[Record]:
        """Adds the results to the last answer."""
        at = record_writer.milliseconds(message.timestamp)
        for result in message.contents:
            call: Any = next(part for part in self._answer["parts"] if part.get("callID") == result.id)
            head = {"status": "error" if result.is_error else "completed", "input": call["state"]["input"]}
            time = {"start": at, "end": at}
            if result.is_error:
                call["state"] = {**head, "error": result.content, "time": time}
                continue
            attached = {"attachments": [_part(part) for part in result.media]} if result.media else {}
            call["state"] = {**head, "output": result.content, "title": "", "metadata": {}, "time": time, **attached}
        return []

    def answer(self, message: AssistantMessage) -> list[Record]:
        parts = [each for part in message.contents for each in _answer_parts(part)]
        usage, producer = message.usage or Usage(), message.producer
        self._answer = {
            "info": {
                "role": "assistant",
                "providerID": record_writer.provider_name(producer.provider) if producer else "",
                "modelID": producer.model if producer else "",
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
                "finish": STOPS.get(message.stop_reason, "stop"),
                "time": _span(message.timestamp),
            },
            "parts": [{"type": "step-start"}, *parts],
        }
        return [self._answer] if parts else []

    def read(self, records: Sequence[Record]) -> Sequence[Message]:
        rows = [opencode_messages.MessageRow(record["info"], record["parts"]) for record in records]
        return opencode_messages.gather(rows, "")[0].messages()


def _span(at: float) -> Record:
    return {"created": record_writer.milliseconds(at), "completed": record_writer.milliseconds(at)}


def _answer_parts(part: AnyPart) -> list[Record]:
    if isinstance(part, ToolPart):
        return [{"type": "tool", "callID": part.call_id, "tool": part.tool, "state": {"status": "pending", "input": part.input}}]
    if isinstance(part, ThinkingPart):
        signed = {name: {key: sealed} for kind, (name, key) in SIGNATURES.items() if (sealed := blob_of(part.blobs, kind))}
        return [{"type": "reasoning", "text": part.text, "metadata": signed, "time": {"start": 0}}] if part.text.strip() else []
    return [] if record_writer.is_blank(part) else [_part(part)]


def _part(part: TextPart | MediaPart) -> Record:
    if isinstance(part, TextPart):
        return record_writer.text_block(part.text)
    name = part.name if isinstance(part, FilePart) else ""
    return {"type": "file", "mime": part.media_type, "filename": name, "url": record_writer.address(part)}


def _id(kind: str, *names: str) -> str:
    """Sorts in the order of the messages."""
    return f"{kind}_{names[-1] if len(names) > 1 else ''}{record_writer.stable_uuid(*names).replace('-', '')[:18]}"
