"""Compares the first and last state of each file that a session changed; needs no git."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from wolo.errors import ToolError
from wolo.workspace.checkpoints.checkpoint_store import CheckpointStore
from wolo.workspace.checkpoints.path_state import RecordedChange, State, as_text, content, observe
from wolo.workspace.checkpoints.tracker import FileTracker
from wolo.workspace.files.line_diff import diff_lines

MAX_BYTES = 1 << 20
"""Per side of a diff."""


class ChangedFile(NamedTuple):
    path: str
    before: State
    after: State
    was: bytes | None
    """Content; None: no file, or not stored."""
    holds: bytes | None
    notes: tuple[str, ...] = ()


def paths_changed(watch: FileTracker) -> list[str]:
    """Absolute paths, newest first; reads no file."""
    noted = watch.store.of_session(watch.session) if watch.store is not None else ()
    return list(dict.fromkeys(each.change.path for each in reversed(list(noted))))


def find_changes(watch: FileTracker, only: Sequence[Path] = ()) -> list[ChangedFile]:
    """`only`: limit to these paths and everything below them."""
    if (store := watch.store) is None:
        return []
    wanted = tuple(Path(os.path.realpath(path.parent)) / path.name for path in only)
    by_path: dict[str, list[RecordedChange]] = {}
    for noted in store.of_session(watch.session):
        path = Path(noted.change.path)
        if not wanted or any(place == path or place in path.parents for place in wanted):
            by_path.setdefault(noted.change.path, []).append(noted)
    found = (_net(store, path, noted) for path, noted in sorted(by_path.items()))
    return [each for each in found if each is not None]


def patch(changed: ChangedFile, where: Path) -> Iterator[str]:
    """A unified diff with paths relative to `where` if inside."""
    name = as_text(os.path.relpath(changed.path, where) if changed.path.startswith(f"{where}/") else changed.path)
    yield f"--- {f'a/{name}' if changed.before.kind else '/dev/null'}"
    yield f"+++ {f'b/{name}' if changed.after.kind else '/dev/null'}"
    for note in changed.notes:
        yield f"# {note}"
    if "folder" in (changed.before.kind, changed.after.kind):
        yield f"# {changed.before.kind or 'nothing'} became {changed.after.kind or 'nothing'}"
        return
    sides = [_text(changed.was, changed.before), _text(changed.holds, changed.after)]
    if None in sides:
        yield "# content not shown: not text, too large, or not stored"
        return
    yield from diff_lines(sides[0] or "", sides[1] or "").text.splitlines()


def _net(store: CheckpointStore, path: str, noted: Sequence[RecordedChange]) -> ChangedFile | None:
    """None: unchanged."""
    before, after = noted[0].change.before, noted[-1].change.after
    if before.is_like(after) and before.mode == after.mode:
        return None
    notes = ["by a command, or by another program meanwhile"] if all(each.source == "unclear" for each in noted) else []
    try:
        if observe(path).is_like(after):
            holds = content(path) if after.kind not in ("", "folder") else None
        else:
            holds = store.content(after.hash)
            notes.append("changed again since by another program")
    except (OSError, ToolError):
        holds = store.content(after.hash)
    if before.is_like(after):
        notes.append(f"mode {before.mode:o} became {after.mode:o}")
    return ChangedFile(path, before, after, store.content(before.hash), holds, tuple(notes))


def _text(data: bytes | None, state: State) -> str | None:
    """None: cannot be shown."""
    if state.kind in ("", "folder"):
        return ""
    if data is None or len(data) > MAX_BYTES or b"\0" in data:
        return None
    return data.decode("utf-8", "replace")
