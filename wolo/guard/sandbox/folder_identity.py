"""Folders above protected files: identity and mode before a command, and where the command moved them."""

# ruff: noqa: PTH101  # paths are text here

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator

from wolo.guard.sandbox.mounts import is_below
from wolo.guard.sandbox.protected_names import folders_between

Identity = tuple[int, int]
_ALL = stat.S_IRWXU


class Folders:
    """Iterates from the outermost folder inwards; the writable directories themselves are included."""

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
    return os.path.isdir(path) and not os.path.islink(path)  # noqa: PTH112, PTH114  # the same


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
