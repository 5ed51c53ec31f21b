"""Finds protected names anywhere below a directory, completely; what it has seen makes the next look cheap."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator

from msgspec import Struct

from wolo.errors import ToolError
from wolo.guard.protected_paths import RUNS_CODE, RUNS_CODE_BELOW, fold

MOST_FOLDERS = 200_000
_MOST_S = 20.0
_MOST_FOUND = 2000
_RACY_NS = 50_000_000
"""Clocks of file systems stand still for some milliseconds: a folder this young is read again next time."""
_OF_OTHERS = frozenset({"node_modules", ".venv", "venv", "__pycache__", ".tox", "target", "dist", "build"})
"""Below these lie packages and what builds leave: nobody works in them, and their settings come and go. Repositories count."""

Stamp = tuple[int, int, int]


class _Seen(Struct, frozen=True):
    """A folder when it was read."""

    stamp: Stamp
    folders: tuple[str, ...]
    found: tuple[str, ...]
    links: tuple[str, ...]


class Found(Struct, frozen=True):
    paths: tuple[str, ...] = ()
    """Files and directories, and folders that cannot be read."""
    links: tuple[str, ...] = ()
    """Protected names that are links."""


class Nested:
    """Looks below one directory, at everything but the names at its top."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._seen: dict[str, _Seen] = {}
        self._lock = threading.Lock()

    def look(self) -> Found:
        """May be called from any thread. Raises ToolError where it cannot be complete: then nothing may run."""
        with self._lock:
            return self._look()

    def _look(self) -> Found:
        until = time.monotonic() + _MOST_S
        now: dict[str, _Seen] = {}
        paths: list[str] = []
        links: list[str] = []
        waiting = [self._root]
        while waiting:
            folder = waiting.pop()
            if len(now) >= MOST_FOLDERS or len(paths) > _MOST_FOUND or time.monotonic() > until:
                self._seen |= now  # the next look gets further
                raise ToolError(
                    f"sandbox denied: {self._root} holds too many directories to find all names in it that run code. So the "
                    "command was not run."
                )
            try:
                seen = self._see(folder)
            except FileNotFoundError:
                continue
            except OSError:
                paths.append(folder)
                continue
            now[folder] = seen
            paths += seen.found
            links += seen.links
            waiting += seen.folders
        self._seen = now
        return Found(tuple(sorted(paths)), tuple(sorted(links)))

    def _see(self, folder: str) -> _Seen:
        known = self._seen.get(folder)
        status = os.lstat(folder)
        stamp = (status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
        if known is not None and known.stamp == stamp:
            return known
        folders: list[str] = []
        found: list[str] = []
        links: list[str] = []
        is_of_others = not _OF_OTHERS.isdisjoint(folder[len(self._root) :].split("/"))
        for entry in _entries(folder):
            if is_protected(entry.path, only_repositories=is_of_others):
                if folder != self._root:
                    (links if entry.is_symlink() else found).append(entry.path)
            elif entry.is_dir(follow_symlinks=False):
                folders.append(entry.path)
        is_settled = time.time_ns() - max(stamp[:2]) > _RACY_NS
        return _Seen(stamp if is_settled else (0, 0, 0), tuple(folders), tuple(found), tuple(links))


def _entries(folder: str) -> Iterator[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        yield from entries


def is_protected(path: str, *, only_repositories: bool = False) -> bool:
    """By its name, or by the names of the folders it lies in."""
    name = fold(path.rpartition("/")[2])
    if only_repositories:
        return name == ".git"
    return name in RUNS_CODE or name.endswith(".code-workspace") or fold(path + "/").endswith(RUNS_CODE_BELOW)
