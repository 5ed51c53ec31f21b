"""Opening a folder in one step of the kernel (`openat2`, Linux 5.6 on), which follows no link on the whole way down.

The way begins at `/`, not at the workspace: so a link that somebody puts in the place of a folder above it is seen as well,
and nothing is written to a workspace that was moved away.
"""

from __future__ import annotations

import errno
import os
import sys
from functools import cache
from pathlib import Path
from typing import Protocol

_OPENAT2 = 437
"""The same number on every architecture."""
_BENEATH, _NO_SYMLINKS, _NO_MAGIC_LINKS = 0x08, 0x04, 0x02
_CANNOT = {errno.ENOSYS, errno.EPERM, errno.EINVAL, errno.E2BIG, errno.EAGAIN}
"""No such call, one that a sandbox forbids, or one that was disturbed: the way is walked instead."""


class _Call(Protocol):
    def __call__(self, folder: int, path: bytes, flags: int) -> int:
        """The handle, or an error number below zero."""
        ...


def open_at_once(path: Path, flags: int) -> int | None:
    """A handle to the real folder `path`; None where the kernel cannot do it. Raises OSError, ELOOP for a link on the way.

    The caller closes the handle.
    """
    call = _openat2()
    if call is None:
        return None
    start = os.open("/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        handle = call(start, os.fsencode(path).lstrip(b"/") or b".", flags)
    finally:
        os.close(start)
    if handle >= 0:
        return handle
    if -handle in _CANNOT:
        return None
    raise OSError(-handle, os.strerror(-handle), str(path))


@cache
def _openat2() -> _Call | None:
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
