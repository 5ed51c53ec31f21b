"""How a folder was seen last: its names, and for each the times by which a later look knows whether to read it again."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import NamedTuple

from msgspec import msgpack

from wolo.workspace.checkpoints.path_state import UNKEPT, UNKNOWN_MODE, Kind, State

_COARSE_NS = 1_000_000
RACY_NS = 50_000_000
"""Clocks of file systems stand still for some milliseconds, so two changes may bear the same time."""
_RACY_COARSE_NS = 2_000_000_000

Stamp = tuple[int, ...]
"""Times, size, identity and mode; empty for what has to be read again."""


class Entry(NamedTuple):
    kind: Kind
    """Empty for what is left out."""
    stamp: Stamp = ()
    hash: bytes = UNKEPT
    mode: int = UNKNOWN_MODE

    @property
    def state(self) -> State:
        """Of a file or a link."""
        return State(self.kind, self.hash, self.mode)


class Listing:
    """A folder as it was seen last."""

    __slots__ = ("entries", "mode", "rules", "stamp")

    def __init__(self, stamp: Stamp, mode: int, rules: Stamp, entries: dict[str, Entry]) -> None:
        self.stamp = stamp
        self.mode = mode
        self.rules = rules
        """Times of the files that say what is ignored in it."""
        self.entries = entries

    def is_like(self, other: Listing) -> bool:
        mine, theirs = ((each.stamp, each.mode, each.rules, each.entries) for each in (self, other))
        return mine == theirs

    def encode(self) -> bytes:
        names = os.fsencode("/".join(self.entries))
        return msgpack.encode((self.stamp, self.mode, self.rules, names, list(self.entries.values())))


_DECODER = msgpack.Decoder(tuple[Stamp, int, Stamp, bytes, list[Entry]])


def decode(data: bytes) -> Listing:
    """Raises msgspec.DecodeError for what is no listing."""
    stamp, mode, rules, names, entries = _DECODER.decode(data)
    return Listing(stamp, mode, rules, dict(zip(os.fsdecode(names).split("/"), entries, strict=False)))


def hashes(listing: Listing) -> Iterator[bytes]:
    return (entry.hash for entry in listing.entries.values() if entry.hash)


def stamp_of(status: os.stat_result) -> Stamp:
    return (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino, status.st_mode)


def trusted(stamp: Stamp) -> Stamp:
    """Empty for one so young that a later change could bear it, too."""
    newest = max(stamp[:2])
    racy_ns = _RACY_COARSE_NS if newest % _COARSE_NS == 0 else RACY_NS
    return stamp if time.time_ns() - newest > racy_ns else ()


def rule_stamps(path: str, names: Mapping[str, object]) -> Stamp:
    """Changes whenever a file that says what is ignored does."""
    stamps: list[int] = []
    for known, file in ((".git", ".git/info/exclude"), (".gitignore", ".gitignore")):
        if known in names:
            with suppress(OSError):
                stamps += stamp_of(os.lstat(f"{path}/{file}"))
    return tuple(stamps)
