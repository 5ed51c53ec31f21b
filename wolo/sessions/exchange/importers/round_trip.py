"""What the records of another agent have no place for goes into them under a key of our own, which that agent passes over.

So a session that went out comes in the same, with what was said there behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from wolo.errors import SessionError
from wolo.formats.encoding.pairing import result_text
from wolo.formats.encoding.wire_names import IdPolicy, wire_id
from wolo.messages.message import MESSAGES, Message
from wolo.messages.roles import AgentMessage, by_role
from wolo.messages.unicode import whole_throughout
from wolo.sessions.exchange.importers.jsonl_lines import Record, parse
from wolo.sessions.exchange.json_diff import completed, missing_in

OWN = "wolo_message"
"""The key."""


class Own(Struct, frozen=True, omit_defaults=True):
    """What the first record of a message holds."""

    change: dict[str, Any]
    """The difference between what a reader of the records makes of them and the message."""
    before: tuple[Message, ...] = ()
    """Messages in front of it that have no form there."""
    after: tuple[Message, ...] = ()
    """The same behind the last one."""


class Writing(Protocol):
    """How one agent spells a session."""

    id_policy: IdPolicy
    """What ids of calls may look like there."""

    def records(self, spoken: AgentMessage) -> list[Record]:
        """Empty for what has no form there."""
        ...

    def read(self, records: Sequence[Record]) -> Sequence[Message]:
        """What the reader of this agent's sessions makes of the records alone."""
        ...

    def holder(self, record: Record) -> Record:
        """The object that takes a key of ours."""
        ...


def written(said: Iterable[Message], writing: Writing) -> Iterator[Record]:
    """The records of a session, each message told by its first one. Raises SessionError when nothing has a form there."""
    taken: set[str] = set()
    held: list[Record] = []
    waiting: list[Message] = []
    for message in said:
        spelled = [each for spoken in by_role([_as_told(message, writing, taken)]) for each in writing.records(spoken)]
        records = [*map(_plain, spelled)]
        read = writing.read(records)
        if len(read) != 1:
            waiting.append(message)
            continue
        yield from held
        own: Record = {"change": missing_in(read[0], message)}
        writing.holder(records[0])[OWN] = own | ({"before": _built(waiting)} if waiting else {})
        held, waiting = records, []
    if not held:
        raise SessionError("Nothing was said in this session that the other agent has a form for.", hint="Export it as jsonl.")
    if waiting:
        writing.holder(held[0])[OWN]["after"] = _built(waiting)
    yield from held


def read_own(value: object) -> Own | None:
    """None where there is nothing of ours, or what is there makes no sense."""
    try:
        return msgspec.convert(value, Own) if value is not None else None
    except (msgspec.ValidationError, RecursionError):
        return None


def restored(read: Message, own: Own) -> tuple[Message, ...]:
    return (*own.before, completed(read, own.change), *own.after)


def encoded(record: Record) -> bytes:
    return msgspec.json.encode(whole_throughout(record))


def as_lines(records: Iterable[Record], out: Callable[[bytes], object]) -> None:
    for record in records:
        out(encoded(record) + b"\n")


def _as_told(message: Message, writing: Writing, taken: set[str]) -> Message:
    """Each call with an id of its own and a result, as the model would hear it."""
    calls = []
    for call in message.calls:
        id = wire_id(call.wire_id, writing.id_policy, taken)
        taken.add(id)
        status: Any = "completed" if call.status == "completed" else "failed"
        tool = call.tool or "unknown"
        calls.append(replace(call, tool=tool, call_id=id, output=result_text(call), status=status))
    return message.with_parts(calls) if calls else message


def _plain(record: Record) -> Record:
    """As it is when it was written and read."""
    return parse(encoded(record)) or {}


def _built(messages: Iterable[Message]) -> list[Any]:
    return [msgspec.json.decode(MESSAGES.encode(message)) for message in messages]
