"""Counts the files that a command would destroy.

Looks at the directory and at git's index, within bounds, and runs nothing: git's settings could run anything.
"""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import NamedTuple

from wolo.guard.shell.named_paths import TooManyFiles, expand
from wolo.guard.shell.words import Word
from wolo.workspace.root import resolve_path

MAX_ENTRIES = 20_000
MAX_S = 0.2
UNKNOWN = "wolo cannot tell which"
_SCRATCH = ("/tmp", "/var/tmp", "/dev/shm", "/dev/null", "/dev/stdout", "/dev/stderr")
"""Paths whose loss does not matter unless they are in the workspace."""


class Loss(NamedTuple):
    words: tuple[str, ...]
    """The program and its destructive options, as written; a rule must name all of them."""
    what: str


class ExecutionContext:
    """The known facts about where a command runs."""

    def __init__(self, directories: Sequence[str], roots: Sequence[str], *, is_alone: bool) -> None:
        """`is_alone`: no earlier command can have changed which files exist."""
        self.directories, self.is_alone, self._roots = directories, is_alone, roots

    @cached_property
    def index(self) -> GitIndex:
        return read_index(self.directories[0] if self.directories else self._roots[0])

    def existing_files(self, word: str) -> list[str] | None:
        """Full paths of the existing files that a word means; None if that is unknown. A final link is not followed."""
        if not self.directories or any(letter in word for letter in "$`{}~"):
            return None
        if not any(letter in word for letter in "*?["):
            candidates = [os.path.normpath(os.path.join(place, word)) for place in self.directories]  # noqa: PTH118  # text all along
        else:
            try:
                candidates = [path for place in self.directories for path in expand(Word(word, True), place)]
            except TooManyFiles:
                return None
        existing: list[str] = []
        for path in filter(os.path.lexists, candidates):
            real = resolve_path(path)
            is_inside = any(real == root or real.startswith(root + "/") for root in self._roots)
            if is_inside or not any(real == place or real.startswith(place + "/") for place in _SCRATCH):
                existing.append(path)
        return existing


Check = Callable[[Sequence[str], ExecutionContext], Loss | None]
"""Checks the words of one command, the program first."""


def describe_count(paths: Sequence[str], index: GitIndex) -> str:
    """Formats `3 files, 1 of them not in git`."""
    total, outside, more = _count(paths, index)
    files = f"{more}{total:,} file{'' if total == 1 else 's'}"
    return f"{files}, {outside:,} of them not in git" if index.root else f"{files}, and there is no git here"


def describe_untracked(index: GitIndex) -> str:
    """Number of files in the repository that git does not track."""
    if not index.root:
        return "no repository"
    _, outside, more = _count([index.root], index)
    return f"{more}{outside:,} file{'' if outside == 1 else 's'}"


def _count(paths: Sequence[str], index: GitIndex) -> tuple[int, int, str]:
    """Counts all files and those not in git; the text is `at least ` if the count was cut short."""
    total = outside = 0
    deadline = time.monotonic() + MAX_S
    waiting = [os.path.join(resolve_path(os.path.dirname(path)), os.path.basename(path)) for path in paths]  # noqa: PTH118, PTH119, PTH120  # many
    while waiting:
        path = waiting.pop()
        if os.path.isdir(path) and not os.path.islink(path):  # noqa: PTH112, PTH114  # as above
            with suppress(OSError), os.scandir(path) as entries:
                waiting += [entry.path for entry in entries if entry.name != ".git"]
                continue
        total += 1
        outside += not index.has(path)
        if total >= MAX_ENTRIES or (total % 256 == 0 and time.monotonic() > deadline):
            return total, outside, "at least "
    return total, outside, ""


MAX_BYTES = 64 * 1024 * 1024
_ENTRY = struct.Struct(">10I20sH")
_EXTENDED = 0x4000


class TrackedFile(NamedTuple):
    size_bytes: int
    mtime_s: int
    mtime_ns: int


class GitIndex(NamedTuple):
    root: str
    """Directory that contains `.git`; empty if there is none."""
    files: Mapping[str, TrackedFile]
    """By path relative to the root; empty if the index cannot be read."""

    def has_unchanged(self, path: str) -> bool:
        """Tells whether git could restore this file as it is; False for a missing one."""
        tracked = self.files.get(os.path.relpath(path, self.root)) if self.root else None
        if tracked is None:
            return False
        try:
            status = os.lstat(path)
        except OSError:
            return False
        seconds, nanoseconds = divmod(status.st_mtime_ns, 1_000_000_000)
        return (status.st_size, seconds) == (tracked.size_bytes, tracked.mtime_s) and tracked.mtime_ns in (0, nanoseconds)

    def has(self, path: str) -> bool:
        return bool(self.root) and os.path.relpath(path, self.root) in self.files

    def list_changes(self) -> list[str]:
        """Tracked files that differ in size or time, or are missing."""
        return [path for path in self.files if not self.has_unchanged(os.path.join(self.root, path))]  # noqa: PTH118  # many


def read_index(start: str) -> GitIndex:
    """Reads the index of the repository around `start`."""
    folder = resolve_path(start)
    while not os.path.lexists(f"{folder}/.git"):
        parent = os.path.dirname(folder)  # noqa: PTH120  # as above
        if parent == folder:
            return GitIndex("", {})
        folder = parent
    try:
        with open(f"{folder}/.git/index", "rb") as stream:
            data = stream.read(MAX_BYTES)
            magic, version, count = struct.unpack_from(">4sII", data)
            if magic != b"DIRC" or version not in (2, 3):
                raise ValueError(version)  # so that no file counts as tracked
            files_by_path: dict[str, TrackedFile] = {}
            at = 12
            for _ in range(count):
                fields = _ENTRY.unpack_from(data, at)
                name_at = at + _ENTRY.size + (2 if fields[-1] & _EXTENDED else 0)
                end = data.index(b"\0", name_at)
                files_by_path[os.fsdecode(data[name_at:end])] = TrackedFile(
                    size_bytes=fields[9], mtime_s=fields[2], mtime_ns=fields[3]
                )
                at += (end - at + 8) // 8 * 8
            return GitIndex(folder, files_by_path)
    except (OSError, ValueError, struct.error):
        return GitIndex(folder, {})
