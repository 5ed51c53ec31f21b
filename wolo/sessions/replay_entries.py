"""Replays entries into the messages of a conversation, in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from wolo.messages.message import Message, Usage
from wolo.messages.parts import TextPart, ToolPart
from wolo.sessions.entries import (
    GOAL_ENTRY,
    AnyEntry,
    BranchEntry,
    CompactionEntry,
    CustomEntry,
    LabelEntry,
    MessageEntry,
    PartialEntry,
    ResultsEntry,
)
from wolo.sessions.session_rows import side_question_usage


def messages(entries: Iterable[AnyEntry]) -> tuple[Message, ...]:
    """Messages to continue a conversation with: calls without a result are marked as stopped."""
    return tuple(map(_end_calls, as_stored(entries)))


def as_stored(entries: Iterable[AnyEntry]) -> tuple[Message, ...]:
    """Messages with unfinished calls as they were stored."""
    fold = _Fold()
    for entry in entries:
        fold.add(entry)
    return fold.finish()


def stream_messages(entries: Iterable[tuple[int, AnyEntry]], last_changes: Mapping[str, int]) -> Iterator[Message]:
    """Yields the same as `messages` in bounded memory: each message once no later entry can change it.

    `entries` come with their `seq`; `last_changes` maps a message id to the last `seq` that concerns it.
    """
    fold = _Fold()
    for seq, entry in entries:
        fold.add(entry)
        yield from map(_end_calls, fold.take_finished(seq, last_changes))
    yield from map(_end_calls, fold.finish())


def compaction(entries: Iterable[AnyEntry]) -> CompactionEntry | None:
    """The compaction in force; None when everything is sent."""
    last = None
    for entry in entries:
        if isinstance(entry, CompactionEntry):
            last = entry
    return last if last and (last.shortened or last.left_out) else None


def summary_usages(entries: Iterable[AnyEntry]) -> tuple[Usage, ...]:
    return tuple(entry.usage for entry in entries if isinstance(entry, CompactionEntry) and entry.usage)


def side_question_usages(entries: Iterable[AnyEntry]) -> tuple[Usage, ...]:
    return tuple(usage for entry in entries if (usage := side_question_usage(entry)) is not None)


def before_newest_prompt(entries: Sequence[AnyEntry]) -> Sequence[AnyEntry]:
    prompts = (at for at, entry in enumerate(entries) if isinstance(entry, MessageEntry) and entry.message.is_prompt)
    return entries[: max(prompts, default=0)]


def goal(entries: Iterable[AnyEntry]) -> dict[str, Any] | None:
    """The state of the goal that was saved last."""
    states = [entry.data for entry in entries if isinstance(entry, CustomEntry) and entry.custom_type == GOAL_ENTRY]
    return states[-1] if states else None


def labels(entries: Iterable[AnyEntry]) -> dict[str, str]:
    found = {entry.message_id: entry.label for entry in entries if isinstance(entry, LabelEntry)}
    return {message_id: label for message_id, label in found.items() if label}


class _Fold:
    def __init__(self) -> None:
        self._messages: dict[str, Message] = {}
        self._partial_id = ""
        self._pieces: list[str] = []

    def add(self, entry: AnyEntry) -> None:
        if isinstance(entry, PartialEntry):
            if entry.message_id != self._partial_id or not entry.text:
                # A different id is a new attempt, which discards the text of the failed one.
                self._pieces.clear()
            self._partial_id = entry.message_id
            self._pieces.append(entry.text)
        elif isinstance(entry, MessageEntry):
            self._end_partial(entry.message)
            self._messages[entry.message.id] = entry.message
        elif isinstance(entry, BranchEntry) and entry.summary is not None:
            self._end_partial(None)
            self._messages[entry.summary.id] = entry.summary
        elif isinstance(entry, ResultsEntry) and entry.message_id in self._messages:
            self._messages[entry.message_id] = self._messages[entry.message_id].with_parts(entry.parts)

    def take_finished(self, seq: int, last_changes: Mapping[str, int]) -> Iterator[Message]:
        """Yields leading messages that no later entry concerns; keeps the last one, which may be needed by what follows."""
        while len(self._messages) > 1 and last_changes.get(first := next(iter(self._messages)), 0) <= seq:
            yield self._messages.pop(first)

    def finish(self) -> tuple[Message, ...]:
        self._end_partial(None)
        return tuple(self._messages.values())

    def _end_partial(self, following: Message | None) -> None:
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


def _end_calls(message: Message) -> Message:
    """The message without open calls: one without a recorded result was interrupted, or never started."""
    unsettled = [part for part in message.calls if part.status in ("pending", "running")]
    if not unsettled:
        return message
    ended: list[ToolPart] = []
    for part in unsettled:
        # The first call, if allowed without asking, may have started when the answer was stored; every other start is recorded.
        began = part.status == "running" or (part is message.calls[0] and part.was_allowed_at_once)
        ended.append(replace(part, status="failed", outcome="interrupted" if began else "never_started"))
    return message.with_parts(ended)
