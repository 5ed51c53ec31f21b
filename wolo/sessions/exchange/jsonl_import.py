"""Imports wolo's own format in two passes, in bounded memory."""

from __future__ import annotations

import base64
import binascii
from bisect import bisect_left
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path

import msgspec
from msgspec import Struct

from wolo.sessions.entries import BranchEntry, MessageEntry, ResultsEntry
from wolo.sessions.exchange.json_files import END_OF_TIME, FilePreview, read_lines
from wolo.sessions.exchange.jsonl import ChainCheck, ChainReport, JsonlEntry, JsonlHeader, OutputFile, is_own
from wolo.sessions.session_rows import StoredRow, decode_entry, encode_entry, link_row

DIGEST_BYTES = 16
NAME_HEX = 32


class _Cassette(Struct, tag="cassette", tag_field="wolo"):
    """Header line of a cassette, which contains a session."""


class _CassetteFile(Struct, tag="file", tag_field="wolo"):
    """A file of a cassette's workspace."""


_LINES, _OUTPUTS, _TOLD = (
    msgspec.json.Decoder(JsonlEntry),
    msgspec.json.Decoder(OutputFile),
    msgspec.json.Decoder(JsonlHeader | _Cassette | _CassetteFile),
)


class Survey(Struct, frozen=True, kw_only=True):
    """Result of the first pass."""

    header: JsonlHeader | None
    """None when the line is damaged."""
    header_line: str
    digest: str
    kept: tuple[int, ...]
    """`seq` of the readable entries."""
    skipped: int
    checked: ChainReport

    @property
    def is_exact(self) -> bool:
        """It can be imported unchanged; otherwise the entries are linked again."""
        return not self.skipped and not self.checked.broken and not self.checked.redacted and self.header is not None

    @property
    def head(self) -> int:
        """The head, renumbered."""
        wanted = self.header.head if self.header else 0
        return self.new_seq(wanted) if wanted in self.kept else len(self.kept)

    def new_seq(self, seq: int) -> int:
        """New `seq` of an entry, or of the last one before it; 0 for none."""
        at = bisect_left(self.kept, seq)
        return at + 1 if at < len(self.kept) and self.kept[at] == seq else at


def matches(preview: FilePreview) -> bool:
    return any("wolo" in record or {"seq", "hash", "body"} <= record.keys() for record in preview.records[:20])


def survey(path: Path) -> Survey:
    """Raises SessionError."""
    header, header_line, skipped = None, "", 0
    walk = ChainCheck()
    kept: list[int] = []
    spoken: set[str] = set()
    results: list[tuple[int, str]] = []
    digest = blake2b(digest_size=DIGEST_BYTES)
    for number, line in enumerate(read_lines(path), 1):
        digest.update((line or b"") + b"\n")
        match _read(line):
            case JsonlHeader() as found if header is None and line is not None:
                header, header_line = found, line.decode()
            case JsonlEntry() as found if (row := row_of(found)) is not None and row.seq > (kept[-1] if kept else 0):
                walk.add(row, found.seal)
                match decode_entry(row.body or b""):  # whatever its hash: the file may have been edited
                    case None:
                        skipped += 1
                        continue
                    case MessageEntry(message=message):
                        spoken.add(message.id)
                    case ResultsEntry(message_id=message_id):
                        results.append((row.seq, message_id))
                kept.append(row.seq)
            case OutputFile() as found:
                walk.add_output(found.blob, found.data, found.seal, is_own(found.blob, found.data))
            case _Cassette() | _CassetteFile():
                pass
            case _:
                skipped += 1
                walk.unreadable(number)
    expected = header.entries if header else 0
    walk.end(expected)
    surveyed = Survey(
        header=header,
        header_line=header_line,
        digest=digest.hexdigest(),
        kept=tuple(kept),
        skipped=max(skipped, expected - len(kept)),
        checked=walk.checked,
    )
    orphans = {seq for seq, message_id in results if message_id not in spoken}
    if surveyed.is_exact or not orphans:
        return surveyed
    with_calls = tuple(seq for seq in kept if seq not in orphans)
    return msgspec.structs.replace(surveyed, kept=with_calls, skipped=surveyed.skipped + len(orphans))


def rows(path: Path, survey: Survey) -> Iterator[StoredRow]:
    """Yields the readable rows, linked again unless the file is exact."""
    hashes: dict[int, bytes] = {0: b""}
    kept = frozenset(survey.kept)
    last = 0
    for line in read_lines(path):
        read = _read(line)
        if not isinstance(read, JsonlEntry) or read.seq <= last or (row := row_of(read)) is None:
            continue
        if survey.is_exact:
            yield row
        elif row.seq in kept and (entry := decode_entry(row.body or b"")) is not None:
            last = row.seq
            seq = survey.new_seq(row.seq)
            parent = min(survey.new_seq(row.parent), seq - 1) if row.parent >= 0 else seq - 1
            body = row.body or b""
            if isinstance(entry, BranchEntry) and survey.new_seq(entry.left) != entry.left:
                body = encode_entry(msgspec.structs.replace(entry, left=survey.new_seq(entry.left)))
            again = link_row(body, seq=seq, parent=parent, time_utc=row.time_utc, prev_hash=hashes.get(parent, b""))
            hashes[again.seq] = again.hash
            yield again


def outputs(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yields name, without the hash, and content."""
    for line in read_lines(path):
        read = _read(line)
        if isinstance(read, OutputFile):
            yield read.blob[NAME_HEX:].lstrip("-"), read.data


def row_of(line: JsonlEntry) -> StoredRow | None:
    """None for a line that wolo cannot have written."""
    if not 0 <= line.time < END_OF_TIME:
        return None
    try:
        body = bytes(line.body) or (base64.b64decode(line.damaged, validate=True) if line.damaged else None)
        return StoredRow(line.seq, line.parent, line.time, bytes.fromhex(line.prev_hash), bytes.fromhex(line.hash), body)
    except (ValueError, binascii.Error):
        return None


def _read(line: bytes | None) -> JsonlHeader | JsonlEntry | OutputFile | _Cassette | _CassetteFile | None:
    for decoder in (_LINES, _OUTPUTS, _TOLD):
        try:
            (line or b"").decode()
            return decoder.decode(line or b"")
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            continue
    return None
