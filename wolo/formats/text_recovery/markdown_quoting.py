"""Detect whether the end of streamed Markdown is quoted: code, a block quote, an example."""

from __future__ import annotations

import re

_RUNS = re.compile(r"`+")
_FENCE = re.compile(r"[ \t>]*(?:[-*+][ \t]+|\d+[.)][ \t]+)?(?:(`{3,})[^`]*|(~{3,}).*)\Z", re.DOTALL)
MOST_INDENT = 3
"""A line indented further than this beyond its opening does not close a fence."""
_PARAGRAPH_ENDS = re.compile(r"\n[ \t]*\r?\n")


class CodeSpans:
    """Tracks code fences and spans line by line."""

    def __init__(self) -> None:
        self._fence = ""
        """Opening marker of the current fence."""
        self._fence_indent = 0
        self._open = 0
        """Backticks of the span open at the start of the line."""
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
        """Backticks that opened the current span, if it is closed later; 0 outside."""
        return _open_after("".join(self._line), self._open)

    @property
    def is_line_start(self) -> bool:
        """The line has only blanks so far."""
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


def find_closing(text: str, num_backticks: int, *, is_all: bool) -> int | None:
    """End of the span opened by so many backticks: -1 when never closed, None if unknown yet."""
    paragraph = _PARAGRAPH_ENDS.search(text)
    limit = paragraph.start() if paragraph else len(text)
    for run in _RUNS.finditer(text, 0, limit):
        if run.end() == len(text) and not is_all:
            return None
        if run.end() - run.start() == num_backticks:
            return run.end()
    return -1 if paragraph or is_all else None


def _open_after(line: str, num_backticks: int) -> int:
    for run in _RUNS.findall(line):
        if not num_backticks:
            num_backticks = len(run)
        elif len(run) == num_backticks:
            num_backticks = 0
    return num_backticks


MOST_BLANKS = 40
"""Maximum leading blanks remembered."""
INDENTED_CODE = 4
"""Columns that make a line an indented code block."""

_QUOTE = re.compile(r"\s*(?:[-*+][ \t]+|\d+[.)][ \t]+)?>")
_ELEMENT = re.compile(
    r"<(?P<ends>/?)(?:(?P<shows>pre|code|samp|kbd|xmp|listing|blockquote|textarea|details|template|script|style|svg"
    r"|examples?|documents?|tool_(?:response|result)s?|function_(?:response|result)s?)"
    r"|(?P<mark>(?:antml:)?(?:tool_call|function_calls|function|invoke|parameter)))\b[^>]*>|(?P<comment><!--|-->)",
    re.IGNORECASE,
)
"""Elements that show their content, marks of calls that were read as text, and comments: their content is text."""
_TAG = re.compile(r"<[^>]*>")
_BEGUN = re.compile(r"(?:\|>|\[TOOL_CALLS\]|[\[({=])\s*\Z")
"""The line continues in the next one."""
_SPAN = re.compile(r"(`+)[^`]+\1")


class Quoting(CodeSpans):
    """Tracks quoting line by line. All lines of a quoted paragraph count, with or without `>`."""

    def __init__(self) -> None:
        super().__init__()
        self._is_quoted = False
        """The last line belongs to a quoted paragraph."""
        self.continues_line = False
        """The last nonblank line continues in this one."""
        self._elements: list[str] = []
        """Open elements that show their content verbatim."""
        self._begin: str | None = ""
        """Leading blanks of the line; None after other text."""

    def follow(self, text: str) -> None:
        if self._begin is None and "\n" not in text:  # common case
            self._line.append(text)
            return
        super().follow(text)
        _, broken, line = text.rpartition("\n")
        begin = "" if broken else self._begin
        self._begin = None if begin is None or line.strip() else (begin + line)[:MOST_BLANKS]

    @property
    def indentation(self) -> int | None:
        """Leading columns of the line; None after other text."""
        return None if self._begin is None else _width(self._begin)

    @property
    def is_quoted(self) -> bool:
        """In a block quote, an indented line or an element; see `is_fenced` and `open_backticks` for code."""
        line = "".join(self._line)
        if self._is_quoted or _QUOTE.match(line) or _width(line) >= INDENTED_CODE:
            return True
        return bool(self._elements_after(line) if "<" in line else self._elements)

    def _end_line(self, line: str) -> None:
        was_fenced = bool(self._fence)
        super()._end_line(line)
        if not was_fenced:
            self._is_quoted = bool(line.strip()) and (self._is_quoted or _QUOTE.match(line) is not None)
        if line.strip():
            self.continues_line = _BEGUN.search(line) is not None
        if not (was_fenced or self._fence) and ("<" in line or "-->" in line):
            self._elements = self._elements_after(line)

    def _elements_after(self, line: str) -> list[str]:
        """An element that shows its content must start a line; elsewhere it is only mentioned."""
        elements, shown = list(self._elements), _SPAN.sub("", line)
        for match in _ELEMENT.finditer(shown):
            element = "comment" if match["comment"] else (match["shows"] or match["mark"]).lower()
            if match["ends"] or match["comment"] == "-->":
                if element in elements:
                    del elements[elements.index(element) :]
            elif not match["shows"] or not _TAG.sub("", shown[: match.start()]).strip():
                elements.append(element)
        return elements


def _width(line: str) -> int:
    return len(line[: len(line) - len(line.lstrip())].expandtabs(INDENTED_CODE))
