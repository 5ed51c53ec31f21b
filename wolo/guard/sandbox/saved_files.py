"""The state of protected files and of the folders above them: read before a command, compared and written afterwards."""

# paths are text here

from __future__ import annotations

import stat
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from wolo.errors import ToolError
from wolo.guard.sandbox.mounts import is_below
from wolo.guard.sandbox.protected_names import folders_between
from wolo.operating_system import os

_MOST_BYTES = 64 << 20
_MOST_FILES = 20_000
_RACY_NS = 50_000_000
_OF_GIT = """
objects refs logs reftable lfs index HEAD packed-refs shallow COMMIT_EDITMSG MERGE_MSG MERGE_MODE SQUASH_MSG gc.log gc.pid
"""
_DATA_OF_GIT = frozenset(_OF_GIT.split())
"""Data files in git's directory: nothing in them runs, or configures what runs."""


class Saved(NamedTuple):
    kind: str
    mode: int
    owner: tuple[int, int]
    data: bytes = b""
    """Content of a file, target of a link."""
    stamp: tuple[int, ...] = ()
    is_of_git: bool = False
    """A directory of git: its data is not saved."""


class FileReader:
    """Remembers contents, so that reading again is fast."""

    def __init__(self) -> None:
        self._known: dict[str, Saved] = {}

    def read(self, tops: Iterable[str]) -> dict[str, Saved]:
        """Lists folders before their contents. Raises OSError, and ToolError for too much data."""
        contents: dict[str, Saved] = {}
        left = _MOST_BYTES
        for top in tops:
            for path, saved in self._walk(top):
                contents[path] = saved
                left -= len(saved.data)
                if left < 0 or len(contents) > _MOST_FILES:
                    raise ToolError(
                        f"sandbox denied: without mounts, protected files are saved before each command, and {top} is too large "
                        "to save, so the command was not run."
                    )
        self._known = contents
        return contents

    def _walk(self, top: str) -> Iterator[tuple[str, Saved]]:
        waiting = [top]
        while waiting:
            path = waiting.pop()
            try:
                saved = self._save(path)
            except FileNotFoundError:
                continue
            yield path, saved
            if saved.kind == "folder":
                waiting += names_below(path, is_of_git=saved.is_of_git)

    def _save(self, path: str) -> Saved:
        status = os.lstat(path)
        kind, mode, owner = kind_of(status), stat.S_IMODE(status.st_mode), (status.st_uid, status.st_gid)
        if kind == "folder":
            return Saved(kind, mode, owner, is_of_git=is_of_git(os.listdir(path)))
        if kind == "link":
            return Saved(kind, 0, owner, os.fsencode(os.readlink(path)))
        if kind != "file":
            return Saved(kind, mode, owner)
        stamp = _stamp_of(status)
        known = self._known.get(path)
        if known is not None and known.stamp == stamp:
            return known._replace(mode=mode, owner=owner)
        is_stable = time.time_ns() - status.st_ctime_ns > _RACY_NS
        return Saved(kind, mode, owner, _read(path, _MOST_BYTES + 1), stamp if is_stable else ())


def files_with_second_names(top: str) -> Iterator[str]:
    """Files at and below `top` that can be changed through another name, without data of git."""
    waiting = [top]
    while waiting:
        path = waiting.pop()
        with suppress(OSError):
            status = os.lstat(path)
            if kind_of(status) == "folder":
                waiting += names_below(path, is_of_git=is_of_git(os.listdir(path)))
            elif status.st_nlink > 1:
                yield path


def names_below(folder: str, *, is_of_git: bool) -> list[str]:
    """In git's directories, only names that run or configure what runs."""
    return [f"{folder}/{name}" for name in sorted(os.listdir(folder)) if not (is_of_git and _is_data(name))]


def is_of_git(names: Sequence[str]) -> bool:
    return "HEAD" in names and ("objects" in names or "commondir" in names)


def _is_data(name: str) -> bool:
    return name in _DATA_OF_GIT or name.endswith(("_HEAD", ".lock"))


def kind_of(status: os.stat_result) -> str:
    kinds = {stat.S_IFDIR: "folder", stat.S_IFLNK: "link", stat.S_IFREG: "file"}
    return kinds.get(stat.S_IFMT(status.st_mode), "other")


def _stamp_of(status: os.stat_result) -> tuple[int, ...]:
    return (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)


def _read(path: str, most: int) -> bytes:
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as file:
        return file.read(most)


def has_content(path: str, saved: Saved) -> bool:
    if saved.kind == "link":
        return os.fsencode(os.readlink(path)) == saved.data
    if saved.kind != "file":
        return True
    status = os.lstat(path)
    if saved.stamp == _stamp_of(status):
        return True
    return status.st_size == len(saved.data) and _read(path, len(saved.data) + 1) == saved.data


def give_back(path: str, saved: Saved) -> None:
    """Restores owner and mode: they decide who may read and write it."""
    status = os.lstat(path)
    if (status.st_uid, status.st_gid) != saved.owner:
        os.chown(path, *saved.owner, follow_symlinks=False)
        status = os.lstat(path)
    if saved.kind != "link" and stat.S_IMODE(status.st_mode) != saved.mode:
        os.chmod(path, saved.mode)


def write(path: str, saved: Saved) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if saved.kind == "folder":
        os.mkdir(path)
    elif saved.kind == "link":
        os.symlink(os.fsdecode(saved.data), path)
    elif saved.kind == "file":
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with open(os.open(path, flags, 0o600), "wb") as file:
            file.write(saved.data)
    else:
        raise OSError(f"{path} cannot be made again")
    give_back(path, saved)


Identity = tuple[int, int]
_ALL = stat.S_IRWXU


class FoldersAbove:
    """Identities and modes of the folders above protected files, from the outermost inwards.

    The writable directories themselves are included.
    """

    def __init__(self, roots: Iterable[str], protected: Iterable[str]) -> None:
        """Raises OSError."""
        self._roots = tuple(roots)
        around = [(root, path) for path in protected for root in self._roots if is_below(path, root) and path != root]
        above = {folder for root, path in around for folder in (root, *folders_between(root, path))}
        self._modes: dict[str, int] = {}
        self._identities: dict[str, Identity] = {}
        for folder in sorted(above, key=lambda path: path.count("/")):
            status = os.lstat(folder)
            self._modes[folder] = stat.S_IMODE(status.st_mode)
            self._identities[folder] = (status.st_dev, status.st_ino)

    def __iter__(self) -> Iterator[str]:
        return iter(self._identities)

    def __getitem__(self, path: str) -> Identity:
        return self._identities[path]

    def open(self, path: str) -> None:
        """Restores a mode that keeps the owner out and did not before. Raises OSError."""
        if is_folder(path) and not os.access(path, os.R_OK | os.W_OK | os.X_OK) and self._modes[path] & _ALL == _ALL:
            os.chmod(path, self._modes[path])

    def is_in_place(self, path: str) -> bool:
        return identity_of(path) == self._identities[path]

    def leads_to(self, path: str) -> bool:
        """True if all folders above `path` are the ones from before."""
        return all(self.is_in_place(folder) for folder in self if is_below(path, folder))

    def places_above(self, paths: Iterable[str]) -> dict[Identity, str]:
        """The folders above `paths`, by what they are."""
        inside = [(root, path) for path in paths for root in self._roots if is_below(path, root) and path != root]
        found = {folder for root, path in inside for folder in folders_between(root, path)}
        return {identity: folder for folder in found if (identity := identity_of(folder)) is not None}


def identity_of(path: str) -> Identity | None:
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def is_folder(path: str) -> bool:
    return os.path.isdir(path) and not os.path.islink(path)


def open_below(path: str) -> None:
    """Lets the owner read and move a folder with all contents. Raises OSError."""
    waiting = [path]
    while waiting:
        folder = waiting.pop()
        if not is_folder(folder):
            continue
        mode = stat.S_IMODE(os.lstat(folder).st_mode)
        if mode & _ALL != _ALL:
            os.chmod(folder, mode | _ALL)
        with os.scandir(folder) as entries:
            waiting += [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
