"""Reading files for the model, and remembering what it has seen of them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from wolo.errors import ToolError
from wolo.workspace.files.atomic_write import content_hash
from wolo.workspace.files.encodings import Encoding, find_encoding
from wolo.workspace.files.file_locks import clear_leftovers
from wolo.workspace.files.file_type import binary_kind
from wolo.workspace.files.safe_open import open_regular, read_all

MAX_TEXT_BYTES = 64 * 1024 * 1024
"""Larger files are read in part only, and neither edited nor remembered."""


class FileLedger:
    """What this session knows of the files: their content hash as it last read or wrote them.

    Making one removes temporary files that a killed wolo left behind.
    """

    def __init__(self, locks: Path) -> None:
        self.locks = locks
        """Where the per-file locks lie, shared by all sessions of the user."""
        self._hashes: dict[Path, str] = {}
        self._misses: dict[Path, int] = {}
        clear_leftovers(locks)

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

    def found(self, path: Path) -> None:
        """An edit has found its text."""
        self._misses.pop(path, None)


class TextFile(NamedTuple):
    data: bytes
    hash: str
    encoding: Encoding
    text: str
    """Decoded, without the byte order mark; line endings as they are."""


def read_file(path: Path) -> TextFile:
    """The whole of a text file at a real path. Raises OSError, or ToolError for what is no plain text of bearable size."""
    data = read_whole(path)
    encoding = find_encoding(data)
    if encoding is None:
        raise ToolError(f"This is {binary_kind(data[:16])}, not text.")
    return TextFile(data, content_hash(data), encoding, encoding.decode(data))


def read_whole(path: Path) -> bytes:
    """Whatever a plain file at a real path holds. Raises OSError, or ToolError for one that is too large."""
    handle = open_regular(path)
    try:
        is_huge = os.fstat(handle).st_size > MAX_TEXT_BYTES
        data = b"" if is_huge else read_all(handle, MAX_TEXT_BYTES + 1)
    finally:
        os.close(handle)
    if is_huge or len(data) > MAX_TEXT_BYTES:
        raise ToolError(f"The file is larger than {MAX_TEXT_BYTES >> 20} MiB; change it with `shell`.")
    return data
