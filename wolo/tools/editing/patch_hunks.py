"""Locates the hunks of a patch in a file, and the bytes they change.

Context lines are never written; only the runs of lines between them are replaced.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate, pairwise
from pathlib import Path
from typing import NamedTuple

from wolo.errors import ToolError
from wolo.tools.editing import matching
from wolo.tools.editing.matching import EditPassage, PassageMatches, describe_ambiguity, describe_miss, find, line_number
from wolo.tools.editing.patch_parser import Hunk
from wolo.workspace.files.encodings import newline_name, split_lines
from wolo.workspace.files.file_reading import FileLedger

_ENDINGS = {"CRLF": "\r\n", "CR": "\r"}
_MORE_LINES = "Show more of the lines around it, or name its function after `@@`."
_LINE_END = re.compile(r"\r\n|\r|\n")


class PlacedHunks(NamedTuple):
    pieces: list[EditPassage]
    """In file order, without overlaps."""
    rules: list[str]
    """Differences that were tolerated."""


def place_hunks(text: str, hunks: Sequence[Hunk], shown: str, ledger: FileLedger, path: Path) -> PlacedHunks:
    """Locates all hunks in the current text. Raises ToolError for the first that is missing or ambiguous."""
    sheet = _Sheet(text, shown, ledger, path)
    pieces: list[EditPassage] = []
    rules: list[str] = []
    free = 0
    for hunk in hunks:
        passage, rule = sheet.find(hunk, free)
        pieces += sheet.pieces(hunk, passage)
        free = passage.end
        if rule and rule not in rules:
            rules.append(rule)
    pieces.sort(key=lambda piece: (piece.start, piece.end))
    for one, following in pairwise(pieces):
        if following.start < one.end:
            line = line_number(text, following.start)
            raise ToolError(f"Two parts of the patch overlap at line {line} of `{shown}`; nothing was changed.")
    return PlacedHunks(pieces, rules)


class _Sheet:
    """The text of a file as whole lines. A missing final line end is added for comparisons."""

    def __init__(self, text: str, shown: str, ledger: FileLedger, path: Path) -> None:
        self._ending = _ENDINGS.get(newline_name(text), "\n")
        self._length = len(text)
        is_open = bool(text) and not text.endswith(("\n", self._ending))
        self._text = text + self._ending if is_open else text
        self._shown = shown
        self._ledger, self._path = ledger, path

    def find(self, hunk: Hunk, free: int) -> tuple[EditPassage, str]:
        """Returns the one matching passage, and the difference that was tolerated.

        `free` is the end of the previous hunk, which this one usually follows.
        """
        what = f"What the hunk at line {hunk.line} of the patch shows"
        anchors = list(self._anchor_positions(hunk.anchors, free)) or list(self._anchor_positions(hunk.anchors, 0))
        if not hunk.old:
            return self._insertion(hunk, anchors), ""
        first = min(anchors, default=0)
        place = self._look(hunk, max(free, first)) or self._look(hunk, first)
        if place is None:
            elsewhere = self._look(hunk, 0) if first else None
            if elsewhere:
                line = line_number(self._text, elsewhere.passages[0].start)
                raise ToolError(
                    f"{what} is in `{self._shown}` at line {line}, not after `@@ {hunk.anchors[-1]}`; nothing was changed."
                )
            text = self._text[: self._length]
            raise ToolError(describe_miss(what, text, hunk.old, hunk.new, self._ledger.count_miss(self._path), self._shown))
        passages = place.passages
        if hunk.at_end:
            passages = [passage for passage in passages if passage.end == len(self._text)] or passages
        if len(passages) > 1 and anchors:
            passages = sorted({min(each for each in passages if each.start >= at) for at in anchors if at <= passages[-1].start})
        if len(passages) > 1:
            raise ToolError(describe_ambiguity(what, self._text, PassageMatches(passages, place.rule), self._shown, _MORE_LINES))
        return passages[0], place.rule

    def pieces(self, hunk: Hunk, passage: EditPassage) -> Iterator[EditPassage]:
        """Returns the runs of lines that are removed and added."""
        before = split_lines(self._text[passage.start : passage.end])
        after = split_lines(passage.new)
        if len(before) != hunk.count("-") or len(after) != hunk.count("+"):
            yield self._clip(*passage)  # a lone CR was treated as a line end
            return
        above = _LINE_END.search(self._text, max(passage.start - 2, 0), passage.start)
        ending = above[0] if above and above.end() == passage.start else self._ending
        run = _LineRun(passage.start, passage.start, ending)
        at_old = at_new = 0
        for sign, _ in hunk.lines:
            if sign == "+":
                run.coming.append(after[at_new].removesuffix(_end_of(after[at_new])))
                at_new += 1
                continue
            line = before[at_old]
            at_old += 1
            if sign == "-":
                run.going.append(line)
                run.end += len(line)
                continue
            at_new += 1
            if not run.is_empty:
                yield self._clip(run.start, run.end, run.text())
            run = _LineRun(run.end + len(line), run.end + len(line), _end_of(line))
        if not run.is_empty:
            yield self._clip(run.start, run.end, run.text())

    def _clip(self, start: int, end: int, new: str) -> EditPassage:
        """Removes the final line end again that the file does not have."""
        if end <= self._length:
            return EditPassage(start, end, new)
        last = list(_LINE_END.finditer(new))[-1] if new else None
        bare = new[: last.start()] if last else ""
        return (
            EditPassage(self._length, self._length, self._ending + bare)
            if start > self._length
            else EditPassage(start, self._length, bare)
        )

    @cached_property
    def _lines(self) -> list[str]:
        return split_lines(self._text)

    @cached_property
    def _starts(self) -> list[int]:
        return list(accumulate(map(len, self._lines), initial=0))

    def _look(self, hunk: Hunk, begin: int) -> PassageMatches | None:
        def fits(passage: EditPassage) -> bool:
            begins_line = passage.start == 0 or self._text[passage.start - 1] in "\r\n"
            return begins_line and passage.start >= begin

        matches = find(self._text, hunk.old, hunk.new, fits=fits)
        return matches if matches.passages else None

    def _insertion(self, hunk: Hunk, anchors: list[int]) -> EditPassage:
        """Places lines without context after the line named by `@@`, otherwise at the end of the file."""
        if hunk.anchors and not hunk.at_end:
            if len(anchors) != 1:
                many = f"occurs {len(anchors)} times" if anchors else "was not found"
                raise ToolError(f"The line `{hunk.anchors[-1]}` {many} in `{self._shown}`; nothing was changed. {_MORE_LINES}")
            place = anchors[0] + len(split_lines(self._text[anchors[0] :])[0])
        else:
            place = len(self._text)
        return EditPassage(place, place, matching.with_line_endings_of("", hunk.new, self._ending))

    def _anchor_positions(self, anchors: tuple[str, ...], begin: int) -> Iterator[int]:
        """Returns the position of the innermost anchor whose outer anchors precede it in order."""
        if not anchors:
            return
        lines, starts = self._lines, self._starts
        inner = [at for at in range(len(lines)) if starts[at] >= begin]
        for depth, anchor in enumerate(anchors):
            places = _lines_like(anchor, lines, inner if depth == 0 else range(len(lines)))
            if depth == 0:
                inner = places
            else:
                below = {next((place for place in places if place > outer), None) for outer in inner}
                inner = sorted(place for place in below if place is not None)
        yield from (starts[at] for at in inner)


class _LineRun:
    """A run of removed lines and their replacement."""

    def __init__(self, start: int, end: int, ending: str) -> None:
        self.start, self.end = start, end
        self.going: list[str] = []
        self.coming: list[str] = []
        self._ending = ending
        """Line ending of the line above."""

    @property
    def is_empty(self) -> bool:
        return not self.going and not self.coming

    def text(self) -> str:
        """Each line takes the line end of the line it replaces, further ones that of the last."""
        endings = [_end_of(line) for line in self.going] or [self._ending]
        beyond = len(self.coming) - len(endings)
        return "".join(line + end for line, end in zip(self.coming, endings + endings[-1:] * beyond, strict=False))


def _end_of(line: str) -> str:
    return next(end for end in ("\r\n", "\n", "\r", "") if line.endswith(end))


def _lines_like(anchor: str, lines: Sequence[str], among: Sequence[int]) -> list[int]:
    """Compares exactly, then without surrounding blanks, then by prefix."""
    bare = anchor.strip()
    likenesses: tuple[Callable[[str], bool], ...] = (
        lambda line: line.rstrip("\r\n") == anchor,
        lambda line: line.strip() == bare,
        lambda line: line.strip().startswith(bare),
    )
    for is_like in likenesses:
        if positions := [at for at in among if is_like(lines[at])]:
            return positions
    return []
