"""Adopts processes of commands whose parents have ended, and lists children without a scan of the machine."""

from __future__ import annotations

import os
import sys
from contextlib import suppress

from wolo.workspace.processes.process_table import family_of, limit_marks, read_entry

_SET_CHILD_SUBREAPER = 36
_MAX_LOOKS = 8


class Orphans:
    """Adopted processes of one conversation's commands.

    They become children of this process, which must wait for them. Other children of this process are never waited for.
    """

    def __init__(self, family: int) -> None:
        self._family = family
        self.leaders: set[int] = set()
        """First processes of commands, which their `Popen` waits for."""

    def living(self) -> list[int]:
        """Also children that cannot be attributed, such as those of other parts of this process. Waits for ended orphans."""
        own, found = os.getpid(), list[int]()
        for _ in range(_MAX_LOOKS):
            listed = [pid for pid in _children(own, own) if pid not in self.leaders and not _is_in_own_session(pid)]
            found = [pid for pid in listed if not self._has_ended(pid)]
            if found == listed:
                break  # otherwise the children of an ended one were adopted after the list was read
        return found

    def _has_ended(self, pid: int) -> bool:
        if self._family not in map(family_of, limit_marks(pid)):
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
        threads = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208  # names, not paths
        return [child for thread in threads for child in _children(pid, int(thread))]
    return []


def _children(pid: int, thread: int) -> list[int]:
    """Children that the thread started; the first thread of a process also has the adopted ones."""
    with suppress(OSError):
        return list(map(int, read_entry(pid, f"task/{thread}/children").split()))
    return []
