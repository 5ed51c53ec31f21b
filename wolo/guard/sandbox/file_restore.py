"""Saves protected files before a command and restores them afterwards.

A sandbox with mounts needs this for names created further down, Landlock for all of them. The command's version is set aside, so
that the user can get it back.
"""

# ruff: noqa: PTH101, PTH103, PTH104, PTH108, PTH112, PTH114, PTH115, PTH119, PTH120, PTH208, PTH211  # paths are text here

from __future__ import annotations

import os
import shutil
import stat
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from wolo.errors import ToolError
from wolo.guard.sandbox.mounts import is_below
from wolo.places import make_private

_MOST_BYTES = 64 << 20
_MOST_FILES = 20_000
_RACY_NS = 50_000_000
_OF_GIT = """
objects refs logs reftable lfs index HEAD packed-refs shallow COMMIT_EDITMSG MERGE_MSG MERGE_MODE SQUASH_MSG gc.log gc.pid
"""
_DATA_OF_GIT = frozenset(_OF_GIT.split())
"""Data files in git's directory: nothing in them runs, or configures what runs."""


class _Saved(NamedTuple):
    kind: str
    mode: int
    data: bytes = b""
    """Content of a file, target of a link."""
    stamp: tuple[int, ...] = ()

    def is_like(self, other: _Saved) -> bool:
        return self[:3] == other[:3]


class Change(NamedTuple):
    """A protected path that a command created, changed or removed."""

    path: str
    aside: str
    """Location of the command's version; empty if the command removed it."""


class Restored:
    """The paths restored after a command."""

    def __init__(self, changes: Sequence[Change], lost: Sequence[str]) -> None:
        self._changes = changes
        self.lost = tuple(lost)
        """Paths that could not be restored as they were."""

    @property
    def paths(self) -> tuple[str, ...]:
        return (*(change.path for change in self._changes), *self.lost)

    def accept(self) -> None:
        """Applies the command's version of all paths. Raises OSError."""
        for path, aside in self._changes:
            _remove(path)
            if aside:
                os.makedirs(os.path.dirname(path), exist_ok=True)
                shutil.move(aside, path)


class FileSaver:
    """Remembers file contents for one conversation, so that saving again is fast."""

    def __init__(self, state: Path) -> None:
        self._above = state / "put-aside"
        self._known: dict[str, _Saved] = {}

    def save(self, present: Iterable[str], missing: Iterable[str] = ()) -> Snapshot:
        """Saves everything in and below `present`. Raises ToolError if that is too much: then the command must not run."""
        tops: list[str] = []
        for path in sorted(dict.fromkeys(present), key=lambda path: path.count("/")):
            if not any(is_below(path, top) for top in tops):
                tops.append(path)
        try:
            saved = self.look(tops)
        except OSError as error:
            raise ToolError(f"sandbox denied: {error.filename} cannot be saved, so the command was not run.") from error
        self._known = saved
        return Snapshot(self, tops, saved, tuple(missing))

    def look(self, tops: Iterable[str]) -> dict[str, _Saved]:
        """Lists folders before their contents. Raises OSError, and ToolError for too much data."""
        found: dict[str, _Saved] = {}
        left = _MOST_BYTES
        for top in tops:
            for path, saved in self._walk(top):
                found[path] = saved
                left -= len(saved.data)
                if left < 0 or len(found) > _MOST_FILES:
                    raise ToolError(
                        f"sandbox denied: without mounts, protected files are saved before each command, and {top} is too large "
                        "to save, so the command was not run."
                    )
        return found

    def set_aside(self, path: str) -> str:
        folder = self._above / os.urandom(6).hex()
        make_private(self._above)
        folder.mkdir(mode=0o700)
        return str(shutil.move(path, folder / os.path.basename(path)))

    def _walk(self, top: str) -> Iterator[tuple[str, _Saved]]:
        waiting = [top]
        while waiting:
            path = waiting.pop()
            try:
                saved = self._save(path)
            except FileNotFoundError:
                continue
            yield path, saved
            if saved.kind == "folder":
                waiting += _names_below(path)

    def _save(self, path: str) -> _Saved:
        status = os.lstat(path)
        mode = stat.S_IMODE(status.st_mode)
        if stat.S_ISDIR(status.st_mode):
            return _Saved("folder", mode)
        if stat.S_ISLNK(status.st_mode):
            return _Saved("link", 0, os.fsencode(os.readlink(path)))
        if not stat.S_ISREG(status.st_mode):
            return _Saved("other", mode)
        stamp = (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)
        known = self._known.get(path)
        if known is not None and known.stamp == stamp:
            return known._replace(mode=mode)
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as file:
            data = file.read(_MOST_BYTES + 1)
        is_stable = time.time_ns() - status.st_ctime_ns > _RACY_NS
        return _Saved("file", mode, data, stamp if is_stable else ())


class Snapshot:
    """The state before one command."""

    def __init__(self, keeper: FileSaver, tops: Sequence[str], saved: dict[str, _Saved], missing: Sequence[str]) -> None:
        self._saver = keeper
        self._saved = saved
        self._missing = missing
        self._changes: list[Change] = []
        self._lost: list[str] = []
        self._fds: dict[str, int] = {}
        """Used to find where a top folder was moved."""
        for top in tops:
            with suppress(OSError):
                self._fds[top] = os.open(top, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)

    def restore(self, new: Iterable[str] = ()) -> Restored | None:
        """Call once everything the command started has ended. `new` are protected names that did not exist before.

        Must not raise; returns None if nothing was changed.
        """
        for path in (*self._missing, *new):
            with self._recording(path):
                if os.path.lexists(path) and not _is_empty(path) and not self._is_set_aside(path):
                    self._set_aside(path)
        for top in self._fds:
            with self._recording(top):
                self._restore_below(top)
        self.close()
        return Restored(self._changes, self._lost) if self._changes or self._lost else None

    def mark_lost(self, path: str) -> None:
        self._lost.append(path)

    def close(self) -> None:
        while self._fds:
            os.close(self._fds.popitem()[1])

    def _restore_below(self, top: str) -> None:
        if not _has_real_parent(top):
            return  # its folder is missing or a link; the target has its own entry
        self._move_back(top)
        saved = {path: each for path, each in self._saved.items() if is_below(path, top)}
        for path, each in saved.items():
            is_there = {"folder": os.path.isdir, "file": os.path.isfile}.get(each.kind, os.path.islink)
            if is_there(path) and not os.path.islink(path):
                os.chmod(path, each.mode)  # restores read access
        now = self._saver.look([top])
        if not now and os.path.basename(top) == ".git":
            self._lost.append(top)  # the saved part alone is not a repository
            return
        for path, found in now.items():
            before = saved.get(path)
            if (before is None or not before.is_like(found)) and not self._is_set_aside(path):
                self._set_aside(path)
        for path, each in saved.items():
            if not os.path.lexists(path):
                if not self._is_set_aside(path):
                    self._changes.append(Change(path, ""))
                _write(path, each)

    def _move_back(self, top: str) -> None:
        """Renames a folder back that the command moved within its parent."""
        place = os.readlink(f"/proc/self/fd/{self._fds[top]}")
        if place == top or os.path.dirname(place) != os.path.dirname(top) or not _is_open_as(self._fds[top], place):
            return
        if os.path.lexists(top):
            self._set_aside(top)
        os.rename(place, top)
        if not self._is_set_aside(top):
            self._changes.append(Change(top, ""))

    def _set_aside(self, path: str) -> None:
        self._changes.append(Change(path, self._saver.set_aside(path)))

    def _is_set_aside(self, path: str) -> bool:
        return any(is_below(path, change.path) for change in self._changes)

    @contextmanager
    def _recording(self, path: str) -> Iterator[None]:
        """Records paths that cannot be restored."""
        try:
            yield
        except (OSError, shutil.Error, ToolError):
            self._lost.append(path)


def _names_below(folder: str) -> list[str]:
    """In git's directories, only names that run or configure what runs."""
    names = os.listdir(folder)
    is_of_git = "HEAD" in names and ("objects" in names or "commondir" in names)
    return [f"{folder}/{name}" for name in sorted(names) if not (is_of_git and _is_data(name))]


def _is_data(name: str) -> bool:
    return name in _DATA_OF_GIT or name.endswith(("_HEAD", ".lock"))


def _is_empty(path: str) -> bool:
    """An empty directory is harmless; it may be a placeholder of another wolo."""
    return os.path.isdir(path) and not os.path.islink(path) and not os.listdir(path)


def _is_open_as(fd: int, path: str) -> bool:
    with suppress(OSError):
        return os.path.samestat(os.lstat(path), os.fstat(fd))
    return False


def _has_real_parent(path: str) -> bool:
    """False if a link was put on the way: nothing is written through it."""
    folder = os.path.dirname(path)
    return os.path.realpath(folder) == folder and os.path.isdir(folder)


def _write(path: str, saved: _Saved) -> None:
    if saved.kind == "folder":
        os.makedirs(path, exist_ok=True)
        os.chmod(path, saved.mode)
    elif saved.kind == "link":
        os.symlink(os.fsdecode(saved.data), path)
    elif saved.kind == "file":
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with open(os.open(path, flags, 0o600), "wb") as file:
            file.write(saved.data)
            os.fchmod(file.fileno(), saved.mode)


def _remove(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)
