"""What a command would destroy, looked at in the directory as it is: bounded, and without running anything."""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from wolo.guard.shell.named_paths import TooManyFiles, expand
from wolo.guard.shell.words import Word
from wolo.workspace.root import led_to

MAX_ENTRIES = 20_000
MAX_S = 0.2
UNTELLABLE = "it cannot be told beforehand what it would destroy"
_SCRATCH = ("/tmp", "/var/tmp", "/dev/shm", "/dev/null", "/dev/stdout", "/dev/stderr")
"""Nobody keeps anything here that is not in the workspace."""


class Loss(NamedTuple):
    words: tuple[str, ...]
    """The program and what makes it destructive, as written: a rule must name all of them."""
    what: str


class ExecutionContext:
    """Where a command runs, as far as that is known."""

    def __init__(self, places: Sequence[str], roots: Sequence[str], *, is_alone: bool) -> None:
        """`is_alone`: nothing before it can have changed which files there are."""
        self.places = places
        self.is_alone = is_alone
        self._roots = roots

    @cached_property
    def index(self) -> Index:
        return read_index(self.places[0] if self.places else self._roots[0])

    def there(self, word: str) -> list[str] | None:
        """The files a word stands for, in full and without following a last link; None when nobody can tell."""
        if not self.places or any(letter in word for letter in "$`{}~"):
            return None
        if not any(letter in word for letter in "*?["):
            found = [os.path.normpath(os.path.join(place, word)) for place in self.places]  # noqa: PTH118  # text all along
        else:
            try:
                found = [path for place in self.places for path in expand(Word(word, True), place)]
            except TooManyFiles:
                return None
        return [path for path in found if os.path.lexists(path) and not self._is_scratch(path)]

    def _is_scratch(self, path: str) -> bool:
        real = led_to(path)
        if any(real == root or real.startswith(root + "/") for root in self._roots):
            return False
        return any(real == place or real.startswith(place + "/") for place in _SCRATCH)


Check = Callable[[Sequence[str], ExecutionContext], Loss | None]
"""Looks at the words of one command, its program first."""


def counted(paths: Sequence[str], index: Index) -> str:
    """`3 files, 1 of them not in git`."""
    total, outside, more = _count(paths, index)
    files = f"{more}{total:,} file{'' if total == 1 else 's'}"
    return f"{files}, {outside:,} of them not in git" if index.root else f"{files}, and there is no git here"


def untracked(index: Index) -> str:
    """How many files of the whole repository git does not keep."""
    if not index.root:
        return "no repository"
    _, outside, more = _count([index.root], index)
    return f"{more}{outside:,} file{'' if outside == 1 else 's'}"


def _count(paths: Sequence[str], index: Index) -> tuple[int, int, str]:
    """All files, those that git does not keep, and `at least ` where there were too many to look at."""
    total = outside = 0
    deadline = time.monotonic() + MAX_S
    for path in _files_below(paths):
        total += 1
        outside += not index.has(path)
        if total >= MAX_ENTRIES or (total % 256 == 0 and time.monotonic() > deadline):
            return total, outside, "at least "
    return total, outside, ""


def _files_below(paths: Sequence[str]) -> Iterator[str]:
    waiting = [os.path.join(led_to(os.path.dirname(path)), os.path.basename(path)) for path in paths]  # noqa: PTH118, PTH119, PTH120  # many
    while waiting:
        path = waiting.pop()
        if os.path.islink(path) or not os.path.isdir(path):  # noqa: PTH112, PTH114  # as above
            yield path
            continue
        try:
            with os.scandir(path) as entries:
                waiting += [entry.path for entry in entries if entry.name != ".git"]
        except OSError:
            yield path


MAX_BYTES = 64 * 1024 * 1024
_ENTRY = struct.Struct(">10I20sH")
_EXTENDED = 0x4000


class Kept(NamedTuple):
    size_bytes: int
    mtime_s: int
    mtime_ns: int


class Index(NamedTuple):
    root: str
    """The directory that holds `.git`; empty where there is none."""
    files: Mapping[str, Kept]
    """By their paths below the root; of an index that cannot be read, none."""

    def has_unchanged(self, path: str) -> bool:
        """Whether git could give this file back as it is."""
        kept = self.files.get(os.path.relpath(path, self.root)) if self.root else None
        if kept is None:
            return False
        found = os.lstat(path)
        seconds, nanoseconds = divmod(found.st_mtime_ns, 1_000_000_000)
        return (found.st_size, seconds) == (kept.size_bytes, kept.mtime_s) and kept.mtime_ns in (0, nanoseconds)

    def has(self, path: str) -> bool:
        return bool(self.root) and os.path.relpath(path, self.root) in self.files

    def changed(self) -> list[str]:
        """Files that differ from what git keeps of them, by size and time, and those that are gone."""
        return [path for path in self.files if not self._is_unchanged(os.path.join(self.root, path))]  # noqa: PTH118  # many

    def _is_unchanged(self, path: str) -> bool:
        try:
            return self.has_unchanged(path)
        except OSError:
            return False


def read_index(start: str) -> Index:
    """Of the repository around `start`."""
    folder = led_to(start)
    while not os.path.lexists(f"{folder}/.git"):
        parent = os.path.dirname(folder)  # noqa: PTH120  # as above
        if parent == folder:
            return Index("", {})
        folder = parent
    try:
        return Index(folder, _entries(_read(f"{folder}/.git/index")))
    except (OSError, ValueError, struct.error):
        return Index(folder, {})


def _read(path: str) -> bytes:
    with open(path, "rb") as stream:
        return stream.read(MAX_BYTES)


def _entries(data: bytes) -> dict[str, Kept]:
    """Versions 2 and 3; a newer one counts as unreadable, so that nothing counts as kept."""
    magic, version, count = struct.unpack_from(">4sII", data)
    if magic != b"DIRC" or version not in (2, 3):
        raise ValueError(version)
    found: dict[str, Kept] = {}
    at = 12
    for _ in range(count):
        fields = _ENTRY.unpack_from(data, at)
        name_at = at + _ENTRY.size + (2 if fields[-1] & _EXTENDED else 0)
        end = data.index(b"\0", name_at)
        found[os.fsdecode(data[name_at:end])] = Kept(size_bytes=fields[9], mtime_s=fields[2], mtime_ns=fields[3])
        at += (end - at + 8) // 8 * 8
    return found
