"""Moves a damaged database aside and saves what can be read into a new one.

An interrupted rescue is resumed at the next start. Its state is told by the files:

quarantine/unfinished/ has no database: files are being moved there, the log first, the database last.
It has one, and there is none in its place: the new database is being built.
There are both: the rescue is complete, the folder gets its final name.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path

from wolo.errors import SessionError
from wolo.sessions import session_rows
from wolo.sessions.database_file import create, log_path, memory_path, quarantine_path, unfinished_rescue
from wolo.sessions.migrations import backups
from wolo.sessions.session_rows import StoredRow, check_id
from wolo.sessions.sqlite_pages import Pages, Value
from wolo.sessions.storage import make_directory, sync_directory, sync_file
from wolo.workspace.files.sqlite_connection import SQLITE_ERRORS, open_sqlite

_SESSION_COLUMNS = (
    ("id", str),
    ("name", str | None),
    ("title", str),
    ("cwd", str),
    ("model", str),
    ("mode", str),
    ("created", float | int),
    ("updated", float | int),
    ("touched", int),
    ("turns", int),
    ("tokens", int),
    ("cost", float | int | None),
    ("parent", str | None),
    ("head", int),
)


def rescue(path: Path, version: int, why: str) -> str:
    """Returns a message for the user. Needs the database lock and no other process that has it open."""
    report = unfinished_rescue(path)
    for folder in (report.parent.parent, report.parent):
        make_directory(folder)
    _write(report, f"The session database was damaged ({why}).")
    return resume(path, version)


def set_aside(path: Path) -> list[tuple[Path, str]]:
    """Returns the folders of damaged databases, oldest first, with their reports."""
    reports = sorted(quarantine_path(path).glob(f"*/{unfinished_rescue(path).name}"))
    return [(report.parent, report.read_text("utf-8", "replace")) for report in reports]


def resume(path: Path, version: int) -> str:
    """Completes an interrupted rescue. Returns and needs the same as `rescue`."""
    report = unfinished_rescue(path)
    unfinished = report.parent
    damaged = unfinished / path.name
    if not damaged.exists():
        for file in (log_path(path), memory_path(path), path):
            if file.exists():
                file.rename(unfinished / file.name)
        sync_directory(unfinished)
        sync_directory(path.parent)
    if not path.exists():
        _replace(path, version, damaged, report)
    folder = unfinished.with_name(f"{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{os.urandom(2).hex()}")
    unfinished.rename(folder)
    sync_directory(folder.parent)
    return f"{(folder / report.name).read_text('utf-8')} The damaged file is in {folder}."


def _replace(path: Path, version: int, damaged: Path, report: Path) -> None:
    reason = report.read_text("utf-8").partition(").")[0] + ")"

    def fill(connection: sqlite3.Connection) -> None:
        _write(report, f"{reason}. {_Rebuild(connection, path.parent / 'blobs').take(damaged)}")

    holds_entries = False
    if damaged.exists():
        with Pages(damaged) as pages:
            holds_entries = any(_entry(record, path.parent / "blobs") for record in pages.records())
    if holds_entries:
        create(path, version, fill)
    elif backup := _newest_backup(path):
        _write(report, f"{reason}. Nothing could be read from it, so the backup {backup.name} replaced it.")
        fresh = path.with_name(f"{path.name}.new")
        fresh.unlink(missing_ok=True)
        fresh.touch(0o600)
        shutil.copyfile(backup, fresh)
        sync_file(fresh)
        fresh.rename(path)
        sync_directory(path.parent)
    else:
        _write(report, f"{reason}. Nothing could be read from it and there is no backup, so a new one was created.")
        create(path, version)


class _Rebuild:
    """Fills a new database with the records found in the pages of the old one."""

    def __init__(self, connection: sqlite3.Connection, blobs_dir: Path) -> None:
        self._connection = connection
        self._blobs_dir = blobs_dir

    def take(self, damaged: Path) -> str:
        """Returns a sentence with the counts."""
        kept = {path.name for path in self._blobs_dir.iterdir()} if self._blobs_dir.is_dir() else set()
        with Pages(damaged) as pages:
            for record in pages.records():
                if entry := _entry(record, self._blobs_dir):
                    self._insert("entries", _ENTRY_COLUMNS, entry)
                elif _is_session(record):
                    # Of two sessions with one name, one is noise: the first gets it.
                    self._insert("sessions", [name for name, _ in _SESSION_COLUMNS], record[: len(_SESSION_COLUMNS)])
                elif len(record) == 2 and record[1] in kept:
                    self._insert("blobs", ("session", "name"), record)
        query = "SELECT DISTINCT session FROM entries WHERE session NOT IN (SELECT id FROM sessions)"
        for (session_id,) in self._connection.execute(query).fetchall():
            self._make_session(session_id)
        self._connection.execute("INSERT OR IGNORE INTO blobs SELECT session, blob FROM entries WHERE blob IS NOT NULL")
        self._connection.execute("DELETE FROM blobs WHERE session NOT IN (SELECT id FROM sessions)")
        query = (
            "SELECT count(*), coalesce(sum(kept), 0), coalesce(sum(max(head, last) - kept), 0) FROM "
            "(SELECT head, count(seq) AS kept, coalesce(max(seq), 0) AS last FROM sessions "
            "LEFT JOIN entries ON session = id GROUP BY id)"
        )
        sessions, kept, lost = self._connection.execute(query).fetchone()
        missing = "none of them is known to be missing" if not lost else f"at least {lost:,} could not be read"
        return f"{_count(kept, 'entry', 'entries')} of {_count(sessions, 'session', 'sessions')} could be saved; {missing}."

    def _insert(self, table: str, columns: Sequence[str], row: Sequence[Value]) -> None:
        marks = ", ".join("?" * len(columns))
        self._connection.execute(f"INSERT OR IGNORE INTO {table} ({', '.join(columns)}) VALUES ({marks})", row)

    def _make_session(self, session_id: str) -> None:
        """Rebuilds the lost row of a session from its entries; the directory stays unknown."""
        query = "SELECT min(time_utc), max(time_utc), max(seq) FROM entries WHERE session = ?"
        created, updated, head = self._connection.execute(query, (session_id,)).fetchone()
        self._connection.execute(
            "INSERT INTO sessions (id, cwd, created, updated, touched) VALUES (?, '', ?, ?, 0)", (session_id, created, updated)
        )
        query = "SELECT seq, time_utc, prev_hash, hash, CAST(body AS BLOB), blob FROM entries WHERE session = ? ORDER BY seq"
        for seq, time_utc, prev_hash, digest, body, blob in self._connection.execute(query, (session_id,)).fetchall():
            data = body if blob is None else _file(self._blobs_dir, blob)
            entry = StoredRow(seq, 0, time_utc, prev_hash, digest, data or b"").entry
            if entry:
                with suppress(SessionError):  # the name is taken by another session
                    session_rows.update_totals(self._connection, session_id, [entry], head, updated)
        self._connection.execute("UPDATE sessions SET head = ? WHERE id = ?", (head, session_id))


_ENTRY_COLUMNS = ("session", "seq", "parent", "kind", "time_utc", "prev_hash", "hash", "body", "blob")


def _entry(record: list[Value], blobs_dir: Path) -> tuple[Value, ...] | None:
    """The row of an entry whose hash is correct."""
    match record[:9]:
        case [
            str() as session,
            int() as seq,
            int() | None as parent,
            str() as kind,
            (int() | float()) as time_utc,
            bytes() as prev_hash,
            bytes() as digest,
            (str() | None) as body,
            (str() | None) as blob,
        ]:
            data = body.encode() if body is not None else _file(blobs_dir, blob) if blob else None
            row = StoredRow(seq, parent or 0, float(time_utc), prev_hash, digest, data or b"")
            if (data is None and blob) or row.is_intact:
                return session, seq, parent, kind, row.time_utc, prev_hash, digest, body, blob
    return None


def _is_session(record: list[Value]) -> bool:
    if len(record) < len(_SESSION_COLUMNS):
        return False
    with suppress(SessionError):
        kinds = zip(record, _SESSION_COLUMNS, strict=False)
        return all(isinstance(value, kind) for value, (_, kind) in kinds) and bool(check_id(str(record[0])))
    return False


def _file(blobs_dir: Path, name: str) -> bytes | None:
    try:
        return (blobs_dir / check_id(name)).read_bytes()
    except (OSError, SessionError):
        return None


def _newest_backup(path: Path) -> Path | None:
    for backup in reversed(backups(path)):
        with (
            suppress(*SQLITE_ERRORS),
            closing(open_sqlite(f"{backup.absolute().as_uri()}?immutable=1")) as connection,
        ):
            if connection.execute("PRAGMA quick_check(1)").fetchone() == ("ok",):
                return backup
    return None


def _write(report: Path, text: str) -> None:
    with os.fdopen(os.open(report, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _count(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"
