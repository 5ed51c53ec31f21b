"""What kind of line of Markdown one has before one. All of it takes linear time, whatever the line holds."""

from __future__ import annotations

import re

FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})([^`]*)$")
RULE = re.compile(r"^ {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*$")
ITEM = re.compile(r"^([ \t]*)([-*+]|\d{1,9}[.)])([ \t]+|$)")
QUOTE = re.compile(r"^ {0,3}(?:> ?)+")

_HEADING = re.compile(r"^ {0,3}(#{1,6})(?=[ \t]|$)")
_TASK = re.compile(r"^\[([ xX])\](?=[ \t])")
_DASHES = re.compile(r":?-+:?")
_BAR = re.compile(r"(?<!\\)\|")
_MARKUP = "*_`~[]()!<&\\"


def read_heading(line: str) -> tuple[int, str] | None:
    """Its level and its text."""
    found = _HEADING.match(line)
    if found is None:
        return None
    text = line[found.end() :].strip()
    bare = text.rstrip("#")
    return len(found[1]), bare.rstrip() if not bare or bare[-1] in " \t" else text


def is_below_header(line: str, header: str) -> bool:
    """`|---|:-:|`, which makes a table's header of the line above it."""
    cells = _BAR.split(line.strip().strip("|"))
    return len(cells) == len(_BAR.split(header.strip().strip("|"))) and all(_DASHES.fullmatch(cell.strip()) for cell in cells)


def bullet(item: re.Match[str]) -> str:
    """Numbers stay the model's own."""
    return item[2] if item[2][0].isdigit() else "•"


def with_box(text: str) -> str:
    """`[x] done` as a ticked box."""
    return _TASK.sub(lambda found: "☐" if found[1] == " " else "☑", text)


def unindented(line: str, columns: int) -> str:
    """Code in a list stands under its item; copied, it must stand at the margin."""
    margin = len(line) - len(line.lstrip(" "))
    return line[min(margin, columns) :]


def last_gap(line: str, within: int) -> int:
    """Where to cut a long line: before a blank near its end, else (some scripts have none) before the last characters."""
    if (gap := line.rfind(" ", max(len(line) - within, 0), len(line) - 1)) >= 0:
        return len(line[:gap].rstrip(" "))
    return len(line[:-1].rstrip(_MARKUP))
