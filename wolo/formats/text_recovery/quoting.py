"""Tells whether the end of streamed Markdown stands in something quoted: code, a `>` quote, an indented or marked-up example."""

from __future__ import annotations

import re

from wolo.formats.text_recovery.code_spans import CodeSpans

MOST_BLANKS = 40
"""So many before a text are remembered."""
INDENTED_CODE = 4
"""So many columns make a line an example."""

_QUOTE = re.compile(r"\s*(?:[-*+][ \t]+|\d+[.)][ \t]+)?>")
_ELEMENT = re.compile(
    r"<(?P<ends>/?)(?:(?P<shows>pre|code|samp|kbd|xmp|listing|blockquote|textarea|details|template|script|style|svg"
    r"|examples?|documents?|tool_(?:response|result)s?|function_(?:response|result)s?)"
    r"|(?P<mark>(?:antml:)?(?:tool_call|function_calls|function|invoke|parameter)))\b[^>]*>|(?P<comment><!--|-->)",
    re.IGNORECASE,
)
"""Elements that show what is in them, marks of a call that was read as text, and comments: what stands in one is text."""
_TAG = re.compile(r"<[^>]*>")
_BEGUN = re.compile(r"(?:\|>|\[TOOL_CALLS\]|[\[({=])\s*\Z")
"""A line that ends so goes on in the next one."""
_SPAN = re.compile(r"(`+)[^`]+\1")


class Quoting(CodeSpans):
    """Follows the text line by line. All lines of a quoted paragraph are quoted, with `>` before them or not."""

    def __init__(self) -> None:
        super().__init__()
        self._is_quoted = False
        """The last line belongs to a quoted paragraph."""
        self._is_begun = False
        self._elements: list[str] = []
        """Elements that are open and show their content as it is."""
        self._begin: str | None = ""
        """The blanks with which this line begins; None once something else came."""

    def follow(self, text: str) -> None:
        if self._begin is None and "\n" not in text:  # nearly all text
            self._line.append(text)
            return
        super().follow(text)
        _, broken, line = text.rpartition("\n")
        begin = "" if broken else self._begin
        self._begin = None if begin is None or line.strip() else (begin + line)[:MOST_BLANKS]

    @property
    def indentation(self) -> int | None:
        """Columns of blanks before the end of the text; None when something else stands before it in its line."""
        return None if self._begin is None else _width(self._begin)

    @property
    def is_quoted(self) -> bool:
        """In a quote, an indented line or an element; for fences and spans of code ask `is_fenced` and `open_backticks`."""
        line = "".join(self._line)
        if self._is_quoted or _QUOTE.match(line) or _width(line) >= INDENTED_CODE:
            return True
        return bool(self._elements_after(line) if "<" in line else self._elements)

    @property
    def is_begun(self) -> bool:
        """The last line that is not blank goes on in this one."""
        return self._is_begun

    def _end_line(self, line: str) -> None:
        was_fenced = bool(self._fence)
        super()._end_line(line)
        if not was_fenced:
            self._is_quoted = bool(line.strip()) and (self._is_quoted or _QUOTE.match(line) is not None)
        if line.strip():
            self._is_begun = _BEGUN.search(line) is not None
        if not (was_fenced or self._fence) and ("<" in line or "-->" in line):
            self._elements = self._elements_after(line)

    def _elements_after(self, line: str) -> list[str]:
        """One that shows its content begins a line; elsewhere it is spoken of."""
        elements, shown = list(self._elements), _SPAN.sub("", line)
        for found in _ELEMENT.finditer(shown):
            element = "comment" if found["comment"] else (found["shows"] or found["mark"]).lower()
            if found["ends"] or found["comment"] == "-->":
                if element in elements:
                    del elements[elements.index(element) :]
            elif not found["shows"] or not _TAG.sub("", shown[: found.start()]).strip():
                elements.append(element)
        return elements


def _width(line: str) -> int:
    return len(line[: len(line) - len(line.lstrip())].expandtabs(INDENTED_CODE))
