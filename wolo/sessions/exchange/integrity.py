"""Walks the chain of hashes, in the store or in a file, and finds the first entry that is not what was kept."""

from __future__ import annotations

from msgspec import Struct

from wolo.sessions import blobs
from wolo.sessions.entries import StoredRow
from wolo.sessions.exchange.jsonl import Seals
from wolo.sessions.store import Store


class Broken(Struct, frozen=True):
    seq: int
    text: str
    """What is wrong with the entry, as the rest of a sentence."""


class Checked(Struct, frozen=True):
    entries: int
    redacted: int
    """So many stand there without their secrets; what is left of them is what was made of them then."""
    broken: Broken | None
    """The first."""


class Walk:
    """Takes entry after entry, of all branches, in the order in which they were added."""

    def __init__(self) -> None:
        self.entries = 0
        self.redacted = 0
        self.broken: Broken | None = None
        self._hashes: dict[int, bytes] = {}
        self._last = 0
        self._seals = Seals()

    @property
    def checked(self) -> Checked:
        return Checked(self.entries, self.redacted, self.broken)

    def add(self, row: StoredRow, seal: str = "") -> bool:
        """Whether it is what was kept."""
        wrong = self._wrong(row, seal)
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
            self.note(self._last, f"is sound, as all are, but an output, {name}, was changed")
        return fits

    def end(self, entries: int) -> None:
        """So many there should be."""
        if self._last < entries:
            self.note(self._last + 1, f"is missing: it ends behind entry {self._last} of {entries}")

    def note(self, seq: int, text: str) -> None:
        if self.broken is None:
            self.broken = Broken(seq, text)

    def unreadable(self, line: int) -> None:
        self.note(self._last + 1, f"cannot be read (line {line})")

    def _wrong(self, row: StoredRow, seal: str) -> tuple[int, str] | None:
        if row.seq <= self._last:
            return row.seq, "stands in the wrong place"
        if row.seq > self._last + 1:
            return self._last + 1, "is missing"
        if row.parent and row.parent not in self._hashes:
            return row.seq, "does not say which entry it follows"
        if row.prev_hash != self._hashes.get(row.parent, b""):
            return row.seq, f"does not follow entry {row.parent} as that is now" if row.parent else "is not the first"
        if row.body is None:
            return row.seq, "is gone: the file that held it is not there"
        if seal:
            fits = self._seals.next(row.hash, row.body) == seal
            return None if fits else (row.seq, "was changed after its secrets were taken out")
        return None if row.is_intact else (row.seq, "is not what was kept")


def check(store: Store, session_id: str) -> Checked:
    walk = Walk()
    for row in store.archive.rows(session_id):
        walk.add(row)
    walk.end(max(store.archive.ends(session_id)))
    for path in store.archive.outputs(session_id):
        try:
            data = path.read_bytes()
        except OSError:
            walk.note(walk.entries, f"is sound, as all are, but the file of an output, {path.name}, is gone")
        else:
            walk.add_output(path.name, data, "", is_own(path.name, data))
    return walk.checked


def is_own(name: str, data: bytes) -> bool:
    """The name of an output begins with the hash of what is in it."""
    digest = blobs.name_of(data)
    return name[: len(digest)] == digest
