"""Remembers a folder's entries with their stamps, so that a scan can skip unchanged ones."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import NamedTuple

from msgspec import msgpack

from wolo.workspace.checkpoints.path_state import NOT_STORED, UNKNOWN_MODE, Kind, State

_COARSE_NS = 1_000_000
RACY_NS = 50_000_000
"""File system clocks have a resolution of milliseconds: two changes may have the same time."""
_RACY_COARSE_NS = 2_000_000_000

Stamp = tuple[int, ...]
"""Times, size, identity and mode; empty for an entry that must be read again."""


class DirectoryEntry(NamedTuple):
    kind: Kind
    """Empty for entries not covered."""
    stamp: Stamp = ()
    hash: bytes = NOT_STORED
    mode: int = UNKNOWN_MODE

    @property
    def state(self) -> State:
        """For a file or link."""
        return State(self.kind, self.hash, self.mode)


class DirectoryListing:
    """A folder as of the last scan."""

    __slots__ = ("entries", "mode", "rules", "stamp")

    def __init__(self, stamp: Stamp, mode: int, rules: Stamp, entries: dict[str, DirectoryEntry]) -> None:
        self.stamp = stamp
        self.mode = mode
        self.rules = rules
        """Stamps of the files with ignore rules."""
        self.entries = entries

    def is_like(self, other: DirectoryListing) -> bool:
        mine, theirs = ((each.stamp, each.mode, each.rules, each.entries) for each in (self, other))
        return mine == theirs

    def encode(self) -> bytes:
        names = os.fsencode("/".join(self.entries))
        return msgpack.encode((self.stamp, self.mode, self.rules, names, list(self.entries.values())))


_DECODER = msgpack.Decoder(tuple[Stamp, int, Stamp, bytes, list[DirectoryEntry]])


def decode(data: bytes) -> DirectoryListing:
    """Raises msgspec.DecodeError."""
    stamp, mode, rules, names, entries = _DECODER.decode(data)
    return DirectoryListing(stamp, mode, rules, dict(zip(os.fsdecode(names).split("/"), entries, strict=False)))


def hashes(listing: DirectoryListing) -> Iterator[bytes]:
    return (entry.hash for entry in listing.entries.values() if entry.hash)


def stamp_of(status: os.stat_result) -> Stamp:
    return (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino, status.st_mode)


def trusted(stamp: Stamp) -> Stamp:
    """Empty for a stamp so recent that a later change could have the same one."""
    newest = max(stamp[:2])
    racy_ns = _RACY_COARSE_NS if newest % _COARSE_NS == 0 else RACY_NS
    return stamp if time.time_ns() - newest > racy_ns else ()


def rule_stamps(path: str, names: Mapping[str, object]) -> Stamp:
    """Stamps of the ignore files of a folder."""
    stamps: list[int] = []
    for known, file in ((".git", ".git/info/exclude"), (".gitignore", ".gitignore")):
        if known in names:
            with suppress(OSError):
                stamps += stamp_of(os.lstat(f"{path}/{file}"))
    return tuple(stamps)
