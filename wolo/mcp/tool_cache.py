"""The tools of servers as they were last seen: a conversation knows them at once, and need not wait for a server."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from wolo.mcp.tool_listing import Listed
from wolo.places import make_private

_MOST_BYTES = 8 * 1024 * 1024


class Remembered(Struct, frozen=True):
    """What came of the last start of a server."""

    tools: tuple[Listed, ...] = ()
    failed: bool = False
    """It could not be reached: the first turn does not wait for it again."""
    why: str = ""
    """Of one that failed, for people."""
    instructions: str = ""
    """What it says of the use of its tools."""


class CachedTools:
    """A file for each server, by the fingerprint of how it is reached. One that cannot be read is as if it were not there."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read(self, fingerprint: str) -> Remembered | None:
        try:
            path = self._path(fingerprint)
            return msgspec.json.decode(path.read_bytes(), type=Remembered) if path.stat().st_size <= _MOST_BYTES else None
        except (OSError, msgspec.DecodeError, RecursionError):
            return None

    def keep(self, fingerprint: str, remembered: Remembered) -> None:
        path = self._path(fingerprint)
        beside = path.with_name(f"{path.name}.{os.getpid()}.{os.urandom(4).hex()}")
        with suppress(OSError, TypeError, ValueError, RecursionError):
            make_private(self._folder)
            try:
                beside.write_bytes(msgspec.json.encode(remembered))
                beside.chmod(0o600)
                beside.replace(path)
            finally:
                beside.unlink(missing_ok=True)

    def _path(self, fingerprint: str) -> Path:
        return self._folder / f"{fingerprint}.json"
