"""Finds the instructions that a touched file adds: those of subfolders, and rules whose patterns match."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from wolo.extensions.instructions.file_reading import InstructionFile
from wolo.extensions.instructions.instruction_files import (
    folders_between,
    read_folder,
    readable,
    users_rules,
    with_imports,
)
from wolo.extensions.instructions.rules import matches
from wolo.foreign_places import first_names
from wolo.places import Notices


class NestedFiles(Struct, frozen=True):
    roots: tuple[Path, ...]
    """Folders of the workspace; real paths."""
    cwd: Path
    """Instructions from the first root to this folder are in the system prompt."""
    is_readable: Callable[[Path], bool]
    limit: int
    """Bytes for one call."""
    empty: dict[str, int] = field(default_factory=dict)
    """Folders without instructions, with the times of their last change; filled here."""

    def has_none(self, touched: Sequence[Path]) -> bool:
        """True where `for_files` would look at the folders again and find nothing; quick, because every call that reads asks."""
        roots = [*map(str, self.roots)]
        for folder in map(str, touched):
            root = next((each for each in roots if folder.startswith(each.rstrip(os.sep) + os.sep)), folder)
            while folder != root:
                folder = os.path.dirname(folder)  # noqa: PTH120  # on the way of every call
                if self.empty.get(folder) != _time_of(folder):
                    return False
        return not users_rules(self.roots[0], Notices())

    def for_files(self, touched: Sequence[Path], notices: Notices) -> list[InstructionFile]:
        """The most general first. `touched` are real paths."""
        instructions: dict[Path, InstructionFile] = {}
        known = folders_between(self.roots[0], self.cwd)
        own = [each for each in users_rules(self.roots[0], notices) if each.paths]
        for path in touched:
            instructions |= {each.path: each for each in own if matches(each, path)}
            root = next((root for root in self.roots if path.is_relative_to(root)), None)
            for folder in folders_between(root, path.parent) if root else ():
                for file in self._in_folder(folder, root, folder in known, notices) if root else ():
                    if matches(file, path) if file.paths else folder not in known:
                        instructions.setdefault(file.path, file if root == self.roots[0] else replace(file, name=str(file.path)))
        within = [each for each in readable([*instructions.values()], notices, self.is_readable) if each.path not in touched]
        size, kept = self.limit, []
        for file in with_imports(within, notices, self.is_readable):
            size -= len(file.text.encode())
            if size >= 0:
                kept.append(file)
            else:
                notices.add(f"{file.path} is left out: the instructions are too long for the model.")
        return kept

    def _in_folder(self, folder: Path, root: Path, is_known: bool, notices: Notices) -> list[InstructionFile]:
        """Looks again only into folders that have instructions or changed: every call that reads a file comes here."""
        changed = _time_of(str(folder))
        if changed is None or self.empty.get(str(folder)) == changed:
            return []
        if not first_names(folder):
            self.empty[str(folder)] = changed
            return []
        return read_folder(folder, root, notices, only_rules=is_known)


def _time_of(folder: str) -> int | None:
    """None for a folder that cannot be looked at."""
    try:
        return os.stat(folder).st_mtime_ns  # noqa: PTH116  # on the way of every call
    except OSError:
        return None
