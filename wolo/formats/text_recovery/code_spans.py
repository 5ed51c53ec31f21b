"""Whether a place in streamed Markdown stands inside code: in a fence, or between backticks."""

from __future__ import annotations

import re

_RUNS = re.compile(r"`+")
_FENCE = re.compile(r"[ \t>]*(?:[-*+][ \t]+|\d+[.)][ \t]+)?(?:(`{3,})[^`]*|(~{3,}).*)\Z", re.DOTALL)
MOST_INDENT = 3
"""A line that is indented more than that beyond the beginning of a fence does not end it."""
_PARAGRAPH_ENDS = re.compile(r"\n[ \t]*\r?\n")


class CodeSpans:
    """Follows the text line by line; a place is asked about when the text has been followed up to it."""

    def __init__(self) -> None:
        self._fence = ""
        """What opened the fence we are in."""
        self._fence_indent = 0
        self._open = 0
        """Backticks of the span that is open at the beginning of this line."""
        self._line: list[str] = []

    def follow(self, text: str) -> None:
        if "\n" not in text:
            self._line.append(text)
            return
        first, *others = text.split("\n")
        self._end_line("".join([*self._line, first]))
        for line in others[:-1]:
            self._end_line(line)
        self._line = [others[-1]]

    @property
    def is_fenced(self) -> bool:
        return bool(self._fence or _FENCE.match("".join(self._line)))

    @property
    def open_backticks(self) -> int:
        """How many opened the span we are in, if the same number closes it; 0 outside."""
        return _open_after("".join(self._line), self._open)

    @property
    def is_line_start(self) -> bool:
        """Nothing but blanks since the line began."""
        return not any(fragment.strip() for fragment in self._line)

    def _end_line(self, line: str) -> None:
        if self._fence:
            bare = line.strip(" \t\r>")
            is_near = len(line) - len(line.lstrip(" \t>")) <= self._fence_indent + MOST_INDENT
            if is_near and len(bare) >= len(self._fence) and not bare.strip(self._fence[0]):
                self._fence = ""
        elif fence := _FENCE.match(line) if "```" in line or "~~~" in line else None:
            self._fence, self._open = fence[1] or fence[2], 0
            self._fence_indent = max(fence.start(1), fence.start(2))
        elif not line.strip():
            self._open = 0
        elif "`" in line:
            self._open = _open_after(line, self._open)


def find_closing(text: str, backticks: int, *, is_all: bool) -> int | None:
    """Where the span ends that so many opened before this text: -1 when none closes it, None while that is not known."""
    paragraph = _PARAGRAPH_ENDS.search(text)
    limit = paragraph.start() if paragraph else len(text)
    for run in _RUNS.finditer(text, 0, limit):
        if run.end() == len(text) and not is_all:
            return None
        if run.end() - run.start() == backticks:
            return run.end()
    return -1 if paragraph or is_all else None


def _open_after(line: str, backticks: int) -> int:
    for run in _RUNS.findall(line):
        if not backticks:
            backticks = len(run)
        elif len(run) == backticks:
            backticks = 0
    return backticks
