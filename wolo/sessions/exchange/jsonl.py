"""Writes a session in wolo's own lossless format, and verifies its hash chain.

A header line is followed by one line per entry, of all branches, with its hashes and its JSON byte for byte, and by the outputs
stored in files. An imported session is exported as the same bytes. A redacted entry keeps its hash, so that the chain still
holds, and has a seal: the hash of the redacted body, chained to the previous seal.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import suppress
from hashlib import blake2b
from typing import Any

import msgspec
from msgspec import Raw, Struct

from wolo.formats.tolerant_json import read_as
from wolo.sessions import blobs, listing, raw_rows, session_rows
from wolo.sessions.entries import PartialEntry
from wolo.sessions.exchange import export_stream, redaction
from wolo.sessions.store import Store

FORMAT = "jsonl"
VERSION = 1


class JsonlHeader(Struct, frozen=True, kw_only=True, omit_defaults=True, tag="session", tag_field="wolo"):
    version: int
    id: str
    name: str | None = None
    title: str = ""
    cwd: str = ""
    """Its directory at the time of the export."""
    model: str = ""
    mode: str = ""
    created: float = 0.0
    updated: float = 0.0
    parent: str | None = None
    head: int = 0
    entries: int = 0


class JsonlEntry(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An entry. Hashes are hexadecimal."""

    seq: int
    parent: int = 0
    time: float
    prev_hash: str = ""
    hash: str
    seal: str = ""
    """Set for a redacted body."""
    body: Raw = Raw()
    damaged: str = ""
    """Base64 of a body that is not JSON."""


class OutputFile(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A file of the session; its name begins with the hash of its content."""

    blob: str
    seal: str = ""
    data: bytes


class ImportOrigin(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Stored with an imported session."""

    format: str
    digest: str
    """Hash of what was imported, to recognise it again."""
    header: str = ""
    """Header line of a wolo file that was imported unchanged."""
    last: int = 0
    """Number of entries at that time."""


class Seals:
    """The hash chain over redacted bodies."""

    def __init__(self) -> None:
        self._last = b""

    def next(self, hashed: bytes, body: bytes) -> str:
        running = blake2b(self._last, digest_size=session_rows.DIGEST_BYTES)
        running.update(b"%d " % len(hashed) + hashed)
        running.update(body)
        self._last = running.digest()
        return self._last.hex()


def write(store: Store, info: listing.SessionInfo, out: export_stream.Write, redactor: redaction.Redactor | None) -> None:
    """Writes the session as of now; without a redactor, with secrets."""
    encode = msgspec.json.Encoder().encode
    seals = Seals()
    head, last = store.raw.ends(info.id)
    origin = origin_of(store, info.id)
    known = {field: getattr(info, field) for field in JsonlHeader.__struct_fields__ if hasattr(info, field)}
    line = msgspec.json.encode(JsonlHeader(version=VERSION, head=head, entries=last, **known))
    if origin and origin.last == last and msgspec.json.decode(origin.header, type=JsonlHeader).id == info.id:
        line = origin.header.encode()  # unchanged since the import
    out((redactor.body(line) if redactor else line) + b"\n")
    pieces = _whole_pieces(store.raw.rows(info.id), redactor) if redactor else {}
    for row in store.raw.rows(info.id):
        out(encode(_line(row, redactor, pieces, seals)) + b"\n")
    for path in store.raw.outputs(info.id):
        try:
            data = path.read_bytes()
        except OSError:
            continue  # `sessions verify` reports it
        clean = redactor.data(data) if redactor else data
        seal = "" if clean == data else seals.next(path.name.encode(), clean)
        out(encode(OutputFile(blob=path.name, seal=seal, data=clean)) + b"\n")


def origin_of(store: Store, session_id: str) -> ImportOrigin | None:
    """None for a session that was not imported."""
    return read_as(store.raw.origin(session_id), ImportOrigin)


def _line(row: session_rows.StoredRow, redactor: redaction.Redactor | None, pieces: dict[int, str], seals: Seals) -> JsonlEntry:
    facts: dict[str, Any] = {
        "seq": row.seq,
        "parent": row.parent,
        "time": row.time_utc,
        "prev_hash": row.prev_hash.hex(),
        "hash": row.hash.hex(),
    }
    if row.body is None:
        return JsonlEntry(**facts)
    body = row.body
    if redactor is not None:
        is_piece = row.seq in pieces
        body = msgspec.json.encode({**msgspec.json.decode(body), "text": pieces[row.seq]}) if is_piece else redactor.body(body)
    if body != row.body:
        facts["seal"] = seals.next(row.hash, body)
    with suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        msgspec.json.decode(body, type=Raw)
        body.decode()
        if b"\n" not in body:
            return JsonlEntry(**facts, body=Raw(body))
    return JsonlEntry(**facts, damaged=base64.b64encode(body).decode())


def _whole_pieces(rows: Iterator[session_rows.StoredRow], redactor: redaction.Redactor) -> dict[int, str]:
    """Redacts streamed pieces, in which a secret may span two: the last piece holds all text, the others are empty."""
    runs: dict[str, list[tuple[int, str]]] = {}
    changed: dict[int, str] = {}

    def close(message_id: str) -> None:
        run = runs.pop(message_id, [])
        text = "".join(piece for _, piece in run)
        if run and (clean := redactor.text(text)) != text:
            changed.update({seq: "" for seq, _ in run} | {run[-1][0]: clean})

    for row in rows:
        if raw_rows.kind_of(row.body) != "partial" or not isinstance(piece := row.entry, PartialEntry):
            continue
        if piece.text:
            runs.setdefault(piece.message_id, []).append((row.seq, piece.text))
        else:
            close(piece.message_id)
    for message_id in list(runs):
        close(message_id)
    return changed


class BrokenEntry(Struct, frozen=True):
    seq: int
    text: str
    """The problem, as the rest of a sentence."""


class ChainReport(Struct, frozen=True):
    entries: int
    redacted: int
    """Number of redacted entries; their seals are verified."""
    broken: BrokenEntry | None
    """The first problem."""


class ChainCheck:
    """Verifies entries of all branches in the order they were added."""

    def __init__(self) -> None:
        self.entries = 0
        self.redacted = 0
        self.broken: BrokenEntry | None = None
        self._hashes: dict[int, bytes] = {}
        self._last = 0
        self._seals = Seals()

    @property
    def checked(self) -> ChainReport:
        return ChainReport(self.entries, self.redacted, self.broken)

    def add(self, row: session_rows.StoredRow, seal: str = "") -> bool:
        """False when it was changed."""
        wrong: tuple[int, str] | None
        if row.seq <= self._last:
            wrong = row.seq, "is in the wrong place"
        elif row.seq > self._last + 1:
            wrong = self._last + 1, "is missing"
        elif row.parent and row.parent not in self._hashes:
            wrong = row.seq, "does not name the entry it follows"
        elif row.prev_hash != self._hashes.get(row.parent, b""):
            wrong = row.seq, f"does not follow entry {row.parent} in its present state" if row.parent else "is not the first"
        elif row.body is None:
            wrong = row.seq, "is missing: its file does not exist"
        elif seal:
            fits = self._seals.next(row.hash, row.body) == seal
            wrong = None if fits else (row.seq, "was changed after its secrets were redacted")
        else:
            wrong = None if row.is_intact else (row.seq, "was changed")
        if wrong is not None:
            self.note(*wrong)
        self.entries += 1
        self.redacted += bool(seal)
        self._hashes[row.seq] = row.hash
        self._last = max(self._last, row.seq)
        return wrong is None

    def add_output(self, name: str, data: bytes, seal: str, is_own: bool) -> bool:
        fits = self._seals.next(name.encode(), data) == seal if seal else is_own
        if not fits:
            self.note(self._last, f"is intact, like all others, but an output, {name}, was changed")
        return fits

    def end(self, num_entries: int) -> None:
        if self._last < num_entries:
            self.note(self._last + 1, f"is missing: the session ends after entry {self._last} of {num_entries}")

    def note(self, seq: int, text: str) -> None:
        if self.broken is None:
            self.broken = BrokenEntry(seq, text)

    def unreadable(self, line: int) -> None:
        self.note(self._last + 1, f"cannot be read (line {line})")


def check(store: Store, session_id: str) -> ChainReport:
    walk = ChainCheck()
    for row in store.raw.rows(session_id):
        walk.add(row)
    walk.end(max(store.raw.ends(session_id)))
    for path in store.raw.outputs(session_id):
        try:
            data = path.read_bytes()
        except OSError:
            walk.note(walk.entries, f"is intact, like all others, but the file of an output, {path.name}, is missing")
        else:
            walk.add_output(path.name, data, "", is_own(path.name, data))
    return walk.checked


def is_own(name: str, data: bytes) -> bool:
    """The name of an output begins with the hash of its content."""
    digest = blobs.name_of(data)
    return name[: len(digest)] == digest
