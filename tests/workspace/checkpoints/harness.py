"""A tracked workspace, and the changes that tools, commands and users make to it."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from wolo.workspace.checkpoints.checkpoint_store import CheckpointStore
from wolo.workspace.checkpoints.path_state import ChangedPaths
from wolo.workspace.checkpoints.restore import RestoreOutcome, UndoPlan, plan_undo, restore
from wolo.workspace.checkpoints.tracker import FileTracker
from wolo.workspace.files.atomic_write import content_hash, write_atomic

Picture = dict[str, tuple[str, int, bytes]]


class CheckpointHarness:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = Path(os.path.realpath(folder)) / "work"
        self.root.mkdir(parents=True, exist_ok=True)
        self.locks = folder / "locks"
        self.turns: list[str] = []
        self.watch = self.new_watch()

    def new_watch(self, session: str = "session") -> FileTracker:
        """What a wolo that is started now would have."""
        return FileTracker(self.folder / "wolo" / "checkpoints", (self.root,), session)

    @property
    def store(self) -> CheckpointStore:
        store = self.watch.store
        assert store is not None
        return store

    def turn(self) -> str:
        self.turns.append(f"turn {len(self.turns)}")
        self.watch.begin_turn(self.turns[-1])
        return self.turns[-1]

    # What an agent does

    def write(self, name: str, content: bytes | str) -> None:
        """As a tool."""
        data = content.encode() if isinstance(content, str) else content
        path = self.root / name
        expected = content_hash(path.read_bytes()) if path.is_file() else None
        write_atomic(path, data, locks=self.locks, expected=expected, note=lambda change: self.watch.note("call", change))

    def command(self, work: Callable[[], object], call: str = "command") -> ChangedPaths:
        self.watch.before_command(call)
        work()
        return self.watch.after_command(call)

    # What a person does

    def plan(self, turns: Sequence[str] | None = None, only: Iterable[Path] = ()) -> UndoPlan:
        return plan_undo(self.store, self.store.of_turns(self.turns[-1:] if turns is None else turns), only)

    def undo(self, turns: Sequence[str] | None = None, only: Iterable[Path] = ()) -> RestoreOutcome:
        turns = self.turns[-1:] if turns is None else turns
        outcome = restore(self.store, self.plan(turns, only), self.locks, session="session", turns=turns)
        self.store.end_step(outcome.number)
        return outcome

    def redo(self, undone: RestoreOutcome) -> RestoreOutcome:
        found = plan_undo(self.store, self.store.of_step(undone.number))
        return restore(self.store, found, self.locks, session="session", turns=[])

    def put(self, name: str, content: bytes | str = b"", mode: int | None = None) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        if mode is not None:
            path.chmod(mode)
        return path

    def picture(self) -> Picture:
        """Everything there is, but for `.git`."""
        return picture(self.root)


def picture(root: Path) -> Picture:
    found: Picture = {}
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if name != ".git"]
        for name in (*folders, *files):
            path = Path(folder) / name
            status = path.lstat()
            mode = stat.S_IMODE(status.st_mode)
            inner = str(path.relative_to(root))
            if stat.S_ISLNK(status.st_mode):
                found[inner] = ("link", 0, os.fsencode(path.readlink()))
            elif stat.S_ISDIR(status.st_mode):
                found[inner] = ("folder", mode, b"")
            else:
                found[inner] = ("file", mode, path.read_bytes())
    return found


def names(harness: CheckpointHarness, paths: Iterable[str]) -> list[str]:
    return sorted(str(Path(path).relative_to(harness.root)) for path in paths)
