"""Tells whether paths and commands stay inside the workspace and leave wolo's own files alone."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from wolo.guard import protected_paths
from wolo.guard.shell.named_paths import NamedPaths, TooManyFiles, expand, file_pattern, may_name, real_path, spelling_pattern
from wolo.guard.shell.words import Word, name_of, unquote, unwrap
from wolo.workspace.root import resolve_path


def real_place(path: str | Path) -> str:
    """`resolve_path`, with the slashes of POSIX on Windows, too: the guard compares texts."""
    return resolve_path(path).replace(os.sep, "/")


class Boundaries:
    """All paths passed in are absolute and real."""

    def __init__(
        self,
        roots: Iterable[Path],
        own_places: Iterable[Path],
        free_reads: Iterable[Path],
        home: Path,
        free_folders: Iterable[Path] = (),
    ) -> None:
        """`own_places` contain wolo's settings, rules and sessions; `free_reads` the spilled output in them that the model may
        page. `free_folders` may be listed too: skills and plugins.
        """
        self.roots = [real_place(path) for path in roots]
        self._inside = _Folders(self.roots)
        self.home = str(home)
        self._own = _Folders([real_place(path) for path in own_places])
        self._own_spelled = spelling_pattern(own_places, self.home)
        listed = [real_place(path) for path in free_folders]
        free = [*(real_place(path) for path in free_reads), *listed]
        self._free_reads = _Folders(free)
        self._free_folders = frozenset(listed)
        self._free_spelled = file_pattern(free, listed)
        self.protected_files: tuple[str, ...] = ()
        """Workspace files that wolo itself runs for the user, and the links that lead to them."""

    def is_inside(self, path: str) -> bool:
        return self._inside.contains(path)

    def is_own(self, path: str) -> bool:
        return self._own.contains(path)

    def is_above_own(self, path: str) -> bool:
        """`path` may contain wildcards."""
        if any(folder.startswith(path.rstrip("/") + "/") for folder in self._own.folders):
            return True
        depth = path.count("/") + 1
        above = {"/".join(folder.split("/")[:depth]) for folder in self._own.folders if folder.count("/") >= depth}
        return any(letter in path for letter in "*?[") and any(may_name(path, each) for each in above)

    def runs_code(self, path: str) -> bool:
        return protected_paths.runs_code(path) or protected_paths.fold(path) in map(protected_paths.fold, self.protected_files)

    def is_link_target(self, path: str) -> bool:
        """Tells whether a protected name, such as `CLAUDE.md`, is a link to `path` or to a folder above it.

        Searches the folder of `path` and its parents, up to the workspace root.
        """
        for root in self.roots:
            folder = path
            while folder.startswith(root.rstrip("/") + "/"):
                folder = folder.rpartition("/")[0] or "/"
                goals: list[str] = []
                with suppress(OSError), os.scandir(folder) as entries:
                    links = [each for each in entries if each.is_symlink()]
                    goals = [real_place(each.path) for each in links if protected_paths.is_protected_name(f"/{each.name}")]
                if any(path == goal or path.startswith(goal.rstrip("/") + "/") for goal in goals):
                    return True
        return False

    def is_free(self, path: str) -> bool:
        """Tells whether `path` is a spilled file or part of a skill.

        The folder of spilled files is excluded, because it lists those of other sessions.
        """
        return path in self._free_folders or (path not in self._free_reads.folders and self._free_reads.contains(path))

    def names_own(self, command: str, named: NamedPaths) -> bool:
        """Tells whether a command touches wolo's own files, by its text or by the paths it names."""
        text = re.sub(self._free_spelled, "", command) if self._free_spelled else command
        if self._own_spelled and re.search(self._own_spelled, text):
            return True
        if any(may_name(pattern, folder) for pattern in named.patterns for folder in self._own.folders):
            return True
        return any(self.is_own(path) and not self.is_free(path) for path in named.paths)


class _Folders:
    """A set of folders and everything below them, compared by whole names. Called for every word of a command."""

    def __init__(self, folders: Sequence[str]) -> None:
        self.folders = frozenset(folders)
        self._beginnings = tuple(folder.rstrip("/") + "/" for folder in folders)

    def contains(self, path: str) -> bool:
        return path.startswith(self._beginnings) or path in self.folders


_CHANGING = frozenset(
    (
        *(("config", "set"), ("config", "edit"), ("permissions", "remove"), ("trust", "forget")),
        *(("mcp", "add"), ("mcp", "remove"), ("mcp", "allow"), ("hooks", "allow"), ("tools", "allow")),
        *(("auth", "login"), ("auth", "logout")),
        *(("skills", "add"), ("skills", "remove"), ("plugin", "add"), ("plugin", "allow"), ("plugin", "update")),
        *(("plugin", "remove"), ("plugin", "enable"), ("plugin", "disable"), ("plugin", "marketplace")),
    )
)
_REMOVING = frozenset({"rm", "mv", "chmod", "chown", "chgrp", "shred", "trash", "unlink"})
_FINDING = frozenset({"find", "fd", "fdfind"})
_MAY_REMOVE = rf"(?i)(?<![\w.-])(?:{'|'.join(sorted(_REMOVING))}|-delete)(?![\w-])|\$'"


def removal_targets(text: str, cwd: str, home: str, named: Iterable[str]) -> Iterator[str]:
    """Yields real paths that the command may move, remove or close, possibly with wildcards.

    Relative names are resolved in every directory that the command names. Raises TooComplex.
    """
    if not any(re.search(_MAY_REMOVE, each) for each in (text, unquote(text))):
        return  # a cheap first check: most commands remove nothing
    from wolo.guard.shell.nested_commands import commands_in  # noqa: PLC0415  # few commands remove anything

    folders = dict.fromkeys((cwd, *(path for path in named if os.path.isdir(path))))  # noqa: PTH112  # the same
    for each in commands_in(text):
        for words in unwrap(each.words):
            program = name_of(words[0]) if words else ""
            finds_to_remove = program in _FINDING and ("-delete" in words or not _REMOVING.isdisjoint(map(name_of, words[1:])))
            if program in _REMOVING or finds_to_remove:
                for word in words[1:-1] if program == "mv" else words[1:]:
                    yield from _resolve_in(folders, re.sub(r"^(?:~|\$HOME|\$\{HOME\})(?=/|$)", home, word))


def _resolve_in(folders: Iterable[str], word: str) -> Iterator[str]:
    for folder in folders:
        if not any(letter in word for letter in "*?["):
            yield real_path(folder, word)
            continue
        try:
            yield from map(resolve_path, expand(Word(word, True), folder))
        except TooManyFiles:
            yield os.path.normpath(word if word[:1] == "/" else f"{folder}/{word}")


def are_changed_by(command: str) -> bool:
    if not re.search("wolo", command, re.IGNORECASE) and not re.search(r"w\W*o\W*l\W*o", command):
        return False
    from wolo.guard.shell.nested_commands import commands_in  # noqa: PLC0415  # where wolo is named

    for each in commands_in(command):
        # The subcommand comes after any wrapper and any options: `env wolo mcp add`, `python -m wolo -C x mcp add`.
        plain = [word for word in each.words if not word.startswith("-")]
        at = next((at for at, word in enumerate(plain) if name_of(word) == "wolo"), len(plain))
        if not _CHANGING.isdisjoint(zip(plain[at + 1 :], plain[at + 2 :], strict=False)):
            return True
    return False
