"""Wolo's own form of a session, in which nothing is lost: a line that says what it is, then one line an entry.

Every entry stands there with its place, its time, its hashes and its own JSON, byte for byte, all branches among each other in
the order in which they were said. Behind them come the outputs that lie in files. So a session that was taken in goes out again
as the same bytes. An entry that secrets were taken out of keeps its hash, so that the chain still holds, and carries a seal: the
hash of what was made of it, bound to the seal before.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from hashlib import blake2b
from typing import Any

import msgspec
from msgspec import Raw, Struct

from wolo.sessions.entries import DIGEST_BYTES, PartialEntry, StoredRow
from wolo.sessions.exchange.redaction import Redactor
from wolo.sessions.listing import SessionInfo
from wolo.sessions.raw_rows import kind_of
from wolo.sessions.store import Store

FORMAT = "jsonl"
VERSION = 1

Write = Callable[[bytes], object]


class Header(Struct, frozen=True, kw_only=True, omit_defaults=True, tag="session", tag_field="wolo"):
    version: int
    id: str
    name: str | None = None
    title: str = ""
    cwd: str = ""
    """The directory it belonged to when it was written."""
    model: str = ""
    mode: str = ""
    created: float = 0.0
    updated: float = 0.0
    parent: str | None = None
    head: int = 0
    entries: int = 0


class Line(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An entry. Hashes are hexadecimal."""

    seq: int
    parent: int = 0
    time: float
    prev_hash: str = ""
    hash: str
    seal: str = ""
    """Secrets were taken out of the body; empty when it is whole."""
    body: Raw = Raw()
    damaged: str = ""
    """In place of the body: base64 of what is no JSON any more."""


class Output(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A file of the session that holds no entry; its name begins with the hash of what is in it."""

    blob: str
    seal: str = ""
    data: bytes


class Origin(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Kept with a session that was imported."""

    format: str
    digest: str
    """Of what was imported, so that it is known again."""
    header: str = ""
    """The first line of a file of wolo's own that was taken in unchanged."""
    last: int = 0
    """How many entries there were then."""


class Seals:
    """The chain over what was redacted."""

    def __init__(self) -> None:
        self._last = b""

    def next(self, hashed: bytes, body: bytes) -> str:
        running = blake2b(self._last, digest_size=DIGEST_BYTES)
        running.update(b"%d " % len(hashed) + hashed)
        running.update(body)
        self._last = running.digest()
        return self._last.hex()


def write(store: Store, info: SessionInfo, out: Write, redactor: Redactor | None) -> None:
    """All of the session as it is now; without a redactor, everything in it."""
    encode = msgspec.json.Encoder().encode
    seals = Seals()
    out(_header(store, info, redactor) + b"\n")
    pieces = _whole_pieces(store.archive.rows(info.id), redactor) if redactor else {}
    for row in store.archive.rows(info.id):
        out(encode(_line(row, redactor, pieces, seals)) + b"\n")
    for path in store.archive.outputs(info.id):
        try:
            data = path.read_bytes()
        except OSError:
            continue  # `sessions verify` says that it is gone
        clean = redactor.data(data) if redactor else data
        seal = "" if clean == data else seals.next(path.name.encode(), clean)
        out(encode(Output(blob=path.name, seal=seal, data=clean)) + b"\n")


def origin_of(store: Store, session_id: str) -> Origin | None:
    """None: it was made here."""
    try:
        return msgspec.json.decode(store.archive.origin(session_id), type=Origin)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


def _header(store: Store, info: SessionInfo, redactor: Redactor | None) -> bytes:
    head, last = store.archive.ends(info.id)
    origin = origin_of(store, info.id)
    known = {field: getattr(info, field) for field in Header.__struct_fields__ if hasattr(info, field)}
    line = msgspec.json.encode(Header(version=VERSION, head=head, entries=last, **known))
    if origin and origin.last == last and msgspec.json.decode(origin.header, type=Header).id == info.id:
        line = origin.header.encode()  # nothing was said since: what came in goes out
    return redactor.body(line) if redactor else line


def _line(row: StoredRow, redactor: Redactor | None, pieces: dict[int, str], seals: Seals) -> Line:
    facts: dict[str, Any] = {
        "seq": row.seq,
        "parent": row.parent,
        "time": row.time_utc,
        "prev_hash": row.prev_hash.hex(),
        "hash": row.hash.hex(),
    }
    if row.body is None:
        return Line(**facts)
    body = row.body
    if redactor is not None:
        body = _with_text(body, pieces[row.seq]) if row.seq in pieces else redactor.body(body)
    if body != row.body:
        facts["seal"] = seals.next(row.hash, body)
    if not _is_json(body):
        return Line(**facts, damaged=base64.b64encode(body).decode())
    return Line(**facts, body=Raw(body))


def _whole_pieces(rows: Iterator[StoredRow], redactor: Redactor) -> dict[int, str]:
    """What pieces of a streamed answer become where a secret stands in them, perhaps across two: the last one holds it all,
    those before it are empty and so take back nothing but themselves."""
    runs: dict[str, list[tuple[int, str]]] = {}
    changed: dict[int, str] = {}

    def close(message_id: str) -> None:
        run = runs.pop(message_id, [])
        text = "".join(piece for _, piece in run)
        if run and (clean := redactor.text(text)) != text:
            changed.update({seq: "" for seq, _ in run} | {run[-1][0]: clean})

    for row in rows:
        if kind_of(row.body) != "partial" or not isinstance(piece := row.entry, PartialEntry):
            continue
        if piece.text:
            runs.setdefault(piece.message_id, []).append((row.seq, piece.text))
        else:
            close(piece.message_id)
    for message_id in list(runs):
        close(message_id)
    return changed


def _with_text(body: bytes, text: str) -> bytes:
    return msgspec.json.encode({**msgspec.json.decode(body), "text": text})


def _is_json(body: bytes) -> bool:
    try:
        msgspec.json.decode(body, type=Raw)
        body.decode()
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False
    return b"\n" not in body
