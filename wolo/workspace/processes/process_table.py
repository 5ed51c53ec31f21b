"""Reads the process table; marks and limits the processes of a command.

The mark is a number, inherited by children in the environment and, on Linux, in a limit that the kernel ignores (on file locks).
The environment tells the owner; the limit survives when a program clears its environment.
"""

from __future__ import annotations

import contextlib
import functools
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from wolo.operating_system import os, resource

MARK_NAME = "WOLO_OWNER"
MARK_LIMIT = 10
"""RLIMIT_LOCKS, missing in `resource`. Unused by the kernel since Linux 2.4.25."""
_SIGN = 0x5A6F << 48
"""Tells marks from a limit set by others."""
_NUMBERS = 1 << 16
"""Per conversation."""
_ENTRY_BYTES = 64 * 1024


class Mark(Struct, frozen=True):
    owner: str
    """`owner_name` of the wolo that runs it."""
    number: int

    def __str__(self) -> str:
        """Value in the environment."""
        return f"{self.owner}/{self.number}"

    @property
    def family(self) -> int:
        """The common part of all commands of a conversation."""
        return family_of(self.number)

    def next(self) -> Mark:
        return Mark(self.owner, self.family | (self.number + 1) % _NUMBERS)


def new_mark() -> Mark:
    """Of a new family."""
    return Mark(owner_name(), _SIGN | int.from_bytes(os.urandom(4), "big") << 16)


def family_of(number: int) -> int:
    return number - number % _NUMBERS


class Status(Struct, frozen=True):
    pid: int
    parent: int
    group: int
    session: int
    started_s: float
    """Seconds since boot."""


def has_table() -> bool:
    return hasattr(os, "sysconf") and os.access("/proc/self/stat", os.F_OK)  # Wine shows that of Linux


def everyone() -> Iterator[Status]:
    for name in os.listdir("/proc"):  # names, not paths: this runs for every process of the machine
        if name.isdecimal() and (found := status_of(int(name))) is not None:
            yield found


def status_of(pid: int) -> Status | None:
    """None for a missing process or a zombie."""
    try:
        text = read_entry(pid, "stat").decode(errors="replace")
    except OSError:
        return None
    # The name is in parentheses and may contain parentheses.
    state, *fields = text.rpartition(")")[2].split()
    if state in "ZX":
        return None
    return Status(pid, int(fields[0]), int(fields[1]), int(fields[2]), int(fields[18]) / os.sysconf("SC_CLK_TCK"))


def fix_mark(pid: int, number: int) -> None:
    """Sets the mark for good. Does nothing where the limit is unknown or another wolo has set it."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        resource.prlimit(pid, MARK_LIMIT, (number, number))


def limit_marks(pid: int) -> set[int]:
    """The marks in the limits of a process, also of one that has ended and was not waited for."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        return {limit for limit in resource.prlimit(pid, MARK_LIMIT) if limit >> 48 == _SIGN >> 48}
    return set()


def numbers_of(pid: int) -> Iterator[int]:
    """Yields the marks of a process; several when a command of one wolo started another."""
    yield from limit_marks(pid)
    _, _, number = mark_text(pid).partition("/")
    if number.isdecimal():
        yield int(number)


def mark_text(pid: int) -> str:
    """The mark in the environment a program was started with; empty for none."""
    try:
        environment = b"\0" + read_entry(pid, "environ")
    except OSError:
        return ""
    return environment.partition(f"\0{MARK_NAME}=".encode())[2].partition(b"\0")[0].decode(errors="replace")


def owner_name() -> str:
    """Identifies this process uniquely: pids are reused, and differ between containers."""
    own = status_of(os.getpid())
    return f"{_namespace()}.{os.getpid()}.{own.started_s if own else 0}"


def is_dead_owner(name: str) -> bool:
    """False for a process in another container, which cannot be checked."""
    namespace, _, rest = name.partition(".")
    pid, _, started = rest.partition(".")
    if namespace != _namespace() or not pid.isdecimal():
        return False
    found = status_of(int(pid))
    return found is None or str(found.started_s) != started


def is_apart(pid: int) -> bool:
    """In a nested process namespace, which ends with its first process, or already ending."""
    try:
        return Path(f"/proc/{pid}/ns/pid").readlink() != Path("/proc/self/ns/pid").readlink()
    except FileNotFoundError:
        return True
    except OSError:
        return False


def command_line(pid: int) -> str:
    with contextlib.suppress(OSError):
        if words := read_entry(pid, "cmdline").replace(b"\0", b" ").decode(errors="replace").split():
            line = " ".join(words)
            return line if len(line) <= 80 else line[:79] + "…"
    return "?"


def newest_pid() -> int:
    return _load()[1]


def uptime_s() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else float("inf")


def send(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _namespace() -> str:
    try:
        return Path("/proc/self/ns/pid").readlink().name.strip("pid:[]")
    except OSError:
        return "0"


def read_entry(*names: int | str) -> bytes:
    """Raises OSError."""
    fd = os.open("/".join(("/proc", *map(str, names))), os.O_RDONLY | os.O_CLOEXEC)
    try:
        pieces = []
        while piece := os.read(fd, _ENTRY_BYTES):
            pieces.append(piece)
        return b"".join(pieces)
    finally:
        os.close(fd)


_MAX_NEW_TASKS = 2048
"""Processes and threads beyond those of the whole machine when the command starts."""
_MAX_FILE_BYTES = 128 * 1024**3
_MAX_CPU_S = 24 * 3600
"""Per process and processor: the time of threads adds up."""


@contextlib.contextmanager
def limit(number: int, num_tasks: int) -> Iterator[None]:
    """Applies the limits and the mark to processes started in the block. `num_tasks` is `count_tasks` at present.

    They are set on wolo itself meanwhile: limits set from outside come too late for a quick program.
    """
    if resource is None:
        yield
        return
    most = {
        MARK_LIMIT: number,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_NPROC: num_tasks + _MAX_NEW_TASKS,
        resource.RLIMIT_FSIZE: _MAX_FILE_BYTES,
        resource.RLIMIT_CPU: _MAX_CPU_S * _processors(),
    }
    previous: dict[int, tuple[int, int]] = {}
    for kind, limit in most.items() if sys.platform == "linux" else ():
        with contextlib.suppress(OSError, ValueError):
            soft, hard = resource.getrlimit(kind)
            if soft == resource.RLIM_INFINITY or soft > limit or kind == MARK_LIMIT:
                resource.setrlimit(kind, (limit, hard))
                previous[kind] = soft, hard
    try:
        yield
    finally:
        for kind, limits in previous.items():
            resource.setrlimit(kind, limits)


def count_tasks() -> int:
    """Processes and threads of the machine; 0 when unknown."""
    return _load()[0]


def _load() -> tuple[int, int]:
    """The number of tasks, and the newest pid; zeros when unknown."""
    try:
        _, _, _, tasks, newest = read_entry("loadavg").split()
        return int(tasks.partition(b"/")[2]), int(newest)
    except (OSError, ValueError):
        return 0, 0


@functools.cache
def _processors() -> int:
    return os.cpu_count() or 1
