"""Rows as they are: read out entry by entry, and put in again with their places and hashes."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from wolo.errors import SessionError
from wolo.messages.message import Usage
from wolo.messages.unicode import whole
from wolo.sessions import blobs, hash_chain
from wolo.sessions.entries import AnyEntry, CompactionEntry, MessageEntry, ResultsEntry, SettingEntry, spent_on_tasks
from wolo.sessions.names import check_id, title_of

PAGE_ROWS = 64
"""So many are read, or committed, at a time: with the limit of a row some megabytes at most."""
NO_KIND = "unknown"
RECORD = ".import"
"""How the name of the file ends that says where an imported session came from."""

_PAGE = (
    "SELECT seq, parent, time_utc, prev_hash, hash, CAST(body AS BLOB), blob FROM entries "
    f"WHERE session = ? AND seq > ? AND seq <= ? ORDER BY seq LIMIT {PAGE_ROWS}"
)
_INSERT = (
    "INSERT INTO entries (session, seq, parent, kind, time_utc, prev_hash, hash, body, blob) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
)


class RawRow(Struct, frozen=True):
    """An entry as it lies on the disk, sound or not."""

    seq: int
    parent: int
    """The place of the entry it follows, 0 before the first; -1 when that was lost."""
    time_utc: float
    prev_hash: bytes
    hash: bytes
    body: bytes | None
    """Its JSON; None when the file that held it is gone."""

    @property
    def is_intact(self) -> bool:
        return self.body is not None and hash_chain.is_intact(self._linked(self.body))

    @property
    def entry(self) -> AnyEntry | None:
        """None when it is damaged, or of a kind this wolo does not know."""
        return None if self.body is None else hash_chain.decode(self._linked(self.body))

    def _linked(self, body: bytes) -> hash_chain.Row:
        return hash_chain.Row(self.seq, self.time_utc, self.prev_hash, self.hash, body)


class _Kind(Struct):
    kind: str = NO_KIND


class Facts(Struct, frozen=True, kw_only=True):
    """What a session that is put in is called, and where it belongs; what is empty is found in its entries."""

    id: str
    cwd: str
    name: str | None = None
    title: str = ""
    model: str = ""
    mode: str = ""
    created: float = 0.0
    updated: float = 0.0
    parent: str | None = None
    head: int = 0
    """0: the last entry."""


class Tally:
    """What a listing shows of a session, counted from its entries as they pass."""

    def __init__(self) -> None:
        self.turns = 0
        self.tokens = 0
        self.cost: float | None = 0.0
        self.title = ""
        self.model = ""
        self.mode = ""
        self.last = 0

    def add(self, row: RawRow) -> None:
        self.last = max(self.last, row.seq)
        entry = row.entry
        if isinstance(entry, MessageEntry):
            self._spend(entry.message.usage)
            if entry.message.is_prompt:
                self.turns += 1
                self.title = self.title or title_of(entry.message.text)
        elif isinstance(entry, CompactionEntry):
            self._spend(entry.usage)
        elif isinstance(entry, ResultsEntry):
            for usage in spent_on_tasks(entry):
                self._spend(usage)
        elif isinstance(entry, SettingEntry) and entry.name in ("model", "mode"):
            setattr(self, entry.name, whole(entry.value))

    def _spend(self, usage: Usage | None) -> None:
        if usage:
            self.tokens += usage.context_tokens
            self.cost = None if self.cost is None or usage.cost is None else self.cost + usage.cost.total


def read_page(connection: sqlite3.Connection, blobs_dir: Path, session_id: str, after: int, last: int) -> list[RawRow]:
    return [_row(blobs_dir, *values) for values in connection.execute(_PAGE, (session_id, after, last))]


def outputs(connection: sqlite3.Connection, session_id: str) -> Iterator[str]:
    """Names of the files that belong to the session and hold no entry."""
    entries = {
        blob for (blob,) in connection.execute("SELECT blob FROM entries WHERE session = ? AND blob NOT NULL", (session_id,))
    }
    return (name for name in sorted(blobs.of(connection, session_id)) if name not in entries and not name.endswith(RECORD))


def insert(connection: sqlite3.Connection, blobs_dir: Path, session_id: str, rows: Iterable[RawRow], row_limit: int) -> None:
    """Inside a write transaction."""
    for row in rows:
        body, blob = row.body.decode() if row.body is not None else None, None
        if row.body is not None and len(row.body) > row_limit:
            body, blob = None, blobs.keep(blobs_dir, connection, session_id, row.body).name
        known = (row.time_utc, row.prev_hash, row.hash, body, blob)
        connection.execute(_INSERT, (session_id, row.seq, row.parent or None, kind_of(row.body), *known))


def kind_of(body: bytes | None) -> str:
    try:
        return msgspec.json.decode(body or b"{}", type=_Kind).kind
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return NO_KIND


def in_pages(rows: Iterable[RawRow]) -> Iterator[list[RawRow]]:
    page: list[RawRow] = []
    for row in rows:
        page.append(row)
        if len(page) == PAGE_ROWS:
            yield page
            page = []
    if page:
        yield page


def _row(
    blobs_dir: Path, seq: int, parent: object, time_utc: object, prev_hash: object, digest: object, body: object, blob: object
) -> RawRow:
    if isinstance(blob, str):
        try:
            body = (blobs_dir / check_id(blob)).read_bytes()
        except (OSError, SessionError):
            body = None
    return RawRow(
        seq,
        0 if parent is None else parent if isinstance(parent, int) else -1,
        time_utc if isinstance(time_utc, float) else 0.0,
        prev_hash if isinstance(prev_hash, bytes) else b"",
        digest if isinstance(digest, bytes) else b"",
        body if isinstance(body, bytes) else None,
    )
