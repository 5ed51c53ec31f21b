"""Walks a directory tree, leaving out what `.gitignore` files ignore.

Hidden files are included, `.git` is not. Links are not followed. Only regular files are returned, sorted by path component.
"""

from __future__ import annotations

import re
import stat
import time
from collections.abc import Container, Iterable, Iterator
from itertools import groupby
from pathlib import Path

from msgspec import Struct

from wolo.operating_system import os
from wolo.workspace.globs import ignore_line

_MAX_IGNORE_BYTES = 1_000_000
_MAX_JOINED = 500
"""Lines of an ignore file per expression, and between two checks of the time."""
_CHECK_EVERY = 256
"""Entries between two checks of the time."""


class WalkStopped(Exception):
    """A walk ended early; the message continues "stopped"."""


class WalkLimits(Struct):
    """Limits of a walk; its time starts at construction. `cancel` may be called from another thread."""

    max_entries: int = 400_000
    """Including ignored ones."""
    max_s: float = 10.0
    num_unreadable: int = 0
    """Counted during the walk."""
    _seen: int = 0
    _cancelled: bool = False
    _deadline_s: float = 0.0

    def __post_init__(self) -> None:
        self._deadline_s = time.monotonic() + self.max_s

    def cancel(self) -> None:
        self._cancelled = True

    def seconds_left(self) -> float:
        return max(0.0, self._deadline_s - time.monotonic())

    def count(self) -> None:
        """Counts an entry. Raises WalkStopped."""
        self._seen += 1
        if self._seen > self.max_entries:
            raise WalkStopped(f"after {self.max_entries:,} files and folders")
        if self._seen % _CHECK_EVERY == 0:
            self.check()

    def check(self) -> None:
        """Raises WalkStopped."""
        if self._cancelled:
            raise WalkStopped("on request")
        if time.monotonic() >= self._deadline_s:
            raise WalkStopped(f"after {self.max_s:g} s")


def walk(start: Path, bounds: WalkLimits, *, top: Path | None = None) -> Iterator[str]:
    """Yields files below `start`, relative to it, heeding ignore files from the parent `top` down.

    An ignored `start` is walked by its own ignore files alone. Raises WalkStopped.
    """
    levels = [_enter(str(start), "", _rules_above(start, top or start, bounds), bounds)]
    while levels:
        bounds.check()  # matching ignore rules may take long, too
        level = levels[-1]
        if (entry := next(level.entries, None)) is None:
            levels.pop()
            continue
        path = level.path + entry.name
        if entry.name == ".git":
            continue
        if entry.is_dir(follow_symlinks=False):
            if not is_ignored(path + "/", level.rules):
                levels.append(_enter(entry.path, path + "/", level.rules, bounds))
        elif entry.is_file(follow_symlinks=False) and not is_ignored(path, level.rules):
            yield path


class _IgnoreLines(Struct, frozen=True):
    """The lines of an ignore file, last ones first, because they win.

    Neighbouring lines of one kind are joined into one expression: a group per line would cost time that grows with the square of
    their number.
    """

    pieces: tuple[tuple[re.Pattern[str], bool], ...]

    def verdict(self, path: str) -> bool | None:
        """True for ignored, False for re-included, None for not mentioned. Paths are relative to the file's folder; folders end
        in `/`.
        """
        return next((ignores for expression, ignores in self.pieces if expression.fullmatch(path)), None)


class Rules(Struct, frozen=True):
    """The rules of one ignore file, for paths relative to the start of the walk."""

    lines: _IgnoreLines
    above: str = ""
    """Path from the ignore file's folder to the start of the walk, when the file is above it."""
    below: int = 0
    """Otherwise the length of the path from the start to the file's folder."""

    def verdict(self, path: str) -> bool | None:
        return self.lines.verdict(self.above + path[self.below :])


class _Level(Struct, frozen=True):
    path: str
    """Relative to the start, with a trailing slash; empty for the start."""
    entries: Iterator[os.DirEntry[str]]
    rules: tuple[Rules, ...]


def _enter(folder: str, path: str, rules: tuple[Rules, ...], bounds: WalkLimits) -> _Level:
    bounds.check()
    entries: list[os.DirEntry[str]] = []
    try:
        with os.scandir(folder) as listed:
            for entry in listed:
                bounds.count()
                entries.append(entry)
    except OSError:
        bounds.num_unreadable += 1
    entries.sort(key=lambda entry: entry.name)
    names = {entry.name for entry in entries if entry.name in (".git", ".gitignore")}
    return _Level(path, iter(entries), rules_in(folder, path, rules, names, bounds))


def rules_in(folder: str, path: str, above: tuple[Rules, ...], names: Container[str], bounds: WalkLimits) -> tuple[Rules, ...]:
    """Returns the rules for a folder: those from above, and those of its own files among `names`."""
    if ".git" in names:
        above = ()  # a nested repository: rules of the outer one do not apply
    return (*above, *(Rules(lines, below=len(path)) for lines in _read_lines(folder, names, bounds)))


def is_ignored(path: str, rules: tuple[Rules, ...]) -> bool:
    """`path` is relative to the start of the walk; a folder ends in `/`."""
    return bool(rules) and _nearest(one.verdict(path) for one in reversed(rules))


def _nearest(verdicts: Iterable[bool | None]) -> bool:
    return next((verdict for verdict in verdicts if verdict is not None), False)


def _rules_above(start: Path, top: Path, bounds: WalkLimits) -> tuple[Rules, ...]:
    """Rules of the ignore files between `top` and `start`; none when they ignore the start itself."""
    if top not in start.parents:
        return ()
    rules: list[tuple[Path, _IgnoreLines]] = []
    folder = top
    for name in start.relative_to(top).parts:
        names = {known for known in (".git", ".gitignore") if os.path.lexists(folder / known)}
        if ".git" in names:
            rules.clear()
        rules += [(folder, lines) for lines in _read_lines(str(folder), names, bounds)]
        folder /= name
        if _nearest(lines.verdict(f"{folder.relative_to(at)}/") for at, lines in reversed(rules)):
            return ()
    return tuple(Rules(lines, above=f"{start.relative_to(at)}/") for at, lines in rules)


def _read_lines(folder: str, names: Container[str], bounds: WalkLimits) -> list[_IgnoreLines]:
    texts = []
    if ".git" in names:
        texts.append(_read_regular(f"{folder}/.git/info/exclude"))
    if ".gitignore" in names:
        texts.append(_read_regular(f"{folder}/.gitignore"))
    read: list[_IgnoreLines] = []
    for text in texts:
        lines = text.removeprefix("\ufeff").split("\n")
        pieces: list[tuple[re.Pattern[str], bool]] = []
        for end in range(len(lines), 0, -_MAX_JOINED):
            bounds.check()
            parsed = filter(None, map(ignore_line, reversed(lines[max(end - _MAX_JOINED, 0) : end])))
            for ignores, group in groupby(parsed, key=lambda line: line[1]):
                pieces.append((re.compile("|".join(f"(?:{expression})" for expression, _ in group)), ignores))
        if pieces:
            read.append(_IgnoreLines(tuple(pieces)))
    return read


def _read_regular(path: str) -> str:
    """Empty for anything but a regular file: in a hostile checkout it may be a link or a pipe."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    with open(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return ""
        return file.read(_MAX_IGNORE_BYTES).decode(errors="surrogateescape")
