"""Notices changed files, for the hooks that want to hear about them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal

Change = Literal["add", "change", "unlink"]
_State = tuple[int, int, int] | None


class FileWatch:
    def __init__(self, find: Callable[[], Iterable[Path]]) -> None:
        """`find` returns the files to watch, existing or not; it is called at each look."""
        self._find = find
        self._more: Sequence[Path] = ()
        self._seen = {path: _state(path) for path in (*self._find(), *self._more)}

    def watch(self, more: Sequence[Path]) -> None:
        """Replaces the files that are watched besides those of `find`."""
        self._more = [path for path in more if path.is_absolute()]
        self._seen |= {path: _state(path) for path in self._more if path not in self._seen}

    def changes(self) -> Iterator[tuple[Path, Change]]:
        """What has changed since the last look."""
        before, self._seen = self._seen, {path: _state(path) for path in (*self._find(), *self._more)}
        for path in {**before, **self._seen}:
            old, new = before.get(path), self._seen.get(path)
            if old != new:
                yield path, "add" if old is None else "unlink" if new is None else "change"


def _state(path: Path) -> _State:
    try:
        found = os.stat(path)  # noqa: PTH116  # Path's own is slower
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
