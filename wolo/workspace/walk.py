"""Walks a directory tree, leaving out what `.gitignore` files ignore.

Hidden files are included, `.git` is not. Links are not followed. Only regular files are returned, sorted by path component.
"""

from __future__ import annotations

import re
import stat
import time
from bisect import bisect
from collections.abc import Container, Iterable, Iterator
from itertools import groupby, islice
from operator import itemgetter
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

    def count(self, num_entries: int) -> None:
        """Raises WalkStopped."""
        self._seen += num_entries
        if self._seen > self.max_entries:
            raise WalkStopped(f"after {self.max_entries:,} files and folders")
        self.check()

    def check(self) -> None:
        """Raises WalkStopped."""
        if self._cancelled:
            raise WalkStopped("on request")
        if time.monotonic() >= self._deadline_s:
            raise WalkStopped(f"after {self.max_s:g} s")


class Folder(Struct):
    path: str
    """Relative to the start of the walk, with a trailing slash; empty for the start."""
    files: list[str]
    """Names of regular files that are not ignored, sorted."""
    is_whole: bool
    """It has no other regular files."""
    subfolders: list[str]
    """Names, sorted; ignored ones are omitted."""


def walk(start: Path, bounds: WalkLimits, *, top: Path | None = None) -> Iterator[str]:
    """Yields files below `start`, relative to it, heeding ignore files from the parent `top` down.

    An ignored `start` is walked by its own ignore files alone. Raises WalkStopped.
    """
    return files_of(walk_folders(start, bounds, top=top))


def files_of(folders: Iterable[Folder]) -> Iterator[str]:
    """Yields the files of `walk_folders` sorted by path component."""
    above: list[tuple[str, list[str]]] = []
    for folder in folders:
        while above and not folder.path.startswith(above[-1][0]):
            path, names = above.pop()
            yield from (path + name for name in names)
        if above:
            path, names = above[-1]
            num_before = bisect(names, folder.path[len(path) :].partition("/")[0])
            yield from (path + name for name in names[:num_before])
            del names[:num_before]
        above.append((folder.path, folder.files[:]))
    for path, names in reversed(above):
        yield from (path + name for name in names)


def walk_folders(start: Path, bounds: WalkLimits, *, top: Path | None = None) -> Iterator[Folder]:
    """Yields the folders of `walk`, each before those in it, sorted by path component. Raises WalkStopped."""
    waiting = [("", _rules_above(start, top or start, bounds))]
    while waiting:
        path, above = waiting.pop()
        folder, rules = _enter(f"{start}/{path}", path, above, bounds)
        yield folder
        waiting += ((f"{path}{name}/", rules) for name in reversed(folder.subfolders))


class _IgnoreLines(Struct, frozen=True):
    """The lines of an ignore file, last ones first, because they win.

    Neighbouring lines of one kind are joined into one expression: a group per line would cost time that grows with the square of
    their number.
    """

    pieces: tuple[tuple[re.Pattern[str], bool, bool], ...]

    def verdict(self, path: str) -> bool | None:
        """True for ignored, False for re-included, None for not mentioned. Paths are relative to the file's folder; folders end
        in `/`.
        """
        name = path[path.rfind("/", 0, -1) + 1 :]
        for expression, ignores, is_for_names in self.pieces:
            if expression.fullmatch(name if is_for_names else path):
                return ignores
        return None


class Rules(Struct, frozen=True):
    """The rules of one ignore file, for paths relative to the start of the walk."""

    lines: _IgnoreLines
    above: str = ""
    """Path from the ignore file's folder to the start of the walk, when the file is above it."""
    below: int = 0
    """Otherwise the length of the path from the start to the file's folder."""

    def verdict(self, path: str) -> bool | None:
        return self.lines.verdict(self.above + path[self.below :])


def _enter(folder: str, path: str, rules: tuple[Rules, ...], bounds: WalkLimits) -> tuple[Folder, tuple[Rules, ...]]:
    bounds.check()
    entries: list[os.DirEntry[str]] = []
    try:
        with os.scandir(folder) as listed:
            while some := [*islice(listed, _CHECK_EVERY)]:
                bounds.count(len(some))
                entries += some
    except OSError:
        bounds.num_unreadable += 1
    files = sorted([entry.name for entry in entries if entry.is_file(follow_symlinks=False)])
    subfolders = sorted([entry.name for entry in entries if entry.is_dir(follow_symlinks=False) and entry.name != ".git"])
    rules = rules_in(folder, path, rules, {entry.name for entry in entries}, bounds)
    visible = [name for name in files if name != ".git" and not is_ignored(path + name, rules, bounds)]
    entered = [name for name in subfolders if not is_ignored(f"{path}{name}/", rules, bounds)]
    return Folder(path, visible, len(visible) == len(files), entered), rules


def rules_in(folder: str, path: str, above: tuple[Rules, ...], names: Container[str], bounds: WalkLimits) -> tuple[Rules, ...]:
    """Returns the rules for a folder: those from above, and those of its own files among `names`."""
    if ".git" in names:
        above = ()  # a nested repository: rules of the outer one do not apply
    return (*above, *(Rules(lines, below=len(path)) for lines in _read_lines(folder, names, bounds)))


def is_ignored(path: str, rules: tuple[Rules, ...], bounds: WalkLimits) -> bool:
    """`path` is relative to the start of the walk; a folder ends in `/`. Raises WalkStopped: matching may take long."""
    for one in reversed(rules):
        bounds.check()
        if (verdict := one.verdict(path)) is not None:
            return verdict
    return False


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
        verdicts = (lines.verdict(f"{folder.relative_to(at)}/") for at, lines in reversed(rules))
        if next((verdict for verdict in verdicts if verdict is not None), False):
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
        pieces: list[tuple[re.Pattern[str], bool, bool]] = []
        for end in range(len(lines), 0, -_MAX_JOINED):
            bounds.check()
            parsed = filter(None, map(ignore_line, reversed(lines[max(end - _MAX_JOINED, 0) : end])))
            for _, run in groupby(parsed, key=itemgetter(1)):
                for kind, group in groupby(sorted(run, key=itemgetter(2)), key=itemgetter(1, 2)):
                    pieces.append((re.compile("|".join(f"(?:{expression})" for expression, *_ in group)), *kind))
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
