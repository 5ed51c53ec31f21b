"""Blocks of Markdown on their way to a page: what leads them in, and tables."""

from __future__ import annotations

import re
from collections.abc import Sequence

DEEPEST = 12
"""Lists and quotes within each other are drawn so deep; what is deeper stands there, too."""
MOST_COLUMNS = 40
LONGEST_CELL_CHARS = 1_000
"""A table with longer ones was made to place things on a page."""
_FENCE = re.compile(r"`{3,}")


class Layout:
    """What has been written so far. Nothing in it nests: depth is counted."""

    def __init__(self) -> None:
        self.quotes = 0
        self.lists: list[int] = []
        """The number of the next item, 0 where items are not numbered."""
        self.marker = ""
        """Of the item whose first block is still to come."""
        self._blocks: list[str] = []

    @property
    def count(self) -> int:
        """A place in what is written."""
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
        """As a table where it is one, else cell by cell."""
        filled = [row[:MOST_COLUMNS] for row in rows if any(row)]
        width = max(map(len, filled), default=0)
        if width < 2 or any(len(cell) > LONGEST_CELL_CHARS for row in filled for cell in row):
            self.put_cells(filled)
            return
        lines = [_row([*row, *[""] * (width - len(row))]) for row in filled]
        self.put("\n".join([lines[0], _row(["---"] * width), *lines[1:]]))

    def put_cells(self, rows: Sequence[Sequence[str]]) -> None:
        """Of what only looks like a table."""
        for row in rows:
            for cell in filter(None, row):
                self.put(cell)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


_BLANKS = re.compile(r"[ \t\r\n\f\u00a0]+")
_SPACES = re.compile(" +")
_AROUND_BREAK = re.compile(r" *\n *")
_INVISIBLE = re.compile("[\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff\U000e0000-\U000e007f]")
"""What no person would see, and a model would read."""


class Paragraph:
    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._code_from = -1
        self._link_from = -1
        self._target = ""

    def say(self, text: str) -> None:
        self._pieces.append(_BLANKS.sub(" ", _INVISIBLE.sub("", text)))

    def break_line(self) -> None:
        self._pieces.append("\n")

    def show_image(self, alt: str, source: str) -> None:
        """`source` is empty for one that cannot be found elsewhere."""
        alt = " ".join(alt.split())
        if alt:
            self.say(f"![{alt}]({source})" if source else alt)

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
        """Within code nothing can be marked: there a link is its text."""
        self.end_link()
        if target and self._code_from < 0:
            self._link_from, self._target = len(self._pieces), target

    def end_link(self) -> None:
        self._mark_link()
        self._link_from, self._target = -1, ""

    def take(self) -> str:
        """The text so far, and a new paragraph begins; a link that is not ended goes on in it."""
        self.end_code()
        self._mark_link()
        text = "".join(self._pieces)
        self._pieces.clear()
        self._link_from = 0 if self._target else -1
        return _AROUND_BREAK.sub("\n", _SPACES.sub(" ", text)).strip()

    def _mark_link(self) -> None:
        written = "".join(self._pieces[self._link_from :]) if self._link_from >= 0 else ""
        label = " ".join(written.split())
        if label:
            before, after = written[: written[:1] == " "], " " if written.endswith(" ") else ""
            self._pieces[self._link_from :] = [f"{before}[{label}]({self._target}){after}"]
