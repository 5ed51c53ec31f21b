"""Sections and headings of Markdown, INI and TOML: which one a request means, and where an addition belongs."""

from __future__ import annotations

import difflib
import re
from pathlib import PurePath
from typing import Final

from wolo.models.local.checks.asked_changes import ALIKE
from wolo.models.local.checks.asked_parts import asked_parts
from wolo.models.local.checks.marks import prose_of
from wolo.models.local.checks.senses import GOES, means

LAST_LINES: Final = 3
"""Lines without blank ones that count as the end."""
_NEW_SECTION: Final = re.compile(
    r"\b(?:an?|new|another|eine[nm]?|neue[nrs]?|una?|nuev[ao]|une?|nouvelle|uma|nova|nuova)"
    r"\s+(?:\w+\s+)?(?:section|sezion|heading|chapter|abschnitt|kapitel|secci|apartado|seç)",
    re.I,
)


def unchanged_sections(request: str, path: str, text: str, old: str) -> list[str]:
    """Name the first section that the request names, if none of those has changed."""
    heads = re.findall(r"\[[\w.-]+\]", request)
    if path.endswith(".md") and text.count("\n") > old.count("\n") and not means(request, *GOES, "at_end", "heading"):
        words = set(re.findall(r"\w{4,}", prose_of(request).lower()))
        heads += [line for line in re.findall(r"(?m)^##+ .+$", old) if words & set(re.findall(r"\w+", line.lower()))]
    if PurePath(path).suffix.lower() in (".ini", ".cfg", ".toml"):
        words = set(re.findall(r"[\w.-]*\w", request.lower()))
        named = [head for head in re.findall(r"(?m)^\[[^\]]+\]", old) if head.strip("[]").lower() in words]
        heads += named if len(named) == 1 else []
    heads = [head for head in heads if _section(old, head)]
    is_same = heads and all(_section(text, head) == _section(old, head) for head in heads)
    return [f"change in {heads[0]}"] if is_same else []


def repeats(request: str, line: str) -> bool:
    """Check whether a line says what the request says, instead of doing it."""
    return request.startswith(line) or difflib.SequenceMatcher(None, request, line).ratio() >= ALIKE


def _section(text: str, head: str) -> str:
    """Cut out a section of INI, TOML or Markdown, with its head and those below it; empty if there is none."""
    next_one = r"\[" if head.startswith("[") else f"#{{2,{len(head.split()[0])}}} "
    match = re.search(rf"(?ms)^{re.escape(head)}(?!\w).*?(?=^{next_one}|\Z)", text)
    return match[0].rstrip() if match else ""


def misplacement(request: str, quoted: tuple[str, ...], text: str) -> list[str]:
    """Name a heading that is none, and a text that is not at the end."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    headings = [re.sub("^#+ ", "", line) for line in lines if line.startswith("#")]
    is_heading = not means(request, "heading") or quoted[0].lstrip("# ") in headings or not any("#" in line for line in lines)
    missing = [] if is_heading else [f"heading “{quoted[0]}”"]
    if means(request, "at_end") and not any(quoted[-1] in line for line in lines[-LAST_LINES:]):
        missing.append(f"“{quoted[-1]}” at the end")
    return missing


def place_of_addition(old: str, request: str) -> tuple[int, str]:
    """Count the lines before an addition to prose, and begin a new item of the list there; empty if there is no list."""
    words = {word.lower() for word in re.findall(r"\w[\w.]+\w", request)}
    lines, above, best = old.splitlines(), list[tuple[int, bool]](), (0, 0, len(old.splitlines()))
    heads = [(at, match) for at, line in enumerate(lines) if (match := re.match(r"(#+) +(.*)", line))]
    for place, (at, match) in enumerate(heads):
        level, named = len(match[1]), bool(words & {word.lower() for word in re.findall(r"\w[\w.]+\w", match[2])})
        above = [each for each in above if each[0] < level]
        above.append((level, named))
        end = next(
            (other for other, head in heads[place + 1 :] if len(head[1]) <= level or not means(request, "heading")), len(lines)
        )
        best = max(best, (sum(is_named for _, is_named in above) if named else 0, -at, end))
    begin, end = (-best[1], best[2]) if best[0] and not starts_section(request) else (0, len(lines))
    while end > begin and not lines[end - 1].strip():
        end -= 1
    item = re.match(r"(\s*)([-*+]|\d+\.)( +)", lines[end - 1]) if end and not starts_section(request) else None
    if not item:
        return end, ""
    number = f"{int(item[2][:-1]) + 1}." if item[2][:-1].isdigit() else item[2]
    return end, f"{item[1]}{number}{item[3]}"


def asked_heading(old: str, request: str) -> str:
    """Write the heading of a new section whose title the request quotes, with the line below; empty if there is none."""
    quoted = asked_parts(request).quoted
    return f"{heading_level(old)} {quoted[0].lstrip('# ')}\n\n" if quoted and means(request, "heading") else ""


def heading_level(old: str) -> str:
    """Return the marks of most headings below the title."""
    levels = re.findall(r"(?m)^(##+) ", old)
    return max(set(levels), key=levels.count) if levels else "##"


def starts_section(request: str) -> bool:
    """Check whether the request wants a new section."""
    return _NEW_SECTION.search(request) is not None
