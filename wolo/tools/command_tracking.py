"""Observes a running command: changed files, live output, final directory and leftover processes."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from wolo.operating_system import duplicate
from wolo.tools.clipping import clean
from wolo.tools.tool import CallContext
from wolo.workspace.checkpoints.path_state import ChangedPaths

if TYPE_CHECKING or sys.platform == "win32":
    from wolo.tools.windows_shell import ShellScript, write_script

_MAX_KEPT = 200


class ChangeTracking:
    """Detects the files that a command changed, by scans before and after it. Skipped for read-only commands and without a
    tracker."""

    def __init__(self, call: CallContext) -> None:
        tracker = None if call.only_reads else call.services.tracker
        self._tracker = tracker() if tracker else None
        # Commands of one subagent need separate ids, because each may leave processes running.
        self._call = f"{call.services.works_for}/{call.call_id}" if call.services.works_for else call.call_id
        self._is_over = False

    async def before(self) -> None:
        """Raises ToolError when files cannot be saved for undo; the command must not run then."""
        if self._tracker is None:
            return
        look = asyncio.ensure_future(asyncio.to_thread(self._tracker.before_command, self._call))
        try:
            await asyncio.shield(look)
        except asyncio.CancelledError:
            await asyncio.wait([look])
            self.after()
            raise

    async def find_changes(self, *, runs_on: bool) -> ChangedPaths:
        """Does the work of `after` in a thread, if there is any."""
        return ChangedPaths() if self._tracker is None else await asyncio.to_thread(self.after, runs_on=runs_on)

    def after(self, *, runs_on: bool = False) -> ChangedPaths:
        """Blocks. `runs_on`: the command left processes running, whose changes a later scan will find. Only the first call
        counts."""
        if self._tracker is None or self._is_over:
            return ChangedPaths()
        self._is_over = True
        return self._tracker.after_command(self._call, runs_on=runs_on)


def paths_of(changes: ChangedPaths) -> tuple[str, ...]:
    return tuple(sorted({*changes.made, *changes.changed, *changes.gone}))


def changes_metadata(changes: ChangedPaths) -> dict[str, list[str]]:
    """Returns the changes for the call's metadata; nothing when there are too many."""
    kinds = {name: list(paths) for name, paths in zip(changes._fields, changes, strict=True) if paths}
    return kinds if sum(map(len, changes)) <= _MAX_KEPT else {}


_EVERY_S = 0.1
_BYTES = 4096


class LiveOutput:
    """Passes on the newest output a few times a second and skips the rest."""

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show = show
        self._newest = b""
        self._timer: asyncio.TimerHandle | None = None

    def add(self, chunk: bytes) -> None:
        self._newest = (self._newest + chunk)[-_BYTES:]
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_EVERY_S, self._pass_on)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._pass_on()

    def _pass_on(self) -> None:
        self._timer = None
        newest, self._newest = self._newest, b""
        # A redrawn progress bar becomes a new line, because shown output cannot be removed.
        self._show(b"".join(clean(newest.replace(b"\r\n", b"\n").replace(b"\r", b"\n"))).decode())


_LOWEST_FD = 200
"""File descriptor of the report; above those that scripts use themselves."""
_SCRIPT = "trap '{{ set +x; }} 2>/dev/null; {{ command jobs -pr || :; command pwd -P; }} >/dev/fd/{fd} 2>/dev/null' EXIT; "
"""EXIT trap that reports running jobs, one number per line, and the directory."""


class ShellReport(Struct, frozen=True):
    fd: int
    """Write end, for the shell."""
    _reading: int
    argv: tuple[str, ...] = ()
    """None of its own: bash is started."""

    @property
    def fds(self) -> tuple[int, ...]:
        return (self.fd,)

    @property
    def script(self) -> str:
        """Prefix of the command line."""
        return _SCRIPT.format(fd=self.fd)

    def read(self) -> tuple[Path | None, bool]:
        """Returns the final directory, and whether the command left something running."""
        with contextlib.suppress(BlockingIOError):
            numbers, slash, rest = os.read(self._reading, 65536).partition(b"/")
            path = Path(os.fsdecode((slash + rest).removesuffix(b"\n")))
            is_usable = path.is_absolute() and os.path.isdir(path)  # noqa: PTH112  # False also for a path that is too long
            return (path if is_usable else None), bool(numbers.strip())
        return None, False


@contextlib.contextmanager
def shell_report(command: str) -> Iterator[ShellReport | ShellScript]:
    """Also the shell itself on Windows. Raises OSError there."""
    if sys.platform == "win32":
        script = write_script(command)
        try:
            yield script
        finally:
            script.remove()
        return
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    try:
        high = duplicate(writing, _LOWEST_FD)
    finally:
        os.close(writing)
    try:
        yield ShellReport(high, reading)
    finally:
        os.close(high)
        os.close(reading)
