"""Decides after each answer: run its calls, ask again, or stop. Guards against endless turns."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence

import msgspec
from msgspec import Struct

from wolo.agent import events, tool_execution
from wolo.errors import BadAnswer, ContentRefused, ContextOverflow, ProviderError
from wolo.messages import message, parts
from wolo.messages.deltas import CallDelta, Delta, TextDelta, ThinkingDelta

MAX_BAD_ANSWERS = 3
"""Consecutive answers with cut-off or unreadable calls that end the turn."""
MAX_PAUSES = 20
"""Consecutive pauses of the provider that end the turn."""

EMPTY = "Your last answer was empty: it had neither text nor a tool call. Go on with the task, or say that it is done."
EMPTY_CUT_OFF = "Your last answer used up the output limit before it said anything. Think less, and go on in smaller steps."
ANNOUNCED = "Your last answer announced a tool call, but none arrived. Make the call, or give your final answer."
SAME_CALL = "Note: you have made this call {times} times in a row. Try something else; the fifth time ends your work."
SAME_TEXT = "Note: you have written the same paragraph {times} times in a row. Move on; the fifth time ends your work."

UNREADABLE = "The model wrote a call that cannot be read as its answer; nothing was done."
OTHER_DRIVE = "Try --drive simple or --drive constrained, or a larger model with --model."
_OTHER_MODEL = "Try again, rephrase the prompt, or use another model with --model."


class Stop(Struct, frozen=True, kw_only=True):
    cause: events.StopCause
    error: events.ErrorInfo | None = None
    exit_code: int = 0

    @classmethod
    def by(cls, error: ProviderError) -> Stop:
        cause: events.StopCause = "unavailable" if error.exit_code == 75 else "model_error"
        return cls(cause=cause, error=events.ErrorInfo.of(error), exit_code=error.exit_code)


class NextStep(Struct, frozen=True, kw_only=True):
    """Steps to take with an answer, in this order."""

    save_answer: bool = True
    """False: the answer is empty and is not added to the history."""
    refuse: tuple[parts.Outcome, str] | None = None
    """Outcome and output for all calls of the answer, none of which may run."""
    note: str = ""
    """Text for the model, appended to the last result."""
    notice: str = ""
    """Notice for the user."""
    stop: Stop | None = None
    nudge: str = ""
    """Separate message to the model."""


class TurnPolicy:
    """Keeps the counters of one turn."""

    def __init__(self, *, is_local: bool = False) -> None:
        """`is_local`: the model may be too small for calls."""
        self._is_local = is_local
        self._circles = LoopDetector()
        self._nudged = False
        self._cut_off = 0
        self._unreadable = 0
        self._pauses = 0

    def after(self, answer: message.Message) -> NextStep:
        failure: ProviderError | None = None
        match answer.finish_reason:
            case "refused":
                reason = f": {answer.error}" if answer.error else "."
                failure = ContentRefused(f"The provider's content policy ended the answer{reason}", hint="Rephrase the task.")
            case "overflow":
                failure = ContextOverflow("The conversation no longer fits the model's window.", hint="Start a new session.")
            case "error":
                failure = BadAnswer(answer.error or "The provider ended the answer with an error.", hint=_OTHER_MODEL)
        if failure is not None:
            words = tool_execution.BROKEN_OFF.format(reason=answer.finish_reason)
            return NextStep(save_answer=not _is_empty(answer), refuse=("never_started", words), stop=Stop.by(failure))
        if _is_empty(answer):
            words = EMPTY_CUT_OFF if answer.finish_reason == "length" else EMPTY
            return self._nudge(words, "The model returned an empty answer and was asked to continue.", save_answer=False)
        if answer.finish_reason == "paused" and not answer.calls:
            # Asked again, the provider continues the answer.
            self._pauses += 1
            if self._pauses < MAX_PAUSES:
                return NextStep()
            error = BadAnswer(f"The provider paused its answer {MAX_PAUSES} times in a row.", hint=_OTHER_MODEL)
            return NextStep(stop=Stop.by(error))
        self._pauses = 0
        if not answer.calls:
            if answer.finish_reason == "tool_calls":
                return self._nudge(
                    ANNOUNCED, "The model announced a tool call but made none; it was asked for it.", save_answer=True
                )
            if self._is_local and is_written_call(answer.text):
                return NextStep(stop=Stop.by(BadAnswer(UNREADABLE, hint=OTHER_DRIVE)))
            if answer.finish_reason != "length":
                return NextStep(stop=Stop(cause="done"))
            hint = "The text so far is saved; ask the model to continue."
            return NextStep(stop=Stop.by(BadAnswer("The answer was cut off at the output limit.", hint=hint)))
        self._nudged = False
        if answer.finish_reason == "length":
            self._cut_off += 1
            refuse: tuple[parts.Outcome, str] = ("cut_off", tool_execution.BROKEN_OFF.format(reason="output limit"))
            if self._cut_off < MAX_BAD_ANSWERS:
                return NextStep(refuse=refuse, notice="The answer hit the output limit inside a call; nothing of it was run.")
            error = BadAnswer(
                f"{self._cut_off} answers in a row hit the output limit inside a call.", hint="Ask for smaller steps."
            )
            return NextStep(refuse=refuse, stop=Stop.by(error))
        self._cut_off = 0
        self._unreadable = self._unreadable + 1 if all(part.outcome == "invalid" for part in answer.calls) else 0
        if self._unreadable >= MAX_BAD_ANSWERS:
            error = BadAnswer(f"{self._unreadable} answers in a row made calls that cannot be read.", hint=_OTHER_MODEL)
            return NextStep(stop=Stop.by(error))
        calls, texts = self._circles.count_calls(answer), self._circles.count_text(answer)
        times = max(calls, texts)
        what = "made the same call" if calls >= texts else "wrote the same text"
        if times >= STOP_AT:
            error = BadAnswer(f"The model {what} {times} times in a row; it was stopped.", hint=_OTHER_MODEL)
            return NextStep(refuse=("never_started", tool_execution.LOOPING.format(times=times)), stop=Stop.by(error))
        if times >= WARN_AT:
            words = SAME_CALL if calls >= texts else SAME_TEXT
            return NextStep(note=words.format(times=times), notice=f"The model {what} {times} times in a row; it was warned.")
        return NextStep()

    def _nudge(self, text: str, notice: str, *, save_answer: bool) -> NextStep:
        if self._nudged:
            return NextStep(
                save_answer=save_answer,
                stop=Stop.by(BadAnswer("The model returned nothing usable twice in a row.", hint=_OTHER_MODEL)),
            )
        self._nudged = True
        return NextStep(save_answer=save_answer, nudge=text, notice=notice)


def _is_empty(answer: message.Message) -> bool:
    """An answer with thinking only counts as empty."""
    return not answer.text.strip() and all(isinstance(part, parts.TextPart | parts.ThinkingPart) for part in answer.parts)


def is_written_call(text: str) -> bool:
    """Check whether an answer is a call: an object with name and arguments, alone or as its first or last block."""
    text = text.strip()
    blocks = re.findall(r"```\w*\n(.*?)(?:\n```|\Z)", text, re.DOTALL)
    at_ends = [text, *(blocks[:1] if text.startswith("```") else []), *(blocks[-1:] if text.endswith("```") else [])]
    return any(_is_call(each.strip()) for each in at_ends)


def _is_call(text: str) -> bool:
    if re.match(r"<(?:tool_call|function_call|function=|invoke\b)|\[TOOL_CALLS\]", text):
        return True
    keys = (r'"(?:name|tool|function|call)"\s*:\s*["{]', r'"(?:arguments|parameters|args|input)"\s*:\s*[\[{"]')
    return text.startswith(("{", "[")) and all(re.search(key, text) for key in keys)


WARN_AT = 3
"""Repetitions after which the model is warned."""
STOP_AT = 5
"""Repetitions after which the turn stops."""
LONGEST_CYCLE = 3
"""Longest recognized cycle of different calls (A-B-C-A-B-C)."""
PARAGRAPH_WORDS = 40
"""Minimum words of a paragraph whose repetition counts; shorter texts may repeat longer."""
PARAGRAPH_VARIETY = 20
"""Minimum number of different words; rows of a table are long and alike."""
SHORT_CHARS = 16_000
"""A stream that ends in this many characters of a repeated shorter text is stuck."""
ARGUMENTS_CHARS = 30_000
"""The same for arguments, which may hold whole files with legitimate repetition."""
ARGUMENTS_PATIENCE_CHARS = 400_000
"""Further repeated characters of arguments: a file of equal rows ends, a stuck model does not."""

POLLS = frozenset({"jobs"})
"""Tools that may be called repeatedly, because they report on other work."""

_PROBE_CHARS = 80
_LOOK_EVERY_CHARS = 1000
_WINDOW_CHARS = 32_000


class LoopDetector:
    """Counts repetitions over the answers of one turn, at constant cost per answer."""

    def __init__(self) -> None:
        self._recent: deque[bytes] = deque(maxlen=LONGEST_CYCLE * STOP_AT)
        self._paragraphs: dict[str, int] = {}

    def count_calls(self, answer: message.Message) -> int:
        """Returns how often these calls were made in a row or in a short cycle. The order of keys does not matter."""
        calls = [part for part in answer.calls if part.tool.strip().lower() not in POLLS]
        made = {msgspec.json.encode([part.tool, part.input or part.raw_input], order="sorted") for part in calls}
        if not made:
            return 0
        self._recent.append(b"\n".join(sorted(made)))
        recent = list(self._recent)
        return max(_times_in_cycle(recent, length) for length in range(1, LONGEST_CYCLE + 1))

    def count_text(self, answer: message.Message) -> int:
        """Returns in how many consecutive answers the same long paragraph occurred."""
        paragraphs = {each for each in re.split(r"\n\s*\n", answer.text) if len(each.split()) >= PARAGRAPH_WORDS}
        self._paragraphs = {each: self._paragraphs.get(each, 0) + 1 for each in paragraphs}
        return max(self._paragraphs.values(), default=0)


class RepetitionDetector:
    """Detects repetition in a text while it streams."""

    def __init__(
        self, *, short_chars: int = SHORT_CHARS, min_words: int | None = PARAGRAPH_WORDS, patience_chars: int = 0
    ) -> None:
        """Five repetitions of a text count if it has `paragraph_words` words (None: never) or they fill `short_chars`
        characters. They must go on for `patience_chars` more."""
        self._short_chars, self._paragraph_words, self._patience_chars = short_chars, min_words, patience_chars
        self._repeated_chars = 0
        self._text = ""
        self._fresh: list[str] = []
        self._fresh_chars = 0

    def is_stuck(self, piece: str) -> bool:
        """Adds a piece; true once the text ends in repeated passages."""
        return any(self._is_stuck_after(piece[at : at + _LOOK_EVERY_CHARS]) for at in range(0, len(piece), _LOOK_EVERY_CHARS))

    def _is_stuck_after(self, piece: str) -> bool:
        self._fresh.append(piece)
        self._fresh_chars += len(piece)
        if self._fresh_chars < _LOOK_EVERY_CHARS:
            return False
        self._text = (self._text + "".join(self._fresh))[-_WINDOW_CHARS:]
        self._repeated_chars = self._repeated_chars + self._fresh_chars if self._ends_in_repeats(self._text) else 0
        self._fresh.clear()
        self._fresh_chars = 0
        return self._repeated_chars > self._patience_chars

    def _ends_in_repeats(self, text: str) -> bool:
        if (at := text.rfind(text[-_PROBE_CHARS:], 0, len(text) - 1)) < 0:
            return False
        period = len(text) - _PROBE_CHARS - at
        least_chars = period * STOP_AT
        words = (text[-period:] * 2).split()  # a word may be split
        is_short = self._paragraph_words is None or len(words) // 2 < self._paragraph_words
        if is_short or len(set(words)) < PARAGRAPH_VARIETY:
            least_chars = max(least_chars, self._short_chars)
        repeated = text[-least_chars:]
        return len(repeated) == least_chars and repeated[period:] == repeated[:-period]


class RepetitionGuard:
    """Detects repetition in one streaming answer: its text, thinking and call arguments, each separately."""

    def __init__(self) -> None:
        self._text, self._thinking = RepetitionDetector(), RepetitionDetector()
        self._arguments = RepetitionDetector(short_chars=ARGUMENTS_CHARS, min_words=None, patience_chars=ARGUMENTS_PATIENCE_CHARS)

    def take(self, deltas: Sequence[Delta]) -> None:
        """Raises BadAnswer when the model repeats itself."""
        for delta in deltas:
            match delta:
                case TextDelta(text):
                    is_stuck = self._text.is_stuck(text)
                case ThinkingDelta(text):
                    is_stuck = self._thinking.is_stuck(text)
                case CallDelta(arguments=arguments):
                    is_stuck = self._arguments.is_stuck(arguments)
                case _:
                    continue
            if is_stuck:
                hint = "Rephrase the task, or try another model with --model."
                raise BadAnswer("The model repeats the same passage; the answer was stopped.", hint=hint)


def _times_in_cycle(history: Sequence[bytes], length: int) -> int:
    """Returns how often the newest entry occurs in the trailing part that repeats every `length` entries."""
    run = length
    while run < len(history) and history[-1 - run] == history[-1 - run + length]:
        run += 1
    return 1 + (run - 1) // length
