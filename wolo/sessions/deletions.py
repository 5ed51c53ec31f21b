"""Records which sessions were deleted, in a file that is only added to; each line is chained to the one before by its hash."""

from __future__ import annotations

import sqlite3
import stat
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from wolo.errors import SessionError
from wolo.formats.tolerant_json import read_as
from wolo.operating_system import LOCK_EX, flock, os
from wolo.sessions.session_rows import DIGEST_BYTES
from wolo.sessions.storage import storage_error

FILE = "deletions.jsonl"
"""Beside the database."""
Reason = Literal["deleted", "cleaned", "expired", "purged"]
"""One was named; all of an age; older than `sessions.retention_days`; all of a directory."""


ANCHOR = "last_deletion"
"""The table of the database that keeps where the file ends; the first deletion makes it, so older databases need no migration."""
End = tuple[int, str]
"""How many lines the file has, and the chain of the last one."""


class Deletion(Struct, frozen=True, kw_only=True):
    at: float
    session: str
    cwd: str
    created: float
    num_entries: int
    last_hash: str
    """Of the chain of its entries: a copy of the session can be recognised by it."""
    reason: Reason
    chain: str = ""


def record_deletion(data: Path, deletion: Deletion, before: End) -> End:
    """Saves it before the session goes. Returns the end to keep: `before` where the file lacks that. Raises SessionError."""
    path = data / FILE
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise SessionError(f"{path} is not a regular file, so no deletion can be recorded.", hint="Move it away.")
            flock(descriptor, LOCK_EX)
            lines = _read(path)
            last = b"".join(lines[-1:])
            line = _chain(deletion, _chain_of(last))
            torn = b"" if not last or last.endswith(b"\n") else b"\n"  # a killed writer's; the chain shows it
            os.write(descriptor, torn + line + b"\n")
            os.fsync(descriptor)
            return (len(lines) + 1, _chain_of(line)) if _has_end(lines, before) else before
        finally:
            os.close(descriptor)
    except OSError as error:
        raise storage_error(error, path) from error


def kept_end(connection: sqlite3.Connection) -> End:
    """Where the file ended at the last deletion."""
    if connection.execute("SELECT 1 FROM sqlite_schema WHERE name = ?", (ANCHOR,)).fetchone() is None:
        return 0, ""
    count, chain = connection.execute(f"SELECT num_lines, chain FROM {ANCHOR}").fetchone() or (0, "")
    return count, chain


def keep_end(connection: sqlite3.Connection, end: End) -> None:
    """In the transaction of a deletion; one that is further stays."""
    connection.execute(f"CREATE TABLE IF NOT EXISTS {ANCHOR} (id INTEGER PRIMARY KEY, num_lines INTEGER, chain TEXT)")
    if end[0] > kept_end(connection)[0]:
        connection.execute(f"REPLACE INTO {ANCHOR} VALUES (1, ?, ?)", end)


def read_deletions(data: Path, end: End = (0, "")) -> Iterator[tuple[Deletion | None, bool]]:
    """Each with whether its chain holds; None: the line cannot be read, or the file was cut before `end`."""
    before, lines = "", _read(data / FILE)
    for line in lines:
        if (deletion := read_as(line, Deletion)) is None:
            yield None, False
            continue
        yield deletion, _chain(deletion, before) == line.rstrip(b"\n")
        before = deletion.chain
    if not _has_end(lines, end):
        yield None, False


def _has_end(lines: list[bytes], end: End) -> bool:
    count, chain = end
    return count == 0 or (count <= len(lines) and _chain_of(lines[count - 1]) == chain)


def _chain(deletion: Deletion, before: str) -> bytes:
    plain = msgspec.json.encode(msgspec.structs.replace(deletion, chain=""))
    chain = blake2b(before.encode() + plain, digest_size=DIGEST_BYTES).hexdigest()
    return msgspec.json.encode(msgspec.structs.replace(deletion, chain=chain))


def _chain_of(line: bytes) -> str:
    deletion = read_as(line, Deletion)
    return deletion.chain if deletion else ""


def _read(path: Path) -> list[bytes]:
    try:
        if path.exists() and not path.is_file():  # a FIFO would wait for ever
            raise SessionError(f"{path} cannot be read: it is not a regular file.")
        return path.read_bytes().splitlines(keepends=True)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise SessionError(f"{path} cannot be read: {error.strerror}.") from error
