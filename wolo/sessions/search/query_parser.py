"""What a person types to search: words, "phrases", beginnings*, and filters such as `tool:shell` or `since:7d`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime, timedelta
from difflib import get_close_matches

from msgspec import Struct

from wolo.errors import UsageError
from wolo.sessions.index.indexed_text import ROLES
from wolo.sessions.index.tokenizer import clean, pieces, spaced

FILTERS = ("tool", "path", "model", "since", "until", "role", "cwd")
HINT = 'Search for words, "phrases" and beginnings*; narrow with tool: path: model: role: cwd: since: until:.'

TIMES = "Such as 7d, 12h, 2w or 2026-11-01."

_TERM = re.compile(
    r"""(?P<not>-?)(?:(?P<name>[A-Za-z]+):(?!//|:))?(?:"(?P<quoted>[^"]*)(?P<end>"?)(?P<star1>\*?)|(?P<bare>\S*))"""
)
_AGO = re.compile(r"(\d{1,5})\s*(h|d|w)\Z")
_HOURS = {"h": 1, "d": 24, "w": 168}
_SPOKEN_ROLES = (*dict.fromkeys(ROLES.values()), "tool")


class Query(Struct, frozen=True, kw_only=True):
    match: str = ""
    """The words, in the language of FTS5; empty: any."""
    words: tuple[str, ...] = ()
    """As they were typed."""
    tools: tuple[str, ...] = ()
    """Of each of these, one must fit; none: any does."""
    paths: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    directories: tuple[str, ...] = ()
    since: float | None = None
    until: float | None = None


def parse(text: str, now: float) -> Query:
    """Raises UsageError, with a sentence, for what cannot be meant."""
    wanted: list[str] = []
    unwanted: list[str] = []
    words: list[str] = []
    either = False
    filters: dict[str, list[str]] = {}
    for name, value, is_not in _terms(clean(text)):
        if name:
            if is_not:
                raise UsageError(f"{name}: cannot be turned round with a “-”; only words can.", hint=HINT)
            filters.setdefault(name, []).append(value)
        elif value == "OR" and wanted:
            either = True
        elif term := _fts(value):
            if is_not:
                unwanted.append(term)
                continue
            wanted.append(f"({wanted.pop()} OR {term})" if either else term)
            words.append(value.rstrip("*"))
            either = False
    if unwanted and not wanted:
        raise UsageError("That says only what is not wanted.", hint="Add a word that is.")
    if not wanted and not filters:
        raise UsageError("There is no word to search for in that.", hint=HINT)
    match = " AND ".join(wanted)
    return Query(
        match=f"({match}) NOT ({' OR '.join(unwanted)})" if unwanted else match,
        words=tuple(words),
        tools=_folded(filters.get("tool", ())),
        paths=tuple(filters.get("path", ())),
        models=_folded(filters.get("model", ())),
        roles=tuple(map(_role, filters.get("role", ()))),
        directories=tuple(filters.get("cwd", ())),
        since=max((moment("since:", value, now) for value in filters.get("since", ())), default=None),
        until=min((moment("until:", value, now) for value in filters.get("until", ())), default=None),
    )


def _terms(text: str) -> Iterable[tuple[str, str, bool]]:
    """The name of its filter if it has one, its value, and whether it is not wanted."""
    for found in _TERM.finditer(text):
        if not found[0].strip():
            continue
        name, value = _filter(found), found["bare"]
        if value is None:
            if not found["end"]:
                raise UsageError('A quotation mark (") is not closed.', hint=HINT)
            value = found["quoted"] + found["star1"]
        if name:
            if not value.strip():
                raise UsageError(f"{name}: needs a value.", hint=_example(name))
            yield name, value.strip(), bool(found["not"])
        else:
            yield "", f"{found['name']} {value}" if found["name"] else value, bool(found["not"])


def _filter(found: re.Match[str]) -> str:
    """Empty when what stands before a colon is no filter, and nothing like one: `TypeError:x` is text."""
    name = (found["name"] or "").casefold()
    if name in FILTERS or not name:
        return name
    if near := get_close_matches(name, FILTERS, n=1, cutoff=0.75):
        raise UsageError(f"There is no filter {name}:.", hint=f"Did you mean {near[0]}:? Quote it to search for the text.")
    return ""


def _fts(value: str) -> str:
    """One word or phrase for FTS5; empty when no letter and no digit is in it."""
    star = "*" if value.endswith("*") else ""
    term = value.rstrip("*")
    if not any(character.isalnum() for character in term):
        return ""
    whole = f'"{_quoted(spaced(term))}"{star}'
    parts = pieces(term)
    return f'({whole} OR pieces : "{_quoted(parts)}"{star})' if parts and " " not in term.strip() else whole


def _quoted(text: str) -> str:
    return text.replace('"', '""')


def _folded(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(value.casefold() for value in values)


def _role(value: str) -> str:
    role = value.casefold()
    if role not in _SPOKEN_ROLES:
        raise UsageError(f"Nobody has the role {value}.", hint=f"There are {', '.join(_SPOKEN_ROLES)}.")
    return role


def moment(name: str, value: str, now: float) -> float:
    """As unix seconds: `7d` ago, or `2026-11-01`, which begins at midnight here. `name` is what it was given for."""
    if ago := _AGO.match(value.casefold()):
        return now - int(ago[1]) * _HOURS[ago[2]] * 3600
    try:
        then = datetime.fromisoformat(value)
    except ValueError:
        raise UsageError(f"{name} does not know the time {value}.", hint=TIMES) from None
    try:
        ends = name == "until:" and len(value) <= len("2026-11-01")
        return (then + timedelta(days=1) if ends else then).timestamp()
    except (OverflowError, OSError, ValueError):
        raise UsageError(f"{name} {value} is out of reach.", hint=TIMES) from None


def _example(name: str) -> str:
    if name in ("since", "until"):
        return TIMES
    return f"Such as {name}:{_SPOKEN_ROLES[0]}." if name == "role" else f"Write it without a blank: {name}:VALUE."
