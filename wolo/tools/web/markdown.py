"""Builds Markdown: paragraphs with inline marks, block prefixes and tables."""

from __future__ import annotations

import re
from collections.abc import Sequence

DEEPEST = 12
"""Maximum nesting of lists and quotes; deeper content is kept at this level."""
MOST_COLUMNS = 40
LONGEST_CELL_CHARS = 1_000
"""A table with longer cells is treated as page layout."""
_FENCE = re.compile(r"`{3,}")


class MarkdownBuilder:
    """The text written so far. Depth is counted, nothing is nested."""

    def __init__(self) -> None:
        self.quotes = 0
        self.lists: list[int] = []
        """Number of the next item; 0: not numbered."""
        self.marker = ""
        """Marker of the item whose first block follows."""
        self._blocks: list[str] = []

    @property
    def count(self) -> int:
        """Position in the written text."""
        return len(self._blocks)

    def text(self, begin: int = 0, end: int | None = None) -> str:
        return "".join(self._blocks[begin:end]).strip("\n")

    def begin_item(self) -> None:
        number = self.lists[-1] if self.lists else 0
        self.marker = f"{number}. " if number else "- "
        if number:
            self.lists[-1] += 1

    def put(self, text: str) -> None:
        depth, marker = min(len(self.lists), DEEPEST), self.marker
        self.marker = ""
        quote = "> " * min(self.quotes, DEEPEST)
        indent = "  " * (depth - 1 if marker else depth)
        first, *rest = text.split("\n")
        following = f"{quote}{indent}{' ' * len(marker)}"
        lines = [f"{quote}{indent}{marker}{first}", *(f"{following}{line}".rstrip() for line in rest)]
        self._blocks.append(("\n" if marker else "\n\n") + "\n".join(lines))

    def put_code(self, code: str, language: str) -> None:
        longest = max(map(len, _FENCE.findall(code)), default=2)
        fence = "`" * (longest + 1)
        self.put(f"{fence}{language}\n{code}\n{fence}")

    def put_table(self, rows: Sequence[Sequence[str]]) -> None:
        """Writes a table, or cells one by one if it is page layout."""
        filled = [row[:MOST_COLUMNS] for row in rows if any(row)]
        width = max(map(len, filled), default=0)
        if width < 2 or any(len(cell) > LONGEST_CELL_CHARS for row in filled for cell in row):
            self.put_cells(filled)
            return
        lines = [_row([*row, *[""] * (width - len(row))]) for row in filled]
        self.put("\n".join([lines[0], _row(["---"] * width), *lines[1:]]))

    def put_cells(self, rows: Sequence[Sequence[str]]) -> None:
        """Writes the cells of a layout table."""
        for row in rows:
            for cell in filter(None, row):
                self.put(cell)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


_BLANKS = re.compile(r"[ \t\r\n\f\u00a0]+")
_SPACES = re.compile(" +")
_AROUND_BREAK = re.compile(r" *\n *")
_INVISIBLE = re.compile("[\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff\U000e0000-\U000e007f]")
"""Characters invisible to users that a model would read."""


class Paragraph:
    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._code_from = -1
        self._link_from = -1
        self._target = ""

    def add_text(self, text: str) -> None:
        self._pieces.append(_BLANKS.sub(" ", _INVISIBLE.sub("", text)))

    def break_line(self) -> None:
        self._pieces.append("\n")

    def show_image(self, alt: str, source: str) -> None:
        """An empty `source` cannot be linked."""
        alt = " ".join(alt.split())
        if alt:
            self.add_text(f"![{alt}]({source})" if source else alt)

    def begin_code(self) -> None:
        self.end_code()
        self._code_from = len(self._pieces)

    def end_code(self) -> None:
        begin, self._code_from = self._code_from, -1
        code = "".join(self._pieces[begin:]).strip() if begin >= 0 else ""
        if code:
            ticks = "``" if "`" in code else "`"
            self._pieces[begin:] = [f"{ticks}{code}{ticks}"]

    def begin_link(self, target: str) -> None:
        """Within code a link is plain text."""
        self.end_link()
        if target and self._code_from < 0:
            self._link_from, self._target = len(self._pieces), target

    def end_link(self) -> None:
        self._mark_link()
        self._link_from, self._target = -1, ""

    def take(self) -> str:
        """Returns the text and starts a new paragraph; an open link continues in it."""
        self.end_code()
        self._mark_link()
        text = "".join(self._pieces)
        self._pieces.clear()
        self._link_from = 0 if self._target else -1
        return _AROUND_BREAK.sub("\n", _SPACES.sub(" ", text)).strip()

    def _mark_link(self) -> None:
        written = "".join(self._pieces[self._link_from :]) if self._link_from >= 0 else ""
        if label := " ".join(written.split()):
            before, after = written[: written[:1] == " "], " " if written.endswith(" ") else ""
            self._pieces[self._link_from :] = [f"{before}[{label}]({self._target}){after}"]
