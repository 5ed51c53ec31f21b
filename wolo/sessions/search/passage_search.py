"""Parses search queries and finds passages in all sessions."""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from msgspec import Struct

from wolo.errors import UsageError
from wolo.sessions import listing
from wolo.sessions.index import Index
from wolo.sessions.indexed_text import JOINER, ROLES, clean, one_line, pieces, space_out
from wolo.sessions.listing import SessionInfo, iso
from wolo.workspace.files.sqlite_connection import placeholders

FILTERS = ("tool", "path", "model", "since", "until", "role", "cwd")
HINT = 'Search for words, "phrases" and beginnings*; narrow with tool: path: model: role: cwd: since: until:.'

TIMES = "For example 7d, 12h, 2w or 2026-11-01."

_TERM = re.compile(
    r"""(?P<not>-?)(?:(?P<name>[A-Za-z]+):(?!//|:))?(?:"(?P<quoted>[^"]*)(?P<end>"?)(?P<star1>\*?)|(?P<bare>\S*))"""
)
_AGO = re.compile(r"(\d{1,5})\s*(h|d|w)\Z")
_HOURS = {"h": 1, "d": 24, "w": 168}
_SPOKEN_ROLES = (*dict.fromkeys(ROLES.values()), "tool")


class Query(Struct, frozen=True, kw_only=True):
    match: str = ""
    """FTS5 expression; empty matches everything."""
    words: tuple[str, ...] = ()
    """As typed."""
    tools: tuple[str, ...] = ()
    """At least one must match, as in the fields below; empty matches everything."""
    paths: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    directories: tuple[str, ...] = ()
    since: float | None = None
    until: float | None = None


def parse(text: str, now: float) -> Query:
    """Raises UsageError."""
    required: list[str] = []
    unwanted: list[str] = []
    words: list[str] = []
    either = False
    filters: dict[str, list[str]] = {}
    for name, value, is_not in _terms(clean(text)):
        if name:
            if is_not:
                raise UsageError(f"{name}: cannot be negated with “-”; only words can.", hint=HINT)
            filters.setdefault(name, []).append(value)
        elif value == "OR" and required:
            either = True
        elif term := _fts(value):
            if is_not:
                unwanted.append(term)
                continue
            required.append(f"({required.pop()} OR {term})" if either else term)
            words.append(value.rstrip("*"))
            either = False
    if unwanted and not required:
        raise UsageError("The search has only negated words.", hint="Add a word to search for.")
    if not required and not filters:
        raise UsageError("There is no word to search for.", hint=HINT)
    match = " AND ".join(required)
    roles = _fold(filters.get("role", ()))
    for value, role in zip(filters.get("role", ()), roles, strict=True):
        if role not in _SPOKEN_ROLES:
            raise UsageError(f"Unknown role {value}.", hint=f"Choose one of {', '.join(_SPOKEN_ROLES)}.")
    return Query(
        match=f"({match}) NOT ({' OR '.join(unwanted)})" if unwanted else match,
        words=tuple(words),
        tools=_fold(filters.get("tool", ())),
        paths=tuple(filters.get("path", ())),
        models=_fold(filters.get("model", ())),
        roles=roles,
        directories=tuple(filters.get("cwd", ())),
        since=max((moment("since:", value, now) for value in filters.get("since", ())), default=None),
        until=min((moment("until:", value, now) for value in filters.get("until", ())), default=None),
    )


def _terms(text: str) -> Iterable[tuple[str, str, bool]]:
    """Yields filter name or empty, value, and whether it is negated."""
    for term in _TERM.finditer(text):
        if not term[0].strip():
            continue
        name = (term["name"] or "").casefold()
        # A prefix that resembles no filter is text, as in `TypeError:x`.
        if name and name not in FILTERS and (near := get_close_matches(name, FILTERS, n=1, cutoff=0.75)):
            raise UsageError(f"There is no filter {name}:.", hint=f"Did you mean {near[0]}:? Quote it to search for the text.")
        if (value := term["bare"]) is None:
            if not term["end"]:
                raise UsageError('A quotation mark (") is not closed.', hint=HINT)
            value = term["quoted"] + term["star1"]
        if name not in FILTERS:
            yield "", f"{term['name']} {value}" if name else value, bool(term["not"])
            continue
        if not value.strip():
            example = f"For example role:{_SPOKEN_ROLES[0]}." if name == "role" else f"Write it without a space: {name}:VALUE."
            raise UsageError(f"{name}: needs a value.", hint=TIMES if name in ("since", "until") else example)
        yield name, value.strip(), bool(term["not"])


def _fts(value: str) -> str:
    """A word or phrase for FTS5; empty without any letter or digit."""
    star = "*" if value.endswith("*") else ""
    term = value.rstrip("*")
    if not any(character.isalnum() for character in term):
        return ""
    whole = f'"{_quote(space_out(term))}"{star}'
    parts = pieces(term)
    return f'({whole} OR pieces : "{_quote(parts)}"{star})' if parts and " " not in term.strip() else whole


def _quote(text: str) -> str:
    return text.replace('"', '""')


def _fold(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(value.casefold() for value in values)


def moment(name: str, value: str, now: float) -> float:
    """Parses `7d` (ago) or `2026-11-01` (local midnight) into Unix seconds. `name` is for the error message."""
    if ago := _AGO.match(value.casefold()):
        return now - int(ago[1]) * _HOURS[ago[2]] * 3600
    try:
        then = datetime.fromisoformat(value)
    except ValueError:
        raise UsageError(f"{name} cannot parse the time {value}.", hint=TIMES) from None
    try:
        ends = name == "until:" and len(value) <= len("2026-11-01")
        return (then + timedelta(days=1) if ends else then).timestamp()
    except (OverflowError, OSError, ValueError):
        raise UsageError(f"{name} {value} is out of range.", hint=TIMES) from None


LOOKED_AT = 20_000
"""Newest matches examined; older ones are not found."""
EACH = 3
"""Matches of a session before other sessions get their turn."""
SNIPPET_WORDS = 24
SNIPPET_CHARS = 200

BEGIN, END = "\x02", "\x03"
"""Marks around a matching word of a snippet."""


class Hit(Struct, frozen=True, kw_only=True):
    session: SessionInfo
    seq: int
    """`seq` of the entry."""
    at: float
    role: str
    tool: str
    snippet: str
    """A single line, with matches between BEGIN and END."""


def search(
    index: Index, sessions: Sequence[SessionInfo], query: Query, *, cwd: Path | str | None = None, limit: int = 20
) -> list[Hit]:
    """Searches these sessions, or those of directory `cwd`. Raises SessionError."""
    hits: list[Hit] = []
    with index.reading() as connection:
        here = None if cwd is None else listing.directory(cwd)
        matching = {info.id: info for info in sessions if here is None or info.cwd == here}
        if query.directories:
            # A path matches itself and below; other text matches any part of the path.
            paths = [each for each in query.directories if each.startswith(("/", "~", "."))]
            texts = [each for each in query.directories if each not in paths]
            places = [listing.directory(Path(each).expanduser()) for each in paths]
            matching = {
                key: info
                for key, info in matching.items()
                if any(each in info.cwd for each in texts)
                or any(info.cwd == place or info.cwd.startswith(f"{place.rstrip('/')}/") for place in places)
            }
        if query.models:
            used: dict[str, str] = {}
            for session_id, model in connection.execute("SELECT DISTINCT session, model FROM answers"):
                used[session_id] = f"{used.get(session_id, '')} {model.casefold()}"
            models = {key: f"{info.model.casefold()}{used.get(key, '')}" for key, info in matching.items()}
            matching = {key: info for key, info in matching.items() if any(model in models[key] for model in query.models)}
        searched = matching
        rows = _balance([row for row in _rows(connection, query) if row[1] in searched], limit)
        snippets = _snippets(connection, query, [row[0] for row in rows])
        for passage, session_id, at in rows:
            facts = connection.execute("SELECT seq, role, tool FROM passages WHERE id = ?", (passage,)).fetchone()
            seq, role, tool = facts
            snippet = _cut(one_line(snippets[passage]))
            hits.append(Hit(session=searched[session_id], seq=seq, at=at, role=role, tool=tool, snippet=snippet))
    return hits


def _rows(connection: sqlite3.Connection, query: Query) -> list[tuple[int, str, float]]:
    conditions: list[str] = []
    values: list[object] = []
    if query.match:
        conditions.append("words MATCH ?")
        values.append(query.match)
    if query.tools:
        conditions.append(f"tool IN ({placeholders(query.tools)})")
        values += query.tools
    if query.roles:
        conditions.append(f"role IN ({placeholders(query.roles)})")
        values += query.roles
    if query.paths:
        conditions.append(f"({' OR '.join(['paths GLOB ?'] * len(query.paths))})")
        for path in query.paths:
            # Whole components: `src/x.py` finds `/home/me/src/x.py`, `x.py` does not find `fax.py`.
            pattern = path.removeprefix("./").removeprefix("/")
            if not any(character in pattern for character in "*?"):
                pattern = pattern.replace("[", "[[]")
            values.append(f"*/{pattern}*")
    for moment, test in ((query.since, "at >= ?"), (query.until, "at < ?")):
        if moment is not None:
            conditions.append(test)
            values.append(moment)
    source = "words JOIN passages ON passages.id = words.rowid" if query.match else "passages"
    order = "words.rowid" if query.match else "passages.id"
    where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
    statement = f"SELECT passages.id, session, at FROM {source} {where} ORDER BY {order} DESC LIMIT {LOOKED_AT}"
    try:
        return connection.execute(statement, values).fetchall()
    except sqlite3.OperationalError as error:
        if "fts5" not in str(error):
            raise
        raise UsageError("Cannot parse this search.", hint=HINT) from error


def _balance(rows: list[tuple[int, str, float]], limit: int) -> list[tuple[int, str, float]]:
    if len(rows) > limit:
        counts: Counter[str] = Counter()
        first: list[tuple[int, str, float]] = []
        later: list[tuple[int, str, float]] = []
        for row in rows:
            counts[row[1]] += 1
            (first if counts[row[1]] <= EACH else later).append(row)
        rows = (first + later)[:limit]
    return sorted(rows, key=lambda row: row[2], reverse=True)


def _snippets(connection: sqlite3.Connection, query: Query, passages: Sequence[int]) -> dict[int, str]:
    snippets: dict[int, str] = {}
    if query.match and passages:
        marked = f"snippet(words, 0, '{BEGIN}', '{END}', '…', {SNIPPET_WORDS})"
        # The + keeps SQLite from running the match again for each rowid.
        statement = f"SELECT rowid, {marked} FROM words WHERE words MATCH ? AND +rowid IN ({placeholders(passages)})"
        rows = connection.execute(statement, (query.match, *passages))
        snippets = {passage: text for passage, text in rows if BEGIN in text}
    for passage in passages:
        if passage in snippets:
            continue
        (text,) = connection.execute("SELECT body FROM words WHERE rowid = ?", (passage,)).fetchone()
        text = text.replace(JOINER, "")
        lower = text.lower()
        snippets[passage] = text[: 2 * SNIPPET_CHARS]
        for word in query.words:
            begin = lower.find(word.lower())
            if begin >= 0 and len(lower) == len(text):  # a match within a word, which SQLite does not locate
                end, left = begin + len(word), max(begin - SNIPPET_CHARS // 3, 0)
                before = f"{'…' if left else ''}{text[left:begin]}"
                snippets[passage] = f"{before}{BEGIN}{text[begin:end]}{END}{text[end : end + SNIPPET_CHARS]}"
                break
    return snippets


def _cut(snippet: str) -> str:
    if len(snippet) <= SNIPPET_CHARS:
        return snippet
    begin = max(snippet.find(BEGIN) - SNIPPET_CHARS // 3, 0)
    end = snippet.find(END, begin)
    cut = snippet[begin : max(begin + SNIPPET_CHARS, min(end + 1, begin + 2 * SNIPPET_CHARS))]
    return ("…" if begin else "") + cut + ("" if cut.count(BEGIN) == cut.count(END) else END) + "…"


def plain(snippet: str) -> str:
    """Removes the marks."""
    return clean(snippet.replace(BEGIN, "").replace(END, ""))


def hit_row(hit: Hit) -> dict[str, Any]:
    """The JSON object of a result."""
    info = hit.session
    return {"id": info.id, "title": info.title, "entry": hit.seq, "snippet": plain(hit.snippet), "at": iso(hit.at)}
