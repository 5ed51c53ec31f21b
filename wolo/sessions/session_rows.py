"""Checks session names and updates the rows of sessions and entries."""

from __future__ import annotations

import os
import re
import sqlite3
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from wolo.errors import SessionError
from wolo.messages.message import Usage
from wolo.messages.unicode import whole
from wolo.sessions import blobs, listing
from wolo.sessions.entries import AnyEntry, LabelEntry, MessageEntry, SettingEntry, StoredRow, extra_usage, subagent_usages
from wolo.sessions.listing import SessionInfo

ROW_LIMIT_BYTES = 64 * 1024
"""Larger entries are stored in files."""
NAME_LIMIT = 100
TITLE_LIMIT = 80

_ID = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}\Z"


def new_session_id(now: float) -> str:
    """Returns `session_<utc time>_<random>`."""
    return f"session_{time.strftime('%Y%m%dT%H%M%S', time.gmtime(now))}_{os.urandom(5).hex()}"


def check_id(session_id: str) -> str:
    if not re.match(_ID, session_id):
        raise SessionError(
            f"{session_id!r} is not a valid session id.", hint="Use letters, digits, _ . and -, at most 128 of them."
        )
    return session_id


def check_name(name: str) -> str:
    """Returns the alias, stripped. Raises SessionError unless it is printable, short and no path."""
    plain = name.strip()
    if not plain or len(plain) > NAME_LIMIT or not plain.isprintable() or re.search(r"[/\\]|^[.-]", plain):
        raise SessionError(
            f"{name[:NAME_LIMIT]!r} is not a valid session name.",
            hint=f"Use up to {NAME_LIMIT} visible characters without / or \\, not beginning with . or -",
        )
    return plain


def title_of(text: str) -> str:
    """Returns the beginning of a text, on one line."""
    beginning = text[: 8 * TITLE_LIMIT]
    if not beginning.isprintable():
        beginning = "".join(char if char.isprintable() else " " for char in beginning)
    line = " ".join(beginning.split())
    return line if len(line) <= TITLE_LIMIT else line[: TITLE_LIMIT - 1].rstrip() + "…"


_SETTINGS = ("model", "mode", "title", "name")
"""Columns that a SettingEntry may change."""


def require(connection: sqlite3.Connection, session_id: str) -> SessionInfo:
    info = listing.read(connection, session_id)
    if info is None:
        raise listing.unknown(session_id, listing.newest_first(connection, None))
    return info


def require_free(connection: sqlite3.Connection, session_id: str, name: str | None) -> None:
    if listing.read(connection, session_id):
        raise SessionError(f"There is already a session {session_id}.", hint="Choose another id.")
    if name and listing.named(connection, name):
        raise SessionError(f"There is already a session named {name}.", hint=f"Resume it (-r {name}) or choose another name.")


def head_and_last(connection: sqlite3.Connection, session_id: str) -> tuple[int, int]:
    """Returns `seq` of the head and of the last entry."""
    query = "SELECT head, (SELECT max(seq) FROM entries WHERE session = sessions.id) FROM sessions WHERE id = ?"
    row = connection.execute(query, (session_id,)).fetchone()
    if row is None:
        raise SessionError(f"Session {session_id} is gone.", hint="It was deleted; `wolo sessions list` shows the others.")
    return row[0], max(row[0], row[1] or 0)


def hash_of(connection: sqlite3.Connection, session_id: str, seq: int) -> bytes:
    row = connection.execute("SELECT hash FROM entries WHERE session = ? AND seq = ?", (session_id, seq)).fetchone()
    return row[0] if row else b""


def insert(
    connection: sqlite3.Connection,
    blobs_dir: Path,
    session_id: str,
    kind: str,
    row: StoredRow,
) -> None:
    """Inserts the row of an entry. Needs a write transaction."""
    body = row.body.decode() if row.body is not None else None
    blob = None
    if row.body is not None and len(row.body) > ROW_LIMIT_BYTES:
        body, blob = None, blobs.add(blobs_dir, connection, session_id, row.body).name
    connection.execute(
        "INSERT INTO entries (session, seq, parent, kind, time_utc, prev_hash, hash, body, blob) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (session_id, row.seq, row.parent or None, kind, row.time_utc, row.prev_hash, row.hash, body, blob),
    )


def parent_seq(seq: int, parent: object) -> int:
    """`seq` of the preceding entry; where that was lost, of the one added before."""
    if parent is None:
        return 0
    return parent if isinstance(parent, int) and 0 <= parent < seq else seq - 1


def usages_of(entries: Sequence[AnyEntry]) -> list[Usage]:
    usages = [entry.message.usage for entry in entries if isinstance(entry, MessageEntry) and entry.message.usage]
    usages += [usage for entry in entries if (usage := extra_usage(entry)) is not None]
    return usages + [usage for entry in entries for usage in subagent_usages(entry)]


def total_cost(usages: Iterable[Usage]) -> float | None:
    """US dollars; None when a price is unknown."""
    costs = [usage.cost.total if usage.cost else None for usage in usages]
    return None if None in costs else sum(cost for cost in costs if cost)


def update_totals(connection: sqlite3.Connection, session_id: str, entries: Sequence[AnyEntry], head: int, now: float) -> None:
    """Updates the columns for listings with the entries just added."""
    is_used = not all(isinstance(entry, SettingEntry | LabelEntry) for entry in entries)
    said = [entry.message for entry in entries if isinstance(entry, MessageEntry)]
    prompts = [message for message in said if message.is_prompt]
    usages = usages_of(entries)
    connection.execute(
        "UPDATE sessions SET head = ?, updated = coalesce(?, updated), turns = turns + ?, tokens = tokens + ?, cost = cost + ?, "
        "title = CASE WHEN title = '' THEN ? ELSE title END WHERE id = ?",
        (
            head,
            now if is_used else None,
            len(prompts),
            sum(usage.context_tokens for usage in usages),
            total_cost(usages),
            next((title for prompt in prompts if (title := title_of(prompt.text))), ""),
            session_id,
        ),
    )
    for entry in entries:
        if isinstance(entry, SettingEntry) and entry.name in _SETTINGS:
            value = whole(entry.value)
            if entry.name == "name":
                value = check_name(value)
                holder = listing.named(connection, value)
                if holder and holder.id != session_id:
                    raise SessionError(f"Session {holder.id} is already named {value}.", hint="Choose another name.")
            elif entry.name == "title":
                value = title_of(value)
            connection.execute(f"UPDATE sessions SET {entry.name} = ? WHERE id = ?", (value, session_id))
    if is_used:
        touch(connection, session_id)


def touch(connection: sqlite3.Connection, session_id: str) -> None:
    """Makes it the most recently used session."""
    # Saves an index write in the usual case, the same session again.
    connection.execute(
        "UPDATE sessions SET touched = (SELECT max(touched) + 1 FROM sessions) "
        "WHERE id = ? AND touched < (SELECT max(touched) FROM sessions)",
        (session_id,),
    )
