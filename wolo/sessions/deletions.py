"""Records which sessions were deleted, in a file that is only added to; each line is chained to the one before by its hash."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from wolo.errors import SessionError
from wolo.operating_system import LOCK_EX, flock
from wolo.sessions.session_rows import DIGEST_BYTES
from wolo.sessions.storage import storage_error

FILE = "deletions.jsonl"
"""Beside the database."""
Reason = Literal["deleted", "cleaned", "expired", "purged"]
"""One was named; all of an age; older than `sessions.retention_days`; all of a directory."""


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


def record_deletion(data: Path, deletion: Deletion) -> None:
    """Saves it before the session goes. Raises SessionError."""
    path = data / FILE
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise SessionError(f"{path} is not a regular file, so no deletion can be recorded.", hint="Move it away.")
            flock(descriptor, LOCK_EX)
            last = b"".join(_read(path)[-1:])
            line = _chain(deletion, _chain_of(last))
            torn = b"" if not last or last.endswith(b"\n") else b"\n"  # a killed writer's; the chain shows it
            os.write(descriptor, torn + line + b"\n")
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise storage_error(error, path) from error


def read_deletions(data: Path) -> Iterator[tuple[Deletion | None, bool]]:
    """Each with whether its chain holds; None: the line cannot be read."""
    before = ""
    for line in _read(data / FILE):
        try:
            deletion = msgspec.json.decode(line, type=Deletion)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            yield None, False
            continue
        yield deletion, _chain(deletion, before) == line.rstrip(b"\n")
        before = deletion.chain


def deletion_now(session: str, cwd: str, created_at: float, num_entries: int, last_hash: bytes, reason: Reason) -> Deletion:
    return Deletion(
        at=time.time(),
        session=session,
        cwd=cwd,
        created=created_at,
        num_entries=num_entries,
        last_hash=last_hash.hex(),
        reason=reason,
    )


def _chain(deletion: Deletion, before: str) -> bytes:
    plain = msgspec.json.encode(msgspec.structs.replace(deletion, chain=""))
    chain = blake2b(before.encode() + plain, digest_size=DIGEST_BYTES).hexdigest()
    return msgspec.json.encode(msgspec.structs.replace(deletion, chain=chain))


def _chain_of(line: bytes) -> str:
    try:
        return msgspec.json.decode(line, type=Deletion).chain
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return ""


def _read(path: Path) -> list[bytes]:
    """Raises SessionError."""
    try:
        if path.exists() and not path.is_file():  # a FIFO would wait for ever
            raise SessionError(f"{path} cannot be read: it is not a regular file.")
        return path.read_bytes().splitlines(keepends=True)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise SessionError(f"{path} cannot be read: {error.strerror}.") from error
