"""Changes several files, all or none.

Everything is checked under all locks before the first change. When a write fails, the earlier ones are reverted.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from wolo.errors import ToolError
from wolo.workspace.files import atomic_write, file_locks, safe_open


class Put(NamedTuple):
    """Writes a whole file, new or existing."""

    path: Path
    data: bytes
    expected: str | None
    """Hash of the present content; None for no file."""
    like: Path | None = None
    """Source of the mode, owner and attributes of a new file."""


class Removal(NamedTuple):
    path: Path
    expected: str


Step = Put | Removal


class MultiFileError(Exception):
    """A file could not be changed; the others were reverted, except those in `left`."""

    def __init__(
        self, failed: Path, cause: Exception, put_back: Sequence[Path], not_reverted: Sequence[tuple[Path, Exception]]
    ) -> None:
        super().__init__(str(failed))
        self.failed, self.cause = failed, cause
        self.put_back = tuple(put_back)
        self.not_reverted = tuple(not_reverted)
        """Files that could not be reverted, and why."""


def apply_changes(
    steps: Sequence[Step], *, locks: Path, note: atomic_write.ChangeListener = atomic_write.ignore_change
) -> dict[Path, atomic_write.WrittenFile | None]:
    """Applies steps on different files, writes first. The result is None for a removed file.

    `note` is also called for changes that revert earlier ones. Raises FileChanged, before any change, or MultiFileError.
    """
    with ExitStack() as held:
        journals: dict[Path, int | None] = {}
        for step in sorted(steps, key=lambda each: each.path):  # one order for all: two patches cannot block each other
            try:
                journals[step.path] = held.enter_context(file_locks.lock_file(step.path, locks))
            except ToolError as error:
                raise MultiFileError(step.path, error, (), ()) from error
        for step in steps:
            _check(step)
        return _Changes(journals, note, held).make(steps)


def _check(step: Step) -> None:
    try:
        folder = safe_open.open_folder(step.path.parent)
    except FileNotFoundError as error:
        if step.expected is None:
            return
        raise atomic_write.FileChanged("The file was deleted meanwhile.") from error
    except OSError as error:
        raise MultiFileError(step.path, error, (), ()) from error
    try:
        if (handle := atomic_write.open_expected(folder, step.path.name, step.expected)) is not None:
            os.close(handle)
    except atomic_write.FileChanged:
        raise
    except (OSError, ToolError) as error:
        raise MultiFileError(step.path, error, (), ()) from error
    finally:
        os.close(folder)


class _Changes:
    """The changes made so far, to be reverted on failure."""

    def __init__(self, journals: dict[Path, int | None], note: atomic_write.ChangeListener, held: ExitStack) -> None:
        self._journals, self._note, self._held = journals, note, held
        self._recorded: dict[Path, atomic_write.PendingChange] = {}
        self._folders: dict[Path, list[Path]] = {}
        self._removed: dict[Path, int] = {}

    def make(self, steps: Sequence[Step]) -> dict[Path, atomic_write.WrittenFile | None]:
        done: dict[Path, atomic_write.WrittenFile | None] = {}
        for step in sorted(steps, key=lambda each: isinstance(each, Removal)):
            try:
                done[step.path] = self._apply(step)
            except Exception as error:
                put_back, not_reverted = self._revert_all(done)
                raise MultiFileError(step.path, error, put_back, not_reverted) from error
        return done

    def _apply(self, step: Step) -> atomic_write.WrittenFile | None:
        if isinstance(step, Put):
            like = None if step.like is None else safe_open.open_regular(step.like)
            try:
                return atomic_write.write_locked(
                    step.path,
                    step.data,
                    expected=step.expected,
                    journal=self._journals[step.path],
                    note=self._record,
                    like=like,
                    created=self._folders.setdefault(step.path, []),
                )
            finally:
                if like is not None:
                    os.close(like)
        handle = atomic_write.remove_locked(step.path, expected=step.expected, note=self._record)
        self._held.callback(os.close, handle)
        self._removed[step.path] = handle
        return None

    def _record(self, change: atomic_write.PendingChange) -> None:
        self._recorded[change.path] = change
        self._note(change)

    def _revert_all(self, done: dict[Path, atomic_write.WrittenFile | None]) -> tuple[list[Path], list[tuple[Path, Exception]]]:
        put_back: list[Path] = []
        not_reverted: list[tuple[Path, Exception]] = []
        for path in reversed(done):
            try:
                change = self._recorded[path]
                now = None if change.after is None else atomic_write.content_hash(change.after)
                if change.before is None:
                    assert now is not None  # a created file has content
                    os.close(atomic_write.remove_locked(path, expected=now, note=self._note))
                    atomic_write.remove_folders(self._folders[path])
                else:
                    journal, like = self._journals[path], self._removed.get(path)
                    atomic_write.write_locked(path, change.before, expected=now, journal=journal, note=self._note, like=like)
            except Exception as error:
                not_reverted.append((path, error))
            else:
                put_back.append(path)
        return put_back, not_reverted
