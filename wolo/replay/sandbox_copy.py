"""Where a session is played again: a copy of its workspace, and how paths there and in the original stand for each other."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from wolo.messages.comparison import steady
from wolo.sessions import blobs

_RECORDED_OUTPUTS = re.compile(r"[^\s\"'`]*/blobs(?=/[0-9a-f]{32})")


class ReplayWorkspace:
    """Everything a replay writes lies in `folder`, which whoever made it takes away."""

    def __init__(
        self,
        folder: Path,
        original: Path,
        original_cwd: Path,
        *,
        settings_from: Path,
        blobs_dir: Path,
        add_dirs: Sequence[Path] = (),
    ) -> None:
        """`original` is the root of the workspace that is copied, `add_dirs` are further directories of it; `settings_from` is
        the directory whose settings hold."""
        self.folder = Path(os.path.realpath(folder))
        self.root = self.folder / "workspace" / (original.name or "root")
        self.added = {path: self.folder / f"added-{number}" / path.name for number, path in enumerate(add_dirs, 1)}
        """The copies of further directories, by their originals."""
        self.scratch = self.folder / "scratch"
        self.outputs = (self.scratch / "outputs", blobs_dir)
        """Where large outputs lie, of this replay and of the session."""
        self.settings_from = settings_from
        self.notices: tuple[str, ...] = ()
        self.original = original
        self._original_cwd = original_cwd
        self._blobs_dir = blobs_dir
        self.temporary = self.scratch / "tmp"
        """What commands use for temporary files."""
        places = ((original, self.root), *self.added.items())
        self._there = [(_path(str(copy)), str(path)) for path, copy in places]
        self._temporary_then = os.environ.get("TMPDIR", "/tmp")
        self._here = [(_path(spelling), str(copy)) for path, copy in places for spelling in _spellings(path)]

    @property
    def roots(self) -> tuple[Path, ...]:
        """All directories that are copies."""
        return (self.root, *self.added.values())

    def here(self, text: str) -> str:
        """With the copy's paths in place of the original's."""
        for spelling, copy in self._here:
            text = spelling.sub(copy.replace("\\", r"\\"), text)
        return _RECORDED_OUTPUTS.sub(lambda found: str(self._blobs_dir), text)

    def there(self, text: str) -> str:
        """With the original's paths in place of the copy's."""
        text = text.replace(str(self.temporary), self._temporary_then)
        for copy, path in self._there:
            text = copy.sub(path.replace("\\", r"\\"), text)
        return text

    def steady(self, text: str) -> str:
        """As texts are compared."""
        return steady(self.there(text))

    def cwd_of(self, opened: Mapping[str, Any]) -> Path:
        """Where the conversation that was opened so works here."""
        for cwd in (Path(str(opened.get("cwd") or self._original_cwd)), self._original_cwd):
            if cwd.is_relative_to(self.original):
                place = self.root / cwd.relative_to(self.original)
                return place if place.is_dir() else self.root
        return self.root

    def keep(self, name: str, data: bytes) -> Path:
        """A large output, under a name made of what is in it."""
        folder = self.outputs[0]
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / blobs.name_of(data, blobs.suffix(name))
        path.write_bytes(data)
        return path


def _spellings(original: Path) -> list[str]:
    """Longest first: as it is, by way of links, and from home. Of a root that could be anything there are none."""
    if not original.is_absolute() or original == Path(original.anchor):
        return []
    home = os.environ.get("HOME", "")
    found = {str(original), os.path.realpath(original)}
    for each in tuple(found):
        if home and each.startswith(f"{home}/"):
            found |= {f"{name}{each[len(home) :]}" for name in ("~", "$HOME", "${HOME}")}
    return sorted(found, key=len, reverse=True)


def _path(spelled: str) -> re.Pattern[str]:
    """The path itself and what lies below it, not one that only begins alike."""
    return re.compile(rf"(?<![\w./-]){re.escape(spelled)}(?!\.?[\w-])")
