"""Writes a session as the records of another agent, with what they cannot hold under a key of wolo's own.

The other agent ignores that key; importing the file restores the session, with what was added behind it.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import msgspec
from msgspec.structs import replace

from wolo.errors import SessionError
from wolo.formats.encoding.attachments import data_url
from wolo.formats.encoding.wire_forms import IdPolicy, result_text, wire_id
from wolo.messages import roles
from wolo.messages.message import MESSAGES, Message
from wolo.messages.parts import AnyPart, AudioPart, FilePart, ImagePart, MediaPart, TextPart
from wolo.messages.unicode import whole_throughout
from wolo.sessions import listing
from wolo.sessions.exchange.export_stream import MessageStream, Write
from wolo.sessions.exchange.foreign.builder import KNOWN, OWN, RecordReader
from wolo.sessions.exchange.json_diff import missing_in
from wolo.sessions.exchange.json_files import END_OF_TIME, Record, parse_object
from wolo.sessions.exchange.redaction import Redactor
from wolo.sessions.listing import SessionInfo
from wolo.sessions.store import Store

_NAMESPACE = uuid.UUID("8f6a4f5e-9a0f-5a3b-9d4c-77a1c0c0de00")
_NAMES_ELSEWHERE = {name: elsewhere for elsewhere, (name, _) in KNOWN.items()}
"""Provider name of wolo → name that other agents use."""


class SessionHeader(NamedTuple):
    id: str
    title: str
    cwd: str
    model: str
    created: float
    updated: float


class RecordWriter(Protocol):
    """Spells messages as one agent does."""

    id_policy: IdPolicy
    """The form of call ids there."""

    def user(self, parts: Sequence[TextPart | MediaPart], at: float) -> list[Record]:
        """Records of a user message; also of a summary."""

    def answer(self, message: roles.AssistantMessage) -> list[Record]: ...

    def results(self, message: roles.ToolMessage) -> list[Record]: ...


class LineWriter(RecordWriter, Protocol):
    def frame(self, records: Iterable[Record], header: SessionHeader) -> Iterator[Record]:
        """Adds the header lines and links the records."""


def line_export(
    writer_type: type[LineWriter], reader_type: Callable[[], RecordReader]
) -> Callable[[Store, SessionInfo, Write, Redactor | None], None]:
    def write(store: Store, info: SessionInfo, out: Write, redactor: Redactor | None) -> None:
        writer = writer_type()
        records = session_records(MessageStream(store, info.id, redactor), writer, reader_type)
        for record in writer.frame(records, header_of(info, redactor)):
            out(encode(record) + b"\n")

    return write


def session_records(
    messages: Iterable[Message], writer: RecordWriter, reader_type: Callable[[], RecordReader]
) -> Iterator[Record]:
    """Yields the records of all messages. Raises SessionError when no message has a form there.

    A reader tells what an import would get from the records alone.
    """
    taken: set[str] = set()
    held: list[Record] = []
    waiting: list[Message] = []
    for message in messages:
        # Gives each call an id of the agent's form and the result as the model would read it
        calls = []
        for call in message.calls:
            id = wire_id(call.wire_id, writer.id_policy, taken)
            taken.add(id)
            status: Any = "completed" if call.status == "completed" else "failed"
            tool = call.tool or "unknown"
            calls.append(replace(call, tool=tool, call_id=id, output=result_text(call), status=status))
        spelled = [
            each
            for spoken in roles.by_role([message.with_parts(calls) if calls else message])
            for each in _records(spoken, writer)
        ]
        records = [parse_object(encode(record)) or {} for record in spelled]
        read = reader_type().read(records).messages()
        if len(read) != 1:
            waiting.append(message)
            continue
        yield from held
        own: Record = {"change": missing_in(read[0], message)}
        _holder(records[0])[OWN] = own | ({"before": _as_json(waiting)} if waiting else {})
        held, waiting = records, []
    if not held:
        raise SessionError("The session has no message that the other agent's format can hold.", hint="Export it as jsonl.")
    if waiting:
        _holder(held[0])[OWN]["after"] = _as_json(waiting)
    yield from held


def header_of(info: SessionInfo, redactor: Redactor | None) -> SessionHeader:
    texts = (info.title or info.name or "", info.cwd, info.model)
    title, cwd, model = (redactor.text(text) if redactor else text for text in texts)
    return SessionHeader(info.id, title, cwd, model, info.created, info.updated)


def encode(record: Record) -> bytes:
    return msgspec.json.encode(whole_throughout(record))


def text_block(text: str) -> Record:
    return {"type": "text", "text": text}


def is_blank(part: AnyPart) -> bool:
    return isinstance(part, TextPart) and not part.text.strip()


def stable_uuid(*names: str) -> str:
    return str(uuid.uuid5(_NAMESPACE, "\0".join(names)))


def iso(then: float) -> str:
    return listing.iso(then if 0 < then < END_OF_TIME else 0.0, "milliseconds").replace("+00:00", "Z")


def milliseconds(then: float) -> int:
    return int(then * 1000) if 0 < then < END_OF_TIME else 0


def address(part: MediaPart) -> str:
    """The URL of a part; a data URL where its data is here."""
    if not part.data and isinstance(part, ImagePart | FilePart):
        return part.url
    default = {ImagePart: "image/png", AudioPart: "audio/mpeg", FilePart: "application/pdf"}[type(part)]
    return data_url(part.media_type or default, part.data)


def provider_name(provider: str) -> str:
    return _NAMES_ELSEWHERE.get(provider, provider)


def _records(message: roles.AgentMessage, writer: RecordWriter) -> list[Record]:
    match message:
        case roles.ToolMessage():
            return writer.results(message)
        case roles.AssistantMessage():
            return writer.answer(message)
        case roles.UserMessage() | roles.BranchSummaryMessage() | roles.CompactionSummaryMessage():
            parts = [part for part in message.contents if isinstance(part, TextPart | MediaPart)]
            return writer.user(parts, message.timestamp) if parts else []
    return []


def _holder(record: Record) -> Record:
    """The object that takes a key of wolo's: OpenCode's records are pairs of a head and parts."""
    info = record.get("info")
    return info if isinstance(info, dict) else record


def _as_json(messages: Iterable[Message]) -> list[Any]:
    return [msgspec.json.decode(MESSAGES.encode(message)) for message in messages]
