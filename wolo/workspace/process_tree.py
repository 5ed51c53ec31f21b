"""Everything a command started: find it, end it, and leave nothing behind.

A group or a session is not the whole tree: `setsid` and double forks step out of both. So each command carries a mark
in its environment, which children inherit; on Linux the tree is every process with that mark, in that session, or
descended from one of these. Elsewhere it is the process group.

Out of reach without a sandbox: a process that detaches twice *and* wipes its environment *and* outlives its parents.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec import Struct

MARK_NAME = "WOLO_OWNER"
KILL_DEADLINE_S = 2.0
"""How long killing goes on when a tree keeps growing (a fork bomb)."""
_MAX_LOOKS = 4
_NEVER = float("inf")


class Member(Struct, frozen=True):
    pid: int
    command: str
    """Its command line, on one line and shortened."""

    def __str__(self) -> str:
        return f"{self.pid} {self.command}"


class _Status(Struct, frozen=True):
    pid: int
    parent: int
    group: int
    session: int
    started: float
    """Seconds since boot."""


def owner_mark() -> str:
    """Names this process for good: a pid alone would come back, and means something else in another container."""
    own = _status(os.getpid())
    return f"{_namespace()}.{os.getpid()}.{own.started if own else 0}"


class ProcessTree:
    """What one command started. `leader` leads a session of its own."""

    def __init__(self, leader: int, mark: str) -> None:
        self.leader = leader
        self._mark = f"{MARK_NAME}={mark}".encode() + b"\0"
        leading = _status(leader)
        self._since = leading.started if leading else 0.0
        self._leader_ended = _NEVER

    def leader_has_ended(self) -> None:
        """From now on the leader's number may belong to a stranger who started later."""
        self._leader_ended = _uptime_s()

    def members(self) -> list[Member]:
        """Everything of the tree that is alive."""
        if not _has_proc():
            return [Member(self.leader, "and its group")] if self.is_alive() else []
        return sorted((Member(status.pid, _command_line(status.pid)) for status in self._family()), key=lambda member: member.pid)

    def is_alive(self) -> bool:
        return bool(self._family()) if _has_proc() else _group_is_alive(self.leader)

    def signal(self, number: signal.Signals) -> bool:
        """False when nobody was left to hear it."""
        if not _has_proc():
            return _signal_group(self.leader, number)
        family = self._family()
        if any(status.group == self.leader for status in family):
            _signal_group(self.leader, number)  # all of a group at one instant, faster than it can fork
        for status in family:
            if status.group != self.leader:
                _signal(status.pid, number)
        return bool(family)

    def kill(self) -> None:
        """Blocks until nothing is left, at most KILL_DEADLINE_S."""
        deadline = time.monotonic() + KILL_DEADLINE_S
        while self.signal(signal.SIGKILL) and time.monotonic() < deadline:
            time.sleep(0.002)

    async def end(self, grace_s: float) -> None:
        """TERM, a while to tidy up, KILL; the KILL also comes when the waiting is cancelled."""
        try:
            deadline = time.monotonic() + grace_s
            told = self.signal(signal.SIGTERM)
            while told and time.monotonic() < deadline:
                await asyncio.sleep(0.02)
                told = self.is_alive()
        finally:
            self.kill()

    def _family(self) -> list[_Status]:
        found: list[_Status] = []
        for _ in range(_MAX_LOOKS):
            newest = _newest_pid()
            found = self._look()
            if found or newest == _newest_pid():
                break  # else a process was born while we looked, perhaps a child of one that ended before its turn came
        return found

    def _look(self) -> list[_Status]:
        everyone = list(_all_statuses())
        pids = {status.pid for status in everyone if self._is_ours(status)}
        grew = bool(pids)
        while grew:
            children = {status.pid for status in everyone if status.parent in pids} - pids
            pids |= children
            grew = bool(children)
        return [status for status in everyone if status.pid in pids and status.pid != os.getpid()]

    def _is_ours(self, status: _Status) -> bool:
        if self.leader in (status.session, status.group) and status.started <= self._leader_ended:
            return True
        return status.started >= self._since and self._mark in _environment(status.pid)


def is_dead_owner(mark: str) -> bool:
    """Of a mark that `owner_mark` gave. Who lives in another container cannot be told dead."""
    own = f"{_namespace()}."
    return mark.startswith(own) and not _owner_is_alive(mark.removeprefix(own).encode())


def end_orphans() -> None:
    """Kills what the commands of a wolo left behind that was itself killed and could not tidy up."""
    if _has_proc():
        _kill_marked(f"{_namespace()}.", spare=_owner_is_alive)


def end_marked(owner: str) -> None:
    """Kills every process whose mark begins like this."""
    if _has_proc():
        _kill_marked(owner, spare=lambda rest: False)


def _kill_marked(beginning: str, spare: Callable[[bytes], bool]) -> None:
    prefix = f"{MARK_NAME}={beginning}".encode()
    for status in list(_all_statuses()):
        _, found, rest = _environment(status.pid).partition(prefix)
        if found and not spare(rest) and status.pid != os.getpid():
            _signal(status.pid, signal.SIGKILL)


def _has_proc() -> bool:
    return Path("/proc/self/stat").exists()


def _owner_is_alive(rest: bytes) -> bool:
    pid, _, started = rest.partition(b"/")[0].decode(errors="replace").partition(".")
    status = _status(int(pid)) if pid.isdecimal() else None
    return status is not None and str(status.started) == started


def _all_statuses() -> Iterator[_Status]:
    for name in os.listdir("/proc"):  # noqa: PTH208  # names, not paths: this runs for every process of the machine
        if name.isdecimal() and (status := _status(int(name))) is not None:
            yield status


def _status(pid: int) -> _Status | None:
    """None for a process that is gone or a zombie."""
    try:
        text = _read(pid, "stat").decode(errors="replace")
    except OSError:
        return None
    # The name stands in parentheses and may hold anything, parentheses included.
    state, *fields = text.rpartition(")")[2].split()
    if state in "ZX":
        return None
    return _Status(pid, int(fields[0]), int(fields[1]), int(fields[2]), int(fields[18]) / os.sysconf("SC_CLK_TCK"))


def _environment(pid: int) -> bytes:
    """As it was when the program started; empty when it is not ours to see."""
    try:
        return _read(pid, "environ")
    except OSError:
        return b""


def _command_line(pid: int) -> str:
    with contextlib.suppress(OSError):
        if words := _read(pid, "cmdline").replace(b"\0", b" ").decode(errors="replace").split():
            line = " ".join(words)
            return line if len(line) <= 80 else line[:79] + "…"
    return "?"


def _read(pid: int, name: str) -> bytes:
    with open(f"/proc/{pid}/{name}", "rb", buffering=0) as file:
        return file.read()


def _newest_pid() -> str:
    return Path("/proc/loadavg").read_text().split()[4]


def _namespace() -> str:
    try:
        return Path("/proc/self/ns/pid").readlink().name.strip("pid:[]")
    except OSError:
        return "0"


def _uptime_s() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else _NEVER


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _group_is_alive(leader: int) -> bool:
    try:
        os.killpg(leader, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _signal_group(leader: int, number: signal.Signals) -> bool:
    try:
        os.killpg(leader, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True
