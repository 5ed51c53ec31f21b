"""Offers in one form what operating systems have in several or not at all: file locks, accounts, limits, the hang-up signal.

Nothing else in wolo imports `fcntl` for locks, `pwd` or `resource`, so all modules can be imported where these are missing.
Modules that open files without following links, or by their folder, take `os` from here: Python's own, or one that has them, too.
"""

from __future__ import annotations

import errno
import importlib
import os as os  # exported
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

if not hasattr(os, "O_NOFOLLOW"):
    from wolo.windows_files import WindowsFiles

    os = WindowsFiles()  # type: ignore[assignment]  # has what the module has
fcntl: Any = None
pwd: Any = None
resource: Any = None
with suppress(ImportError):  # Windows has none of them
    fcntl, pwd, resource = map(importlib.import_module, ("fcntl", "pwd", "resource"))
LOCK_SH, LOCK_EX, LOCK_NB = 1, 2, 4
"""As in `fcntl`, on every system."""
EXIT_BY_SIGNAL = {**({signal.SIGHUP: 129} if hasattr(signal, "SIGHUP") else {}), signal.SIGINT: 130, signal.SIGTERM: 143}
"""Signals that end wolo, with the exit code of each; Windows has no hang-up."""

_FAIL_AT_ONCE, _EXCLUSIVE = 1, 2
"""Flags of `LockFileEx`: https://learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-lockfileex."""
_LOCKED_BYTE = 1 << 62
"""Locks of Windows keep others from the bytes themselves, so the locked one is where no file has any."""
_POLL_S = 0.05
_LOCK_VIOLATION = 33
_NOT_LOCKED = (158, 33)
"""The second as Wine says it."""


@contextmanager
def hold_open(descriptor: int) -> Iterator[int]:
    """Closes the descriptor with the block."""
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def flock_elsewhere(descriptor: int, operation: int) -> None:
    """`flock` where Python has no `fcntl`."""
    if sys.platform == "win32":
        import ctypes  # noqa: PLC0415  # not needed elsewhere
        import msvcrt  # noqa: PLC0415  # Windows only

        flock_with(ctypes.WinDLL("kernel32", use_last_error=True), msvcrt.get_osfhandle(descriptor), operation)
    else:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))


flock: Callable[[int, int], object] = fcntl.flock if fcntl is not None else flock_elsewhere
"""Locks an open file until its descriptor is closed; a held lock changes its kind.

Raises BlockingIOError when `LOCK_NB` is asked for and another process has the lock, OSError where files have no locks.
"""


def release_lock(descriptor: int) -> None:
    """Closes a locked file; forked children that have it open keep no lock."""
    if fcntl is not None:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_UN)
    os.close(descriptor)


user_id: Callable[[], int] = getattr(os, "geteuid", lambda: 0)
"""The number that files of the user have as their owner; on Windows, where Python knows no owners, that of all files."""


def on_signal(loop: Any, number: int, answer: Callable[..., object], *arguments: object) -> None:
    """`loop.add_signal_handler`, for the loops of Windows as well, which lack it."""
    try:
        loop.add_signal_handler(number, answer, *arguments)
    except NotImplementedError:
        signal.signal(number, lambda *_: loop.call_soon_threadsafe(answer, *arguments))


def forget_signal(loop: Any, number: int) -> None:
    """`loop.remove_signal_handler`, for the loops of Windows as well."""
    try:
        loop.remove_signal_handler(number)
    except NotImplementedError:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


def has_input(descriptor: int, wait_s: float) -> bool:
    """Waits until a pipe or socket can be read, also if only its end; Windows knows it of sockets alone."""
    if sys.platform != "win32":
        return bool(select.select([descriptor], [], [], wait_s)[0])
    import _winapi  # noqa: PLC0415  # Windows only
    import msvcrt  # noqa: PLC0415  # the same

    with suppress(OSError):  # the other end is closed
        for _ in range(int(wait_s / _POLL_S)):
            if _winapi.PeekNamedPipe(msvcrt.get_osfhandle(descriptor), 0)[0]:
                return True
            time.sleep(_POLL_S)
        return False
    return True


def inherited_number(descriptor: int) -> int:
    """The number by which a program that inherits an open file finds it: on Windows that of its handle."""
    if sys.platform != "win32":
        return descriptor
    import msvcrt  # noqa: PLC0415  # Windows only

    return msvcrt.get_osfhandle(descriptor)


def file_mode(status: os.stat_result) -> int:
    """Kind and permissions of a file; on Windows, whose modes say nothing of other users, those of the user alone."""
    return status.st_mode if hasattr(os, "geteuid") else status.st_mode & ~0o077


def open_to_lock(folder: Path) -> int:
    """Opens a folder whose lock is its own, or that of a file in it where folders have none."""
    if fcntl is not None:
        return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    return os.open(folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW)


def flock_with(kernel: Any, handle: int, operation: int) -> None:
    """`flock` with the functions of Windows' kernel32. Between two kinds of a lock there is a moment without one."""
    import ctypes  # noqa: PLC0415  # not needed elsewhere

    class Overlapped(ctypes.Structure):
        _fields_ = (
            ("internal", ctypes.c_void_p),
            ("internal_high", ctypes.c_void_p),
            ("offset", ctypes.c_uint32),
            ("offset_high", ctypes.c_uint32),
            ("event", ctypes.c_void_p),
        )

    place = Overlapped(offset=_LOCKED_BYTE & 0xFFFFFFFF, offset_high=_LOCKED_BYTE >> 32)
    file = ctypes.c_void_p(handle)
    if not kernel.UnlockFileEx(file, 0, 1, 0, ctypes.byref(place)) and (code := kernel.GetLastError()) not in _NOT_LOCKED:
        raise OSError(errno.EIO, f"the file's lock cannot be changed (error {code} of Windows)")
    flags = (_EXCLUSIVE if operation & LOCK_EX else 0) | (_FAIL_AT_ONCE if operation & LOCK_NB else 0)
    if not kernel.LockFileEx(file, flags, 0, 1, 0, ctypes.byref(place)):
        if (code := kernel.GetLastError()) == _LOCK_VIOLATION:
            raise BlockingIOError(errno.EWOULDBLOCK, "another process has the lock")
        raise OSError(errno.EIO, f"the file cannot be locked (error {code} of Windows)")


def duplicate(descriptor: int, lowest: int) -> int:
    """A copy that programs do not inherit, numbered `lowest` or higher where the system can choose."""
    return int(fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, lowest)) if fcntl is not None else os.dup(descriptor)


def in_memory(data: bytes) -> int:
    """Descriptor of an anonymous file with this content, where the system has such files."""
    fd = os.memfd_create("wolo-sandbox", os.MFD_CLOEXEC)
    while data:
        data = data[os.write(fd, data) :]
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def account_home() -> str:
    """The home directory that the system has on record for the user; empty when it has none."""
    if pwd is None:
        return os.path.expanduser("~").removeprefix("~")  # Windows: USERPROFILE
    try:
        return str(pwd.getpwuid(os.geteuid()).pw_dir)
    except KeyError:
        return ""


def terminal_control() -> tuple[Any, Any]:
    """The modules `fcntl` and `termios`. Raises OSError where there are no pseudo terminals."""
    try:
        return fcntl, importlib.import_module("termios")
    except ImportError:
        raise OSError(errno.ENOSYS, "this system has no pseudo terminals") from None
