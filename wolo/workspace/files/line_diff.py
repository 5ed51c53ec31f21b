"""Computes line diffs, with bounded effort and size."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from wolo.workspace.files.encodings import split_lines

_CONTEXT = 3
_MAX_COMPARED = 3000
"""Lines of one side, between the first and the last difference, that are compared in detail."""
_MAX_SHOWN = 1000
_MAX_WIDTH = 500

Change = tuple[int, int, int, int]
"""before[a:b] became after[c:d]."""


class LineDiff(NamedTuple):
    text: str
    """Unified diff without header lines; truncated, with a note, when very long."""
    added: int
    removed: int


def diff_lines(before: str, after: str) -> LineDiff:
    """A different line ending counts as a change."""
    old, new = split_lines(before), split_lines(after)
    changes = list(compare(old, new))
    added = sum(d - c for _, _, c, d in changes)
    removed = sum(b - a for a, b, _, _ in changes)
    hunks: list[list[Change]] = []
    for change in changes:
        if hunks and change[0] - hunks[-1][-1][1] <= 2 * _CONTEXT:  # their context lines would touch
            hunks[-1].append(change)
        else:
            hunks.append([change])
    lines: list[str] = []
    for hunk in hunks:
        if len(lines) < _MAX_SHOWN:
            lines += _draw(hunk, old, new)
    if len(lines) > _MAX_SHOWN:
        lines[_MAX_SHOWN:] = [f"… {added + removed} changed lines in all"]
    return LineDiff("\n".join(lines), added, removed)


def is_cut(text: str) -> bool:
    """The diff may leave lines out, or the ends of lines."""
    lines = text.split("\n")
    return len(lines) >= _MAX_SHOWN or any(len(line) > _MAX_WIDTH + len("+") for line in lines)


def compare(old: list[str], new: list[str]) -> Iterator[Change]:
    """Yields the differences in order; long passages are reported as one change.

    Common beginnings and ends are skipped: most edits touch one place.
    """
    shorter = min(len(old), len(new))
    head = next((i for i in range(shorter) if old[i] != new[i]), shorter)
    tail = next((i for i in range(shorter - head) if old[-1 - i] != new[-1 - i]), shorter - head)
    a, b, c, d = head, len(old) - tail, head, len(new) - tail
    if a == b and c == d:
        return
    if a == b or c == d or max(b - a, d - c) > _MAX_COMPARED:
        yield a, b, c, d
        return
    from difflib import SequenceMatcher  # noqa: PLC0415  # 6 ms that a run without edits need not pay

    for tag, i, j, k, m in SequenceMatcher(None, old[a:b], new[c:d]).get_opcodes():
        if tag != "equal":
            yield a + i, a + j, c + k, c + m


def _draw(hunk: list[Change], old: list[str], new: list[str]) -> Iterator[str]:
    (first, _, first_new, _), (_, last, _, last_new) = hunk[0], hunk[-1]
    before = min(_CONTEXT, first)
    after = min(_CONTEXT, len(old) - last)
    span = _span(first - before, last + after), _span(first_new - before, last_new + after)
    yield f"@@ -{span[0]} +{span[1]} @@"
    position = first - before
    for a, b, c, d in hunk:
        yield from _mark(" ", old[position:a])
        yield from _mark("-", old[a:b])
        yield from _mark("+", new[c:d])
        position = b
    yield from _mark(" ", old[position : last + after])


def _span(start: int, end: int) -> str:
    count = end - start
    if count == 1:
        return str(start + 1)
    return f"{start + 1 if count else start},{count}"


def _mark(sign: str, lines: list[str]) -> Iterator[str]:
    for line in lines[: _MAX_SHOWN + 1]:
        shown = line.rstrip("\r\n")
        yield sign + (shown if len(shown) <= _MAX_WIDTH else f"{shown[:_MAX_WIDTH]}…")
        if not line.endswith(("\n", "\r")):
            yield "\\ No newline at end of file"
