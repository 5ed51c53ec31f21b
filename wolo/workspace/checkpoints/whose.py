"""Whose a change is that a look has found, and what it comes to."""

from __future__ import annotations

import os
from collections.abc import Iterable

from wolo.workspace.checkpoints.states import Change, Changes, Source, State

_TICK_NS = 5_000_000
"""Clocks of file systems stand still for some milliseconds."""


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
