"""Lists sessions and finds one by name, id or title."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from wolo.errors import SessionError
from wolo.messages.unicode import whole
from wolo.sessions.database_file import read_only_uri
from wolo.workspace.files.sqlite_connection import SQLITE_ERRORS, open_sqlite

COLUMNS = "id, name, title, cwd, model, mode, created, updated, turns, tokens, cost, parent"
CANDIDATES_SHOWN = 8
_OWN = "instr(coalesce(parent, ''), '/') = 0"
"""Excludes the sessions of subagents."""


class SessionInfo(Struct, frozen=True):
    id: str
    name: str | None
    """Alias given with `-s`."""
    title: str
    cwd: str
    """Real path of its directory."""
    model: str
    mode: str
    created: float
    """Unix seconds, like `updated`."""
    updated: float
    turns: int
    tokens: int
    cost_usd: float | None
    """None when the price of an answer is unknown."""
    parent: str | None
    """The session it was forked from; `ID/AGENT` for a subagent of session ID."""
    live: bool = False
    """A process has it open; set by `Store.list`."""

    @property
    def agent(self) -> str:
        """Name of the subagent; empty for a session of the user."""
        return (self.parent or "").partition("/")[2]

    @property
    def task_of(self) -> str:
        """Id of the parent session of a subagent, or empty."""
        return (self.parent or "").partition("/")[0] if is_task(self.parent) else ""


def iso(then: float, timespec: str = "seconds") -> str:
    """ISO 8601 in UTC."""
    from datetime import UTC, datetime  # noqa: PLC0415  # no run lists sessions

    return datetime.fromtimestamp(then, UTC).isoformat(timespec=timespec)


def age(then: float) -> str:
    seconds = max(time.time() - then, 0)
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return "now"


def row(info: SessionInfo) -> dict[str, Any]:
    """The JSON object of a session in listings."""
    names = ("id", "name", "title", "cwd", "model", "created", "updated", "turns", "tokens", "cost_usd", "live")
    spelled = {name: getattr(info, name) for name in names}
    if info.agent:
        spelled |= {"agent": info.agent, "task_of": info.task_of}
    return spelled | {"created": iso(info.created), "updated": iso(info.updated)}


def is_task(parent: str | None) -> bool:
    return "/" in (parent or "")


def task_of(session_id: str, agent: str) -> str:
    """Makes the `parent` of a subagent's session."""
    return f"{session_id}/{agent}"


def directory(cwd: Path | str) -> str:
    """Returns the canonical spelling of a directory: links resolved, bytes that are not UTF-8 escaped."""
    return os.fsencode(os.path.realpath(cwd)).decode("utf-8", "backslashreplace")


def read(connection: sqlite3.Connection, value: str, column: Literal["id", "name"] = "id") -> SessionInfo | None:
    row = connection.execute(f"SELECT {COLUMNS} FROM sessions WHERE {column} = ?", (value,)).fetchone()
    return SessionInfo(*row) if row else None


def exactly(connection: sqlite3.Connection, name_or_id: str) -> SessionInfo | None:
    spec = whole(name_or_id).strip()
    return read(connection, spec) or read(connection, spec, "name")


def newest_first(connection: sqlite3.Connection, cwd: Path | str | None, *, with_tasks: bool = False) -> list[SessionInfo]:
    """`with_tasks` includes the sessions of subagents."""
    here, values = ("1", ()) if cwd is None else ("cwd = ?", (directory(cwd),))
    whose = "1" if with_tasks else _OWN
    query = f"SELECT {COLUMNS} FROM sessions WHERE {here} AND {whose} ORDER BY touched DESC"
    return [SessionInfo(*row) for row in connection.execute(query, values)]


def latest(connection: sqlite3.Connection, cwd: Path | str) -> SessionInfo | None:
    """The newest session of a directory that has entries."""
    query = f"SELECT {COLUMNS} FROM sessions WHERE cwd = ? AND head > 0 AND {_OWN} ORDER BY touched DESC LIMIT 1"
    row = connection.execute(query, (directory(cwd),)).fetchone()
    return SessionInfo(*row) if row else None


def find(connection: sqlite3.Connection, spec: str, cwd: Path | str | None) -> SessionInfo:
    """Finds a session by id, name, unique prefix of the id's time or random part, or words of the title.

    Among several matches by title, a single one of directory `cwd` wins. Raises SessionError.
    """
    spec = whole(spec).strip()
    if not spec:
        raise SessionError(
            "No session was named.", hint="Give an id, a name or words of a title; `wolo sessions list` shows them."
        )
    if exact := exactly(connection, spec):
        return exact
    everything = newest_first(connection, None)
    matches = []
    for info in newest_first(connection, None, with_tasks=True):
        pieces = info.id.split("_")
        if any("_".join(pieces[start:]).startswith(spec) for start in range(len(pieces))):
            matches.append(info)
    if not matches:
        words = spec.casefold().split()
        matches = [info for info in everything if all(word in f"{info.name or ''} {info.title}".casefold() for word in words)]
        here = [info for info in matches if cwd is not None and info.cwd == directory(cwd)]
        matches = here or matches
    if not matches:
        raise unknown(spec, everything)
    if len(matches) > 1:
        lines = [f"  {info.id}  {info.name or info.title or '(no messages yet)'}" for info in matches[:CANDIDATES_SHOWN]]
        if len(matches) > CANDIDATES_SHOWN:
            lines.append(f"  … and {len(matches) - CANDIDATES_SHOWN} more")
        raise SessionError(
            f"“{spec}” could be {len(matches)} sessions:\n" + "\n".join(lines), hint="Give the id, or a longer prefix."
        )
    return matches[0]


def unknown(spec: str, everything: Sequence[SessionInfo]) -> SessionError:
    if not everything:
        return SessionError(f"There is no session “{spec}”: none has been saved yet.", hint='Start one: wolo "your task"')
    from difflib import get_close_matches  # noqa: PLC0415  # 5 ms, and only on the way to an error

    spellings = {
        spelling.casefold(): info for info in reversed(everything) for spelling in (info.id, info.name, info.title) if spelling
    }
    if not (close := get_close_matches(spec.casefold(), spellings, n=1, cutoff=0.5)):
        return SessionError(f"There is no session “{spec}”.", hint="`wolo sessions list --all` shows all of them.")
    nearest = spellings[close[0]]
    called = nearest.name or nearest.title
    return SessionError(
        f"There is no session “{spec}”.", hint=f"The nearest is {nearest.id}" + (f" ({called})." if called else ".")
    )


def require(connection: sqlite3.Connection, session_id: str) -> SessionInfo:
    if (info := read(connection, session_id)) is None:
        raise unknown(session_id, newest_first(connection, None))
    return info


def require_free(connection: sqlite3.Connection, session_id: str, name: str | None) -> None:
    if read(connection, session_id):
        raise SessionError(f"There is already a session {session_id}.", hint="Choose another id.")
    if name and read(connection, name, "name"):
        raise SessionError(f"There is already a session named {name}.", hint=f"Resume it (-r {name}) or choose another name.")


WAIT_S = 0.05


def peek(data_dir: Path, cwd: Path, most: int) -> list[SessionInfo]:
    """Lists sessions with prompts for shell completion. Creates, repairs and waits for nothing; empty on any error."""
    path = data_dir / "wolo.db"
    try:
        if not path.stat().st_size:
            return []
        with closing(open_sqlite(read_only_uri(path), wait_s=WAIT_S)) as connection:
            return [info for info in newest_first(connection, cwd) if info.turns][:most]
    except (*SQLITE_ERRORS, OSError):
        return []
