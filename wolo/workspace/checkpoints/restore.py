"""Plans an undo from the stored changes and the present state, and carries it out; what it replaces is stored for redo.

The changes of each path are followed back from the newest. A path that is not as a change left it was changed by someone else and
is a conflict. Of several changes only the first and the last state matter. A path is changed only if it is still in the state the
plan saw.
"""

from __future__ import annotations

import errno
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from wolo.errors import ToolError
from wolo.operating_system import hold_open, os, user_id
from wolo.workspace.checkpoints import path_state
from wolo.workspace.checkpoints.checkpoint_store import CheckpointStore
from wolo.workspace.checkpoints.path_state import UNKNOWN_MODE, PathChange, RecordedChange, State, content, observe
from wolo.workspace.files.atomic_write import FileChanged, sync_folder, write_locked
from wolo.workspace.files.file_locks import lock_file, new_temporary_name, note_temporary
from wolo.workspace.files.safe_open import explain, open_folder, open_regular_in

_NOT_EMPTY = {errno.ENOTEMPTY, errno.EEXIST}
_OWNER = stat.S_IRWXU


class RestoreOutcome(NamedTuple):
    number: int
    """Id of the undo, for redo."""
    restored: tuple[str, ...]
    removed: tuple[str, ...]
    conflicts: tuple[PathConflict, ...]


def restore(store: CheckpointStore, plan: UndoPlan, locks: Path, *, session: str, turns: Sequence[str]) -> RestoreOutcome:
    """Carries out a plan. After a kill at any moment the same plan can be made and completed; `store.end_step` marks it done.

    Raises ToolError, before any change, when the present contents cannot be stored.
    """
    steps: list[path_state.PathChange] = []
    lost: list[PathConflict] = []
    with store.writing():
        for step in plan.steps:
            # The present content of each path is stored: only such a step can be reverted.
            if step.before.kind in ("file", "link") and store.content(step.before.hash) is None:
                try:
                    data = path_state.content(step.path)
                except OSError:
                    data = None
                if data is None or path_state.digest(data) != step.before.hash:
                    lost.append(PathConflict(step.path, CHANGED_SINCE))
                    continue
                store.save(data)
            steps.append(step)
        unfinished = store.unfinished_step(session, turns)
        number = store.begin_step(session, turns)
        begun = {noted.change.path: noted.change.before for noted in store.of_step(unfinished)} if unfinished else {}
        if unfinished:
            store.take_over(unfinished, number, {step.path for step in steps})
        noted = [step._replace(before=begun.get(step.path, step.before)) for step in steps]
        store.add(path_state.RecordedChange(step, session, "", "", "undo", number) for step in noted)
    work = _Restoring(store, locks)
    failed = work.run(steps)
    bad = {conflict.path for conflict in failed}
    done = [step for step in steps if step.path not in bad and step.path not in work.not_removed]
    return RestoreOutcome(
        number,
        tuple(step.path for step in done if step.after.kind),
        tuple(step.path for step in done if not step.after.kind),
        (*plan.conflicts, *lost, *failed),
    )


class _Restoring:
    def __init__(self, store: CheckpointStore, locks: Path) -> None:
        self.not_removed: set[str] = set()
        """Folders not removed because they hold other files."""
        self._store, self._locks = store, locks
        self._failed: dict[str, PathConflict] = {}
        self._files: dict[str, tuple[int, int]] = {}
        """Device and inode of each file with several names, before any change."""
        self._done: dict[tuple[int, int], path_state.PathChange] = {}

    def run(self, steps: Sequence[path_state.PathChange]) -> list[PathConflict]:
        """Orders the steps: removals before replacements, folders before their content."""
        for step in steps:
            if step.before.kind == step.after.kind == "file":
                with suppress(OSError):
                    status = os.lstat(step.path)
                    if status.st_nlink > 1:
                        self._files[step.path] = status.st_dev, status.st_ino
        top_down = sorted(steps, key=lambda step: step.path.count("/"))
        bottom_up = top_down[::-1]
        folders = [step for step in top_down if step.before.kind == step.after.kind == "folder"]
        for step in folders:
            self._attempt(step, lambda each: _set_mode(each, each.after.mode | _OWNER))
        for step in bottom_up:
            if step.before.kind and not _stays(step):
                self._attempt(step, self._remove)
        for step in top_down:
            if step.after.kind == "folder" and step.before.kind != "folder":
                self._attempt(step, self._make_folder)
        for step in top_down:
            if step.after.kind in ("file", "link"):
                self._attempt(step, self._restore)
        for step in bottom_up:
            if step.after.kind == "folder" and step.after.mode != path_state.UNKNOWN_MODE:
                self._attempt(step, lambda each: _set_mode(each, each.after.mode))
        return list(self._failed.values())

    def _attempt(self, step: path_state.PathChange, work: Callable[[path_state.PathChange], None]) -> None:
        if step.path in self._failed:
            return
        try:
            try:
                work(step)
            except PermissionError:
                with _unlock(Path(step.path).parent):
                    work(step)
        except FileChanged:
            self._failed[step.path] = PathConflict(step.path, CHANGED_SINCE)
        except ToolError as error:
            self._failed[step.path] = PathConflict(step.path, error.message)
        except OSError as error:
            reason = explain(error, "it").message.removeprefix("`it` ").removesuffix(".")
            self._failed[step.path] = PathConflict(step.path, f"it {reason}")

    def _remove(self, step: path_state.PathChange) -> None:
        path = Path(step.path)
        with lock_file(path, self._locks):
            folder = open_folder(path.parent)
            try:
                _require(folder, path.name, step.before)
                if step.before.kind != "folder":
                    os.unlink(path.name, dir_fd=folder)
                else:
                    os.rmdir(path.name, dir_fd=folder)
                sync_folder(folder)
            except OSError as error:
                if error.errno not in _NOT_EMPTY or step.after.kind:
                    raise
                self.not_removed.add(step.path)
            finally:
                os.close(folder)

    def _make_folder(self, step: path_state.PathChange) -> None:
        with hold_open(open_folder(Path(step.path).parent, created=[])) as folder:
            with suppress(FileExistsError):
                os.mkdir(Path(step.path).name, 0o700, dir_fd=folder)
            sync_folder(folder)

    def _restore(self, step: path_state.PathChange) -> None:
        path, after = Path(step.path), step.after
        if (data := self._store.content(after.hash)) is None:
            raise ToolError(NOT_KEPT)
        with lock_file(path, self._locks) as journal:
            if _stays(step):
                self._replace(step, data, journal)
                return
            folder = open_folder(path.parent, created=[])
            try:
                if after.kind == "link":
                    os.symlink(data, os.fsencode(path.name), dir_fd=folder)
                else:
                    # Creates a file without overwriting one, and never with wider permissions than before.
                    temporary = new_temporary_name()
                    if journal is not None:
                        note_temporary(journal, path.with_name(temporary))
                    handle = os.open(
                        temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=folder
                    )
                    try:
                        with os.fdopen(handle, "wb") as file:
                            file.write(data)
                            file.flush()
                            os.fchmod(file.fileno(), 0o644 if after.mode == path_state.UNKNOWN_MODE else after.mode)
                            os.fsync(file.fileno())
                        try:
                            os.link(temporary, path.name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
                        except OSError as error:
                            if isinstance(error, FileExistsError) or path_state.observe_in(folder, path.name).kind:
                                raise
                            os.rename(temporary, path.name, src_dir_fd=folder, dst_dir_fd=folder)  # a file system without links
                    finally:
                        with suppress(FileNotFoundError):
                            os.unlink(temporary, dir_fd=folder)
                sync_folder(folder)
            except FileExistsError:
                raise FileChanged(CHANGED_SINCE) from None
            finally:
                os.close(folder)

    def _replace(self, step: path_state.PathChange, data: bytes, journal: int | None) -> None:
        file = self._files.get(step.path)
        if file is not None and self._link_again(step, self._done.get(file), journal):
            return
        if step.before.hash != step.after.hash:
            if not step.before.mode & stat.S_IWUSR:
                _set_mode(step, step.before.mode | stat.S_IWUSR)
            write_locked(Path(step.path), data, expected=step.before.hash.hex(), journal=journal)
        if step.after.mode != path_state.UNKNOWN_MODE:
            _set_mode(step, step.after.mode)
        if file is not None:
            self._done[file] = step

    def _link_again(self, step: path_state.PathChange, done: path_state.PathChange | None, journal: int | None) -> bool:
        """Links a path to another name of the same file that was restored before; False when they are to differ."""
        if done is None or done.after != step.after:
            return False
        path, other = Path(step.path), Path(done.path)
        folder, others = open_folder(path.parent), open_folder(other.parent)
        temporary = new_temporary_name()
        if journal is not None:
            note_temporary(journal, path.with_name(temporary))
        try:
            _require(folder, path.name, step.before)
            _require(others, other.name, done.after)
            os.link(other.name, temporary, src_dir_fd=others, dst_dir_fd=folder, follow_symlinks=False)
            try:
                os.rename(temporary, path.name, src_dir_fd=folder, dst_dir_fd=folder)
            finally:
                with suppress(FileNotFoundError):  # a rename onto another name of the same file keeps both
                    os.unlink(temporary, dir_fd=folder)
            sync_folder(folder)
        finally:
            os.close(folder)
            os.close(others)
        return True


@contextmanager
def _unlock(folder: Path) -> Iterator[None]:
    """Makes an unreadable folder accessible during the block. Raises PermissionError where its mode is not the cause."""
    status = os.lstat(folder)
    mode = stat.S_IMODE(status.st_mode)
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != user_id() or mode & _OWNER == _OWNER:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    change = path_state.PathChange(
        str(folder),
        path_state.State("folder", path_state.NOT_STORED, mode),
        path_state.State("folder", path_state.NOT_STORED, mode | _OWNER),
    )
    _set_mode(change, mode | _OWNER)
    try:
        yield
    finally:
        _set_mode(change, mode)


def _stays(step: path_state.PathChange) -> bool:
    return step.before.kind == step.after.kind != "link"


def _require(folder: int, name: str, state: path_state.State) -> None:
    now = path_state.observe_in(folder, name)
    if not now.is_like(state):
        raise FileChanged(CHANGED_SINCE)


def _set_mode(step: path_state.PathChange, mode: int) -> None:
    path = Path(step.path)
    with hold_open(open_folder(path.parent)) as folder:
        if step.after.kind == "folder":
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
            try:
                handle = os.open(path.name, flags, dir_fd=folder)
            except PermissionError:
                # An unreadable one can only be changed by name; a link in its place is not followed where the system supports
                # that.
                _chmod_unopened(folder, path.name, mode)
                return
        else:
            try:
                handle = open_regular_in(folder, path.name)
            except PermissionError:
                _chmod_unopened(folder, path.name, mode)
                return
        try:
            os.fchmod(handle, mode)
        finally:
            os.close(handle)


def _chmod_unopened(folder: int, name: str, mode: int) -> None:
    if stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
        raise FileChanged(CHANGED_SINCE)
    os.chmod(name, mode, dir_fd=folder)


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


def plan_undo(store: CheckpointStore, changes: Sequence[RecordedChange], only: Iterable[Path] = ()) -> UndoPlan:
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
