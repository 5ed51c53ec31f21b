"""Landlock (Linux 5.13 on): the kernel holds a thread, and whatever comes of it, to rules about files."""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from collections.abc import Iterable
from contextlib import suppress

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
"""System calls, of the same number on every architecture."""
_SET_NO_NEW_PRIVILEGES = 38
_PATH_BENEATH = 1
_ASK_VERSION = 1

WRITE_FILE, READ_FILE = 1 << 1, 1 << 2
TRUNCATE, IOCTL_DEVICE = 1 << 14, 1 << 15
_MAKE_AND_REMOVE = sum(1 << bit for bit in range(4, 13))
_REFER = 1 << 13
_ON_FILES = 1 | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEVICE
"""What can be said of something that is no directory."""
_BIND_TCP, _CONNECT_TCP = 1, 2
_ABSTRACT_SOCKETS, _SIGNALS = 1, 2


def version() -> int:
    """What this kernel knows of it; 0: nothing."""
    if sys.platform != "linux":
        return 0
    said = _system().syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint(_ASK_VERSION))
    return max(int(said), 0)


def changes() -> int:
    """Every right to change files that this kernel can hold back."""
    known = version()
    return WRITE_FILE | _MAKE_AND_REMOVE | (_REFER if known > 1 else 0) | (TRUNCATE if known > 2 else 0)


def make_ruleset(handled: int, allowed: Iterable[tuple[str, int]], *, apart: bool = False) -> int:
    """The descriptor of rules: what is `handled` is allowed only below the paths named. A path that is gone is left out.

    `apart`: nor TCP, abstract sockets and signals to others, as far as this kernel can. Raises OSError.
    """
    known = version()
    network = _BIND_TCP | _CONNECT_TCP if apart and known > 3 else 0
    scoped = _ABSTRACT_SOCKETS | _SIGNALS if apart and known > 5 else 0
    packed = struct.pack("=QQQ", handled, network, scoped)[: 24 if known > 5 else 16 if known > 3 else 8]
    attributes = ctypes.create_string_buffer(packed, len(packed))
    system = _system()
    ruleset = int(system.syscall(_CREATE_RULESET, attributes, ctypes.c_size_t(len(packed)), ctypes.c_uint(0)))
    if ruleset < 0:
        raise _failed()
    try:
        for path, rights in allowed:
            with suppress(FileNotFoundError, PermissionError, NotADirectoryError):
                _add(system, ruleset, path, rights & handled)
    except BaseException:
        os.close(ruleset)
        raise
    return ruleset


def _add(system: ctypes.CDLL, ruleset: int, path: str, rights: int) -> None:
    place = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if not os.path.isdir(f"/proc/self/fd/{place}"):  # noqa: PTH112  # what was opened, not what stands there now
            rights &= _ON_FILES
        beneath = ctypes.create_string_buffer(struct.pack("=Qi", rights, place), 12)
        arguments = (ctypes.c_int(ruleset), ctypes.c_int(_PATH_BENEATH), beneath, ctypes.c_uint(0))
        if rights and system.syscall(_ADD_RULE, *arguments):
            raise _failed()
    finally:
        os.close(place)


def restrict(ruleset: int) -> None:
    """From now on this thread is held to the rules. Raises OSError."""
    system = _system()
    if system.prctl(_SET_NO_NEW_PRIVILEGES, *map(ctypes.c_ulong, (1, 0, 0, 0))):
        raise _failed()
    if system.syscall(_RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint(0)):
        raise _failed()


def _system() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _failed() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))
