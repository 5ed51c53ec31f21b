"""Attributes changes found by a scan to the command that made them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from wolo.workspace.checkpoints.checkpoint_store import Running
from wolo.workspace.checkpoints.path_state import Change, Changes, Source, State
from wolo.workspace.processes.process_table import is_dead_owner

_SCRIPT = 'read -r word || : > "$1"'


class LastBreath:
    def __init__(self, folder: Path) -> None:
        """Raises OSError where no child can be started."""
        self.path = folder / f"killed-{os.urandom(8).hex()}"
        reading, self._writing = os.pipe()
        try:
            # A session of its own: who ends this process with its whole group leaves the child alone.
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
        """Nobody is killed any more."""
        with suppress(OSError):
            os.write(self._writing, b"well\n")
        os.close(self._writing)
        self._child.wait()


def killed_ns(path: Path) -> int:
    """When that was; 0 where it is not known."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


_TICK_NS = 5_000_000
"""Clocks of file systems stand still for some milliseconds."""


class Asking(NamedTuple):
    """Who takes the look."""

    session: str
    turn: str
    own: int | None
    """The command that has just ended."""
    running: Collection[int]
    """All commands of this conversation that run, or left something running."""


def whose_command(running: Sequence[Running], asking: Asking) -> tuple[Running | None, Source]:
    """What commands of two sessions may have done is unclear, and so is what only a job in the background may have done.

    Between turns a person works on the files, too.
    """
    own = [each for each in running if each.id == asking.own] or [
        each  # of a wolo that was killed: nobody else has this session
        for each in running
        if each.session == asking.session and (each.id not in asking.running or each.turn == asking.turn)
    ]
    others = [each for each in running if each.session != asking.session and not each.runs_on and not is_dead_owner(each.owner)]
    found = [*own, *others]
    if found:
        return found[0], "command" if len({each.session for each in found}) == 1 else "unclear"
    return (running[0], "unclear") if running else (None, "unclear")


def source_by(change: Change, end_ns: int) -> Source | None:
    """Whose a change is whose wolo was killed at that time. None: it is somebody else's.

    What was made later was not made by a command that died with its wolo, but not all of them do. To bring back what is gone
    does no harm in any case.
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


def makes(told: Change, now: State) -> bool:
    """A tool has said itself that it makes the path what it is now."""
    return now.is_like(told.after)


def summed(changes: Iterable[Change]) -> Changes:
    """Of files and links; what became of each in the end."""
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
    return Changes(*(tuple(sorted(paths)) for paths in kinds.values()))
