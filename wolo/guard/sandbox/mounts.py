"""The file tree as a command sees it: which mount stands where, in bubblewrap's words.

Mounts are laid from the root outwards, so what is said of a deeper path wins: a workspace in `/tmp` is seen although `/tmp` is
another one, and what is hidden in a workspace stays hidden.
"""

from __future__ import annotations

import os
from pathlib import Path

_NOTHING = "/dev/null"
TEMPORARY = ("/tmp", "/var/tmp")


class Tree:
    def __init__(self, tmp: str, *, closed_by_mode: bool) -> None:
        """`tmp` is the directory that stands for `/tmp`. `closed_by_mode`: what is empty is kept so by its mode, half as dear
        as a mount that cannot be written; it does not hold who may pass over modes, and old versions of bwrap cannot.
        """
        self._closed_by_mode = closed_by_mode
        self._mounts: dict[str, tuple[str, ...]] = {
            "/": ("--ro-bind", "/", "/"),
            **{path: ("--bind", tmp, path) for path in map(os.path.realpath, TEMPORARY) if Path(path).is_dir()},
        }
        self._closed: list[str] = []
        """To be made read-only when all is laid."""
        self._covering = [path for path in self._mounts if path != "/"]
        self._opened: list[str] = []
        for path in dict.fromkeys(map(os.path.realpath, ("/run", "/var/run"))):
            if Path(path).is_dir():
                self._empty(path)
        self.show("/run/current-system")

    def write(self, path: str) -> None:
        self._mounts[path] = ("--bind", path, path)
        self._opened.append(path)

    def show(self, path: str) -> None:
        """Read-only; for what would be covered otherwise."""
        if not self.is_seen(path) and Path(path).exists():
            self._mounts[path] = ("--ro-bind", os.path.realpath(path), path)
            self._opened.append(path)
            self._covering = [each for each in self._covering if each != path]
            self._closed = [each for each in self._closed if each != path]

    def hide(self, path: str) -> None:
        """Nothing is found there, nor can anything be put there."""
        if path in self._mounts or not self.is_seen(path) or not os.path.lexists(path):
            return
        if Path(path).is_dir():
            self._empty(path)
        else:
            self._mounts[path] = ("--ro-bind", _NOTHING, path)

    def protect(self, path: str) -> None:
        """Read-only as it is."""
        if path not in self._mounts and self.is_seen(path):
            self._mounts[path] = ("--ro-bind", path, path)

    def keep_in_place(self, path: str) -> None:
        """What something is mounted on cannot be moved."""
        if path not in self._mounts and self.is_seen(path):
            self._mounts[path] = ("--bind", path, path)

    def cover(self, path: str) -> None:
        """A placeholder: it is seen as empty, and nothing can be made of it."""
        self._empty(path)

    def is_seen(self, path: str) -> bool:
        """Nothing that was laid so far covers it."""
        nearest = max((each for each in (*self._covering, *self._opened) if is_below(path, each)), key=len, default="")
        return nearest not in self._covering

    def options(self) -> list[str]:
        laid = sorted(self._mounts, key=lambda path: path.count("/") if path != "/" else 0)
        words = [word for path in laid for word in self._mounts[path]]
        # Settings of the kernel in /proc belong to the whole machine, and root may write them in any namespace.
        after_root = [*words[:3], "--dev", "/dev", "--proc", "/proc", "--remount-ro", "/proc", *words[3:]]
        return [*after_root, *(word for path in self._closed for word in ("--remount-ro", path))]

    def _empty(self, path: str) -> None:
        if self._closed_by_mode:
            self._mounts[path] = ("--perms", "0555", "--tmpfs", path)
        else:
            self._mounts[path] = ("--tmpfs", path)
            self._closed.append(path)
        self._covering.append(path)


def is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def topmost_missing(path: str, above: str) -> str:
    """The first part of `path` below `above` that is not there; empty when all is."""
    missing = ""
    each = Path(path)
    while str(each) != above and not os.path.lexists(each):
        missing = str(each)
        each = each.parent
    return missing
