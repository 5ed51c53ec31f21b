"""Plans an undo from the stored changes and the present state, without changing anything.

The changes of each path are followed back from the newest. A path that is not as a change left it was changed by someone else and
is a conflict. Of several changes only the first and the last state matter.
"""

from __future__ import annotations

import stat
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from wolo.workspace.checkpoints.checkpoint_store import CheckpointStore
from wolo.workspace.checkpoints.path_state import UNKNOWN_MODE, PathChange, RecordedChange, State, content, observe

CHANGED_SINCE = "changed since by someone else"
NOT_KEPT = "its previous content is not saved"
UNCLEAR = "unclear whether a command or someone else changed it"


class PathConflict(NamedTuple):
    path: str
    reason: str


class UndoPlan(NamedTuple):
    steps: tuple[PathChange, ...] = ()
    """From the present to the restored state."""
    conflicts: tuple[PathConflict, ...] = ()
    """Changed paths that cannot be restored."""


def plan(store: CheckpointStore, changes: Sequence[RecordedChange], only: Iterable[Path] = ()) -> UndoPlan:
    """`only` limits it to these paths and below."""
    places = tuple(only)
    steps: list[PathChange] = []
    conflicts: list[PathConflict] = []
    unfinished = {noted.change.path: noted.change for noted in store.of_unfinished_steps()}
    by_path: dict[str, list[RecordedChange]] = {}
    for change in changes:
        by_path.setdefault(change.change.path, []).append(change)
    for path, noted in by_path.items():
        if places and not any(place == Path(path) or place in Path(path).parents for place in places):
            continue
        sure = [each for each in noted if each.source != "unclear"]
        if not sure:
            conflicts.append(PathConflict(path, UNCLEAR))
            continue
        result = _undo_one(store, path, sure, unfinished.get(path))
        if isinstance(result, PathConflict):
            conflicts.append(result)
        elif result is not None:
            steps.append(result)
    return UndoPlan(tuple(steps), tuple(conflicts))


def _undo_one(
    store: CheckpointStore, path: str, noted: Sequence[RecordedChange], unfinished: PathChange | None
) -> PathChange | PathConflict | None:
    """None when nothing has to change. `begun` is what a killed undo was about to do."""
    try:
        now = state = observe(path)
        if unfinished is not None and _is_partly_done(unfinished, now):
            target = unfinished.after
            return None if now.is_like(target) and target.mode in (now.mode, UNKNOWN_MODE) else PathChange(path, now, target)
        for each in reversed(noted):
            if (before := _before(store, each, state)) is None:
                unkept = not each.change.after.is_known or not each.change.before.is_known
                return PathConflict(path, NOT_KEPT if unkept else CHANGED_SINCE)
            state = before
    except OSError as error:
        return PathConflict(path, f"cannot read it: {error.strerror}")
    if state == now:
        return None
    if state.kind in ("file", "link") and (not state.is_known or store.content(state.hash) is None):
        return PathConflict(path, NOT_KEPT)
    return PathChange(path, now, state)


def _before(store: CheckpointStore, noted: RecordedChange, state: State) -> State | None:
    """State before a change, given the state after it; unchanged if the change was not made; None if neither fits."""
    before, after = noted.change.before, noted.change.after
    bears_mode = not noted.change.changes_mode or state.mode == after.mode
    if (state.is_like(after) and bears_mode) or _is_torn(store, noted, state):
        keeps_mode = before.kind == state.kind and not noted.change.changes_mode
        return before._replace(mode=state.mode) if keeps_mode else before
    was_not_made = state.is_like(before) and (not noted.change.changes_mode or state.mode == before.mode)
    return state if was_not_made else None


def _is_partly_done(unfinished: PathChange, now: State) -> bool:
    """The step is done, or half done: the old entry is gone, or a folder is still made accessible."""
    before, target = unfinished.before, unfinished.after
    if not now.kind and before.kind and target.kind and before.kind != target.kind:
        return True
    if not target.kind == now.kind == "folder":
        return now.is_like(target)
    return now.mode in (target.mode, stat.S_IRWXU, target.mode | stat.S_IRWXU)


def _is_torn(store: CheckpointStore, noted: RecordedChange, state: State) -> bool:
    """A kill during a write in place: each byte is the old or the new one."""
    if noted.source != "in place" or state.kind != "file":
        return False
    before, after = (store.content(each.hash) for each in (noted.change.before, noted.change.after))
    now = content(noted.change.path)
    if before is None or after is None or now is None:
        return False
    shorter, longer = sorted((before, after), key=len)
    if not len(shorter) <= len(now) <= len(longer):
        return False
    return all(byte in (old, new) for byte, old, new in zip_longest(now, before[: len(now)], after[: len(now)]))
