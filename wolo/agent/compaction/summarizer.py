"""Asks the model to sum up a conversation: a request of its own that offers no tools, piece by piece where it is long."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from wolo.agent.budget import NOTHING, add
from wolo.agent.compaction.compactor import SummaryRequest
from wolo.agent.events import AttemptFailed, CompactionStarted, ErrorInfo, ModelReplaced, Noticed
from wolo.agent.loop_detection import AnswerWatch
from wolo.agent.tool_calls import Emit
from wolo.errors import BadAnswer, ProviderError, WoloError
from wolo.messages.deltas import Delta, TextDelta
from wolo.messages.message import Message, Usage, user
from wolo.models.protocol import Asker, NoticeLevel, Question
from wolo.models.tokens import BYTES_PER_TOKEN, estimate_text

TRIES = 2
"""More often it is not tried: there is another way to make room."""
TOO_LONG = 2
"""So many times the tokens it was given, and it is no summary."""
FINISHED = ("stop", "length", "")
"""Ends of an answer that leave something to go on with."""

_ASK = "Write the summary now, in at most {words:,} words."
_TASK = "What the user asked for last; it stays word for word beside your summary:"


class Said(Struct, frozen=True, kw_only=True):
    summary: str
    """Empty when there is none."""
    usage: Usage
    """Of all requests for it."""
    why_none: str = ""
    """A sentence for people."""


class Summary:
    """One summary. `usage` is right at any time, also when it is interrupted."""

    def __init__(self, asker: Asker, emit: Emit, *, session_id: str, prompt_id: str, focus: str = "") -> None:
        self.usage = NOTHING
        self._asker = asker
        self._emit = emit
        self._session_id = session_id
        self._prompt_id = prompt_id
        self._focus = focus

    async def make(self, order: SummaryRequest, timeout_s: float) -> Said:
        """Whatever goes wrong is said in `why_none`. CancelledError passes through."""
        summary, why = order.so_far, ""
        try:
            async with asyncio.timeout(timeout_s):
                for number, piece in enumerate(order.pieces, start=1):
                    summary = await self._one(order, piece, summary, number)
        except TimeoutError:
            why = f"it took more than {timeout_s:.0f} s"
        except WoloError as error:
            why = error.message.rstrip(".")
        if why:
            return Said(summary="", usage=self.usage, why_none=f"The model could not sum up the conversation: {why}.")
        return Said(summary=summary, usage=self.usage)

    async def _one(self, order: SummaryRequest, piece: str, so_far: str, number: int) -> str:
        """Raises BadAnswer for a summary that is of no use."""
        question = Question(
            messages=(user(_prompt(order, piece, so_far, number, self._focus)),),
            system=_system(),
            session_id=self._session_id,
            prompt_id=self._prompt_id,
        )
        answer = await self._asker.ask(question, _Listener(self._emit, self._asker, order, number))
        self.usage = add(self.usage, answer.usage or Usage())
        return _usable(answer, order.most_tokens * TOO_LONG)


def _usable(answer: Message, most_tokens: int) -> str:
    text = answer.text.strip()
    if answer.finish_reason not in FINISHED and not (answer.finish_reason == "tool_calls" and text):
        raise BadAnswer(answer.error or f"its answer ended with {answer.finish_reason!r}")
    if not text:
        raise BadAnswer("its answer was empty")
    if estimate_text(text) > most_tokens:
        raise BadAnswer("its summary is too long")
    return text


def _prompt(order: SummaryRequest, piece: str, so_far: str, number: int, focus: str) -> str:
    of = f' part="{number} of {len(order.pieces)}"' if len(order.pieces) > 1 else ""
    told = f"<transcript{of}>\n{piece}\n</transcript>"
    before = f"<summary_so_far>\n{so_far}\n</summary_so_far>" if so_far else ""
    task = f"{_TASK}\n<task>\n{order.task}\n</task>" if order.task else ""
    ask = _ASK.format(words=max(order.most_tokens * 2 // 3, 100))
    attention = f"The user asks for attention to this: {focus}" if focus else ""
    return "\n\n".join(filter(None, (before, told, task, ask, attention)))


def _system() -> str:
    return (Path(__file__).parent / "prompts" / "summary.md").read_text(encoding="utf-8").strip()


class _Listener:
    """Tells what a person should know; the text itself is nobody's to read while it comes."""

    def __init__(self, emit: Emit, asker: Asker, order: SummaryRequest, number: int) -> None:
        self._emit = emit
        self._asker = asker
        self._order = order
        self._number = number
        self._watch = AnswerWatch()
        self._chars = 0

    async def on_request(self, attempt: int, context_tokens: int) -> None:
        self._chars = 0
        self._watch = AnswerWatch()
        started = CompactionStarted(
            reason=self._order.reason,
            model=self._asker.choice.label,
            tokens=self._order.tokens,
            request=self._number,
            requests=len(self._order.pieces),
        )
        await self._emit(started)

    async def on_deltas(self, deltas: Sequence[Delta]) -> None:
        """Raises BadAnswer as soon as the summary is too long, or repeats itself."""
        self._watch.take(deltas)
        self._chars += sum(len(each.text) for each in deltas if isinstance(each, TextDelta))
        if self._chars > self._order.most_tokens * TOO_LONG * BYTES_PER_TOKEN:
            raise BadAnswer("its summary is too long")

    async def on_attempt_failed(self, error: ProviderError, attempt: int, tries: int, delay_s: float) -> None:
        if attempt >= TRIES:
            raise error
        await self._emit(AttemptFailed(error=ErrorInfo.of(error), attempt=attempt, tries=tries, delay_s=delay_s))

    async def on_replaced(self, error: ProviderError, model: str) -> None:
        await self._emit(ModelReplaced(error=ErrorInfo.of(error), model=model))

    async def on_notice(self, text: str, level: NoticeLevel = "warning") -> None:
        await self._emit(Noticed(text=text, level=level))
