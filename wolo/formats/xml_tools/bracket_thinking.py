"""Reasoning between square brackets on lines of their own, as models of the text protocol may write it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from wolo.formats.text_recovery.code_spans import CodeSpans
from wolo.messages.deltas import BreakDelta, TextDelta, ThinkingDelta

BRACKETS = "brackets"
"""What such reasoning names as its field: it goes back into the text, between brackets."""

Piece = TextDelta | ThinkingDelta | BreakDelta

_BRACKET = re.compile(r"[\[\]]")
_LINE_ENDS = re.compile(r"[ \t]*\r?(?:\n|\Z)")
_NO_THOUGHT = re.compile(r"\s*(?:[xX]|\^[^\]\s]*|\d+)?\s*\Z|\s*(?:\"|\[?\{|[-+]?\d+(?:\.\d+)?\s*,)")
"""A task box, a footnote, a number; or the beginning of a JSON array."""


def in_brackets(thought: str) -> str:
    return f"[{thought}]\n"


class BracketThinking:
    """Splits streamed text; how it is cut changes nothing.

    Brackets hold a thought when they open a line and end one, and what they hold is no list, no link and no task box. They may
    span lines; until they are closed what they hold is held back.
    """

    def __init__(self) -> None:
        self._code = CodeSpans()
        self._waiting: list[str] = []
        """What is not decided yet: the blanks a line begins with, and brackets from there on."""
        self._depth = 0
        """How many brackets are open in what waits."""
        self._size = 0
        """How much of it was searched for brackets."""
        self._end = 0
        """Where the last of them was closed."""
        self._is_in_line = False
        """The line has begun with something else."""
        self._was_thought = False

    def feed(self, text: str) -> Sequence[Piece]:
        self._waiting.append(text)
        if self._depth and not self._count(text):
            return ()
        return self._split(is_all=False)

    def expect_no_more(self) -> Sequence[Piece]:
        """Something other than text comes, or the end; what follows a call does not begin a line."""
        pieces = self._split(is_all=True)
        self._is_in_line, self._was_thought = True, False
        return pieces

    def _split(self, *, is_all: bool) -> list[Piece]:
        text, pieces = "".join(self._waiting), list[Piece]()
        while text:
            if self._is_in_line:
                size = text.find("\n") + 1
                self._is_in_line = not size
                size = size or len(text)
            elif text.isspace() and "\n" not in text:
                size = len(text) if is_all else 0
            elif text.lstrip(" \t").startswith("[") and not self._code.is_fenced:
                size, thought = self._look_at_brackets(text, is_all=is_all)
                if thought:
                    self._think(thought, pieces)
                    text = text[size:]
                    continue
            else:
                self._is_in_line, size = True, 0
                continue
            if not size:
                break
            self._speak(text[:size], pieces)
            text = text[size:]
        self._waiting = [text]
        return pieces

    def _look_at_brackets(self, text: str, *, is_all: bool) -> tuple[int, str]:
        """How much of the text is decided, and the thought if it is one."""
        if not self._depth and not self._end:
            self._count(text)
        end = self._end
        if not end and not is_all:
            return 0, ""
        line_end = _LINE_ENDS.match(text, end) if end else None
        if line_end is not None and line_end.end() == len(text) and not text.endswith("\n") and not is_all:
            return 0, ""
        self._depth = self._size = self._end = 0
        thought = text[:end].strip()[1:-1]
        if line_end is not None and not _is_data(thought):
            return line_end.end(), thought
        self._is_in_line = True
        return end or len(text), ""

    def _count(self, text: str) -> bool:
        """Whether the brackets are closed in this text, which continues what was counted before."""
        for bracket in _BRACKET.finditer(text):
            self._depth += 1 if bracket[0] == "[" else -1
            if not self._depth:
                self._end = self._size + bracket.end()
                return True
        self._size += len(text)
        return False

    def _think(self, thought: str, pieces: list[Piece]) -> None:
        if self._was_thought:
            pieces.append(BreakDelta())
        pieces.append(ThinkingDelta(thought, BRACKETS))
        self._was_thought = True

    def _speak(self, text: str, pieces: list[Piece]) -> None:
        self._was_thought = False
        self._code.follow(text)
        pieces.append(TextDelta(text))


def _is_data(inside: str) -> bool:
    if _NO_THOUGHT.match(inside):
        return True
    try:
        json.loads(f"[{inside}]")
    except (ValueError, RecursionError):
        return False
    return True
