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
import os
import signal
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from wolo.places import make_private
from wolo.workspace.processes.orphans import Orphans, children_of
from wolo.workspace.processes.process_table import (
    Mark,
    Status,
    command_line,
    everyone,
    family_of,
    has_table,
    is_apart,
    is_dead_owner,
    limit_marks,
    mark_text,
    newest_pid,
    numbers_of,
    owner_name,
    send,
    status_of,
    uptime_s,
)

KILL_DEADLINE_S = 2.0
"""Limit for killing a tree that keeps growing (a fork bomb)."""
_MAX_LOOKS = 4
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

    def __init__(self, leader: int, mark: Mark, orphans: Orphans | None, since: float) -> None:
        """`orphans`: None where wolo adopts none. `since`: the uptime before the start."""
        self.leader = leader
        self.mark = mark
        self._orphans = orphans
        self._since = since - _TICK_S
        self._leader_ended = _NEVER
        if orphans is not None:
            orphans.leaders.add(leader)

    def leader_has_ended(self) -> None:
        """The leader's pid may be reused from now on."""
        self._leader_ended = uptime_s()
        if self._orphans is not None:
            self._orphans.leaders.discard(self.leader)

    def members(self) -> list[TreeProcess]:
        """All living processes."""
        if not has_table():
            return [TreeProcess(self.leader, "and its group")] if self.is_alive() else []
        return sorted(
            (TreeProcess(status.pid, command_line(status.pid)) for status in self._family()), key=lambda member: member.pid
        )

    def is_alive(self) -> bool:
        return bool(self._family()) if has_table() else _group_is_alive(self.leader)

    def signal(self, number: signal.Signals) -> bool:
        """False when no process was left."""
        if not has_table():
            return _signal_group(self.leader, number)
        family = self._family()
        if any(status.group == self.leader for status in family):
            _signal_group(self.leader, number)  # the whole group at once, faster than it can fork
        for status in family:
            if status.group != self.leader:
                send(status.pid, number)
        return bool(family)

    def count(self) -> int:
        return len(self._family()) if has_table() else 0

    def wait_for_orphans(self) -> None:
        """Waits for adopted processes that have ended: a command may be watching for their end."""
        if self._orphans is not None:
            self._orphans.living()

    @contextlib.contextmanager
    def stopped(self) -> Iterator[None]:
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
        inside = self._inside()
        if not inside:
            return self.signal(signal.SIGTERM)
        send(inside[0].pid, signal.SIGSTOP)
        for status in inside:
            send(status.pid, signal.SIGTERM)
        return True

    def is_ending(self) -> bool:
        """After `ask_to_end`: True while processes are left. Lets the last one in a namespace continue."""
        inside = self._inside()
        if len(inside) == 1:
            send(inside[0].pid, signal.SIGCONT)
        return bool(inside) or self.is_alive()

    def _inside(self) -> list[Status]:
        """Processes in a namespace held by the leader, the first command first; empty without one."""
        if not has_table():
            return []
        family = self._family()
        heads = {status.pid for status in family if status.parent == self.leader and is_apart(status.pid)}
        inside = [status for status in family if heads and status.pid != self.leader and status.pid not in heads]
        return sorted(inside, key=lambda status: (status.parent not in heads, status.started, status.pid))

    def _family(self) -> list[Status]:
        found: list[Status] = []
        for _ in range(_MAX_LOOKS):
            found, is_settled = self._search() if self._orphans is None else self._descendants(self._orphans)
            if found or is_settled:
                break
        return found

    def _descendants(self, orphans: Orphans) -> tuple[list[Status], bool]:
        """The living ones; False when one ended meanwhile and may have left children."""
        leader = [self.leader] if self._leader_ended == _NEVER and status_of(self.leader) else []
        waiting = [*leader, *(pid for pid in orphans.living() if self._is_member(pid))]
        found, is_settled = [], True
        seen = set(waiting)
        while waiting:
            pid = waiting.pop()
            status = status_of(pid)
            if status is None:
                is_settled = False
                continue
            found.append(status)
            new = [child for child in children_of(pid) if child not in seen]
            seen.update(new)
            waiting += new
        return found, is_settled

    def _is_member(self, pid: int) -> bool:
        """For children of wolo; the others belong to the tree of their parent."""
        if marks := limit_marks(pid):
            return self.mark.number in marks
        with suppress(ProcessLookupError):
            return self.leader in (os.getsid(pid), os.getpgid(pid)) or self.mark.number in numbers_of(pid)
        return False

    def _search(self) -> tuple[list[Status], bool]:
        """Scans all processes. False when one was started meanwhile, perhaps by one that ended before it was looked at."""
        newest = newest_pid()
        table = list(everyone())
        pids = {status.pid for status in table if self._is_ours(status)}
        grew = bool(pids)
        while grew:
            children = {status.pid for status in table if status.parent in pids} - pids
            pids |= children
            grew = bool(children)
        found = [status for status in table if status.pid in pids and status.pid != os.getpid()]
        return found, newest == newest_pid()

    def _is_ours(self, status: Status) -> bool:
        if self.leader in (status.session, status.group) and status.started <= self._leader_ended:
            return True
        return status.started >= self._since and self.mark.number in numbers_of(status.pid)


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


_DETACHED = "detached-"


def write_marker(folder: Path, family: int) -> Path | None:
    """Writes a marker file that remains if this process is killed. None when it cannot be written."""
    return _write_file_marker(folder, f"{owner_name()}-{family}")


def mark_detached(folder: Path, mark: Mark) -> bool:
    """Exempts the processes with this mark from cleanup. False when that cannot be recorded."""
    return _write_file_marker(folder, f"{_DETACHED}{mark.number}") is not None


def end_leftovers(folder: Path) -> None:
    """Ends commands of killed wolos, if marker files tell of any: a search at every start would be slow."""
    names = _names(folder)
    dead = {name: family for name in names if (family := _family_of_dead(name))}
    if dead:
        _kill(_everyone_else(), {*dead.values()}, detached(folder))
        for name in dead:
            with suppress(OSError):
                (folder / name).unlink()


def end_orphans(spared: Collection[int] = ()) -> None:
    """Searches all processes for marks of killed wolos, where no marker file can be written."""
    for pid in _everyone_else():
        owner, _, number = mark_text(pid).partition("/")
        if is_dead_owner(owner) and not (number.isdecimal() and int(number) in spared):
            send(pid, signal.SIGKILL)


def end_family(family: int, spared: Collection[int], orphans: Orphans | None) -> None:
    """Kills all processes of a conversation's commands, except those with the marks in `spared`."""
    _kill(_everyone_else() if orphans is None else _all_below(orphans.living()), {family}, spared)


def detached(folder: Path) -> frozenset[int]:
    """Marks of detached commands."""
    found = (name.removeprefix(_DETACHED) for name in _names(folder) if name.startswith(_DETACHED))
    return frozenset(int(number) for number in found if number.isdecimal())


def forget_ended(folder: Path) -> None:
    """Removes the markers of detached commands that have ended."""
    if not (noted := detached(folder)):
        return
    living = {number for status in everyone() for number in numbers_of(status.pid)}
    for number in noted - living:
        with suppress(OSError):
            (folder / f"{_DETACHED}{number}").unlink()


def _kill(pids: Iterable[int], families: Collection[int], spared: Collection[int]) -> None:
    for pid in pids:
        if any(family_of(number) in families and number not in spared for number in numbers_of(pid)):
            send(pid, signal.SIGKILL)


def _everyone_else() -> list[int]:
    return [status.pid for status in everyone() if status.pid != os.getpid()] if has_table() else []


def _all_below(pids: list[int]) -> list[int]:
    """The processes and their descendants."""
    found = list(dict.fromkeys(pids))
    for pid in found:
        found += [child for child in children_of(pid) if child not in found]
    return found


def _family_of_dead(name: str) -> int:
    """0 while its wolo lives."""
    owner, _, family = name.partition("-")
    return int(family) if family.isdecimal() and is_dead_owner(owner) else 0


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208  # names, not paths: this is on the way to the first request
    except OSError:
        return []


def _write_file_marker(folder: Path, name: str) -> Path | None:
    trace = folder / name
    try:
        make_private(folder)
        os.close(os.open(trace, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except OSError:
        return None
    return trace
