"""Notices when a model goes round in circles: the same calls, or the same words, again and again."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence

import msgspec

from wolo.errors import BadAnswer
from wolo.messages.deltas import CallDelta, Delta, TextDelta, ThinkingDelta
from wolo.messages.message import Message

TELL_AT = 3
"""The model is told when it does the same thing for the third time …"""
STOP_AT = 5
"""… and the turn is stopped at the fifth."""
LONGEST_CYCLE = 3
"""A-B-C-A-B-C is the longest round that is recognised."""
PARAGRAPH_WORDS = 40
"""Shorter texts may repeat for longer."""
PARAGRAPH_VARIETY = 20
"""So may those with fewer different words: rows of a matrix or a grid are long and alike."""
SHORT_CHARS = 16_000
"""A stream that ends in so many characters of a shorter text is stuck: longer than any table or list that is meant."""
ARGUMENTS_CHARS = 30_000
"""Arguments may hold whole files, which repeat themselves for good reason: in them only this much counts."""

POLLS = frozenset({"jobs"})
"""Tools that are asked again and again for good reason: they tell what others are doing."""

_PROBE_CHARS = 80
_LOOK_EVERY_CHARS = 1000
_WINDOW_CHARS = 32_000


class Circles:
    """Looks at each answer of one turn; the cost of a look does not grow with the turn."""

    def __init__(self) -> None:
        self._recent: deque[bytes] = deque(maxlen=LONGEST_CYCLE * STOP_AT)
        self._paragraphs: dict[str, int] = {}

    def count_calls(self, answer: Message) -> int:
        """How often the calls of this answer have now been made in a row, or in a short cycle. Key order does not matter."""
        calls = [part for part in answer.calls if part.tool.strip().lower() not in POLLS]
        made = {msgspec.json.encode([part.tool, part.input or part.raw_input], order="sorted") for part in calls}
        if not made:
            return 0
        self._recent.append(b"\n".join(sorted(made)))
        recent = list(self._recent)
        return max(_times_in_cycle(recent, length) for length in range(1, LONGEST_CYCLE + 1))

    def count_text(self, answer: Message) -> int:
        """In how many answers in a row the same long paragraph has now stood."""
        paragraphs = {each for each in re.split(r"\n\s*\n", answer.text) if len(each.split()) >= PARAGRAPH_WORDS}
        self._paragraphs = {each: self._paragraphs.get(each, 0) + 1 for each in paragraphs}
        return max(self._paragraphs.values(), default=0)


class StreamWatch:
    """Looks at a text while it streams."""

    def __init__(self, *, short_chars: int = SHORT_CHARS, paragraph_words: int | None = PARAGRAPH_WORDS) -> None:
        """Five times the same text are too many if it has so many words (None: never), or fills so many characters."""
        self._short_chars = short_chars
        self._paragraph_words = paragraph_words
        self._text = ""
        self._fresh: list[str] = []
        self._fresh_chars = 0

    def is_stuck(self, piece: str) -> bool:
        """Takes the next piece; true once the text ends in the same passage over and over."""
        self._fresh.append(piece)
        self._fresh_chars += len(piece)
        if self._fresh_chars < _LOOK_EVERY_CHARS:
            return False
        self._text = (self._text + "".join(self._fresh))[-_WINDOW_CHARS:]
        self._fresh.clear()
        self._fresh_chars = 0
        return self._ends_in_repeats(self._text)

    def _ends_in_repeats(self, text: str) -> bool:
        at = text.rfind(text[-_PROBE_CHARS:], 0, len(text) - 1)
        if at < 0:
            return False
        period = len(text) - _PROBE_CHARS - at
        least_chars = period * STOP_AT
        words = (text[-period:] * 2).split()  # one may be cut in two
        is_short = self._paragraph_words is None or len(words) // 2 < self._paragraph_words
        if is_short or len(set(words)) < PARAGRAPH_VARIETY:
            least_chars = max(least_chars, self._short_chars)
        repeated = text[-least_chars:]
        return len(repeated) == least_chars and repeated[period:] == repeated[:-period]


class AnswerWatch:
    """Looks at one answer while it streams: its text, its reasoning and the arguments of its calls, each for itself."""

    def __init__(self) -> None:
        self._text, self._thinking = StreamWatch(), StreamWatch()
        self._arguments = StreamWatch(short_chars=ARGUMENTS_CHARS, paragraph_words=None)

    def take(self, deltas: Sequence[Delta]) -> None:
        """Raises BadAnswer when the model has lost itself in repetition."""
        if any(map(self._is_stuck, deltas)):
            raise BadAnswer(
                "The model repeats the same passage over and over; the answer was stopped.",
                hint="Rephrase the task, or try another model with --model.",
            )

    def _is_stuck(self, delta: Delta) -> bool:
        match delta:
            case TextDelta(text):
                return self._text.is_stuck(text)
            case ThinkingDelta(text):
                return self._thinking.is_stuck(text)
            case CallDelta(arguments=arguments):
                return self._arguments.is_stuck(arguments)
            case _:
                return False


def _times_in_cycle(history: Sequence[bytes], length: int) -> int:
    """How often the newest entry stands in the part of the history that repeats itself every `length` entries."""
    run = length
    while run < len(history) and history[-1 - run] == history[-1 - run + length]:
        run += 1
    return 1 + (run - 1) // length
