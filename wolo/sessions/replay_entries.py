"""Entries folded into the messages of a conversation: in memory only, the store is never rewritten."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec.structs import replace

from wolo.messages.message import Message, Usage
from wolo.messages.parts import TextPart, ToolPart
from wolo.sessions.entries import (
    AnyEntry,
    BranchEntry,
    CompactionEntry,
    LabelEntry,
    MessageEntry,
    PartialEntry,
    ResultsEntry,
    spent_aside,
)


def messages(entries: Iterable[AnyEntry]) -> tuple[Message, ...]:
    """What was said, for a conversation that goes on: nothing in it is still running."""
    return tuple(map(_settled, as_kept(entries)))


def as_kept(entries: Iterable[AnyEntry]) -> tuple[Message, ...]:
    """What was said, with calls whose end is not on record as they were kept last."""
    fold = _Fold()
    for entry in entries:
        fold.add(entry)
    return fold.finish()


def as_they_settle(entries: Iterable[tuple[int, AnyEntry]], last_changes: Mapping[str, int]) -> Iterator[Message]:
    """As `messages`, one after the other and without holding them all: each when nothing that follows can change it.

    `entries` come with their places; `last_changes` tells for the id of each message which place concerns it last.
    """
    fold = _Fold()
    for seq, entry in entries:
        fold.add(entry)
        yield from map(_settled, fold.take_settled(seq, last_changes))
    yield from map(_settled, fold.finish())


def compaction(entries: Iterable[AnyEntry]) -> CompactionEntry | None:
    """What holds now of what is sent; None: everything is."""
    last = None
    for entry in entries:
        if isinstance(entry, CompactionEntry):
            last = entry
    return last if last and (last.shortened or last.left_out) else None


def summed_up(entries: Iterable[AnyEntry]) -> tuple[Usage, ...]:
    """What asking for summaries has cost."""
    return tuple(entry.usage for entry in entries if isinstance(entry, CompactionEntry) and entry.usage)


def asked_aside(entries: Iterable[AnyEntry]) -> tuple[Usage, ...]:
    """What questions aside have cost."""
    return tuple(usage for entry in entries if (usage := spent_aside(entry)) is not None)


def labels(entries: Iterable[AnyEntry]) -> dict[str, str]:
    """By the id of the message."""
    found = {entry.message_id: entry.label for entry in entries if isinstance(entry, LabelEntry)}
    return {message_id: label for message_id, label in found.items() if label}


class _Fold:
    def __init__(self) -> None:
        self._messages: dict[str, Message] = {}
        self._partial_id = ""
        self._pieces: list[str] = []

    def add(self, entry: AnyEntry) -> None:
        if isinstance(entry, PartialEntry):
            self._add_partial(entry)
        elif isinstance(entry, MessageEntry):
            self._settle_partial(entry.message)
            self._messages[entry.message.id] = entry.message
        elif isinstance(entry, BranchEntry) and entry.summary is not None:
            self._settle_partial(None)
            self._messages[entry.summary.id] = entry.summary
        elif isinstance(entry, ResultsEntry) and entry.message_id in self._messages:
            self._messages[entry.message_id] = self._messages[entry.message_id].with_parts(entry.parts)

    def take_settled(self, seq: int, last_changes: Mapping[str, int]) -> Iterator[Message]:
        """Those at the beginning that no entry behind this place concerns; the last one stays, for what follows it."""
        while len(self._messages) > 1 and last_changes.get(first := next(iter(self._messages)), 0) <= seq:
            yield self._messages.pop(first)

    def finish(self) -> tuple[Message, ...]:
        self._settle_partial(None)
        return tuple(self._messages.values())

    def _add_partial(self, entry: PartialEntry) -> None:
        if entry.message_id != self._partial_id or not entry.text:
            # Another id is another attempt: nothing of a broken one counts as said.
            self._pieces.clear()
        self._partial_id = entry.message_id
        self._pieces.append(entry.text)

    def _settle_partial(self, following: Message | None) -> None:
        """An answer supersedes what was streamed before it; what nothing followed was cut off by a crash."""
        text = "".join(self._pieces)
        self._pieces.clear()
        if not text or (following is not None and following.role == "assistant"):
            return
        before = next(reversed(self._messages.values()), None)
        self._messages[self._partial_id] = Message(
            id=self._partial_id,
            role="assistant",
            parts=(TextPart(id=f"{self._partial_id}_text", text=text),),
            timestamp=before.timestamp if before else 0.0,
            finish_reason="interrupted",
        )


def _settled(message: Message) -> Message:
    unsettled = [part for part in message.calls if part.status in ("pending", "running")]
    if not unsettled:
        return message
    return message.with_parts(_stopped(part, is_first=part is message.calls[0]) for part in unsettled)


def _stopped(part: ToolPart, *, is_first: bool) -> ToolPart:
    """A call whose end is not on record.

    The first call of an answer, allowed at once, may have begun the moment the answer was kept; of every other one it is
    kept when it begins.
    """
    began = part.status == "running" or (is_first and was_allowed_at_once(part))
    return replace(part, status="failed", outcome="interrupted" if began else "never_started")


def was_allowed_at_once(part: ToolPart) -> bool:
    """The guard's first word, kept with the answer, was yes."""
    verdict = part.metadata.get("verdict")
    return isinstance(verdict, dict) and verdict.get("decision") == "allow"
