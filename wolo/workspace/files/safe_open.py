"""Opens files by descriptor, following no links and accepting only regular files.

`openat2` (Linux 5.6) resolves a whole path in one call. The path starts at `/`, not at the workspace, so that a link in place of
a parent folder is detected, too.
"""

from __future__ import annotations

import errno
import stat
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Protocol

from wolo.errors import ToolError
from wolo.operating_system import hold_open, os

_OPENAT2 = 437
"""The same number on every architecture."""
_BENEATH, _NO_SYMLINKS, _NO_MAGIC_LINKS = 0x08, 0x04, 0x02
_CANNOT = {errno.ENOSYS, errno.EPERM, errno.EINVAL, errno.E2BIG, errno.EAGAIN}
"""The call is missing, forbidden by a sandbox, or was disturbed: the path is walked instead."""


class _OpenAt(Protocol):
    def __call__(self, folder: int, path: bytes, flags: int) -> int:
        """Returns the descriptor, or a negative error number."""


def open_at_once(path: Path, flags: int) -> int | None:
    """Opens the real folder `path`; None where the kernel cannot. Raises OSError, with ELOOP for a link on the path.

    The caller closes the descriptor.
    """
    if (call := _openat2()) is None:
        return None
    with hold_open(os.open("/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)) as start:
        handle = call(start, os.fsencode(path).lstrip(b"/") or b".", flags)
    if handle >= 0:
        return handle
    if -handle in _CANNOT:
        return None
    raise OSError(-handle, os.strerror(-handle), str(path))


@cache
def _openat2() -> _OpenAt | None:
    if sys.platform != "linux":
        return None
    import ctypes  # noqa: PLC0415  # 2 ms that only a call which opens a file need pay

    class How(ctypes.Structure):
        _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))

    system = ctypes.CDLL(None, use_errno=True).syscall
    system.restype = ctypes.c_long
    size = ctypes.c_size_t(ctypes.sizeof(How))

    def call(folder: int, path: bytes, flags: int) -> int:
        how = How(flags, 0, _BENEATH | _NO_SYMLINKS | _NO_MAGIC_LINKS)
        handle = system(ctypes.c_long(_OPENAT2), ctypes.c_int(folder), ctypes.c_char_p(path), ctypes.byref(how), size)
        return int(handle) if handle >= 0 else -ctypes.get_errno()

    return call


_FOLDER = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)
# O_NONBLOCK: a FIFO put in the file's place must not block the open.
_FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NOCTTY
_KERNEL_FOLDERS = ("/proc", "/sys")
_KINDS = (
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISLNK, "a link that was just created"),
)
_REASONS = {
    errno.ENOENT: "does not exist",
    errno.EACCES: "cannot be accessed (permission denied)",
    errno.EPERM: "cannot be changed (operation not permitted)",
    errno.ENOTDIR: "cannot exist: part of its path is a file, not a folder",
    errno.EISDIR: "is a folder",
    errno.ELOOP: "cannot be reached: part of its path became a link",
    errno.ENAMETOOLONG: "has a name that is too long",
    errno.EDQUOT: "could not be written: your disk quota is used up; nothing was changed",
    errno.EFBIG: "could not be written: it would be larger than allowed; nothing was changed",
    errno.EROFS: "is on a read-only file system",
    errno.ETXTBSY: "is a running program",
}


def open_folder(path: Path, *, created: list[Path] | None = None) -> int:
    """Opens a real folder without following links; missing folders are made when `created` collects them.

    Raises OSError. The caller closes the descriptor.
    """
    try:
        handle = open_at_once(path, _FOLDER & ~os.O_NOFOLLOW)
    except FileNotFoundError:
        if created is None:
            raise
        handle = None
    return walk_down(path, created=created) if handle is None else handle


def walk_down(path: Path, *, created: list[Path] | None = None) -> int:
    """Does what `open_folder` does, component by component."""
    handle = os.open(path.anchor, _FOLDER)
    try:
        for depth, name in enumerate(path.parts[1:], start=2):
            try:
                deeper = _step(name, handle)
            except FileNotFoundError:
                if created is None:
                    raise
                with suppress(FileExistsError):
                    os.mkdir(name, dir_fd=handle)
                    created.append(Path(*path.parts[:depth]))
                deeper = _step(name, handle)
            os.close(handle)
            handle = deeper
    except BaseException:
        os.close(handle)
        raise
    return handle


def _step(name: str, folder: int) -> int:
    try:
        return os.open(name, _FOLDER, dir_fd=folder)
    except NotADirectoryError:
        if stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name) from None
        raise


def open_regular(path: Path) -> int:
    """Opens for reading; never blocks. Raises OSError, or ToolError for anything but a regular file."""
    if not path.name:
        raise IsADirectoryError(errno.EISDIR, "is a folder")
    with hold_open(open_folder(path.parent)) as folder:
        return open_regular_in(folder, path.name)


def open_regular_in(folder: int, name: str) -> int:
    # Checked first: opening a device can have effects.
    _refuse_special(os.stat(name, dir_fd=folder, follow_symlinks=False))
    handle = os.open(name, _FILE, dir_fd=folder)
    try:
        _refuse_special(os.fstat(handle))
    except BaseException:
        os.close(handle)
        raise
    return handle


def read_all(handle: int, limit_bytes: int) -> bytes:
    """Reads at most `limit_bytes` from the start, whatever the size says: the file may be growing."""
    pieces, position = [], 0
    while position < limit_bytes and (piece := os.pread(handle, min(limit_bytes - position, 1 << 20), position)):
        pieces.append(piece)
        position += len(piece)
    return b"".join(pieces)


def explain(error: OSError, shown: str) -> ToolError:
    """Converts an error to a ToolError about the path `shown`."""
    if error.errno == errno.ENOSPC:
        return ToolError(f"`{shown}` could not be written: {name_shortage(error.filename or shown)}; nothing was changed.")
    return ToolError(f"`{shown}` {_REASONS.get(error.errno or 0) or f'cannot be used: {error.strerror}'}.")


def name_shortage(path: str | bytes | Path) -> str:
    """Names what a disk lacks that took no more: space, or entries for files while there is space."""
    file = Path(os.fsdecode(path))
    with suppress(OSError):
        volume = os.statvfs(next(each for each in (file, *file.parents) if each.is_dir()))
        if volume.f_files and not volume.f_favail and volume.f_bavail:
            return "the disk has no room for another file (its inodes are used up)"
    return "the disk is full"


def _refuse_special(status: os.stat_result) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, "is a folder")
    if not stat.S_ISREG(status.st_mode):
        kind = next((words for is_kind, words in _KINDS if is_kind(status.st_mode)), "no regular file")
        raise ToolError(f"This is {kind}, not a regular file.")
    if status.st_dev in _kernel_devices():
        raise ToolError("This is a kernel interface, not a file on disk.")


@cache
def _kernel_devices() -> set[int]:
    devices = set()
    for folder in _KERNEL_FOLDERS:
        try:
            devices.add(os.stat(folder).st_dev)  # a fixed name, on a hot path
        except OSError:
            continue
    return devices - {os.stat("/").st_dev}  # the same
