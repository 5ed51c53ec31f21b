"""What is read of a session: a way through its tree, or a place in it."""

from __future__ import annotations

from msgspec import Struct

from wolo.sessions.entries import AnyEntry
from wolo.sessions.listing import SessionInfo


class Loaded(Struct, frozen=True):
    """A way through the tree of a session, from its first entry to its head."""

    info: SessionInfo
    entries: tuple[AnyEntry, ...]
    skipped: int
    """Entries that are damaged, missing or of a kind this wolo does not know."""
    seqs: tuple[int, ...] = ()
    """The place of each entry."""
    head: int = 0
    """The entry the next one follows."""
    unread: int = 0
    """How many entries before these were not read, because these were enough; about, where there are branches."""

    @property
    def warning(self) -> str:
        """What to tell a person once; empty when everything was read."""
        if not self.skipped:
            return ""
        total = len(self.entries) + self.skipped
        was = "was" if self.skipped == 1 else "were"
        return (
            f"{self.skipped} of {total} entries of session {self.info.id} cannot be read and {was} left out; the rest is intact."
        )


class Node(Struct, frozen=True):
    """An entry in the tree of its session."""

    seq: int
    parent: int
    """0 for the first of all."""
    time_utc: float
    entry: AnyEntry
