"""Where the workspace ends, and which files are wolo's own."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from wolo.guard import protected_paths
from wolo.guard.shell.named_paths import Named, files_of, may_name, spelled
from wolo.workspace.root import led_to


class Boundaries:
    """All paths it is asked about are absolute and real."""

    def __init__(self, roots: Iterable[Path], own_places: Iterable[Path], free_reads: Iterable[Path], home: Path) -> None:
        """`own_places` hold wolo's settings, rules and sessions; `free_reads` what it spilled there for the model to page."""
        self.roots = [os.path.realpath(path) for path in roots]
        self._inside = _Below(self.roots)
        self.home = str(home)
        self._own = _Below([os.path.realpath(path) for path in own_places])
        self._own_spelled = spelled(own_places, self.home)
        free = [os.path.realpath(path) for path in free_reads]
        self._free_reads = _Below(free)
        self._free_spelled = files_of(free)
        self.obeyed: tuple[str, ...] = ()
        """Files of the workspace that wolo itself runs for the person, and the links that lead there."""

    def is_inside(self, path: str) -> bool:
        return self._inside.holds(path)

    def is_own(self, path: str) -> bool:
        return self._own.holds(path)

    def is_above_own(self, path: str) -> bool:
        """`path` may hold wildcards."""
        if any(folder.startswith(path.rstrip("/") + "/") for folder in self._own.folders):
            return True
        depth = path.count("/") + 1
        above = {"/".join(folder.split("/")[:depth]) for folder in self._own.folders if folder.count("/") >= depth}
        return any(letter in path for letter in "*?[") and any(may_name(path, each) for each in above)

    def runs_code(self, path: str) -> bool:
        """Whether something obeys what is written there."""
        return protected_paths.runs_code(path) or protected_paths.fold(path) in map(protected_paths.fold, self.obeyed)

    def is_led_to(self, path: str) -> bool:
        """Whether a protected name is a link to `path` or to a folder around it: `CLAUDE.md` is often one.

        Links are looked for beside the path and in the folders above it, up to the top of the workspace.
        """
        for root in self.roots:
            folder = path
            while folder.startswith(root.rstrip("/") + "/"):
                folder = folder.rpartition("/")[0] or "/"
                if any(path == goal or path.startswith(goal.rstrip("/") + "/") for goal in _protected_goals(folder)):
                    return True
        return False

    def is_free(self, path: str) -> bool:
        """A file that was spilled for the model, who was told its name; not the folder, which lists what others were told."""
        return path not in self._free_reads.folders and self._free_reads.holds(path)

    def names_own(self, command: str, named: Named) -> bool:
        """Whether a command touches wolo's own files, by its text or by the paths it names."""
        text = self._free_spelled.sub("", command) if self._free_spelled else command
        if self._own_spelled and self._own_spelled.search(text):
            return True
        if any(may_name(pattern, folder) for pattern in named.patterns for folder in self._own.folders):
            return True
        return any(self.is_own(path) and not self.is_free(path) for path in named.paths)


def _protected_goals(folder: str) -> list[str]:
    """Where the links in a folder lead that have protected names."""
    try:
        with os.scandir(folder) as entries:
            return [
                led_to(each.path) for each in entries if each.is_symlink() and protected_paths.is_obeyed_by_name(f"/{each.name}")
            ]
    except OSError:
        return []


class _Below:
    """Folders and what lies in them; by whole names, and fast, since every word of a command is asked for."""

    def __init__(self, folders: Sequence[str]) -> None:
        self.folders = frozenset(folders)
        self._beginnings = tuple(folder.rstrip("/") + "/" for folder in folders)

    def holds(self, path: str) -> bool:
        return path.startswith(self._beginnings) or path in self.folders
