"""Creates, checks and opens the SQLite file of the sessions."""

from __future__ import annotations

import os
import shutil
import sqlite3
import struct
import sys
import tempfile
from array import array
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from wolo.sessions.storage import Damaged, Newer, foreign, sync_directory

REMOTE = (
    "nfs",
    "cifs",
    "smb",
    "9p",
    "afs",
    "ceph",
    "gluster",
    "lustre",
    "gpfs",
    "beegfs",
    "orangefs",
    "ocfs",
    "gfs",
    "davfs",
    "virtiofs",
    "vboxsf",
    "vmhgfs",
    "prl_fs",
    "drvfs",
    "ncp",
    "coda",
    "pvfs",
    "panfs",
    "weka",
    "fuse.",
)
"""Beginnings of file system types: several machines, or a user-space program, stand between a file and its memory map."""


def is_remote(directory: Path, mounts: Path = Path("/proc/self/mountinfo")) -> bool:
    """False where the system does not say (macOS): SQLite then has the last word."""
    device = directory.stat().st_dev
    wanted = f"{os.major(device)}:{os.minor(device)}"
    try:
        lines = mounts.read_text("utf-8", "replace").splitlines()
    except OSError:
        return False
    return any(_type(line).startswith(REMOTE) for line in lines if line.split(" ")[2:3] == [wanted])


def _type(line: str) -> str:
    """The word after the lone dash: `36 35 98:0 / /mnt rw shared:1 - ext4 /dev/sda1 rw`."""
    _, _, described = line.partition(" - ")
    return described.split(" ")[0].lower()


_HEADER_BYTES, _FRAME_HEADER_BYTES = 32, 24
_BIG_ENDIAN = 0x377F0683
_MASK = 0xFFFFFFFF


class Frame(NamedTuple):
    page: int
    at: int
    """Where its content begins in the log."""
    ends_commit: bool


def log_path(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


def frames(log: int, page_bytes: int) -> Iterator[Frame]:
    """Those of the newest round through the log, sound or not."""
    header = os.pread(log, _HEADER_BYTES, 0)
    # What noise has hit says nothing: the first frame then knows which round it is.
    salt = header[16:24] if _is_sound(header) else os.pread(log, 8, _HEADER_BYTES + 8)
    frame_bytes = _FRAME_HEADER_BYTES + page_bytes
    for at in range(_HEADER_BYTES, os.fstat(log).st_size - frame_bytes + 1, frame_bytes):
        page, size_after_commit, found = struct.unpack(">II8s", os.pread(log, 16, at))
        if found == salt:
            yield Frame(page, at + _FRAME_HEADER_BYTES, bool(size_after_commit))


def is_torn(path: Path, page_bytes: int) -> bool:
    """There are commits behind a place where SQLite stops reading.

    One alone says nothing: the power may have failed before it was on the disk, and then nobody was told that it is.
    """
    log = os.open(log_path(path), os.O_RDONLY | os.O_CLOEXEC)
    try:
        header = os.pread(log, _HEADER_BYTES, 0)
        sound, order, running = _is_sound(header), _order(header), _checksum(header[:24], (0, 0), _order(header))
        unread = 0
        for frame in frames(log, page_bytes):
            if sound:
                head = os.pread(log, _FRAME_HEADER_BYTES, frame.at - _FRAME_HEADER_BYTES)
                running = _checksum(head[:8] + os.pread(log, page_bytes, frame.at), running, order)
                sound = running == struct.unpack(">II", head[16:24])
            unread += frame.ends_commit and not sound
        return unread > 1
    finally:
        os.close(log)


def _is_sound(header: bytes) -> bool:
    return len(header) == _HEADER_BYTES and _checksum(header[:24], (0, 0), _order(header)) == struct.unpack(">II", header[24:])


def _order(header: bytes) -> str:
    return "big" if int.from_bytes(header[:4], "big") == _BIG_ENDIAN else "little"


def _checksum(data: bytes, start: tuple[int, int], order: str) -> tuple[int, int]:
    words = array("I", data[: len(data) // 8 * 8])
    if order != sys.byteorder:
        words.byteswap()
    first, second = start
    each = iter(words)
    for left, right in zip(each, each, strict=True):
        first = first + left + second & _MASK
        second = second + right + first & _MASK
    return first, second


APPLICATION_ID = 0x574F4C4F
"""Marks the file as wolo's."""
BUSY_MS = 5000


def memory_path(path: Path) -> Path:
    return path.with_name(f"{path.name}-shm")


def connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, cached_statements=64)
    try:
        connection.execute(f"PRAGMA busy_timeout = {BUSY_MS}")
        # FULL, not NORMAL: with a write-ahead log NORMAL forgets acknowledged commits when the power fails.
        connection.execute("PRAGMA synchronous = FULL")
        if sys.platform == "darwin":
            connection.execute("PRAGMA fullfsync = ON")
            connection.execute("PRAGMA checkpoint_fullfsync = ON")
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        connection.execute("PRAGMA cell_size_check = ON")
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.text_factory = _read_text
    except BaseException:
        connection.close()
        raise
    return connection


def journal_for(path: Path) -> str:
    """SQLite itself stays with the rollback journal where it cannot share memory; it does not know all such places."""
    return "delete" if is_remote(path.parent) else "wal"


def create(path: Path, version: int, fill: Callable[[sqlite3.Connection], None] | None = None) -> None:
    """Build it beside its place and move it there, so that a file under this name is always a whole database."""
    fresh = path.with_name(f"{path.name}.new")
    for leftover in (fresh, log_path(fresh), memory_path(fresh), fresh.with_name(f"{fresh.name}-journal")):
        leftover.unlink(missing_ok=True)
    fresh.touch(0o600, exist_ok=False)
    fresh.chmod(0o600)  # SQLite gives the log and the shared memory the mode of the database
    connection = connect(fresh)
    try:
        schema = Path(__file__).with_name("schema.sql").read_text("utf-8")
        mark = f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {version}"
        connection.executescript(f"BEGIN; {schema}; {mark}; COMMIT")
        if fill is not None:
            connection.execute("BEGIN")
            fill(connection)
            connection.execute("COMMIT")
        connection.execute(f"PRAGMA journal_mode = {journal_for(path)}").fetchone()
    finally:
        connection.close()
    fresh.rename(path)
    sync_directory(path.parent)


@contextmanager
def only_reading(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection that changes nothing, neither the file nor its directory.

    Where changes stand in a log that cannot be read in its place, a private copy of both is read.
    """
    log = log_path(path)
    if not (log.exists() and log.stat().st_size):
        with closing(_opened_as(f"{path.absolute().as_uri()}?mode=ro&immutable=1")) as connection:
            yield connection
        return
    if (shared := _with_log(path)) is not None:
        with closing(shared):
            yield shared
        return
    with tempfile.TemporaryDirectory() as folder:
        for each in (path, log):
            shutil.copyfile(each, Path(folder) / each.name)
        with closing(_opened_as((Path(folder) / path.name).as_uri())) as connection:
            yield connection


def _with_log(path: Path) -> sqlite3.Connection | None:
    """None where SQLite would have to write to read the log."""
    connection = _opened_as(f"{path.absolute().as_uri()}?mode=ro")
    try:
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    except sqlite3.OperationalError:
        connection.close()
        return None
    return connection


def _opened_as(uri: str) -> sqlite3.Connection:
    connection = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.text_factory = _read_text
    return connection


def check_ours(connection: sqlite3.Connection, path: Path) -> int:
    """The version of the format. Raises SessionError for what is no database of wolo's."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application != APPLICATION_ID or version < 1:
        raise Damaged(path, "its header is broken") if _holds_our_tables(connection) else foreign(path)
    return int(version)


def inspect(path: Path, known: int, *, thoroughly: bool) -> None:
    """Refuse what is no database, not ours, newer than this wolo or damaged, without changing a byte of it or its log."""
    if path.stat().st_size == 0:
        raise Damaged(path, "the file is empty")
    # Through SQLite and not with open(): closing any other descriptor of the file would drop this process's locks on it.
    # `immutable` leaves no trace, but does not see the log, and a checkpoint that was cut short leaves half the truth there.
    log = log_path(path)
    is_logged = log.exists() and log.stat().st_size > 0
    how = "mode=ro" if is_logged else "mode=ro&immutable=1"
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?{how}", uri=True)) as connection:
        version = check_ours(connection, path)
        if version > known:
            raise Newer(
                f"{path} was written by a newer wolo (its format is {version}, this one knows {known}).",
                hint="Upgrade wolo. The file was not touched.",
            )
        (page_bytes,) = connection.execute("PRAGMA page_size").fetchone()
        if thoroughly:
            _check(connection, path)
    if thoroughly and is_logged and is_torn(path, page_bytes):
        raise Damaged(path, f"its log {log.name} is torn")


def _check(connection: sqlite3.Connection, path: Path) -> None:
    # Not quick_check: that does not see a row which its index has lost, and for 200 MB saves 20 of 100 ms.
    (verdict,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    if verdict != "ok":
        raise Damaged(path, str(verdict).strip().rpartition("\n")[2])  # the line before names the database


def _holds_our_tables(connection: sqlite3.Connection) -> bool:
    columns = {name for (name,) in connection.execute("SELECT name FROM pragma_table_info('entries')")}
    return {"session", "seq", "prev_hash", "hash"} <= columns


def _read_text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
