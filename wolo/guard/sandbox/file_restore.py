"""Protected files around a command that could change them: saved before, compared and restored after it.

A sandbox of mounts needs this for names that are new further down, Landlock for all of them. What a command made or changed is
put aside, so a user who wants it gets it back.
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
"""What git keeps in its directory as data: nothing in there runs or says what runs."""


class _Saved(NamedTuple):
    kind: str
    """`file`, `link`, `folder` or `other`."""
    mode: int
    data: bytes = b""
    """The content of a file, the goal of a link."""
    stamp: tuple[int, ...] = ()

    def is_like(self, other: _Saved) -> bool:
        return self[:3] == other[:3]


class Change(NamedTuple):
    """One protected path that a command made, changed or removed."""

    path: str
    aside: str
    """Where its version of it is now; empty: it had removed it."""


class Restored:
    """What was restored after a command."""

    def __init__(self, changes: Sequence[Change], lost: Sequence[str]) -> None:
        self._changes = changes
        self.lost = tuple(lost)
        """What could not be restored as it was."""

    @property
    def paths(self) -> tuple[str, ...]:
        return (*(change.path for change in self._changes), *self.lost)

    def accept(self) -> None:
        """The user wants the command's version of all. Raises OSError."""
        for path, aside in self._changes:
            _remove(path)
            if aside:
                os.makedirs(os.path.dirname(path), exist_ok=True)
                shutil.move(aside, path)


class FileSaver:
    """Of one conversation: remembers what it has read, so that saving again is cheap."""

    def __init__(self, state: Path) -> None:
        self._above = state / "put-aside"
        self._known: dict[str, _Saved] = {}

    def save(self, present: Iterable[str], missing: Iterable[str] = ()) -> Snapshot:
        """Of all that is `present`, also below it. Raises ToolError where it is too much: then the command must not run."""
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
        """A folder comes before what is in it. Raises OSError, and ToolError for too much."""
        found: dict[str, _Saved] = {}
        left = _MOST_BYTES
        for top in tops:
            for path, saved in self._walk(top):
                found[path] = saved
                left -= len(saved.data)
                if left < 0 or len(found) > _MOST_FILES:
                    raise ToolError(
                        f"sandbox denied: without mounts, protected files are saved before a command, and {top} is too large "
                        "for that. So the command was not run."
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
        is_settled = time.time_ns() - status.st_ctime_ns > _RACY_NS
        return _Saved("file", mode, data, stamp if is_settled else ())


class Snapshot:
    """What was there before one command."""

    def __init__(self, keeper: FileSaver, tops: Sequence[str], saved: dict[str, _Saved], missing: Sequence[str]) -> None:
        self._saver = keeper
        self._saved = saved
        self._missing = missing
        self._changes: list[Change] = []
        self._lost: list[str] = []
        self._fds: dict[str, int] = {}
        """They tell where one of the `tops` was moved to."""
        for top in tops:
            with suppress(OSError):
                self._fds[top] = os.open(top, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)

    def restore(self, new: Iterable[str] = ()) -> Restored | None:
        """Once everything the command started has ended. `new` are protected names that were not there before.

        Must not raise; None where nothing was changed.
        """
        for path in (*self._missing, *new):
            with self._noting(path):
                if os.path.lexists(path) and not _is_empty(path) and not self._is_set_aside(path):
                    self._set_aside(path)
        for top in self._fds:
            with self._noting(top):
                self._restore_below(top)
        self.close()
        return Restored(self._changes, self._lost) if self._changes or self._lost else None

    def could_not_see(self, path: str) -> None:
        """Whether something new came there is not known."""
        self._lost.append(path)

    def close(self) -> None:
        while self._fds:
            os.close(self._fds.popitem()[1])

    def _restore_below(self, top: str) -> None:
        if not _has_real_parent(top):
            return  # the folder around it is gone, or a link: what that leads to is told by its own name
        self._move_back(top)
        saved = {path: each for path, each in self._saved.items() if is_below(path, top)}
        for path, each in saved.items():
            is_there = {"folder": os.path.isdir, "file": os.path.isfile}.get(each.kind, os.path.islink)
            if is_there(path) and not os.path.islink(path):
                os.chmod(path, each.mode)  # a closed one could not be read
        now = self._saver.look([top])
        if not now and os.path.basename(top) == ".git":
            self._lost.append(top)  # what is saved of it would be no repository
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
        """What got another name beside the one it had gets that back."""
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
    def _noting(self, path: str) -> Iterator[None]:
        """What cannot be restored is told."""
        try:
            yield
        except (OSError, shutil.Error, ToolError):
            self._lost.append(path)


def _names_below(folder: str) -> list[str]:
    """Of git's own directories only what runs, or says what runs."""
    names = os.listdir(folder)
    is_of_git = "HEAD" in names and ("objects" in names or "commondir" in names)
    return [f"{folder}/{name}" for name in sorted(names) if not (is_of_git and _is_data(name))]


def _is_data(name: str) -> bool:
    return name in _DATA_OF_GIT or name.endswith(("_HEAD", ".lock"))


def _is_empty(path: str) -> bool:
    """An empty directory does nothing; it may stand for a missing name in the sandbox of another wolo."""
    return os.path.isdir(path) and not os.path.islink(path) and not os.listdir(path)


def _is_open_as(fd: int, path: str) -> bool:
    with suppress(OSError):
        return os.path.samestat(os.lstat(path), os.fstat(fd))
    return False


def _has_real_parent(path: str) -> bool:
    """Where a link was put on the way, nothing is written through it."""
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
