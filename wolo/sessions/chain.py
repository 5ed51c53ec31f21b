"""An entry as a row: its JSON, and a hash that binds it to the entry before."""

from __future__ import annotations

from hashlib import blake2b

import msgspec
from msgspec import Struct

from wolo.messages.characters import whole
from wolo.sessions.entries import AnyEntry

DIGEST_BYTES = 16

# What metadata holds is up to hooks and extensions; a value that JSON does not know is kept as its text.
_encoder = msgspec.json.Encoder(enc_hook=str)
_decoder: msgspec.json.Decoder[AnyEntry] = msgspec.json.Decoder(AnyEntry)


class Row(Struct, frozen=True):
    seq: int
    time_utc: float
    prev_hash: bytes
    hash: bytes
    body: bytes


def encode(entry: AnyEntry) -> bytes:
    try:
        return _encoder.encode(entry)
    except UnicodeEncodeError:
        # Half a surrogate pair has no UTF-8: models and file names produce it. Better one mark than no entry.
        return _encoder.encode(_without_surrogates(msgspec.to_builtins(entry, enc_hook=str)))


def link(body: bytes, *, seq: int, time_utc: float, prev_hash: bytes) -> Row:
    return Row(seq, time_utc, prev_hash, _digest(body, seq, time_utc, prev_hash), body)


def decode(row: Row) -> AnyEntry | None:
    """None when the row is damaged, or of a kind this wolo does not know."""
    if _digest(row.body, row.seq, row.time_utc, row.prev_hash) != row.hash:
        return None
    try:
        return _decoder.decode(row.body)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return None


def _digest(body: bytes, seq: int, time_utc: float, prev_hash: bytes) -> bytes:
    running = blake2b(prev_hash, digest_size=DIGEST_BYTES)
    running.update(b"%d %b\n" % (seq, repr(time_utc).encode()))
    running.update(body)
    return running.digest()


def _without_surrogates(value: object) -> object:
    if isinstance(value, str):
        return whole(value)
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_surrogates(item) for item in value]
    return value
