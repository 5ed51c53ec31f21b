"""Finds protected names in writable directories: present, missing, links, and nested at any depth."""

from __future__ import annotations

import os
import re
import stat
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from wolo.errors import ToolError
from wolo.guard.protected_paths import is_protected, is_readable, makes_repository, stands_for_folder
from wolo.guard.sandbox.mounts import is_below, topmost_missing
from wolo.workspace.root import resolve_path

_MOST_POINTER_BYTES = 4096
_MOST_SETTINGS_BYTES = 1 << 16


class Names(Struct, frozen=True):
    present: tuple[str, ...] = ()
    """Made read-only while a command runs."""
    missing: tuple[str, ...] = ()
    """Places below the top that git is told to use. At the top every protected name that is not there is missing."""
    links: tuple[str, ...] = ()
    """Names that are links: nothing can be mounted on them."""
    known: frozenset[str] = frozenset()
    """All protected names that are there."""
    kept_in_place: tuple[str, ...] = ()
    """Folders around nested repositories and missing names: if one were moved, another could take its place."""


def names_in(root: str, home: str, nested: Nested | None = None) -> Names:
    """`nested` searches below the top; an earlier search makes it faster.

    Raises ToolError for a protected name at the top that is a link, and if the search is incomplete.
    """
    below = (nested or Nested(root)).look()
    paths: list[str] = []
    links: list[str] = []
    for path in names_at_the_top(root):
        if makes_repository(path):
            continue  # git itself replaces it
        if not os.path.islink(path):  # noqa: PTH114  # the same
            paths.append(path)
            continue
        if is_protected(path):
            goal = resolve_path(path)
            # `CLAUDE.md` may be a link to `AGENTS.md`, as many projects have it: the target is protected.
            leads_to_protected = is_below(goal, root) and is_protected(goal) and os.path.isfile(goal)  # noqa: PTH113  # the same
            if not is_readable(path) or not leads_to_protected:
                raise ToolError(
                    f"sandbox denied: {path} is a link, and the sandbox cannot prevent a link "
                    "from being replaced, so the command was not run."
                )
        links.append(path)
    top = ProtectedPaths(tuple(paths), tuple(links))
    followed = (resolve_path(link) for link in below.links if is_protected(link))
    goals = [goal for goal in followed if is_below(goal, root) and os.path.lexists(goal)]
    present = [*top.paths, *below.paths, *goals]
    repositories = [path for path in present if path.endswith("/.git")]
    pointed = [place for path in repositories for place in _git_places(path)]
    pointed += [path for git in repositories for path in _submodule_paths(git)]
    outside_git = (path for path in pointed if not any(is_below(path, each) for each in present))
    awaited = tuple(dict.fromkeys(topmost_missing(path, root) for path in outside_git if is_below(path, root)))
    missing = tuple(filter(None, awaited))
    return Names(
        present=tuple(dict.fromkeys([*present, *filter(os.path.lexists, pointed)])),
        missing=missing,
        links=(*top.links, *below.links),
        known=frozenset((*top.paths, *top.links, *below.paths, *below.links, *filter(makes_repository, (f"{root}/HEAD",)))),
        kept_in_place=tuple(dict.fromkeys(each for path in (*repositories, *missing) for each in folders_between(root, path))),
    )


def folders_between(root: str, path: str) -> Iterator[str]:
    folder = os.path.dirname(path)  # noqa: PTH120  # text all along
    while folder != root:
        yield folder
        folder = os.path.dirname(folder)  # noqa: PTH120  # the same


def names_at_the_top(root: str) -> list[str]:
    """Raises OSError."""
    paths = (f"{root.rstrip('/')}/{name}" for name in os.listdir(root))  # noqa: PTH208  # text all along
    return [path for path in paths if is_protected(path) or stands_for_folder(path) or makes_repository(path)]


def _git_places(git: str) -> Iterator[str]:
    """Yields the target of a `.git` file and the directory that shares its settings."""
    place = git
    if not Path(git).is_dir():
        place = _pointer(git, "gitdir: ")
        if not place:
            return
        yield place
    common = _pointer(f"{place}/commondir", "")
    if common:
        yield common
    yield from _git_references(common or place, str(Path(git).parent))


def _submodule_paths(git: str) -> Iterator[str]:
    """Yields `.git` of submodules that are not checked out: `git status` of the outer repository runs what it says."""
    worktree = os.path.dirname(git)  # noqa: PTH120  # text all along
    try:
        with open(f"{worktree}/.gitmodules", "rb") as opened:
            settings = os.fsdecode(opened.read(_MOST_SETTINGS_BYTES))
    except OSError:
        return
    for named in re.findall(r"(?im)^[ \t]*path[ \t]*=[ \t]*([^\n\0]+)", settings):
        place = resolve_path(Path(worktree, named.strip().strip('"')))
        if is_below(place, worktree) and Path(place).is_dir():
            yield f"{place}/.git"


def _git_references(place: str, worktree: str) -> Iterator[str]:
    """Yields hooks and settings in the workspace that git's settings refer to, including missing ones."""
    try:
        with open(f"{place}/config", "rb") as opened:
            settings = os.fsdecode(opened.read(_MOST_SETTINGS_BYTES))
    except OSError:
        return
    for name, value in re.findall(r"(?im)^[ \t]*(hookspath|path|attributesfile)[ \t]*=[ \t]*([^\n\0]+)", settings):
        base = place if name.lower() == "path" else worktree
        named = re.split(r"[ \t][;#]", value.strip())[0].strip().strip('"')
        goal = resolve_path(Path(base, os.path.expanduser(named)))  # noqa: PTH111  # text all along
        if not named.startswith("%(") and not is_below(worktree, goal):
            yield goal


def _pointer(file: str, prefix: str) -> str:
    """The existing directory that a small file names; otherwise empty."""
    try:
        if not stat.S_ISREG(os.lstat(file).st_mode):
            return ""
        with open(file, "rb") as opened:
            text = os.fsdecode(opened.read(_MOST_POINTER_BYTES)).strip()
    except OSError:
        return ""
    if not text.startswith(prefix) or "\0" in text:
        return ""
    place = os.path.realpath(Path(file).parent / text.removeprefix(prefix))
    return place if Path(place).is_dir() else ""


MOST_FOLDERS = 200_000
_MOST_S = 20.0
_MOST_FOUND = 2000
_RACY_NS = 50_000_000
"""Timestamps of file systems are coarse: a folder changed this recently is read again next time."""
_GENERATED = frozenset({"node_modules", ".venv", "venv", "__pycache__", ".tox", "target", "dist", "build"})
"""Packages and build output, whose settings come and go. Only repositories count below these."""

Stamp = tuple[int, int, int]


class _Seen(Struct, frozen=True):
    """Contents of a folder when it was read."""

    stamp: Stamp
    folders: tuple[str, ...]
    paths: tuple[str, ...]
    links: tuple[str, ...]


class ProtectedPaths(Struct, frozen=True):
    paths: tuple[str, ...] = ()
    """Files, directories, and unreadable folders."""
    links: tuple[str, ...] = ()
    """Protected names that are links."""


class Nested:
    """Searches everything below one directory except the names at its top; a repeated search is fast."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._seen: dict[str, _Seen] = {}
        self._lock = threading.Lock()

    def look(self) -> ProtectedPaths:
        """Callable from any thread. Raises ToolError if the search is incomplete: then nothing may run."""
        until = time.monotonic() + _MOST_S
        now: dict[str, _Seen] = {}
        paths: list[str] = []
        links: list[str] = []
        waiting = [self._root]
        with self._lock:
            while waiting:
                folder = waiting.pop()
                if len(now) >= MOST_FOLDERS or len(paths) > _MOST_FOUND or time.monotonic() > until:
                    self._seen |= now  # the next search gets further
                    raise ToolError(
                        f"sandbox denied: {self._root} contains too many directories to search for protected names, so the "
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
                paths += seen.paths
                links += seen.links
                waiting += seen.folders
            self._seen = now
        return ProtectedPaths(tuple(sorted(paths)), tuple(sorted(links)))

    def _see(self, folder: str) -> _Seen:
        known = self._seen.get(folder)
        status = os.lstat(folder)
        stamp = (status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
        if known is not None and known.stamp == stamp:
            return known
        folders: list[str] = []
        paths: list[str] = []
        links: list[str] = []
        is_generated = not _GENERATED.isdisjoint(folder[len(self._root) :].split("/"))
        with os.scandir(folder) as entries:
            for entry in entries:
                stands_for = not is_generated and entry.is_symlink() and stands_for_folder(entry.path)
                if stands_for or is_protected(entry.path, only_repositories=is_generated):
                    if folder != self._root:
                        (links if entry.is_symlink() else paths).append(entry.path)
                elif entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
        is_stable = time.time_ns() - max(stamp[:2]) > _RACY_NS
        return _Seen(stamp if is_stable else (0, 0, 0), tuple(folders), tuple(paths), tuple(links))
