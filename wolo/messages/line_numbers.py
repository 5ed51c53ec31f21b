"""Line numbers of a page of a text file: before the first line and every tenth, `20→text`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

EVERY = 10
_NOTE = r"\[(?:Lines (-?\d{1,12}) to (-?\d{1,12})\b|(\d{1,12}) lines?\.)"


def add_numbers(first: int, lines: Sequence[str]) -> list[str]:
    """A page whose other lines all begin like numbered lines has a number before each, so that readers are never in doubt.

    One with a line that looks like its note, too: what follows that could pass for text of wolo's own.
    """
    has_note = any(line.startswith("[") and re.match(_NOTE, line) for line in lines)
    step = 1 if has_note or all(lines[at].startswith(f"{first + at}→") for at in _others(first, len(lines))) else EVERY
    return [f"{first + at}→{line}" if not at or (first + at) % step == 0 else line for at, line in enumerate(lines)]


def remove_numbers(page: Sequence[str]) -> tuple[int, list[str]] | None:
    """Returns the first number, and the lines; None: not a page. Older versions numbered every line; lines may be missing."""
    number, arrow, _ = page[0].partition("→") if page else ("", "", "")
    if not arrow or not re.fullmatch(r"-?\d{1,12}", number):
        return None
    first = int(number)
    step = 1 if all(page[at].startswith(f"{first + at}→") for at in _others(first, len(page))) else EVERY
    marks = [f"{first + at}→" if not at or (first + at) % step == 0 else "" for at in range(len(page))]
    return first, [line.removeprefix(mark) for mark, line in zip(marks, page, strict=True)]


def number_every_line(output: str) -> str:
    """The output of `read` with a number before each line, as older versions wrote it; other output as it is."""
    page, rest = split_output(output)
    found = remove_numbers(page)
    return output if found is None else "\n".join([*(f"{n}→{line}" for n, line in enumerate(found[1], found[0])), rest])


def split_output(output: str) -> tuple[list[str], str]:
    """The page in the output of `read`, and its note with all that was added to the result later, such as instructions."""
    lines = output.split("\n")
    for at in range(len(lines) - 1, 0, -1):
        if (note := re.match(_NOTE, lines[at])) and at == int(note[3] or int(note[2]) - int(note[1]) + 1):
            return lines[:at], "\n".join(lines[at:])
    return lines[:-1], lines[-1]


def _others(first: int, num_lines: int) -> Iterator[int]:
    """Indexes of the lines that have no number."""
    return (at for at in range(1, num_lines) if (first + at) % EVERY)
