"""Moves a damaged database aside and saves what can be read into a new one.

An interrupted rescue is resumed at the next start. Its state is told by the files:

quarantine/unfinished/ has no database: files are being moved there, the log first, the database last.
It has one, and there is none in its place: the new database is being built.
There are both: the rescue is complete, the folder gets its final name.

SQLite stops at a damaged page on the way down a tree. `Pages` reads the newest committed version of every page, from the
write-ahead log or the file, without trees; records are known by their shape.
"""

from __future__ import annotations

import shutil
import sqlite3
import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Self

from wolo.errors import SessionError
from wolo.messages.terminal_text import quantity
from wolo.operating_system import os
from wolo.sessions import migrations, session_rows, storage
from wolo.sessions.database_file import create, frames, log_path, memory_path, quarantine_path, unfinished_rescue
from wolo.sessions.session_rows import StoredRow, check_id
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
        storage.make_directory(folder)
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
        storage.sync(unfinished)
        storage.sync(path.parent)
    if not path.exists():
        _replace(path, version, damaged, report)
    folder = unfinished.with_name(f"{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{os.urandom(2).hex()}")
    unfinished.rename(folder)
    storage.sync(folder.parent)
    return f"{(folder / report.name).read_text('utf-8')} The damaged file is in {folder}."


def _replace(path: Path, version: int, damaged: Path, report: Path) -> None:
    reason = report.read_text("utf-8").partition(").")[0] + ")"

    def fill(connection: sqlite3.Connection) -> None:
        _write(report, f"{reason}. {_rebuild(connection, path.parent / 'blobs', damaged)}")

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
        storage.sync(fresh)
        fresh.rename(path)
        storage.sync(path.parent)
    else:
        _write(report, f"{reason}. Nothing could be read from it and there is no backup, so a new one was created.")
        create(path, version)


def _rebuild(connection: sqlite3.Connection, blobs_dir: Path, damaged: Path) -> str:
    """Fills a new database with the records found in the pages of the old one. Returns a sentence with the counts."""
    stored = {path.name for path in blobs_dir.iterdir()} if blobs_dir.is_dir() else set()
    columns: tuple[str, ...]
    row: tuple[Value, ...]
    with Pages(damaged) as pages:
        for record in pages.records():
            if entry := _entry(record, blobs_dir):
                table, columns, row = "entries", _ENTRY_COLUMNS, entry
            elif _is_session(record):
                # Of two sessions with one name, one is noise: the first gets it.
                row = tuple(record[: len(_SESSION_COLUMNS)])
                table, columns = "sessions", tuple(name for name, _ in _SESSION_COLUMNS)
            elif len(record) == 2 and record[1] in stored:
                table, columns, row = "blobs", ("session", "name"), tuple(record)
            else:
                continue
            marks = ", ".join("?" * len(columns))
            connection.execute(f"INSERT OR IGNORE INTO {table} ({', '.join(columns)}) VALUES ({marks})", row)
    query = "SELECT DISTINCT session FROM entries WHERE session NOT IN (SELECT id FROM sessions)"
    for (session_id,) in connection.execute(query).fetchall():
        _make_session(connection, blobs_dir, session_id)
    connection.execute("INSERT OR IGNORE INTO blobs SELECT session, blob FROM entries WHERE blob IS NOT NULL")
    connection.execute("DELETE FROM blobs WHERE session NOT IN (SELECT id FROM sessions)")
    query = (
        "SELECT count(*), coalesce(sum(kept), 0), coalesce(sum(max(head, last) - kept), 0) FROM "
        "(SELECT head, count(seq) AS kept, coalesce(max(seq), 0) AS last FROM sessions "
        "LEFT JOIN entries ON session = id GROUP BY id)"
    )
    sessions, kept, lost = connection.execute(query).fetchone()
    missing = "none of them is known to be missing" if not lost else f"at least {lost:,} could not be read"
    return f"{quantity(kept, 'entry', 'entries')} of {quantity(sessions, 'session')} could be saved; {missing}."


def _make_session(connection: sqlite3.Connection, blobs_dir: Path, session_id: str) -> None:
    """Rebuilds the lost row of a session from its entries; the directory stays unknown."""
    query = "SELECT min(time_utc), max(time_utc), max(seq) FROM entries WHERE session = ?"
    created, updated, head = connection.execute(query, (session_id,)).fetchone()
    connection.execute(
        "INSERT INTO sessions (id, cwd, created, updated, touched) VALUES (?, '', ?, ?, 0)", (session_id, created, updated)
    )
    query = "SELECT seq, time_utc, prev_hash, hash, CAST(body AS BLOB), blob FROM entries WHERE session = ? ORDER BY seq"
    for seq, time_utc, prev_hash, digest, body, blob in connection.execute(query, (session_id,)).fetchall():
        data = body if blob is None else _file(blobs_dir, blob)
        if entry := StoredRow(seq, 0, time_utc, prev_hash, digest, data or b"").entry:
            with suppress(SessionError):  # the name is taken by another session
                session_rows.update_totals(connection, session_id, [entry], head, updated)
    connection.execute("UPDATE sessions SET head = ? WHERE id = ?", (head, session_id))


_ENTRY_COLUMNS = ("session", "seq", "parent", "kind", "time_utc", "prev_hash", "hash", "body", "blob")


def _entry(record: list[Value], blobs_dir: Path) -> tuple[Value, ...] | None:
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
    for backup in reversed(migrations.backups(path)):
        with suppress(*SQLITE_ERRORS), closing(open_sqlite(f"{backup.absolute().as_uri()}?immutable=1")) as connection:
            if connection.execute("PRAGMA quick_check(1)").fetchone() == ("ok",):
                return backup
    return None


def _write(report: Path, text: str) -> None:
    with os.fdopen(os.open(report, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


Value = int | float | str | bytes | None

USUAL_PAGE_BYTES = 4096
"""SQLite's default, used where the header is damaged."""

_MAGIC = b"SQLite format 3\0"
_TABLE_LEAF, _INDEX_LEAF, _INDEX_INTERIOR = 0x0D, 0x0A, 0x02
_INTEGER_BYTES = (0, 1, 2, 3, 4, 6, 8)


class Pages:
    """The pages of a database that has no writer. Use it as a context manager."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._open_files = ExitStack()
        self._file = self._open(path)
        header = os.pread(self._file, 100, 0)
        is_whole = header[:16] == _MAGIC
        self._page_bytes = _page_bytes(header[16:18]) if is_whole else USUAL_PAGE_BYTES
        self._usable = self._page_bytes - (_number(header[20:21]) if is_whole else 0)
        self._log: int | None = None
        self._logged: dict[int, int] = {}
        # The pages of which the log has a newer version, up to its last commit.
        if log_path(path).exists():
            self._log = self._open(log_path(path))
            uncommitted: dict[int, int] = {}
            for frame in frames(self._log, self._page_bytes):
                uncommitted[frame.page] = frame.at
                if frame.ends_commit:
                    self._logged.update(uncommitted)
                    uncommitted.clear()
        in_file = -(-os.fstat(self._file).st_size // self._page_bytes)
        self._count = max([in_file, *self._logged])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open_files.close()

    def records(self) -> Iterator[list[Value]]:
        """Yields records of tables and indexes, in no particular order."""
        # Pages on the free list, as far as it can be read: their content was deleted
        freed: set[int] = set()
        header = self._page(1)
        trunk = _number(header[32:36]) if header.startswith(_MAGIC) else 0
        while 1 < trunk <= self._count and trunk not in freed:
            page = self._page(trunk)
            count = min(_number(page[4:8]), len(page) // 4 - 2)
            freed.add(trunk)
            freed.update(_number(page[at : at + 4]) for at in range(8, 8 + 4 * count, 4))
            trunk = _number(page[0:4])
        for number in range(2, self._count + 1):  # the first page holds the schema
            if number not in freed:
                page = self._page(number)
                kind = page[0] if page else 0
                if kind in (_TABLE_LEAF, _INDEX_LEAF, _INDEX_INTERIOR):
                    first = 12 if kind == _INDEX_INTERIOR else 8
                    last = min(first + 2 * _number(page[3:5]), len(page) - 1)
                    for at in range(first, last, 2):
                        try:
                            payload = self._payload(page, _number(page[at : at + 2]), kind)
                            yield _values(payload)
                        except (IndexError, ValueError, struct.error):
                            continue  # noise

    def _open(self, path: Path) -> int:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._open_files.callback(os.close, descriptor)
        return descriptor

    def _page(self, number: int) -> bytes:
        if self._log is not None and number in self._logged:
            return os.pread(self._log, self._page_bytes, self._logged[number])
        return os.pread(self._file, self._page_bytes, (number - 1) * self._page_bytes)

    def _payload(self, page: bytes, at: int, kind: int) -> bytes:
        size, at = _varint(page, at + 4 if kind == _INDEX_INTERIOR else at)
        if kind == _TABLE_LEAF:
            _, at = _varint(page, at)
        most = self._usable - 35 if kind == _TABLE_LEAF else (self._usable - 12) * 64 // 255 - 23
        if size <= most:
            return page[at : at + size]
        if size > self._count * self._page_bytes:
            raise ValueError(size)
        least = (self._usable - 12) * 32 // 255 - 23
        here = least + (size - least) % (self._usable - 4)
        here = here if here <= most else least
        return page[at : at + here] + self._overflow(_number(page[at + here : at + here + 4]), size - here)

    def _overflow(self, number: int, size: int) -> bytes:
        pieces = []
        while size > 0 and 1 < number <= self._count:
            page = self._page(number)
            pieces.append(page[4 : min(self._usable, 4 + size)])
            size -= self._usable - 4
            number = _number(page[0:4])
        if size > 0:
            raise ValueError(size)
        return b"".join(pieces)


def _values(payload: bytes) -> list[Value]:
    header_bytes, at = _varint(payload, 0)
    values: list[Value] = []
    start = header_bytes
    while at < header_bytes:
        kind, at = _varint(payload, at)
        size = _INTEGER_BYTES[kind] if kind < 7 else 8 if kind == 7 else 0 if kind < 12 else (kind - 12) // 2
        data = payload[start : start + size]
        if len(data) < size:
            raise ValueError(size)
        start += size
        if kind == 0:
            values.append(None)
        elif kind < 7:
            values.append(int.from_bytes(data, "big", signed=True))
        elif kind == 7:
            values.append(float(struct.unpack(">d", data)[0]))
        elif kind < 12:
            values.append(kind - 8)
        else:
            values.append(data.decode() if kind % 2 else data)
    return values


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for end in range(at, at + 8):
        value = value << 7 | data[end] & 0x7F
        if data[end] < 0x80:
            return value, end + 1
    return value << 8 | data[at + 8], at + 9


def _number(data: bytes) -> int:
    return int.from_bytes(data, "big")


def _page_bytes(field: bytes) -> int:
    size = 65536 if field == b"\0\x01" else _number(field)
    return size if 512 <= size <= 65536 and size & (size - 1) == 0 else USUAL_PAGE_BYTES
