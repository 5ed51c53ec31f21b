"""Saves protected files before a command, restores them afterwards, and compares the result with what was saved.

A sandbox with mounts needs this for names created further down and for folders that were moved, Landlock for all of them. The
command's version is set aside, so that the user can get it back. A path that is not what it was in the end is reported as lost.
"""

# ruff: noqa: PTH103, PTH104, PTH108, PTH115, PTH119, PTH120, PTH208  # paths are text here

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from wolo.errors import ToolError
from wolo.guard.sandbox import mounts, saved_files
from wolo.places import make_private
from wolo.workspace.directory_copy import remove_tree

_MOST_FDS = 64


class ProtectedChange(NamedTuple):
    """A protected path that a command created, changed, moved or removed."""

    path: str
    aside: str = ""
    """Location of the command's version; empty if the command removed or moved it."""
    place: str = ""
    """Path to which the command had moved it."""


class RestoredFiles:
    """The paths restored after a command."""

    def __init__(self, changes: Sequence[ProtectedChange], lost: Sequence[str]) -> None:
        self._changes = changes
        topmost: dict[str, None] = {}
        for path in sorted(set(lost), key=lambda path: path.count("/")):
            if not _is_within(path, topmost.keys()):
                topmost[path] = None
        self.lost = tuple(topmost)
        """Paths that are not what they were before the command."""
        paths = dict.fromkeys(change.path for change in changes)
        self.paths = tuple(path for path in paths if not any(mounts.is_below(each, path) for each in self.lost))

    def accept(self) -> None:
        """Applies the command's version of all paths, the last change first. Raises OSError."""
        for path, aside, place in reversed(self._changes):
            if place:
                os.makedirs(os.path.dirname(place), exist_ok=True)
                os.rename(path, place)
                continue
            if saved_files.is_folder(path):
                remove_tree(Path(path))
            if os.path.lexists(path):
                os.unlink(path)
            if aside:
                os.makedirs(os.path.dirname(path), exist_ok=True)
                shutil.move(aside, path)


class FileSaver:
    """Remembers file contents for one conversation, so that saving again is fast."""

    def __init__(self, state: Path) -> None:
        self._above = state / "put-aside"
        self._reader = saved_files.FileReader()

    def save(
        self, present: Iterable[str], missing: Iterable[str] = (), *, mounted: Iterable[str] = (), roots: Iterable[str] = ()
    ) -> Snapshot:
        """Saves everything in and below `present`. `mounted` are paths that cannot be changed, but their folders can be moved.

        Raises ToolError if that is too much: then the command must not run.
        """
        tops: list[str] = []
        for path in sorted(dict.fromkeys(present), key=lambda path: path.count("/")):
            if not any(mounts.is_below(path, top) for top in tops):
                tops.append(path)
        mounted, roots = tuple(mounted), tuple(roots)
        try:
            saved = self._reader.read(tops)
            folders = saved_files.FoldersAbove(roots, (*tops, *mounted))
        except OSError as error:
            raise ToolError(f"sandbox denied: {error.filename} cannot be saved, so the command was not run.") from error
        return Snapshot(self, tops, saved, tuple(missing), mounted, folders)

    def set_aside(self, path: str) -> str:
        """Raises OSError."""
        folder = self._above / os.urandom(6).hex()
        make_private(self._above)
        folder.mkdir(mode=0o700)
        saved_files.open_below(path)
        try:
            return str(shutil.move(path, folder / os.path.basename(path), copy_function=_copy_plain))
        except shutil.Error as error:
            raise OSError(f"{path} cannot be moved: {error}") from error


class Snapshot:
    """The state before one command. Call the methods in their order, once everything the command started has ended."""

    def __init__(
        self,
        saver: FileSaver,
        tops: Sequence[str],
        saved: Mapping[str, saved_files.Saved],
        missing: Sequence[str],
        mounted: Sequence[str],
        folders: saved_files.FoldersAbove,
    ) -> None:
        self._saver = saver
        self._tops = tops
        self._saved = saved
        self._missing = missing
        self._mounted = mounted
        self._folders = folders
        self._changes: list[ProtectedChange] = []
        self._lost: list[str] = []
        self._removed: set[str] = set()
        self._fds: dict[str, int] = {}
        """Used to find where a top folder was moved."""
        there = [top for top in tops if saved.get(top) is not None and saved[top].kind == "folder"]
        for top in sorted(there, key=lambda top: not saved[top].is_of_git)[:_MOST_FDS]:
            with suppress(OSError):
                self._fds[top] = os.open(top, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)

    def open_folders(self) -> None:
        """Gives folders above protected files back the modes without which nothing below them can be found."""
        for path in self._folders:
            with self._recording(path):
                self._folders.open(path)

    def move_back(self, new: Iterable[str]) -> bool:
        """Renames moved folders back; returns True if any was. `new` are protected names that did not exist before."""
        before = len(self._changes)
        places = self._folders.places_above(new)
        for path in self._folders:
            with self._recording(path):
                place = places.get(self._folders[path])
                if not self._folders.is_in_place(path) and place:
                    self._rename_back(place, path)
                elif os.path.lexists(path) and not saved_files.is_folder(path):
                    self._set_aside(path)  # a link or a file stands in the way
        for top, fd in self._fds.items():
            with self._recording(top):
                place, identity = os.readlink(f"/proc/self/fd/{fd}"), os.fstat(fd)
                if place != top and saved_files.identity_of(place) == (identity.st_dev, identity.st_ino):
                    self._rename_back(place, top)
        return len(self._changes) > before

    def restore(self, new: Iterable[str] = ()) -> RestoredFiles | None:
        """`new` are protected names that did not exist before. Must not raise; returns None if nothing was changed."""
        uncertain = [path for path in self._mounted if not self._folders.leads_to(path)]
        unwanted = [*self._missing, *new, *uncertain]
        for path in unwanted:
            with self._recording(path):
                if os.path.lexists(path) and not _is_empty(path):
                    self._set_aside(path)
        self._lost += uncertain
        repositories = [top for top in self._tops if os.path.basename(top) == ".git"]
        gone = [top for top in repositories if top in self._saved and self._saved[top].is_of_git and not os.path.lexists(top)]
        self._lost += gone  # the saved part alone is not a repository
        for path, saved in self._saved.items():
            with self._recording(path):
                if not any(mounts.is_below(path, each) for each in gone):
                    self._put_right(path, saved)
        for path, saved in reversed([*self._saved.items()]):
            with self._recording(path):
                if saved.kind == "folder" and not any(mounts.is_below(path, each) for each in gone):
                    saved_files.give_back(path, saved)
        self.close()
        if not self._changes and not self._lost:
            return None
        self._lost += [path for path in unwanted if os.path.lexists(path) and not _is_empty(path)]
        for path, saved in self._saved.items():
            with self._recording(path):
                status = os.lstat(path)
                is_same = (saved_files.kind_of(status), (status.st_uid, status.st_gid)) == (saved.kind, saved.owner)
                has_mode = saved.kind == "link" or stat.S_IMODE(status.st_mode) == saved.mode
                has_more = any(_extra_names(path, saved, self._saved))
                if not is_same or not has_mode or has_more or not saved_files.has_content(path, saved):
                    self._lost.append(path)
        return RestoredFiles(self._changes, self._lost)

    def note(self, lost: Iterable[str], seized: Iterable[tuple[str, str]] = ()) -> None:
        """Takes paths that could not be set aside or searched, and those set aside while the command ran, with their places."""
        self._changes += [ProtectedChange(path, place) for path, place in dict(seized).items()]
        self._lost += lost

    def close(self) -> None:
        while self._fds:
            os.close(self._fds.popitem()[1])

    def _put_right(self, path: str, saved: saved_files.Saved) -> None:
        if not _has_real_parent(path):
            raise OSError(f"{path} is behind a link")
        kind = saved_files.kind_of(os.lstat(path)) if os.path.lexists(path) else ""
        if saved.kind == "folder":
            saved = saved._replace(mode=saved.mode | stat.S_IRWXU)  # until its contents are restored
        if kind == saved.kind:
            saved_files.give_back(path, saved)
        if kind != saved.kind or not saved_files.has_content(path, saved):
            if kind:
                self._set_aside(path)
            elif not _is_within(os.path.dirname(path), self._removed):
                self._removed.add(path)
                self._changes.append(ProtectedChange(path))
            saved_files.write(path, saved)
        for name in _extra_names(path, saved, self._saved):
            with self._recording(name):
                self._set_aside(name)

    def _rename_back(self, place: str, path: str) -> None:
        """Sets aside what stands at `path`. `place` may be below it."""
        between = f"{path}.{os.urandom(6).hex()}"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if not _has_real_parent(path):
            raise OSError(f"{path} is behind a link")
        os.rename(place, between)
        try:
            if os.path.lexists(path):
                self._set_aside(path)
            os.rename(between, path)
        except OSError:
            os.rename(between, place)
            raise
        self._changes.append(ProtectedChange(path, place=place))

    def _set_aside(self, path: str) -> None:
        self._removed.add(path)
        self._changes.append(ProtectedChange(path, self._saver.set_aside(path)))

    @contextmanager
    def _recording(self, path: str) -> Iterator[None]:
        """Records paths that cannot be restored."""
        try:
            yield
        except OSError:
            self._lost.append(path)


def _is_within(path: str, folders: Set[str]) -> bool:
    while path not in folders and len(path) > 1:
        path = os.path.dirname(path)
    return path in folders


def _extra_names(path: str, saved: saved_files.Saved, known: Mapping[str, saved_files.Saved]) -> Iterator[str]:
    """Names that a folder contains now and did not before."""
    if saved.kind == "folder":
        yield from (name for name in saved_files.names_below(path, is_of_git=saved.is_of_git) if name not in known)


def _is_empty(path: str) -> bool:
    """An empty directory is harmless; one that cannot be read may contain anything."""
    return saved_files.is_folder(path) and os.access(path, os.R_OK) and not os.listdir(path)


def _has_real_parent(path: str) -> bool:
    """False if a link was put on the way: nothing is written through it."""
    folder = os.path.dirname(path)
    return os.path.realpath(folder) == folder


def _copy_plain(source: str, target: str, *, follow_symlinks: bool = False) -> str:
    """Copies to another disk; nothing can be kept of a FIFO or a socket."""
    if stat.S_ISREG(os.lstat(source).st_mode):
        shutil.copy2(source, target, follow_symlinks=follow_symlinks)
    return target
