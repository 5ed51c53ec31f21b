"""A kept session as a tape to be played again: its turns, what was sent for each answer, and what a person said to each call."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from wolo.agent.course import EMPTY_CUT_OFF
from wolo.agent.cut import Cut, cut_of
from wolo.messages.message import EMPTY_ANSWER, NUDGE, OPENED, Message
from wolo.messages.parts import ToolPart
from wolo.models.recorded import Recorded, Script, as_it_came
from wolo.sessions import tree
from wolo.sessions.entries import AnyEntry, CompactionEntry, MessageEntry, PartialEntry

ENDS = ("stop", "length")
STOPPED = ("interrupted", "never_started")
BY_PERSON = "person"


class RecordedTurn(Struct, frozen=True, kw_only=True):
    before: tuple[Message, ...]
    """What joined the conversation between the turn before and this one."""
    prompt: Message
    new: tuple[Message, ...]
    """The prompt and all that followed, as it stands in the end."""
    script: Script
    cuts: tuple[Cut, ...]
    """What of the conversation was not sent, for each answer of the script."""
    opened: dict[str, Any]
    """How the conversation was opened that begins with this turn; empty: one goes on."""
    is_attended: bool
    """A person was there to be asked."""


class Tape(Struct, frozen=True, kw_only=True):
    turns: tuple[RecordedTurn, ...]
    messages: tuple[Message, ...]
    """All of them, on the way to where the session ended."""

    @property
    def steps(self) -> int:
        return sum(len(turn.script.answers) for turn in self.turns)

    @property
    def calls(self) -> dict[str, ToolPart]:
        """As they ended, by their ids."""
        return {part.id: part for message in self.messages for part in message.calls}


def record_of(entries: Sequence[AnyEntry]) -> Tape:
    messages = tree.messages(entries)
    return Tape(turns=tuple(_turns(messages, _as_kept(entries), _cuts(entries))), messages=messages)


def stopped(call: ToolPart) -> bool:
    """How far it came depends on the moment at which it was stopped."""
    return call.outcome in STOPPED


def _turns(messages: Sequence[Message], kept: dict[str, Message], cuts: dict[str, Cut]) -> Iterable[RecordedTurn]:
    step, at, before = 1, 0, 0
    attended = False
    while at < len(messages):
        if not messages[at].is_prompt:
            at += 1
            continue
        end = _end_of_turn(messages, at)
        new = tuple(messages[at:end])
        opened = new[0].metadata.get(OPENED)
        opened = opened if isinstance(opened, dict) else {}
        attended = bool(opened.get("attended", attended)) or any(map(_needed_person, _calls(new)))
        answers = tuple(_answers(messages, at, end, kept, cuts, step))
        step += len(answers)
        yield RecordedTurn(
            before=tuple(messages[before:at]),
            prompt=new[0],
            new=new,
            script=Script(answers=tuple(answer for answer, _ in answers), step=step, is_complete=_is_complete(new[-1])),
            cuts=tuple(cut for _, cut in answers),
            opened=opened,
            is_attended=attended,
        )
        at = before = end


def _answers(
    messages: Sequence[Message], begin: int, end: int, kept: dict[str, Message], cuts: dict[str, Cut], step: int
) -> Iterable[tuple[Recorded, Cut]]:
    for at in range(begin + 1, end):
        message = messages[at]
        if message.role == "assistant":
            answer = as_it_came(kept.get(message.id, message))
        elif message.metadata[NUDGE] == EMPTY_ANSWER and _follows_nothing(messages[at - 1]):
            answer = _empty(message)
        else:
            continue
        cut = cuts.get(message.id, Cut())
        sent = partial(_sent, cut, messages, at)
        yield Recorded(step=step, sent=sent, answer=answer, stopped=message.finish_reason == "interrupted"), cut
        step += 1


def _sent(cut: Cut, messages: Sequence[Message], end: int) -> tuple[Message, ...]:
    return cut.apply(messages[:end])


def _follows_nothing(before: Message) -> bool:
    """The word of the loop behind it was not caused by an answer that is in the history, so by an empty one."""
    return not (before.role == "assistant" and before.finish_reason == "tool_calls" and not before.calls)


def _empty(nudge: Message) -> Message:
    """The answer that was not kept because nothing was in it."""
    return Message(role="assistant", finished=True, finish_reason="length" if nudge.text == EMPTY_CUT_OFF else "stop")


def _end_of_turn(messages: Sequence[Message], begin: int) -> int:
    end = begin + 1
    while end < len(messages) and (messages[end].role == "assistant" or NUDGE in messages[end].metadata):
        end += 1
    return end


def _is_complete(last: Message) -> bool:
    return last.role == "assistant" and not last.calls and last.finish_reason in ENDS


def _needed_person(call: ToolPart) -> bool:
    verdict = call.metadata.get("verdict")
    decided = verdict if isinstance(verdict, dict) else {}
    return (
        call.outcome == "denied_by_person"
        or call.metadata.get("decided_by") == BY_PERSON
        or decided.get("decision") == "ask"
        or decided.get("source") == "session"
    )


def _calls(messages: Iterable[Message]) -> Iterable[ToolPart]:
    return (part for message in messages for part in message.calls)


def _as_kept(entries: Iterable[AnyEntry]) -> dict[str, Message]:
    """Each message as it was kept first, before anything was run."""
    kept: dict[str, Message] = {}
    for entry in entries:
        if isinstance(entry, MessageEntry):
            kept.setdefault(entry.message.id, entry.message)
    return kept


def _cuts(entries: Iterable[AnyEntry]) -> dict[str, Cut]:
    """What held when each message was kept, by its id."""
    held = Cut()
    cuts: dict[str, Cut] = {}
    for entry in entries:
        match entry:
            case CompactionEntry():
                held = cut_of(entry)
            case MessageEntry(message=message):
                cuts.setdefault(message.id, held)
            case PartialEntry(message_id=message_id):
                cuts.setdefault(message_id, held)
    return cuts


def renamed(messages: Sequence[Message], like: Sequence[Message]) -> tuple[Message, ...]:
    """With the ids of the recorded ones, which compactions refer to."""
    return tuple(replace(message, id=recorded.id) for message, recorded in zip(messages, like, strict=True))
