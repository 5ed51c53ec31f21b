"""Locks single files among all sessions of a user, and work that one process does at a time.

A lock file exists while the lock is held, and names the temporary file being written. An unlocked one is left from a killed wolo
and is cleaned up.
"""

from __future__ import annotations

import asyncio
import errno
import re
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Final

from wolo.errors import ToolError
from wolo.operating_system import LOCK_EX, LOCK_NB, flock, hold_open, os
from wolo.places import make_private

_WAIT_S = 4.0
_TEMPORARY = r"\.wolo-[0-9a-f]{16}\.tmp"


@contextmanager
def lock_file(path: Path, locks: Path) -> Iterator[int | None]:
    """Yields the lock's descriptor, or None where locks are unsupported (the hash check still protects the file)."""
    lock = locks / f"{sha256(os.fsencode(path)).hexdigest()[:32]}.lock"
    if (handle := _acquire(lock)) is None:
        yield None
        return
    try:
        _remove_noted(handle)
        yield handle
    finally:
        # Removed while held: a waiting process sees that its descriptor is not the file on disk, and tries again.
        with suppress(OSError):
            lock.unlink()
        os.close(handle)


def new_temporary_name() -> str:
    return f".wolo-{os.urandom(8).hex()}.tmp"


def note_temporary(journal: int, temporary: Path) -> None:
    """Records the file before it is created, so that the next wolo can remove it after a kill. `journal` is a held lock."""
    os.pwrite(journal, os.fsencode(temporary), 0)


def clear_leftovers(locks: Path) -> None:
    """Removes lock files of killed wolos and the temporary files they name."""
    try:
        names = [name for name in os.listdir(locks) if name.endswith(".lock")]  # once at every start
    except OSError:
        return
    for name in names:
        with suppress(OSError), hold_open(os.open(locks / name, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)) as handle:
            if _try_lock(handle) and _is_on_disk(handle, locks / name):
                _remove_noted(handle)
                (locks / name).unlink()


def _acquire(lock: Path) -> int | None:
    deadline = time.monotonic() + _WAIT_S
    pause_s = 0.001
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    while True:
        try:
            try:
                handle = os.open(lock, flags, 0o600)
            except FileNotFoundError:
                make_private(lock.parent)
                handle = os.open(lock, flags, 0o600)
            if _try_lock(handle) and _is_on_disk(handle, lock):
                return handle
        except OSError:
            return None
        os.close(handle)
        if time.monotonic() > deadline:
            raise ToolError("Another program holds the lock of this file; nothing was changed. Try again later.")
        time.sleep(pause_s)
        pause_s = min(pause_s * 2, 0.05)


def _try_lock(handle: int) -> bool:
    try:
        flock(handle, LOCK_EX | LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        # A file system without locks: the hash check still protects the file.
        return error.errno in (errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)
    return True


def _is_on_disk(handle: int, lock: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), lock.lstat())
    except FileNotFoundError:
        return False


def _remove_noted(journal: int) -> None:
    if not (said := os.pread(journal, 1 << 16, 0)):
        return
    noted = Path(os.fsdecode(said))
    if re.fullmatch(_TEMPORARY, noted.name):
        with suppress(OSError):
            noted.unlink()
    os.ftruncate(journal, 0)


_LONGEST_WAIT_S: Final = 60.0
_POLL_S: Final = 0.05


@asynccontextmanager
async def hold_process_lock(folder: Path, key: str) -> AsyncIterator[None]:
    """Outlives no process; after a minute it is no longer waited for."""
    make_private(folder)
    name = sha256(key.encode()).hexdigest()[:32]
    with hold_open(os.open(folder / f"{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)) as handle:
        deadline = time.monotonic() + _LONGEST_WAIT_S
        while not _try_lock(handle) and time.monotonic() < deadline:  # noqa: ASYNC110  # another process releases it
            await asyncio.sleep(_POLL_S)
        yield
