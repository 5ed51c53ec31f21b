"""Writes files and fills folders under a temporary name until they are whole; what a killed process left, the next one removes.

The owner holds a kernel lock on what has such a name, so one that can be locked has lost its owner. Without kernel locks (some
network disks) leftovers stay.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from wolo.operating_system import LOCK_EX, LOCK_NB, flock, hold_open, os, user_id

_NAME = r"\.wolo-[0-9a-f]{16}\.new"
_HERE, _EXCHANGE = -100, 2
"""`AT_FDCWD` and `RENAME_EXCHANGE` of Linux."""
_READS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@contextmanager
def replacing(path: Path, *, mode: int = 0o600, durable: bool = True, over: bool = True) -> Iterator[BinaryIO]:
    """Yields a file that takes the place of `path` when the block ends; on an exception `path` is unchanged.

    A link stays a link; what is no regular file, such as `/dev/stdout`, is written directly. The umask applies to `mode`. Without
    `over` an existing file stays, and FileExistsError is raised. Raises OSError.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        with target.open("wb") as device:
            yield device
        return
    remove_leftovers(target.parent)
    is_owned = False
    while not is_owned:
        temporary = _new_name(target.parent)
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
        is_owned = _own(handle, temporary)
    with os.fdopen(handle, "wb") as file:
        try:
            yield file
            file.flush()
            if durable:
                os.fsync(handle)
            if over:
                temporary.replace(target)
            else:
                os.link(temporary, target)
        finally:
            # Also after a link, and for names that are in use no longer.
            temporary.unlink(missing_ok=True)
    if durable:
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
        with suppress(OSError), hold_open(os.open(target.parent, flags)) as handle:  # some file systems cannot sync folders
            os.fsync(handle)


def write_whole(path: Path, data: bytes, *, mode: int = 0o600, durable: bool = True) -> None:
    with replacing(path, mode=mode, durable=durable) as file:
        file.write(data)


@contextmanager
def unfinished_folder(parent: Path | None = None) -> Iterator[Path]:
    """Yields a new private folder that disappears with the block, unless it was moved; `parent` or the one for temporary files.

    Raises OSError.
    """
    if parent is None:
        import tempfile  # noqa: PLC0415  # rarely needed

        parent = Path(tempfile.gettempdir())
    remove_leftovers(parent)
    is_owned = False
    while not is_owned:
        folder = _new_name(parent)
        folder.mkdir(0o700)
        handle = os.open(folder, _READS | os.O_DIRECTORY)
        is_owned = _own(handle, folder)
    try:
        yield folder
    finally:
        import shutil  # noqa: PLC0415  # slow to load, and it loads the libraries of archives

        shutil.rmtree(folder, ignore_errors=True)
        os.close(handle)


def exchange(one: Path, other: Path) -> bool:
    """Swaps two names at once. False, and nothing done, where the system cannot."""
    import ctypes  # noqa: PLC0415  # rarely needed

    function = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    return function is not None and function(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE) == 0


def remove_leftovers(folder: Path) -> None:
    """Removes what killed processes left in a folder, as far as this user may."""
    with suppress(OSError), os.scandir(folder) as entries:
        for path in [folder / each.name for each in entries if re.fullmatch(_NAME, each.name)]:
            with suppress(OSError), hold_open(os.open(path, _READS)) as handle:
                if os.fstat(handle).st_uid == user_id():
                    flock(handle, LOCK_EX | LOCK_NB)
                    if path.is_dir():
                        import shutil  # noqa: PLC0415  # slow to load

                        shutil.rmtree(path, ignore_errors=True)
                    else:
                        path.unlink()


def _own(handle: int, path: Path) -> bool:
    """Locks a new file or folder. False, and closed, where another process took it for a leftover first."""
    with suppress(OSError):  # no locks, or the other process has this one
        flock(handle, LOCK_EX | LOCK_NB)
    with suppress(FileNotFoundError):
        if os.path.samestat(os.fstat(handle), path.lstat()):
            return True
    os.close(handle)
    return False


def _new_name(parent: Path) -> Path:
    return parent / f".wolo-{os.urandom(8).hex()}.new"
