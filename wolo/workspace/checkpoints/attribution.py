"""Attributes changes found by a scan to the command that made them."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from wolo.workspace.checkpoints.checkpoint_store import RunningCommand
from wolo.workspace.checkpoints.path_state import ChangedPaths, PathChange, Source, State
from wolo.workspace.processes.process_table import is_dead_owner

_SCRIPT = 'read -r word || : > "$1"'


class KillMarker:
    def __init__(self, folder: Path) -> None:
        """Raises OSError when the child cannot be started."""
        if sys.platform == "win32":  # Wine would start the shell of Linux
            raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
        self.path = folder / f"killed-{os.urandom(8).hex()}"
        reading, self._writing = os.pipe()
        try:
            # A session of its own: killing this process's group leaves the child alive.
            self._child = subprocess.Popen(
                ["/bin/sh", "-c", _SCRIPT, "sh", self.path],
                stdin=reading,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={},
                umask=0o077,
                start_new_session=True,
            )
        except BaseException:
            os.close(self._writing)
            raise
        finally:
            os.close(reading)

    def close(self) -> None:
        with suppress(OSError):
            os.write(self._writing, b"well\n")
        os.close(self._writing)
        self._child.wait()


_TICK_NS = 5_000_000
"""Resolution of file system clocks."""


class ScanOwner(NamedTuple):
    session: str
    turn: str
    current: int | None
    """The command that has just ended."""
    running: Collection[int]
    """Its commands that are running or left processes running."""


def find_command(running: Sequence[RunningCommand], asking: ScanOwner) -> tuple[RunningCommand | None, Source]:
    """Finds the command that made the changes. With commands of several sessions, or only background jobs, it is unclear.

    Between turns the user may change the same files.
    """
    current = [each for each in running if each.id == asking.current] or [
        each  # of a killed wolo: no other process has this session
        for each in running
        if each.session == asking.session and (each.id not in asking.running or each.turn == asking.turn)
    ]
    others = [each for each in running if each.session != asking.session and not each.runs_on and not is_dead_owner(each.owner)]
    found = [*current, *others]
    if found:
        return found[0], "command" if len({each.session for each in found}) == 1 else "unclear"
    return (running[0], "unclear") if running else (None, "unclear")


def source_after_kill(change: PathChange, end_ns: int) -> Source | None:
    """Attributes a change after the kill of its wolo at `end_ns`; None for a change by someone else.

    A file created later was not created by a command that died with its wolo; some commands live on, so a changed one is unclear.
    Restoring a deleted file is always safe.
    """
    if not change.after.kind or (change.after.kind == "folder" and not change.before.kind):
        return "command"
    try:
        changed_ns = os.lstat(change.path).st_ctime_ns
    except OSError:
        return "unclear"
    if change.before.kind:
        return "command" if changed_ns < end_ns - _TICK_NS else "unclear"
    return "command" if changed_ns < end_ns + _TICK_NS else None


def summed_changes(changes: Iterable[PathChange]) -> ChangedPaths:
    """Sums up the changes to files and links, from first to last state."""
    first: dict[str, State] = {}
    last: dict[str, State] = {}
    for change in changes:
        first.setdefault(change.path, change.before)
        last[change.path] = change.after
    kinds: dict[str, list[str]] = {"made": [], "changed": [], "gone": []}
    for path, before in first.items():
        now = last[path]
        was_file, is_file = before.kind in ("file", "link"), now.kind in ("file", "link")
        if was_file or is_file:
            kinds["changed" if was_file and is_file else "made" if is_file else "gone"].append(path)
    return ChangedPaths(*(tuple(sorted(paths)) for paths in kinds.values()))
