"""Traces of a wolo that runs commands: by them the next one sees at once whether a killed one left some running."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from wolo.workspace.process_tree import end_orphans, is_dead_owner, owner_mark


def leave_trace(folder: Path) -> Path | None:
    """A file that stays when this process is killed; whoever made it removes it in the end. None where it cannot be made."""
    trace = folder / f"{owner_mark()}-{os.urandom(4).hex()}"
    try:
        for each in (folder.parent, folder):
            each.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(trace, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except OSError:
        return None
    return trace


def end_what_was_left(folder: Path) -> None:
    """Ends the commands of killed wolos, when there are traces of such: looking for them unasked would cost every start."""
    try:
        names = os.listdir(folder)  # noqa: PTH208  # names, not paths: this is on the way to the first request
    except OSError:
        return
    if dead := [name for name in names if is_dead_owner(name.partition("-")[0])]:
        end_orphans()
        for name in dead:
            with suppress(OSError):
                (folder / name).unlink()
