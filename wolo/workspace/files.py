"""Reading files for the model, and remembering what it has seen of them."""

from __future__ import annotations

from pathlib import Path


class FileLedger:
    """What this session knows of the files: their content hash as it last read or wrote them."""

    def __init__(self, locks: Path) -> None:
        self.locks = locks
        """Where the per-file locks lie, shared by all sessions of the user."""
        self._hashes: dict[Path, str] = {}
        self._misses: dict[Path, int] = {}

    def seen(self, path: Path) -> str | None:
        """The hash of the content this session knows; None when it knows nothing. `path` must be real."""
        return self._hashes.get(path)

    def record(self, path: Path, content_hash: str) -> None:
        self._hashes[path] = content_hash
        self._misses.pop(path, None)

    def forget(self, path: Path) -> None:
        self._hashes.pop(path, None)

    def count_miss(self, path: Path) -> int:
        """How many edits of this file in a row did not find their text, this one included."""
        self._misses[path] = self._misses.get(path, 0) + 1
        return self._misses[path]
