"""Compiles glob patterns, of git and of the model, to regular expressions without catastrophic backtracking.

A glob like `*a*a*a*b` becomes a regular expression that tries every split of a name: minutes of work, and an ignore file may be
hostile. In a glob the earliest position of each literal piece is as good as any later one, so every `*` and `**` but the last is
an atomic group.

`?` and a set match one character where git matches one byte, so results may differ outside of Latin scripts.
"""

from __future__ import annotations

import re
from itertools import pairwise

_CLASSES = {
    "alpha": "a-zA-Z",
    "digit": "0-9",
    "alnum": "a-zA-Z0-9",
    "upper": "A-Z",
    "lower": "a-z",
    "space": r"\s",
    "blank": r" \t",
    "punct": r"!-/:-@\[-`{-~",
    "xdigit": "0-9a-fA-F",
    "cntrl": r"\x00-\x1f\x7f",
    "print": r"\x20-\x7e",
    "graph": r"\x21-\x7e",
}
_MAX_ALTERNATIVES = 200
_MAX_CHARS = 4096
"""Longest path on Linux (PATH_MAX)."""
_DOUBLE_STAR = "**"


class BadPattern(ValueError):
    """A glob that can match nothing, such as one with an unclosed `[`."""


def compile_glob(glob: str) -> re.Pattern[str]:
    """Compiles a glob for paths relative to the start of a search. Without a slash it matches names at any depth.

    Raises BadPattern.
    """
    if len(glob) > _MAX_CHARS:
        raise BadPattern(f"The pattern is longer than {_MAX_CHARS} characters.")
    alternatives = expand_braces(glob)
    return re.compile("|".join(f"(?:{_anywhere_or_from_here(one)})" for one in alternatives))


def ignore_line(line: str) -> tuple[str, bool, bool] | None:
    """Parses a line of a `.gitignore` into (regular expression, ignores, is for names); None for a line without effect.

    The expression is matched in full against a path relative to the file's folder or its last name; directories end with a slash.
    """
    line = line.rstrip("\n").removesuffix("\r")
    while line.endswith(" ") and not line.endswith("\\ "):
        line = line[:-1]
    if not line or line.startswith("#"):
        return None
    ignores = not line.startswith("!")
    pattern = line if ignores else line[1:]
    only_directories = pattern.endswith("/")
    glob = pattern.removesuffix("/")
    is_for_names = glob != "" and "/" not in glob and _DOUBLE_STAR not in glob
    try:
        expression = _name_expression(glob) if is_for_names else _anywhere_or_from_here(glob)
    except BadPattern:
        return None
    return expression + ("/" if only_directories else "/?"), ignores, is_for_names


def _anywhere_or_from_here(glob: str) -> str:
    if (parts := glob.removeprefix("/").split("/")) == [""]:
        raise BadPattern("The pattern is empty.")
    # Joins the parts between `**`: each run is found at its earliest position, the last one must reach the end
    runs: list[list[str]] = [[]]
    for part in parts if "/" in glob else [_DOUBLE_STAR, *parts]:
        if len(part) > 1 and not part.strip("*"):
            runs.append([])
        else:
            runs[-1].append(_name_expression(part))
    first, *rest = ["/".join(run) for run in runs]
    if not rest:
        return first
    *middle, last = rest
    expression = first + "/" if first else ""
    expression += "".join(f"(?>(?:[^/]+/)*?{run}/)" for run in middle if run)
    return expression + (f"(?:[^/]+/)*{last}" if last else "[^/](?s:.)*?")


def _name_expression(part: str) -> str:
    pieces = [""]
    position = 0
    while position < len(part):
        if (character := part[position]) == "*":
            pieces.append("")
        elif character == "?":
            pieces[-1] += "[^/]"
        elif character == "[":
            expression, position = _bracket(part, position)
            pieces[-1] += expression
            continue
        else:
            if character == "\\":
                position += 1
                if position == len(part):
                    raise BadPattern("The pattern ends in a backslash.")
            pieces[-1] += re.escape(part[position])
        position += 1
    first, *rest = pieces
    if not rest:
        return first
    *middle, last = rest
    # A name is never empty: a lone `*` needs one character.
    some = "[^/]*" if any(pieces) else "[^/]+"
    return first + "".join(f"(?>[^/]*?{piece})" for piece in middle if piece) + some + last


def _bracket(part: str, start: int) -> tuple[str, int]:
    position = start + 1
    negated = part[position : position + 1] in ("!", "^")
    position += negated
    first = position
    members = ""
    while position < len(part) and (part[position] != "]" or position == first):
        member, position = _bracket_member(part, position)
        members += member
    if position >= len(part):
        raise BadPattern("`[` is not closed; write \\[ for the character itself.")
    if not members:
        return "(?!)" if not negated else "[^/]", position + 1
    return f"(?!/)[{'^' if negated else ''}{members}]", position + 1


def _bracket_member(part: str, position: int) -> tuple[str, int]:
    if part.startswith("[:", position) and (end := part.find(":]", position)) > 0:
        if (name := part[position + 2 : end]) not in _CLASSES:
            raise BadPattern(f"[:{name}:] is not a character class.")
        return _CLASSES[name], end + 2
    low, position = _bracket_character(part, position)
    if part[position : position + 1] == "-" and part[position + 1 : position + 2] not in ("", "]"):
        high, position = _bracket_character(part, position + 1)
        return (f"{re.escape(low)}-{re.escape(high)}" if low <= high else ""), position
    return re.escape(low), position


def _bracket_character(part: str, position: int) -> tuple[str, int]:
    if part[position] == "\\" and position + 1 < len(part):
        return part[position + 1], position + 2
    return part[position], position + 1


def expand_braces(glob: str) -> list[str]:
    """Expands `a.{ts,tsx}` to `a.ts`, `a.tsx`, also nested. Unpaired braces, or ones without a comma, are literal.

    Raises BadPattern.
    """
    done: list[str] = []
    waiting = [(glob, 0)]
    while waiting:
        text, start = waiting.pop()
        if (pair := _first_pair(text, start)) is None:
            done.append(text)
            continue
        opening, closing, commas = pair
        cuts = [opening, *commas, closing]
        if len(done) + len(waiting) + len(cuts) > _MAX_ALTERNATIVES:
            raise BadPattern("The braces expand to too many alternatives.")
        for left, right in pairwise(cuts):
            waiting.append((text[:opening] + text[left + 1 : right] + text[closing + 1 :], opening))
    return done


def _first_pair(text: str, start: int) -> tuple[int, int, list[int]] | None:
    """Finds the first pair of braces with a comma: its start, end and commas. Reads the text once."""
    first = None
    waiting: list[tuple[int, list[int]]] = []
    for mark in re.finditer(r"\\.|[{},]", text[start:], re.DOTALL):
        position = start + mark.start()
        match mark[0]:
            case "{":
                waiting.append((position, []))
            case "," if waiting:
                waiting[-1][1].append(position)
            case "}" if waiting:
                opening, commas = waiting.pop()
                if commas and (first is None or opening < first[0]):
                    first = (opening, position, commas)
                if first and not waiting:
                    break
    return first
