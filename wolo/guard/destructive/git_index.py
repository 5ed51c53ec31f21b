"""What git keeps of the files in a directory, read from its index: git itself is not run, its settings could run anything."""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping
from typing import NamedTuple

from wolo.workspace.root import led_to

MAX_BYTES = 64 * 1024 * 1024
_ENTRY = struct.Struct(">10I20sH")
_EXTENDED = 0x4000


class Kept(NamedTuple):
    size_bytes: int
    mtime_s: int
    mtime_ns: int


class Index(NamedTuple):
    root: str
    """The directory that holds `.git`; empty where there is none."""
    files: Mapping[str, Kept]
    """By their paths below the root; of an index that cannot be read, none."""

    def has_unchanged(self, path: str) -> bool:
        """Whether git could give this file back as it is."""
        kept = self.files.get(os.path.relpath(path, self.root)) if self.root else None
        if kept is None:
            return False
        found = os.lstat(path)
        seconds, nanoseconds = divmod(found.st_mtime_ns, 1_000_000_000)
        return (found.st_size, seconds) == (kept.size_bytes, kept.mtime_s) and kept.mtime_ns in (0, nanoseconds)

    def has(self, path: str) -> bool:
        return bool(self.root) and os.path.relpath(path, self.root) in self.files

    def changed(self) -> list[str]:
        """Files that differ from what git keeps of them, by size and time, and those that are gone."""
        return [path for path in self.files if not self._is_unchanged(os.path.join(self.root, path))]  # noqa: PTH118  # many

    def _is_unchanged(self, path: str) -> bool:
        try:
            return self.has_unchanged(path)
        except OSError:
            return False


def read_index(start: str) -> Index:
    """Of the repository around `start`."""
    folder = led_to(start)
    while not os.path.lexists(f"{folder}/.git"):
        parent = os.path.dirname(folder)  # noqa: PTH120  # as above
        if parent == folder:
            return Index("", {})
        folder = parent
    try:
        return Index(folder, _entries(_read(f"{folder}/.git/index")))
    except (OSError, ValueError, struct.error):
        return Index(folder, {})


def _read(path: str) -> bytes:
    with open(path, "rb") as stream:
        return stream.read(MAX_BYTES)


def _entries(data: bytes) -> dict[str, Kept]:
    """Versions 2 and 3; a newer one counts as unreadable, so that nothing counts as kept."""
    magic, version, count = struct.unpack_from(">4sII", data)
    if magic != b"DIRC" or version not in (2, 3):
        raise ValueError(version)
    found: dict[str, Kept] = {}
    at = 12
    for _ in range(count):
        fields = _ENTRY.unpack_from(data, at)
        name_at = at + _ENTRY.size + (2 if fields[-1] & _EXTENDED else 0)
        end = data.index(b"\0", name_at)
        found[os.fsdecode(data[name_at:end])] = Kept(size_bytes=fields[9], mtime_s=fields[2], mtime_ns=fields[3])
        at += (end - at + 8) // 8 * 8
    return found
