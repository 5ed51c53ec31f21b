"""Loads the entries of a session, all of them or as many as a model can use."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from msgspec import Struct

from wolo.messages.message import Message
from wolo.messages.parts import TextPart, new_id
from wolo.sessions import listing
from wolo.sessions.entries import AnyEntry, CompactionEntry, MessageEntry
from wolo.sessions.listing import SessionInfo
from wolo.sessions.session_rows import BODY, ROWS, head_and_last, parent_seq, read_entry


class Loaded(Struct, frozen=True):
    """The entries from the first one to the head."""

    info: SessionInfo
    entries: tuple[AnyEntry, ...]
    skipped: int
    """Number of damaged, missing or unknown entries."""
    seqs: tuple[int, ...] = ()
    """`seq` of each entry."""
    head: int = 0
    """`seq` of the entry that the next one follows."""
    unread: int = 0
    """Number of earlier entries that were not read; approximate with branches."""

    @property
    def warning(self) -> str:
        """For the user; empty when everything was read."""
        if not self.skipped:
            return ""
        total = len(self.entries) + self.skipped
        was = "was" if self.skipped == 1 else "were"
        return (
            f"{self.skipped} of {total} entries of session {self.info.id} cannot be read and {was} skipped; the rest is intact."
        )


class EntryNode(Struct, frozen=True):
    seq: int
    parent: int
    """0 for the first entry."""
    time_utc: float
    entry: AnyEntry


LOAD_LIMIT_BYTES = 16_000_000
"""Counted back from the newest entry: four times a window of a million tokens, at four bytes a token."""
SHOWN_BYTES = 256_000
"""Read in any case, also of messages that are no longer sent: what a user sees after a resume."""

OPENING = (
    "[The conversation began earlier: its first {count:,} entries were left out here to save space. The session keeps them all.]"
)
HINT = 'message_id "{id}"\nUse expand_message to see the full content: without arguments it lists all messages with their ids.'
"""The end of a message that replaces others."""


class LoadLimit:
    """Decides how far back to read. It stops at a prompt, so that no turn is cut.

    Once the oldest message that the last compaction still sends was read, more is read only to be shown. Entries since that
    compaction fit a context window, so reading always reaches it.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._read_bytes = 0
        self._sent_from = ""
        self._sent: set[str] | None = None
        """Messages that the last compaction shortens and that are not read yet."""

    def is_enough(self, entry: AnyEntry | None, size_bytes: int) -> bool:
        """Counts an entry that was read; None stands for a damaged one."""
        self._read_bytes += size_bytes
        if isinstance(entry, CompactionEntry) and self._sent is None:
            self._sent = set(entry.shortened)
            self._sent_from = entry.sent_from
        if not isinstance(entry, MessageEntry):
            return False
        if self._sent:
            self._sent.discard(entry.message.id)
        if self._sent_from == entry.message.id:
            self._most_bytes = min(self._most_bytes, SHOWN_BYTES)
        if self._read_bytes < self._most_bytes or self._sent:
            return False
        # A turn may be longer still: then it is cut, and its prompt is read separately.
        return entry.message.is_prompt or self._read_bytes >= 1.5 * self._most_bytes


def opening(unread: int, sent_from: str = "") -> CompactionEntry:
    """Makes the entry that replaces the ones not read, unless a compaction has left them out already.

    `sent_from` is the id of the first message that was read.
    """
    id = new_id("msg")
    text = f"{OPENING.format(count=unread)}\n\n{HINT.format(id=id)}"
    metadata = {"compressed": True, "compressed_content": text}
    lead = Message(id=id, role="compaction_summary", parts=(TextPart(text=text),), finished=True, metadata=metadata)
    return CompactionEntry(summary=lead, left_out=(f"before_{id}",), sent_from=sent_from, reason="window")


def load(connection: sqlite3.Connection, blobs_dir: Path, session_id: str, *, most_bytes: int | None) -> Loaded:
    """Reads from the head back to the first entry. Unreadable entries are skipped and counted."""
    entries: list[AnyEntry] = []
    seqs: list[int] = []
    skipped = unread = 0
    reach = LoadLimit(most_bytes) if most_bytes else None
    info = listing.require(connection, session_id)
    head, _ = head_and_last(connection, session_id)
    next_seq = head
    query = f"{ROWS} WHERE session = ? AND seq <= ? ORDER BY seq DESC"
    for seq, parent, *row in connection.execute(query, (session_id, head)):
        if seq > next_seq:
            continue  # of another branch
        entry = read_entry(blobs_dir, seq, row)
        skipped += next_seq - seq + (entry is None)
        if entry is not None:
            entries.append(entry)
            seqs.append(seq)
        if not (next_seq := parent_seq(seq, parent)):
            break
        if reach is not None and reach.is_enough(entry, len(row[BODY] or b"")):
            unread, next_seq = next_seq, 0
            break
    if unread and (prompt := _prompt_before(connection, blobs_dir, session_id, entries[-1], seqs[-1])):
        entries.append(prompt[1])
        seqs.append(prompt[0])
    return Loaded(info, tuple(reversed(entries)), skipped + next_seq, tuple(reversed(seqs)), head, unread)


def load_nodes(connection: sqlite3.Connection, blobs_dir: Path, session_id: str) -> list[EntryNode]:
    """Reads the entries of all branches, in the order they were added. Unreadable ones are skipped."""
    listing.require(connection, session_id)
    found = connection.execute(f"{ROWS} WHERE session = ? ORDER BY seq", (session_id,))
    read = ((seq, parent, row[0], read_entry(blobs_dir, seq, row)) for seq, parent, *row in found)
    return [EntryNode(seq, parent_seq(seq, parent), time_utc, entry) for seq, parent, time_utc, entry in read if entry]


def _prompt_before(
    connection: sqlite3.Connection, blobs_dir: Path, session_id: str, first: AnyEntry, seq: int
) -> tuple[int, AnyEntry] | None:
    """Finds the prompt of a turn that was read in part; None when it was read whole."""
    if isinstance(first, MessageEntry) and first.message.is_prompt:
        return None
    # The role is at the beginning of a body: most bodies need not be decoded.
    query = f"{ROWS} WHERE session = ? AND seq < ? AND kind = 'message' AND (body IS NULL OR substr(body, 1, 200) LIKE ?)"
    likely = (session_id, seq, '%"role":"user"%')
    for place, _, *row in connection.execute(f"{query} ORDER BY seq DESC", likely):
        entry = read_entry(blobs_dir, place, row)
        if isinstance(entry, MessageEntry) and entry.message.is_prompt:
            return place, entry
    return None
