"""Restricts a thread, and the processes it starts, to file rules (Landlock, Linux 5.13 and later)."""

from __future__ import annotations

import asyncio
import ctypes
import os
import struct
import sys
import threading
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, Generic, TypeVar

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
"""The same system call numbers on every architecture."""
_SET_NO_NEW_PRIVILEGES = 38
_PATH_BENEATH = 1
_ASK_VERSION = 1

WRITE_FILE, READ_FILE = 1 << 1, 1 << 2
TRUNCATE, IOCTL_DEVICE = 1 << 14, 1 << 15
_MAKE_AND_REMOVE = sum(1 << bit for bit in range(4, 13))
_REFER = 1 << 13
_ON_FILES = 1 | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEVICE
"""Rights that apply to files."""
DEVICES = tuple(f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom"))
"""Open to confined commands. Terminals, disks and shared memory are not: the user's own are among them."""
_BIND_TCP, _CONNECT_TCP = 1, 2
_ABSTRACT_SOCKETS, _SIGNALS = 1, 2


def version() -> int:
    """The Landlock version of this kernel; 0 for none."""
    if sys.platform != "linux":
        return 0
    return max(int(_system().syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint(_ASK_VERSION))), 0)


def changes() -> int:
    """All rights to change files that this kernel can restrict."""
    known = version()
    return WRITE_FILE | _MAKE_AND_REMOVE | (_REFER if known > 1 else 0) | (TRUNCATE if known > 2 else 0)


def make_ruleset(handled: int, allowed: Iterable[tuple[str, int]], *, apart: bool = False) -> int:
    """Makes rules that allow the `handled` rights only below the named paths; missing paths are ignored.

    Returns a descriptor. `apart` also forbids TCP, abstract sockets and signals to other processes, as far as this kernel can.
    Raises OSError.
    """
    known = version()
    network = _BIND_TCP | _CONNECT_TCP if apart and known > 3 else 0
    scoped = _ABSTRACT_SOCKETS | _SIGNALS if apart and known > 5 else 0
    packed = struct.pack("=QQQ", handled, network, scoped)[: 24 if known > 5 else 16 if known > 3 else 8]
    attributes = ctypes.create_string_buffer(packed, len(packed))
    system = _system()
    ruleset = int(system.syscall(_CREATE_RULESET, attributes, ctypes.c_size_t(len(packed)), ctypes.c_uint(0)))
    if ruleset < 0:
        raise _failure()
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
            raise _failure()
    finally:
        os.close(place)


def restrict(ruleset: int) -> None:
    """Restricts this thread for good. Raises OSError."""
    system = _system()
    if system.prctl(_SET_NO_NEW_PRIVILEGES, *map(ctypes.c_ulong, (1, 0, 0, 0))):
        raise _failure()
    if system.syscall(_RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint(0)):
        raise _failure()


def _system() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _failure() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))


T = TypeVar("T")

_POLL_S = 0.1


class ConfinedRunner(Generic[T]):
    """Runs a coroutine on its own thread and event loop, restricted to one folder.

    Landlock restricts a thread and its children; the waiting thread stays unrestricted and can clean up. `is_held` tells whether
    the kernel enforces it.
    """

    def __init__(self, work: Callable[[], Coroutine[Any, Any, T]], folder: Path, *, only_writes: bool = False) -> None:
        """`only_writes`: only the threads in which tools work are restricted, not the commands, which have a sandbox of their own
        and could not build it."""
        self.is_held = False
        self._only_writes, self._work, self._folder = only_writes, work, folder
        self._results: list[T] = []
        self._failure: BaseException | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[T] | None = None

    def run(self) -> T:
        """Re-raises exceptions of the work. A signal that ends the caller cancels the work first."""
        thread = threading.Thread(target=self._play, name="wolo-confined")
        thread.start()
        try:
            while thread.is_alive():
                thread.join(_POLL_S)
        finally:
            if self._loop is not None and self._task is not None and not self._loop.is_closed():
                with suppress(RuntimeError):  # it ended at this moment
                    self._loop.call_soon_threadsafe(self._task.cancel)
            thread.join()
        if self._failure is not None:
            raise self._failure
        return self._results[0]

    def _play(self) -> None:
        if not self._only_writes:
            self._restrict()
        try:
            self._results.append(asyncio.run(self._main()))
        except BaseException as error:  # re-raised in `run`
            self._failure = error

    async def _main(self) -> T:
        self._loop = asyncio.get_running_loop()
        if self._only_writes:
            self._loop.set_default_executor(ThreadPoolExecutor(initializer=self._restrict))
        self._task = asyncio.ensure_future(self._work())
        return await self._task

    def _restrict(self) -> None:
        """Restricts this thread to writing below the folder and to `DEVICES`, where the system can."""
        is_held = False
        if version() > 0:
            handled = changes()
            devices = ((path, WRITE_FILE | TRUNCATE) for path in DEVICES)
            with suppress(OSError):
                ruleset = make_ruleset(handled, ((str(self._folder), handled), *devices))
                try:
                    restrict(ruleset)
                    is_held = True
                finally:
                    os.close(ruleset)
        self.is_held = is_held
