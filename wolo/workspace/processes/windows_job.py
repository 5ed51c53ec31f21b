"""Ends a program of Windows with everything it started: they are in one job object, which Windows ends with wolo.

The program is started suspended, so that it starts nothing before it is in the job.
https://learn.microsoft.com/windows/win32/procthread/job-objects
"""

from __future__ import annotations

import contextlib
import signal
import struct
import time
from collections.abc import Iterator
from typing import Any

from wolo.workspace.processes.process_table import Mark
from wolo.workspace.processes.process_tree import KILL_DEADLINE_S, ProcessTree, TreeProcess

CREATION_FLAGS = 0x4 | 0x8000000
"""Suspended, without a console."""
KILLED = 137
"""The exit code of what was ended, as in a shell of POSIX."""
_PROCESS_IDS, _LIMITS = 3, 9
"""Kinds of information about a job."""
_MOST_ACTIVE, _ENDS_WITH_HANDLE = 0x8, 0x2000
_MOST_LISTED = 1024


class JobTree(ProcessTree):
    """Windows has no signals, so each one ends the programs at once."""

    def __init__(self, process: Any, mark: Mark, most_processes: int) -> None:
        """Lets the suspended program run. Raises OSError, after ending it."""
        import ctypes  # noqa: PLC0415  # not needed elsewhere

        super().__init__(process.pid, mark, None, 0)
        self._kernel = ctypes.WinDLL("kernel32", use_last_error=True)  # type: ignore[attr-defined,unused-ignore]  # Windows only
        self._kernel.CreateJobObjectW.restype = ctypes.c_void_p
        self._job = ctypes.c_void_p(self._kernel.CreateJobObjectW(None, None))
        flags = _ENDS_WITH_HANDLE | _MOST_ACTIVE
        limits = struct.pack("@qqIQQIQII80x", 0, 0, flags, 0, 0, most_processes, 0, 0, 0)
        handle = ctypes.c_void_p(int(process._handle))
        if not (
            self._kernel.SetInformationJobObject(self._job, _LIMITS, limits, len(limits))
            and self._kernel.AssignProcessToJobObject(self._job, handle)
        ):
            process.kill()
            raise OSError("Windows does not put it into a job")
        ctypes.WinDLL("ntdll").NtResumeProcess(handle)  # type: ignore[attr-defined,unused-ignore]  # the same

    def members(self) -> list[TreeProcess]:
        import ctypes  # noqa: PLC0415  # not needed elsewhere

        listed = ctypes.create_string_buffer(8 + 8 * _MOST_LISTED)
        self._kernel.QueryInformationJobObject(self._job, _PROCESS_IDS, listed, len(listed), None)
        (num_listed,) = struct.unpack_from("@4xI", listed)
        return [TreeProcess(pid, "and what it started") for pid in struct.unpack_from(f"@{num_listed}Q", listed, 8)]

    def count(self) -> int:
        return len(self.members())

    def is_alive(self) -> bool:
        return bool(self.members())

    def signal(self, number: signal.Signals) -> bool:
        self._kernel.TerminateJobObject(self._job, KILLED)
        return self.is_alive()

    @contextlib.contextmanager
    def stop_group(self) -> Iterator[None]:
        """Nothing is stopped: a job has a limit of its own."""
        yield

    def kill(self, *, is_leader_held: bool = False) -> None:
        deadline = time.monotonic() + KILL_DEADLINE_S
        while self.signal(signal.SIGTERM) and time.monotonic() < deadline:
            time.sleep(0.002)
