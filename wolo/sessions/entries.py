"""Defines the entries of a session, and their rows linked by hashes."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import msgspec
from msgspec import Struct, ValidationError, convert, field, to_builtins

from wolo.messages.message import Codec, Message, Usage, task_usage
from wolo.messages.parts import ToolPart


class Entry(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind"):
    pass


class MessageEntry(Entry, frozen=True, kw_only=True, omit_defaults=True, tag="message"):
    message: Message


class ResultsEntry(Entry, frozen=True, kw_only=True, omit_defaults=True, tag="results"):
    """Calls of an earlier assistant message have ended (or started, or were decided): its parts of equal id are replaced."""

    message_id: str
    parts: tuple[ToolPart, ...]


class PartialEntry(Entry, frozen=True, kw_only=True, omit_defaults=True, tag="partial"):
    """A further piece of an answer that was still streaming; the pieces of one id make its text so far.

    Superseded by the assistant message, or the next attempt, that follows; an empty piece takes all earlier ones back.
    """

    message_id: str
    text: str


class SettingEntry(Entry, frozen=True, kw_only=True, omit_defaults=True, tag="setting"):
    """The model, the mode or the name changed from here on."""

    name: str
    value: str


class BranchEntry(Entry, frozen=True, kw_only=True, omit_defaults=True, tag="branch"):
    """Here the conversation went on behind an earlier entry, this one's parent."""

    left: int
    """The entry it had come to before; what lies between stays, on a branch of its own."""
    summary: Message | None = None
    """What came of the branch that was left, of role `branch_summary`."""


class LabelEntry(Entry, frozen=True, kw_only=True, omit_defaults=True, tag="label"):
    """A person's own name for a place; the last one of a message counts, an empty one takes it away."""

    message_id: str
    label: str


class CompactionEntry(Entry, frozen=True, kw_only=True, omit_defaults=True, tag="compaction"):
    """From here on less of what was said is sent. The last one counts; one without anything in it takes all back."""

    summary: Message | None = None
    """Stands for the messages that are left out, of role `compaction_summary`."""
    shortened: tuple[str, ...] = ()
    """Ids of the messages whose outputs are sent shortened."""
    left_out: tuple[str, ...] = ()
    """Ids of the messages that are not sent."""
    reason: str = ""
    tokens_before: int = 0
    tokens_after: int = 0
    usage: Usage | None = None
    """What asking for the summary has cost."""


class CustomEntry(Entry, frozen=True, kw_only=True, omit_defaults=True, tag="custom"):
    """What an extension keeps; never sent."""

    custom_type: str
    data: dict[str, Any] = field(default_factory=dict)


ASIDE = "aside"
"""A question that is no part of the conversation: only what it has cost is kept."""


def aside_entry(usage: Usage) -> CustomEntry:
    return CustomEntry(custom_type=ASIDE, data={"usage": to_builtins(usage)})


def spent_beside(entry: AnyEntry) -> Usage | None:
    """What was used for something that is no message of the conversation: a summary, or a question aside."""
    return entry.usage if isinstance(entry, CompactionEntry) else spent_aside(entry)


def spent_on_tasks(entry: AnyEntry) -> list[Usage]:
    """What other agents used; the answers themselves are in sessions of their own."""
    parts = entry.parts if isinstance(entry, ResultsEntry) else ()
    return [usage for part in parts if (usage := task_usage(part)) is not None]


def spent_aside(entry: AnyEntry) -> Usage | None:
    if isinstance(entry, CustomEntry) and entry.custom_type == ASIDE:
        try:
            return convert(entry.data.get("usage"), Usage)
        except ValidationError:
            return None
    return None


AnyEntry = MessageEntry | ResultsEntry | PartialEntry | SettingEntry | BranchEntry | LabelEntry | CompactionEntry | CustomEntry


DIGEST_BYTES = 16

_entries: Codec[AnyEntry] = Codec(AnyEntry)


class StoredRow(Struct, frozen=True):
    """The row of an entry as it is on disk, intact or not."""

    seq: int
    parent: int
    """`seq` of the entry it follows, 0 before the first; -1 when that was lost."""
    time_utc: float
    prev_hash: bytes
    hash: bytes
    body: bytes | None
    """JSON of the entry; None when the file that held it is gone."""

    @property
    def is_intact(self) -> bool:
        return self.body is not None and self.hash == _digest(self.body, self.seq, self.time_utc, self.prev_hash)

    @property
    def entry(self) -> AnyEntry | None:
        """None when the row is damaged, or of a kind this wolo does not know."""
        return decode_entry(self.body) if self.body is not None and self.is_intact else None


def encode_entry(entry: AnyEntry) -> bytes:
    return _entries.encode(entry)


def decode_entry(body: bytes) -> AnyEntry | None:
    """None for what is no entry, or one of a kind this wolo does not know."""
    try:
        return _entries.decode(body)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return None


def link_row(body: bytes, *, seq: int, parent: int, time_utc: float, prev_hash: bytes) -> StoredRow:
    """Makes the row of an entry, with its hash."""
    return StoredRow(seq, parent, time_utc, prev_hash, _digest(body, seq, time_utc, prev_hash), body)


def _digest(body: bytes, seq: int, time_utc: float, prev_hash: bytes) -> bytes:
    running = blake2b(prev_hash, digest_size=DIGEST_BYTES)
    running.update(b"%d %b\n" % (seq, repr(time_utc).encode()))
    running.update(body)
    return running.digest()
