"""A conversation put together while the file that tells it is read: answers grow, results find their calls."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from wolo.messages.call_arguments import Unreadable, read_arguments
from wolo.messages.message import NUDGE, FinishReason, Message, Producer, Role, Usage
from wolo.messages.parts import AnyPart, MediaPart, Outcome, TextPart, ToolPart, new_id
from wolo.messages.unicode import whole, whole_throughout
from wolo.sessions.exchange.import_result import Imported
from wolo.sessions.exchange.importers.producers import last_model
from wolo.sessions.exchange.importers.round_trip import OWN, Own, read_own, restored

HOOK = "foreign"
"""Under `NUDGE` in the metadata of what the other program said in the user's name."""


_REMINDER = re.compile(r"\s*<system-reminder>.*</system-reminder>\s*", re.DOTALL)


class Draft(Struct, eq=False):
    """A message that may still grow."""

    role: Role
    parts: list[AnyPart] = field(default_factory=list)
    timestamp: float = 0.0
    producer: Producer | None = None
    usage: Usage | None = None
    finish_reason: FinishReason = ""
    error: str = ""
    custom_type: str = ""
    is_prompt: bool = True
    """A person's own words, where the role is the user's."""
    id: str = field(default_factory=lambda: new_id("msg"))
    own: Own | None = None
    """What wolo put into its records when it wrote them."""


class Ended(Struct, frozen=True):
    """What came of a call."""

    output: str = ""
    outcome: Outcome = "ok"
    media: tuple[MediaPart, ...] = ()
    at: float = 0.0


class Gathering:
    """`skipped` counts the records that could not be made sense of."""

    def __init__(self) -> None:
        self.drafts: list[Draft] = []
        self.skipped = 0
        self._answers: dict[str, Draft] = {}
        self._waiting: dict[str, list[tuple[Draft, int]]] = {}
        self._left_out: set[str] = set()
        self._own: Own | None = None

    # What is said

    def begin(self, record: Mapping[str, Any]) -> None:
        """A record is read: the message that begins with it takes what wolo put into it."""
        self._own = read_own(record.get(OWN))

    @property
    def is_ours(self) -> bool:
        """A message of wolo's begins with the record that is read."""
        return self._own is not None

    def say(self, draft: Draft) -> Draft:
        draft.own, self._own = self._own, None
        self.drafts.append(draft)
        return draft

    def answer(self, key: str, *, at: float = 0.0, producer: Producer | None = None) -> Draft:
        """The answer with this key, begun when it is new; `parts` and the rest of it are the caller's to fill."""
        draft = self._answers.get(key)
        if draft is None:
            draft = self._answers[key] = self.say(Draft("assistant", timestamp=at, producer=producer))
        return draft

    def call(self, draft: Draft, part: ToolPart) -> None:
        """A further part of an answer that waits for its result."""
        draft.parts.append(part)
        self._waiting.setdefault(part.call_id, []).append((draft, len(draft.parts) - 1))

    def is_waiting(self, call_id: str) -> bool:
        return bool(self._waiting.get(call_id))

    def end(self, call_id: str, ended: Ended) -> bool:
        """False when nobody made such a call, or it has ended already."""
        places = self._waiting.get(call_id)
        if not places:
            return False
        draft, at = places.pop(0)
        part = draft.parts[at]
        assert isinstance(part, ToolPart)  # only calls wait
        draft.parts[at] = _ended(part, ended)
        return True

    # What became of it

    def interrupt(self) -> None:
        """The answer said last was stopped by a person, or by the end of the program."""
        for draft in reversed(self.drafts):
            if draft.role == "assistant":
                draft.finish_reason = "interrupted"
                return

    def take_back(self, prompts: int) -> int:
        """So many prompts and all that followed from them were undone; returns how many messages went."""
        at = len(self.drafts)
        while prompts > 0 and at > 0:
            at -= 1
            prompts -= self.drafts[at].role == "user" and self.drafts[at].is_prompt
        return self.cut(at)

    def cut(self, at: int) -> int:
        gone = set(map(id, self.drafts[at:]))
        del self.drafts[at:]
        self._answers = {key: draft for key, draft in self._answers.items() if id(draft) not in gone}
        for places in self._waiting.values():
            places[:] = [place for place in places if id(place[0]) not in gone]
        return len(gone)

    def summarise(self, summary: str, *, at: float, keeps: Callable[[Draft], bool]) -> None:
        """From here on a summary stands for what was said and is not kept."""
        self.forget(keeps)
        self.say(Draft("compaction_summary", [TextPart(text=summary)], timestamp=at))

    def summarise_before(self, first: Draft | None, summary: str, *, at: float) -> None:
        """The latest messages stay, and the summary stands in front of the first of them; without one it stands for all."""
        begin = next((index for index, each in enumerate(self.drafts) if each is first), len(self.drafts))
        kept = {draft.id for draft in self.drafts[begin:]}
        self.forget(lambda draft: draft.id in kept)
        self.drafts.insert(begin, Draft("compaction_summary", [TextPart(text=summary)], timestamp=at))

    def forget(self, keeps: Callable[[Draft], bool]) -> None:
        """What is not kept is no longer sent."""
        self._left_out.update(draft.id for draft in self.drafts if not keeps(draft))

    def in_view(self) -> list[Draft]:
        """What is still sent, as far as it has come."""
        return [draft for draft in self.drafts if draft.id not in self._left_out and draft.role != "custom"]

    # The end

    def messages(self) -> tuple[Message, ...]:
        return tuple(message for _, message in self._built())

    def _built(self) -> Iterator[tuple[Draft, Message]]:
        now = 0.0
        for draft in self.drafts:
            now = draft.timestamp or now
            if draft.own is not None:
                yield from ((draft, message) for message in restored(_message(draft, draft.timestamp), draft.own))
            elif draft.parts or draft.error:
                yield draft, _message(draft, now)

    def imported(self, *, title: str, cwd: str, created: float, notices: Iterable[str], skipped: int = 0) -> Imported:
        built = list(self._built())
        messages = tuple(message for _, message in built)
        return Imported(
            title=" ".join(title.split()),
            cwd=cwd,
            created=created or next((message.timestamp for message in messages if message.timestamp), 0.0),
            model=last_model(messages),
            messages=messages,
            left_out=tuple(message.id for draft, message in built if draft.id in self._left_out),
            skipped=self.skipped + skipped,
            notices=tuple(notices),
        )


def is_reminder(words: str) -> bool:
    """What several agents say to their model in the person's name, about themselves."""
    return _REMINDER.fullmatch(words) is not None


def tool_part(tool: str, arguments: object, call_id: str, *, item_id: str = "", at: float = 0.0) -> ToolPart:
    """`arguments`: an object, or the text of one. Text that is none is kept as evidence."""
    written = arguments if isinstance(arguments, str) else _written(arguments)
    raw = written if isinstance(arguments, str) else ""
    try:
        given = read_arguments(written)
    except Unreadable:
        given, raw = {}, written
    name = whole(tool) or "unknown"
    return ToolPart(tool=name, input=given, raw_input=whole(raw), call_id=whole(call_id), item_id=item_id, start_time=at)


def outcome_of(output: str, words: Mapping[str, Outcome], *, otherwise: Outcome) -> Outcome:
    """How a call ended, as the other agent's own words at the beginning of a result tell it."""
    begin = output.lstrip()[:400].lower()
    return next((outcome for phrase, outcome in words.items() if phrase in begin), otherwise)


def divided(blocks: Iterable[AnyPart]) -> tuple[str, tuple[MediaPart, ...]]:
    """The text of a result, and what came with it."""
    parts = list(blocks)
    texts = [part.text for part in parts if isinstance(part, TextPart)]
    return "\n".join(texts), tuple(part for part in parts if isinstance(part, MediaPart))


def counted(count: int, one: str, many: str) -> list[str]:
    """A notice, if there is anything to notice; `{}` in `many` is the count."""
    return [] if not count else [one if count == 1 else many.format(count)]


def _written(arguments: object) -> str:
    try:
        return json.dumps(whole_throughout(arguments) if arguments is not None else {}, ensure_ascii=False)
    except (ValueError, RecursionError):
        return ""


def _ended(part: ToolPart, ended: Ended) -> ToolPart:
    status: Any = "completed" if ended.outcome == "ok" else "failed"
    end = max(ended.at, part.start_time)
    return replace(part, status=status, outcome=ended.outcome, output=ended.output, output_parts=ended.media, end_time=end)


def _message(draft: Draft, now: float) -> Message:
    parts = [_settled(part) for part in draft.parts]
    reason = draft.finish_reason
    if draft.role == "assistant" and not reason:
        reason = "error" if draft.error else "tool_calls" if any(isinstance(part, ToolPart) for part in parts) else "stop"
    return Message(
        id=draft.id,
        role=draft.role,
        parts=parts,
        timestamp=now,
        finished=reason not in ("interrupted", "error"),
        finish_reason=reason,
        usage=draft.usage,
        producer=draft.producer,
        error=draft.error,
        custom_type=draft.custom_type,
        metadata={} if draft.is_prompt else {NUDGE: HOOK},
    )


def _settled(part: AnyPart) -> AnyPart:
    """A call that nobody ended may have had effects before its program died."""
    if isinstance(part, ToolPart) and part.status in ("pending", "running"):
        return _ended(part, Ended(outcome="interrupted"))
    return part
