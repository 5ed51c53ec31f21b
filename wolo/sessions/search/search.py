"""Finds what was said in all sessions, the newest first."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from wolo.errors import UsageError
from wolo.sessions import listing
from wolo.sessions.index.index import Index
from wolo.sessions.index.tokenizer import JOINER, clean, one_line
from wolo.sessions.listing import SessionInfo
from wolo.sessions.search.query_parser import HINT, Query

LOOKED_AT = 20_000
"""Matches, the newest; among more than these the oldest are not seen."""
EACH = 3
"""Of one session before others have had their turn."""
SNIPPET_WORDS = 24
SNIPPET_CHARS = 200

BEGIN, END = "\x02", "\x03"
"""Around each word of a snippet that was searched for."""


class Hit(Struct, frozen=True, kw_only=True):
    session: SessionInfo
    seq: int
    """The place of the entry."""
    at: float
    role: str
    tool: str
    snippet: str
    """On one line; what was searched for stands between BEGIN and END."""


def search(
    index: Index, sessions: Sequence[SessionInfo], query: Query, *, cwd: Path | str | None = None, limit: int = 20
) -> list[Hit]:
    """Of these sessions, or those of them that belong to `cwd`. Raises SessionError."""
    with index.reading() as connection:
        wanted = _wanted(connection, sessions, query, cwd)
        rows = _shared_out([row for row in _rows(connection, query) if row[1] in wanted], limit)
        snippets = _snippets(connection, query, [row[0] for row in rows])
        return [_hit(connection, wanted[session_id], snippets[passage], passage, at) for passage, session_id, at in rows]


def _wanted(
    connection: sqlite3.Connection, sessions: Sequence[SessionInfo], query: Query, cwd: Path | str | None
) -> Mapping[str, SessionInfo]:
    here = None if cwd is None else listing.directory(cwd)
    wanted = {info.id: info for info in sessions if here is None or info.cwd == here}
    if query.directories:
        wanted = {key: info for key, info in wanted.items() if any(_is_in(info.cwd, each) for each in query.directories)}
    if query.models:
        used: dict[str, str] = {}
        for session_id, model in connection.execute("SELECT DISTINCT session, model FROM answers"):
            used[session_id] = f"{used.get(session_id, '')} {model.casefold()}"
        wanted = {
            key: info
            for key, info in wanted.items()
            if any(model in f"{info.model.casefold()}{used.get(key, '')}" for model in query.models)
        }
    return wanted


def _is_in(cwd: str, directory: str) -> bool:
    """A path means itself and what lies below; anything else is a part of the path."""
    if not directory.startswith(("/", "~", ".")):
        return directory in cwd
    place = listing.directory(Path(directory).expanduser())
    return cwd == place or cwd.startswith(f"{place.rstrip('/')}/")


def _rows(connection: sqlite3.Connection, query: Query) -> list[tuple[int, str, float]]:
    """Passage, session and time, newest first."""
    conditions: list[str] = []
    values: list[object] = []
    if query.match:
        conditions.append("words MATCH ?")
        values.append(query.match)
    if query.tools:
        conditions.append(f"tool IN ({_marks(query.tools)})")
        values += query.tools
    if query.roles:
        conditions.append(f"role IN ({_marks(query.roles)})")
        values += query.roles
    if query.paths:
        conditions.append(f"({' OR '.join(['paths GLOB ?'] * len(query.paths))})")
        values += map(_glob, query.paths)
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
        raise UsageError("This search cannot be understood.", hint=HINT) from error


def _marks(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))


def _glob(path: str) -> str:
    """A path fits where whole names begin: `src/x.py` is in `/home/me/src/x.py`, `x.py` is not in `fax.py`."""
    pattern = path.removeprefix("./").removeprefix("/")
    if not any(character in pattern for character in "*?"):
        pattern = pattern.replace("[", "[[]")
    return f"*/{pattern}*"


def _shared_out(rows: list[tuple[int, str, float]], limit: int) -> list[tuple[int, str, float]]:
    """When not all can be shown, no session takes the place of all others."""
    if len(rows) > limit:
        counts: Counter[str] = Counter()
        first: list[tuple[int, str, float]] = []
        later: list[tuple[int, str, float]] = []
        for row in rows:
            counts[row[1]] += 1
            (first if counts[row[1]] <= EACH else later).append(row)
        rows = (first + later)[:limit]
    return sorted(rows, key=lambda row: row[2], reverse=True)


def _hit(connection: sqlite3.Connection, session: SessionInfo, snippet: str, passage: int, at: float) -> Hit:
    seq, role, tool = connection.execute("SELECT seq, role, tool FROM passages WHERE id = ?", (passage,)).fetchone()
    return Hit(session=session, seq=seq, at=at, role=role, tool=tool, snippet=_cut(one_line(snippet)))


def _snippets(connection: sqlite3.Connection, query: Query, passages: Sequence[int]) -> dict[int, str]:
    found: dict[int, str] = {}
    if query.match and passages:
        marked = f"snippet(words, 0, '{BEGIN}', '{END}', '…', {SNIPPET_WORDS})"
        # The + keeps SQLite from asking for the matches anew for each rowid.
        statement = f"SELECT rowid, {marked} FROM words WHERE words MATCH ? AND +rowid IN ({_marks(passages)})"
        rows = connection.execute(statement, (query.match, *passages))
        found = {passage: text for passage, text in rows if BEGIN in text}
    for passage in passages:
        if passage not in found:
            (text,) = connection.execute("SELECT body FROM words WHERE rowid = ?", (passage,)).fetchone()
            found[passage] = _marked(text.replace(JOINER, ""), query.words)
    return found


def _marked(text: str, words: Sequence[str]) -> str:
    """Where only a piece of a word was found, SQLite does not know the place."""
    lower = text.lower()
    for word in words:
        begin = lower.find(word.lower())
        if begin >= 0 and len(lower) == len(text):
            end, left = begin + len(word), max(begin - SNIPPET_CHARS // 3, 0)
            before = f"{'…' if left else ''}{text[left:begin]}"
            return f"{before}{BEGIN}{text[begin:end]}{END}{text[end : end + SNIPPET_CHARS]}"
    return text[: 2 * SNIPPET_CHARS]


def _cut(snippet: str) -> str:
    """Words may be long; what was found stays in sight."""
    if len(snippet) <= SNIPPET_CHARS:
        return snippet
    begin = max(snippet.find(BEGIN) - SNIPPET_CHARS // 3, 0)
    end = snippet.find(END, begin)
    cut = snippet[begin : max(begin + SNIPPET_CHARS, min(end + 1, begin + 2 * SNIPPET_CHARS))]
    return ("…" if begin else "") + cut + ("" if cut.count(BEGIN) == cut.count(END) else END) + "…"


def plain(snippet: str) -> str:
    """Without the marks."""
    return clean(snippet.replace(BEGIN, "").replace(END, ""))
