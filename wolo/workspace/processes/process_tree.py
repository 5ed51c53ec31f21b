"""Finds and ends every process a command started, also after a crash of wolo.

`setsid` and double forks leave a process group and a session. On Linux wolo adopts processes whose parents have ended, so a tree
is what descends from the command and from the adopted processes with its mark, which children inherit. Where wolo cannot adopt,
and after it was killed, a scan of all processes finds the mark; on other systems the tree is the process group.

Not found without a sandbox: a process that detaches twice, clears its environment, changes an otherwise unused limit and outlives
its parents. A second kind of marker file names commands that the user has detached.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from wolo.operating_system import os
from wolo.places import make_private
from wolo.workspace.processes import process_table

KILL_DEADLINE_S = 2.0
"""Limit for killing a tree that keeps growing (a fork bomb)."""
_MAX_LOOKS = 4
_MAX_ORPHAN_LOOKS = 8
_SET_CHILD_SUBREAPER = 36
_NEVER = float("inf")
_TICK_S = 0.02
"""Start times are rounded down to the kernel's ticks."""


class TreeProcess(Struct, frozen=True):
    pid: int
    command: str
    """Command line, on one line and shortened."""

    def __str__(self) -> str:
        return f"{self.pid} {self.command}"


class ProcessTree:
    """Everything one command started. `leader` leads its session."""

    def __init__(self, leader: int, mark: process_table.Mark, orphans: Orphans | None, since_s: float) -> None:
        """`orphans`: None where wolo adopts none. `since_s`: the uptime before the start."""
        self.leader, self.mark, self._orphans = leader, mark, orphans
        self._since = since_s - _TICK_S
        self._leader_ended = _NEVER
        if orphans is not None:
            orphans.leaders.add(leader)

    def leader_has_ended(self) -> None:
        """The leader's pid may be reused from now on."""
        self._leader_ended = process_table.uptime_s()
        if self._orphans is not None:
            self._orphans.leaders.discard(self.leader)

    def members(self) -> list[TreeProcess]:
        if not process_table.has_table():
            return [TreeProcess(self.leader, "and its group")] if self.is_alive() else []
        return sorted(
            (TreeProcess(status.pid, process_table.command_line(status.pid)) for status in self._family()),
            key=lambda member: member.pid,
        )

    def is_alive(self) -> bool:
        if process_table.has_table():
            return bool(self._family())
        try:
            os.killpg(self.leader, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return True

    def signal(self, number: signal.Signals) -> bool:
        """False when no process was left."""
        if not process_table.has_table():
            return _signal_group(self.leader, number)
        family = self._family()
        if any(status.group == self.leader for status in family):
            _signal_group(self.leader, number)  # the whole group at once, faster than it can fork
        for status in family:
            if status.group != self.leader:
                process_table.send(status.pid, number)
        return bool(family)

    def count(self) -> int:
        return len(self._family()) if process_table.has_table() else 0

    def wait_for_orphans(self) -> None:
        """Waits for adopted processes that have ended: a command may be watching for their end."""
        if self._orphans is not None:
            self._orphans.living()

    @contextlib.contextmanager
    def stop_group(self) -> Iterator[None]:
        """Stops the group. Only before the leader is waited for: its pid is not reused until then."""
        _signal_group(self.leader, signal.SIGSTOP)
        try:
            yield
        finally:
            _signal_group(self.leader, signal.SIGCONT)

    def kill(self, *, is_leader_held: bool = False) -> None:
        """Blocks until nothing is left, at most KILL_DEADLINE_S.

        `is_leader_held`: it was not waited for, so its group can be killed before the search.
        """
        deadline = time.monotonic() + KILL_DEADLINE_S
        if is_leader_held:
            _signal_group(self.leader, signal.SIGKILL)
        while self.signal(signal.SIGKILL) and time.monotonic() < deadline:
            time.sleep(0.002)

    async def end(self, grace_s: float) -> None:
        """Sends TERM and, after `grace_s` or on cancellation, KILL."""
        try:
            deadline = time.monotonic() + grace_s
            alive = self.ask_to_end()
            while alive and time.monotonic() < deadline:
                await asyncio.sleep(0.02)
                alive = self.is_ending()
        finally:
            self.kill()

    def ask_to_end(self) -> bool:
        """Sends TERM to all; False when no process was left.

        A namespace ends with its first command and with its holder. So the holder is spared, and the first command is stopped
        until the others have ended.
        """
        if not (inside := self._inside()):
            return self.signal(signal.SIGTERM)
        process_table.send(inside[0].pid, signal.SIGSTOP)
        for status in inside:
            process_table.send(status.pid, signal.SIGTERM)
        return True

    def is_ending(self) -> bool:
        """After `ask_to_end`: True while processes are left. Lets the last one in a namespace continue."""
        inside = self._inside()
        if len(inside) == 1:
            process_table.send(inside[0].pid, signal.SIGCONT)
        return bool(inside) or self.is_alive()

    def _inside(self) -> list[process_table.Status]:
        """Processes in a namespace held by the leader, the first command first; empty without one."""
        if not process_table.has_table():
            return []
        family = self._family()
        heads = {status.pid for status in family if status.parent == self.leader and process_table.is_apart(status.pid)}
        inside = [status for status in family if heads and status.pid != self.leader and status.pid not in heads]
        return sorted(inside, key=lambda status: (status.parent not in heads, status.started_s, status.pid))

    def _family(self) -> list[process_table.Status]:
        family: list[process_table.Status] = []
        for _ in range(_MAX_LOOKS):
            family, is_settled = self._search() if self._orphans is None else self._descendants(self._orphans)
            if family or is_settled:
                break
        return family

    def _descendants(self, orphans: Orphans) -> tuple[list[process_table.Status], bool]:
        """The living ones; False when one ended meanwhile and may have left children."""
        leader = [self.leader] if self._leader_ended == _NEVER and process_table.status_of(self.leader) else []
        waiting = [*leader, *(pid for pid in orphans.living() if self._is_member(pid))]
        living, is_settled = [], True
        seen = set(waiting)
        while waiting:
            pid = waiting.pop()
            if (status := process_table.status_of(pid)) is None:
                is_settled = False
                continue
            living.append(status)
            new = [child for child in children_of(pid) if child not in seen]
            seen.update(new)
            waiting += new
        return living, is_settled

    def _is_member(self, pid: int) -> bool:
        """For children of wolo; the others belong to the tree of their parent."""
        if marks := process_table.limit_marks(pid):
            return self.mark.number in marks
        with suppress(ProcessLookupError):
            return self.leader in (os.getsid(pid), os.getpgid(pid)) or self.mark.number in process_table.numbers_of(pid)
        return False

    def _search(self) -> tuple[list[process_table.Status], bool]:
        """Scans all processes. False when one was started meanwhile, perhaps by one that ended before it was looked at."""
        newest = process_table.newest_pid()
        table = list(process_table.everyone())
        pids = set[int]()
        for status in table:
            is_led = self.leader in (status.session, status.group) and status.started_s <= self._leader_ended
            if is_led or (status.started_s >= self._since and self.mark.number in process_table.numbers_of(status.pid)):
                pids.add(status.pid)
        grew = bool(pids)
        while grew:
            children = {status.pid for status in table if status.parent in pids} - pids
            pids |= children
            grew = bool(children)
        members = [status for status in table if status.pid in pids and status.pid != os.getpid()]
        return members, newest == process_table.newest_pid()


class Orphans:
    """Adopted processes of one conversation's commands, whose parents have ended.

    They become children of this process, which must wait for them. Other children of this process are never waited for.
    """

    def __init__(self, family: int) -> None:
        self._family = family
        self.leaders: set[int] = set()
        """First processes of commands, which their `Popen` waits for."""

    def living(self) -> list[int]:
        """Also children that cannot be attributed, such as those of other parts of this process. Waits for ended orphans."""
        own, living = os.getpid(), list[int]()
        for _ in range(_MAX_ORPHAN_LOOKS):
            listed = [pid for pid in _children(own, own) if pid not in self.leaders and not _is_in_own_session(pid)]
            living = [pid for pid in listed if not self._has_ended(pid)]
            if living == listed:
                break  # otherwise the children of an ended one were adopted after the list was read
        return living

    def _has_ended(self, pid: int) -> bool:
        if self._family not in map(process_table.family_of, process_table.limit_marks(pid)):
            return False
        try:
            return os.waitpid(pid, os.WNOHANG)[0] == pid
        except ChildProcessError:
            return True


def _is_in_own_session(pid: int) -> bool:
    """Each command has a session of its own, so this is a child of another part of this process."""
    with suppress(ProcessLookupError):
        return os.getsid(pid) == os.getsid(0)
    return True


def adopt_orphans() -> bool:
    """Makes this process adopt its orphaned descendants. False where it cannot, or cannot list its children."""
    if sys.platform != "linux" or not os.access("/proc/thread-self/children", os.R_OK):
        return False
    import ctypes  # noqa: PLC0415  # 2 ms that only a conversation with commands need pay

    return int(ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, *map(ctypes.c_ulong, (1, 0, 0, 0)))) == 0


def children_of(pid: int) -> list[int]:
    with suppress(OSError):
        threads = os.listdir(f"/proc/{pid}/task")  # names, not paths
        return [child for thread in threads for child in _children(pid, int(thread))]
    return []


def _children(pid: int, thread: int) -> list[int]:
    """Children that the thread started; the first thread of a process also has the adopted ones."""
    with suppress(OSError):
        return list(map(int, process_table.read_entry(pid, f"task/{thread}/children").split()))
    return []


def _signal_group(leader: int, number: signal.Signals) -> bool:
    try:
        os.killpg(leader, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


DETACHED = "detached-"
"""Beginning of the marker of a command that is spared, before the number of its mark; others name the owner and the family."""


def end_leftovers(folder: Path) -> None:
    """Ends commands of killed wolos, if marker files tell of any: a search at every start would be slow."""
    dead: dict[str, int] = {}
    for name in _names(folder):
        owner, _, family = name.partition("-")
        if family.isdecimal() and int(family) and process_table.is_dead_owner(owner):
            dead[name] = int(family)
    if dead:
        _kill(_everyone_else(), {*dead.values()}, detached_numbers(folder))
        for name in dead:
            with suppress(OSError):
                (folder / name).unlink()


def end_orphans(spared: Collection[int] = ()) -> None:
    """Searches all processes for marks of killed wolos, where no marker file can be written."""
    for pid in _everyone_else():
        owner, _, number = process_table.mark_text(pid).partition("/")
        if process_table.is_dead_owner(owner) and not (number.isdecimal() and int(number) in spared):
            process_table.send(pid, signal.SIGKILL)


def end_family(family: int, spared: Collection[int], orphans: Orphans | None) -> None:
    """Kills all processes of a conversation's commands, except those with the marks in `spared`."""
    pids = _everyone_else() if orphans is None else list(dict.fromkeys(orphans.living()))
    if orphans is not None:
        for pid in pids:  # grows by the descendants of each
            pids += [child for child in children_of(pid) if child not in pids]
    _kill(pids, {family}, spared)


def detached_numbers(folder: Path) -> frozenset[int]:
    numbers = (name.removeprefix(DETACHED) for name in _names(folder) if name.startswith(DETACHED))
    return frozenset(int(number) for number in numbers if number.isdecimal())


def forget_ended(folder: Path) -> None:
    if not (noted := detached_numbers(folder)):
        return
    living = {number for status in process_table.everyone() for number in process_table.numbers_of(status.pid)}
    for number in noted - living:
        with suppress(OSError):
            (folder / f"{DETACHED}{number}").unlink()


def _kill(pids: Iterable[int], families: Collection[int], spared: Collection[int]) -> None:
    for pid in pids:
        if any(process_table.family_of(number) in families and number not in spared for number in process_table.numbers_of(pid)):
            process_table.send(pid, signal.SIGKILL)


def _everyone_else() -> list[int]:
    return [status.pid for status in process_table.everyone() if status.pid != os.getpid()] if process_table.has_table() else []


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)  # names, not paths: this is on the way to the first request
    except OSError:
        return []


def write_marker(folder: Path, name: str) -> Path | None:
    """Writes a marker file that remains if this process is killed. None when it cannot be written."""
    trace = folder / name
    try:
        make_private(folder)
        os.close(os.open(trace, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except OSError:
        return None
    return trace
