"""Everything a command started: find it, end it, and leave nothing behind.

A group or a session is not the whole tree: `setsid` and double forks step out of both. So each command carries a mark that
children inherit; on Linux the tree is every process with that mark, in that session, or descended from one of these.
Elsewhere it is the process group.

Out of reach without a sandbox: a process that detaches twice, wipes its environment, changes a limit that nothing else
looks at, and outlives its parents.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Iterator

from msgspec import Struct

from wolo.workspace.processes.process_table import (
    Mark,
    Status,
    command_line,
    everyone,
    has_table,
    is_apart,
    newest_pid,
    numbers_of,
    send,
    status_of,
    uptime_s,
)

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


class ProcessTree:
    """What one command started. `leader` leads a session of its own."""

    def __init__(self, leader: int, mark: Mark) -> None:
        self.leader = leader
        self.mark = mark
        leading = status_of(leader)
        self._since = leading.started if leading else 0.0
        self._leader_ended = _NEVER

    def leader_has_ended(self) -> None:
        """From now on the leader's number may belong to a stranger who started later."""
        self._leader_ended = uptime_s()

    def members(self) -> list[Member]:
        """Everything of the tree that is alive."""
        if not has_table():
            return [Member(self.leader, "and its group")] if self.is_alive() else []
        return sorted((Member(status.pid, command_line(status.pid)) for status in self._family()), key=lambda member: member.pid)

    def is_alive(self) -> bool:
        return bool(self._family()) if has_table() else _group_is_alive(self.leader)

    def signal(self, number: signal.Signals) -> bool:
        """False when nobody was left to hear it."""
        if not has_table():
            return _signal_group(self.leader, number)
        family = self._family()
        if any(status.group == self.leader for status in family):
            _signal_group(self.leader, number)  # all of a group at one instant, faster than it can fork
        for status in family:
            if status.group != self.leader:
                send(status.pid, number)
        return bool(family)

    def count(self) -> int:
        return len(self._family()) if has_table() else 0

    @contextlib.contextmanager
    def stopped(self) -> Iterator[None]:
        """Its group stands still. Only while the leader has not been waited for: its number is nobody else's then."""
        _signal_group(self.leader, signal.SIGSTOP)
        try:
            yield
        finally:
            _signal_group(self.leader, signal.SIGCONT)

    def kill(self, *, is_leader_held: bool = False) -> None:
        """Blocks until nothing is left, at most KILL_DEADLINE_S.

        `is_leader_held`: it has not been waited for, so its group may be hit before anyone is looked for.
        """
        deadline = time.monotonic() + KILL_DEADLINE_S
        if is_leader_held:
            _signal_group(self.leader, signal.SIGKILL)
        while self.signal(signal.SIGKILL) and time.monotonic() < deadline:
            time.sleep(0.002)

    async def end(self, grace_s: float) -> None:
        """TERM, a while to tidy up, KILL; the KILL also comes when the waiting is cancelled."""
        try:
            deadline = time.monotonic() + grace_s
            told = self.ask_to_end()
            while told and time.monotonic() < deadline:
                await asyncio.sleep(0.02)
                told = self.is_ending()
        finally:
            self.kill()

    def ask_to_end(self) -> bool:
        """TERM to all; False when nobody was left to hear it.

        In a namespace everything ends with the first command, and with who holds the namespace. So the holder is spared, and
        the first command stands still until the others have tidied up.
        """
        inside = self._inside()
        if not inside:
            return self.signal(signal.SIGTERM)
        send(inside[0].pid, signal.SIGSTOP)
        for status in inside:
            send(status.pid, signal.SIGTERM)
        return True

    def is_ending(self) -> bool:
        """After `ask_to_end`: whether somebody is left; the last one in a namespace has its turn now."""
        inside = self._inside()
        if len(inside) == 1:
            send(inside[0].pid, signal.SIGCONT)
        return bool(inside) or self.is_alive()

    def _inside(self) -> list[Status]:
        """What runs in a namespace that the leader holds, its first command first; empty where there is none."""
        if not has_table():
            return []
        family = self._family()
        heads = {status.pid for status in family if status.parent == self.leader and is_apart(status.pid)}
        inside = [status for status in family if heads and status.pid != self.leader and status.pid not in heads]
        return sorted(inside, key=lambda status: (status.parent not in heads, status.started, status.pid))

    def _family(self) -> list[Status]:
        found: list[Status] = []
        for _ in range(_MAX_LOOKS):
            newest = newest_pid()
            found = self._look()
            if found or newest == newest_pid():
                break  # else a process was born while we looked, perhaps a child of one that ended before its turn came
        return found

    def _look(self) -> list[Status]:
        table = list(everyone())
        pids = {status.pid for status in table if self._is_ours(status)}
        grew = bool(pids)
        while grew:
            children = {status.pid for status in table if status.parent in pids} - pids
            pids |= children
            grew = bool(children)
        return [status for status in table if status.pid in pids and status.pid != os.getpid()]

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
