"""Where the workspace ends, and which files are wolo's own."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from wolo.guard.naming import files_of, spelled


class Boundaries:
    """All paths it is asked about are absolute and real."""

    def __init__(self, roots: Iterable[Path], own_places: Iterable[Path], free_reads: Iterable[Path], home: Path) -> None:
        """`own_places` hold wolo's settings, rules and sessions; `free_reads` what it spilled there for the model to page."""
        self.roots = [os.path.realpath(path) for path in roots]
        self.home = str(home)
        self._own = [os.path.realpath(path) for path in own_places]
        self._own_spelled = spelled(own_places, self.home)
        self._free_reads = [os.path.realpath(path) for path in free_reads]
        self._free_spelled = files_of(self._free_reads)

    def is_inside(self, path: str) -> bool:
        return is_below(path, self.roots)

    def is_own(self, path: str) -> bool:
        return is_below(path, self._own)

    def is_free(self, path: str) -> bool:
        """A file that was spilled for the model, who was told its name; not the folder, which lists what others were told."""
        return path not in self._free_reads and is_below(path, self._free_reads)

    def names_own(self, command: str, named: Iterable[str]) -> bool:
        """Whether a command touches wolo's own files, by its text or by the paths it names."""
        text = self._free_spelled.sub("", command) if self._free_spelled else command
        if self._own_spelled and self._own_spelled.search(text):
            return True
        return any(self.is_own(path) and not self.is_free(path) for path in named)


def is_below(path: str, folders: Sequence[str]) -> bool:
    return any(path == folder or path.startswith(folder.rstrip("/") + "/") for folder in folders)
