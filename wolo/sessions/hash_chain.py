"""An entry as a row: its JSON, and a hash that binds it to the entry before."""

from __future__ import annotations

from hashlib import blake2b

import msgspec
from msgspec import Struct

from wolo.messages.message import Codec
from wolo.sessions.entries import AnyEntry

DIGEST_BYTES = 16

_entries: Codec[AnyEntry] = Codec(AnyEntry)


class Row(Struct, frozen=True):
    seq: int
    time_utc: float
    prev_hash: bytes
    hash: bytes
    body: bytes


def encode(entry: AnyEntry) -> bytes:
    return _entries.encode(entry)


def link(body: bytes, *, seq: int, time_utc: float, prev_hash: bytes) -> Row:
    return Row(seq, time_utc, prev_hash, _digest(body, seq, time_utc, prev_hash), body)


def decode(row: Row) -> AnyEntry | None:
    """None when the row is damaged, or of a kind this wolo does not know."""
    return read(row.body) if is_intact(row) else None


def read(body: bytes) -> AnyEntry | None:
    """None for what is no entry, or one of a kind this wolo does not know."""
    try:
        return _entries.decode(body)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return None


def is_intact(row: Row) -> bool:
    return _digest(row.body, row.seq, row.time_utc, row.prev_hash) == row.hash


def _digest(body: bytes, seq: int, time_utc: float, prev_hash: bytes) -> bytes:
    running = blake2b(prev_hash, digest_size=DIGEST_BYTES)
    running.update(b"%d %b\n" % (seq, repr(time_utc).encode()))
    running.update(body)
    return running.digest()
