"""Which folder this is: a name that survives a reboot and that another folder put in its place does not get."""

from __future__ import annotations

import os
import struct
import sys
from pathlib import Path

_AT_FDCWD = -100
_STATX_BTIME = 0x800
_STATX_BYTES = 256
_BORN_AT = 80
"""Where in what the system returns the time of birth stands: seconds and nanoseconds."""


def identity_of(folder: Path) -> str:
    """Raises OSError when it is not there.

    Device numbers are given out anew when disks are mounted, and an inode goes to the next folder that is made. So the time of
    birth, which nobody can set, stands beside the inode; the device does only where a file system keeps no such time.
    """
    found = os.stat(folder)  # noqa: PTH116  # beside the system call below
    born = _born(folder, found)
    return f"inode {found.st_ino} born {born}" if born else f"inode {found.st_ino} device {found.st_dev}"


def _born(folder: Path, found: os.stat_result) -> str:
    """Empty when it is not known."""
    if sys.platform != "linux":
        return str(getattr(found, "st_birthtime", "") or "")
    import ctypes  # noqa: PLC0415  # 2 ms, for folders a person was asked about only

    statx = getattr(ctypes.CDLL(None), "statx", None)
    if statx is None:
        return ""
    buffer = ctypes.create_string_buffer(_STATX_BYTES)
    if statx(ctypes.c_int(_AT_FDCWD), os.fsencode(folder), ctypes.c_int(0), ctypes.c_uint(_STATX_BTIME), buffer):
        return ""
    (told,) = struct.unpack_from("=I", buffer.raw)
    seconds, nanoseconds = struct.unpack_from("=qI", buffer.raw, _BORN_AT)
    return f"{seconds}.{nanoseconds:09}" if told & _STATX_BTIME and seconds else ""
