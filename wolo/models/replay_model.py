"""A model that replays recorded responses, and compares each request with the recorded one.

Needs no key and no network. A replay stops at the first difference, naming the step and what differs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from wolo.errors import Unavailable
from wolo.formats.format import ThinkingLevel
from wolo.messages.comparison import Normalize, around_difference, comparable_text, first_different
from wolo.messages.deltas import CallDelta, Delta, FinishDelta, TextDelta, ThinkingDelta
from wolo.messages.message import Message
from wolo.messages.parts import IN_FENCE, AnyPart, TextPart, ThinkingPart, ToolPart
from wolo.models.protocol import Listener, ModelQuestion
from wolo.models.provider import ModelChoice
from wolo.models.tokens import TokenEstimate

PIECE_CHARS = 80
"""Characters per delta."""
NOTHING_MORE = "Nothing more was recorded of this turn."

Kind = Literal["request", "preamble", "result", "call", "left over"]
"""Location of a difference: request, request prefix, tool result, tool call, or unused recording."""


class Divergence(Struct, frozen=True, kw_only=True):
    """First difference between replay and recording."""

    step: int
    """Number of the model request, from 1."""
    kind: Kind
    where: str
    expected: str
    got: str

    @classmethod
    def of(cls, step: int, kind: Kind, where: str, expected: str, got: str) -> Divergence:
        expected, got = around_difference(expected, got)
        return cls(step=step, kind=kind, where=where, expected=expected, got=got)


class ReplayDiverged(Exception):
    """Ends a replay immediately."""

    def __init__(self, divergence: Divergence) -> None:
        super().__init__(divergence.where)
        self.divergence = divergence


class RecordedAnswer(Struct, frozen=True, kw_only=True):
    """A recorded request and its response."""

    step: int
    sent: Callable[[], tuple[Message, ...]]
    """Built on demand, because all requests together grow quadratically."""
    answer: Message
    """As received, with pending calls; empty responses have no parts."""
    stopped: bool = False
    """The stream was interrupted by the user or the end of the process."""


class Script(Struct, frozen=True, kw_only=True):
    """The recorded responses of one turn."""

    answers: tuple[RecordedAnswer, ...]
    step: int
    """Number of the request after them."""
    is_complete: bool
    """The turn ended by itself, so no request may follow."""


Check = Callable[[RecordedAnswer, ModelQuestion], None]
"""Additional comparison of a request with the recording. Raises ReplayDiverged."""


class RecordedModel:
    """`begin` sets the responses of a turn. `of` normalizes text for comparison, `here` maps recorded paths to current ones."""

    def __init__(
        self,
        choice: ModelChoice,
        *,
        of: Normalize,
        here: Normalize,
        stop: Callable[[], None],
        unfinished: Collection[str],
        check: Check | None,
        on_replayed: Callable[[int], None] = lambda place: None,
    ) -> None:
        """`stop` interrupts the turn. The calls in `unfinished` were interrupted when recorded. `on_replayed` receives
        the index of each replayed response."""
        self.choice, self._of, self._here, self._stop = choice, of, here, stop
        self._unfinished, self._check, self._on_replayed = unfinished, check, on_replayed
        self._script = Script(answers=(), step=1, is_complete=False)
        self._at = 0
        self._estimate = TokenEstimate()
        self._alike: dict[tuple[int, int], tuple[Message, Message]] = {}
        """Pairs known to be equal; stores the messages so that their ids stay valid."""

    @property
    def upcoming(self) -> RecordedAnswer | None:
        """Response to the next request."""
        return self._script.answers[self._at] if self._at < len(self._script.answers) else None

    @property
    def step(self) -> int:
        """Number of the last answered request."""
        following = self.upcoming
        return max(1, (following.step if following else self._script.step) - 1)

    def begin(self, script: Script) -> None:
        self._script, self._at = script, 0

    def think(self, level: ThinkingLevel) -> None:
        self.choice = replace(self.choice, thinking=level)

    async def close(self) -> None:
        pass

    async def ask(self, question: ModelQuestion, listener: Listener) -> Message:
        if (recorded := self.upcoming) is None:
            if self._script.is_complete:
                last = comparable_text(question.messages[-1], self._of)
                expected, got = "The turn ends here.", f"It goes on after:\n{last}"
                raise ReplayDiverged(Divergence.of(self._script.step, "request", "one more request", expected, got))
            raise Unavailable(NOTHING_MORE)
        sent, now = recorded.sent(), question.messages
        if (at := first_different(sent, now, self._is_same)) is not None:
            expected, got = (self._describe(messages, at) for messages in (sent, now))
            of = f" of {len(sent)}" if len(sent) == len(now) else f" (of {len(sent)} then, of {len(now)} now)"
            raise ReplayDiverged(Divergence.of(recorded.step, "request", f"message {at + 1}{of}", expected, got))
        if self._check is not None:
            self._check(recorded, question)
        self._at += 1
        tokens = self._estimate.request(question.messages, system=question.system, tools=question.tools)
        await listener.on_request(1, tokens)
        # File names in a call lead to where the files are now.
        parts = (
            replace(part, input=_map_strings(part.input, self._here), raw_input=self._here(part.raw_input))
            if isinstance(part, ToolPart)
            else part
            for part in recorded.answer.parts
        )
        answer = replace(recorded.answer, parts=tuple(parts))
        deltas: list[Delta] = []
        for slot, part in enumerate(answer.parts):
            match part:
                case TextPart():
                    deltas += map(TextDelta, _pieces(part.text))
                case ThinkingPart():
                    deltas += (ThinkingDelta(piece, field=part.field) for piece in _pieces(part.text))
                case ToolPart():
                    deltas.append(CallDelta(slot=slot, call_id=part.call_id, tool=part.tool, arguments=part.raw_input))
        for delta in deltas if recorded.stopped else [*deltas, FinishDelta(answer.finish_reason or "stop")]:
            await listener.on_deltas((delta,))
        if recorded.stopped:
            self._stop()
            await asyncio.Event().wait()  # ended by the interruption
        self._on_replayed(self._at - 1)
        return answer

    def _is_same(self, one: Message, other: Message) -> bool:
        """Results of earlier comparisons are reused."""
        pair = (id(one), id(other))
        if pair in self._alike:
            return True
        same = _role(one) == _role(other) and comparable_text(one, self._of, self._unfinished) == comparable_text(
            other, self._of, self._unfinished
        )
        if same:
            self._alike[pair] = (one, other)
        return same

    def _describe(self, messages: Sequence[Message], at: int) -> str:
        if at >= len(messages):
            return "(no such message)"
        return f"{messages[at].role}:\n{comparable_text(messages[at], self._of, self._unfinished)}"


def before_calls_ran(message: Message) -> Message:
    """The recorded response before any call was processed; unreadable calls stay failed."""
    pending = {"status": "pending", "outcome": None, "output": "", "output_parts": (), "start_time": 0.0, "end_time": 0.0}
    parts: list[AnyPart] = []
    for part in message.parts:
        if isinstance(part, ToolPart) and (part.status != "failed" or part.end_time):  # processed calls have an end time
            kept = {name: part.metadata[name] for name in (IN_FENCE,) if name in part.metadata}
            part = replace(part, **pending, metadata=kept)
        parts.append(part)
    return replace(message, parts=tuple(parts))


def _role(message: Message) -> str:
    return "assistant" if message.role == "assistant" else "user" if message.role != "system" else "system"


def _map_strings(value: Any, here: Normalize) -> Any:
    match value:
        case str():
            return here(value)
        case dict():
            return {here(name): _map_strings(each, here) for name, each in value.items()}
        case list() | tuple():
            return [_map_strings(each, here) for each in value]
    return value


def _pieces(text: str) -> list[str]:
    return [text[at : at + PIECE_CHARS] for at in range(0, len(text), PIECE_CHARS)]
