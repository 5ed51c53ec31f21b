"""Creates, checks and opens the SQLite file of the sessions."""

from __future__ import annotations

import sqlite3
import struct
import sys
from array import array
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from msgspec import Struct

from wolo.operating_system import os
from wolo.sessions.storage import DatabaseDamaged, DatabaseTooNew, not_a_database, sync
from wolo.workspace.files.sqlite_connection import open_sqlite

REMOTE = (
    *("nfs", "cifs", "smb", "9p", "afs", "ceph", "gluster", "lustre", "gpfs", "beegfs", "orangefs", "ocfs", "gfs", "davfs"),
    *("virtiofs", "vboxsf", "vmhgfs", "prl_fs", "drvfs", "ncp", "coda", "pvfs", "panfs", "weka", "fuse."),
)
"""Prefixes of file system types where several machines, or a user-space program, are between a file and its memory map."""


def is_remote(directory: Path, mounts: Path = Path("/proc/self/mountinfo")) -> bool:
    """Tells a remote file system, where SQLite's write-ahead log is unreliable. False where the system does not say (macOS)."""
    if not hasattr(os, "major"):
        return str(directory).startswith("\\\\")  # Windows: a share; drives that stand for one are not known
    device = directory.stat().st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    try:
        lines = mounts.read_text("utf-8", "replace").splitlines()
    except OSError:
        return False
    # The type is the word after the lone dash: `36 35 98:0 / /mnt rw shared:1 - ext4 /dev/sda1 rw`.
    types = (line.partition(" - ")[2].split(" ")[0].lower() for line in lines if line.split(" ")[2:3] == [number])
    return any(each.startswith(REMOTE) for each in types)


_HEADER_BYTES, _FRAME_HEADER_BYTES = 32, 24
_BIG_ENDIAN = 0x377F0683
_MASK = 0xFFFFFFFF


class Frame(Struct, frozen=True):
    page: int
    at: int
    """Offset of its content in the log."""
    ends_commit: bool


def log_path(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


def frames(log: int, page_bytes: int) -> Iterator[Frame]:
    """Yields the frames of the log's newest round, intact or not."""
    header = os.pread(log, _HEADER_BYTES, 0)
    # With a damaged header, the first frame tells the salt.
    salt = header[16:24] if _is_sound(header) else os.pread(log, 8, _HEADER_BYTES + 8)
    frame_bytes = _FRAME_HEADER_BYTES + page_bytes
    for at in range(_HEADER_BYTES, os.fstat(log).st_size - frame_bytes + 1, frame_bytes):
        page, size_after_commit, found = struct.unpack(">II8s", os.pread(log, 16, at))
        if found == salt:
            yield Frame(page, at + _FRAME_HEADER_BYTES, bool(size_after_commit))


def is_torn(path: Path, page_bytes: int) -> bool:
    """Tells whether there are commits behind the place where SQLite stops reading.

    A single one is no sign: power may have failed before it was written, and then nobody was told that it was.
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
_MOST_RELEASES = 200
"""A format that is further ahead is noise, not the work of a newer wolo."""
BUSY_MS = 5000


def memory_path(path: Path) -> Path:
    return path.with_name(f"{path.name}-shm")


def quarantine_path(path: Path) -> Path:
    """The folder for damaged databases."""
    return path.parent / "quarantine"


def unfinished_rescue(path: Path) -> Path:
    """The report of a rescue that was interrupted, if the file exists."""
    return quarantine_path(path) / "unfinished" / "report.txt"


def connect(path: Path) -> sqlite3.Connection:
    connection = open_sqlite(path)
    try:
        connection.execute(f"PRAGMA busy_timeout = {BUSY_MS}")
        # FULL: with a write-ahead log, NORMAL loses acknowledged commits on power failure.
        connection.execute("PRAGMA synchronous = FULL")
        if sys.platform == "darwin":
            connection.execute("PRAGMA fullfsync = ON")
            connection.execute("PRAGMA checkpoint_fullfsync = ON")
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        connection.execute("PRAGMA cell_size_check = ON")
        connection.execute("PRAGMA trusted_schema = OFF")
    except BaseException:
        connection.close()
        raise
    return connection


def journal_for(path: Path) -> str:
    """Returns the journal mode for a directory: SQLite does not recognise all file systems without shared memory."""
    return "delete" if is_remote(path.parent) else "wal"


def create(path: Path, version: int, fill: Callable[[sqlite3.Connection], None] | None = None) -> None:
    """Builds the database under another name and renames it, so that it is never incomplete."""
    fresh = path.with_name(f"{path.name}.new")
    for leftover in (fresh, log_path(fresh), memory_path(fresh), fresh.with_name(f"{fresh.name}-journal")):
        leftover.unlink(missing_ok=True)
    fresh.touch(0o600, exist_ok=False)
    fresh.chmod(0o600)  # SQLite gives the log and the shared memory the database's mode
    connection = connect(fresh)
    try:
        mark = f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {version}"
        connection.executescript(f"BEGIN; {_schema()}; {mark}; COMMIT")
        if fill is not None:
            connection.execute("BEGIN")
            fill(connection)
            connection.execute("COMMIT")
        connection.execute(f"PRAGMA journal_mode = {journal_for(path)}").fetchone()
    finally:
        connection.close()
    fresh.rename(path)
    sync(path.parent)


def read_only_uri(path: Path) -> str:
    """For connections that leave no trace. `immutable` ignores the log, so it is only for a database without one."""
    log = log_path(path)
    is_logged = log.exists() and log.stat().st_size > 0
    return f"{path.absolute().as_uri()}?mode=ro{'' if is_logged else '&immutable=1'}"


@contextmanager
def only_reading(path: Path) -> Iterator[sqlite3.Connection]:
    """Opens a connection that changes neither the file nor its directory.

    Where the write-ahead log cannot be read in place, it reads a private copy of both.
    """
    uri = read_only_uri(path)
    connection = _open_untrusted(uri)
    try:
        if not uri.endswith("immutable=1"):
            connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    except sqlite3.OperationalError:  # SQLite would have to write in order to read the log
        connection.close()
    else:
        with closing(connection):
            yield connection
        return
    import shutil  # noqa: PLC0415  # few logs need a copy

    from wolo.workspace.files.unfinished import unfinished_folder  # noqa: PLC0415  # the same

    with unfinished_folder() as folder:
        for each in (path, log_path(path)):
            shutil.copyfile(each, folder / each.name)
        with closing(_open_untrusted((folder / path.name).as_uri())) as connection:
            yield connection


def _open_untrusted(uri: str) -> sqlite3.Connection:
    connection = open_sqlite(uri)
    connection.execute("PRAGMA trusted_schema = OFF")
    return connection


def check_ours(connection: sqlite3.Connection, path: Path) -> int:
    """Returns the schema version. Raises SessionError for a file that is not a database of wolo."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application != APPLICATION_ID or version < 1:
        columns = {name for (name,) in connection.execute("SELECT name FROM pragma_table_info('entries')")}
        is_ours = {"session", "seq", "prev_hash", "hash"} <= columns
        raise DatabaseDamaged(path, "its header is damaged") if is_ours else not_a_database(path)
    return int(version)


def inspect(path: Path, known: int, *, thoroughly: bool) -> None:
    """Refuses a file that is damaged, foreign or from a newer wolo, without changing a byte of it or its log."""
    if path.stat().st_size == 0:
        raise DatabaseDamaged(path, "the file is empty")
    # Through SQLite, not open(): closing another descriptor of the file would drop this process's locks on it. After an
    # interrupted checkpoint the log holds half of the data.
    uri = read_only_uri(path)
    with closing(open_sqlite(uri)) as connection:
        if (version := check_ours(connection, path)) > known + _MOST_RELEASES:
            raise DatabaseDamaged(path, "its header is damaged")
        if version > known:
            raise DatabaseTooNew(
                f"{path} was written by a newer wolo (format {version}, this one supports {known}).",
                hint="Upgrade wolo. The file was not changed.",
            )
        (page_bytes,) = connection.execute("PRAGMA page_size").fetchone()
        if thoroughly:
            # Not quick_check: it misses rows lost from an index, and saves only 20 of 100 ms for 200 MB.
            (verdict,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
            if verdict != "ok":
                raise DatabaseDamaged(path, str(verdict).strip().rpartition("\n")[2])  # the line before names the database
        if thoroughly and version == known:
            # A damaged schema may be a valid one, of other tables.
            query = "SELECT t.name, c.name, c.type, c.[notnull], c.pk FROM sqlite_schema t, pragma_table_info(t.name) c"
            with closing(open_sqlite(":memory:")) as new:
                new.executescript(_schema())
                lost = set(new.execute(query)) - set(connection.execute(query))
            if lost:
                table, column, *_ = min(lost)
                raise DatabaseDamaged(path, f"its table {table} has no right column {column}")
    if thoroughly and not uri.endswith("immutable=1") and is_torn(path, page_bytes):
        raise DatabaseDamaged(path, f"its log {log_path(path).name} is torn")


def _schema() -> str:
    return Path(__file__).with_name("schema.sql").read_text("utf-8")
