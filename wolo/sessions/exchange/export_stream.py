"""Streams the messages of a session to an export, and writes export files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from wolo.errors import SessionError
from wolo.formats.tolerant_json import read_as
from wolo.messages.message import Message
from wolo.messages.parts import TextPart
from wolo.sessions import entries, replay_entries, session_rows
from wolo.sessions.exchange.redaction import Redactor
from wolo.sessions.store import Store
from wolo.workspace.files.unfinished import replacing

Write = Callable[[bytes], object]


def write_file(path: Path, write_to: Callable[[Write], None]) -> None:
    """Writes a file completely or not at all, readable by its owner only. Raises SessionError."""
    try:
        with replacing(path) as file:
            write_to(file.write)
    except OSError as error:
        raise SessionError(f"{path} cannot be written: {error.strerror}.", hint="Name another file.") from error


class _Named(Struct, frozen=True):
    id: str = ""


class _EntrySubject(Struct, frozen=True):
    """Decodes of an entry only the message it concerns."""

    kind: str
    message_id: str = ""
    message: _Named | None = None
    summary: _Named | None = None


class MessageStream:
    """The messages up to the head, in bounded memory, without secrets and notices to the model. Can be iterated again."""

    def __init__(self, store: Store, session_id: str, redactor: Redactor | None) -> None:
        self._store, self._session_id, self._redactor = store, session_id, redactor
        # The `seq` of the entries from the first to the head, as `Store.load` follows them
        head, _ = store.raw.ends(session_id)
        parents = dict(store.raw.places(session_id))
        way, wanted = set(), head
        while wanted > 0:
            way.add(wanted)
            wanted = session_rows.parent_seq(wanted, parents[wanted]) if wanted in parents else wanted - 1
        self._path = frozenset(way)
        self._last_changes: dict[str, int] = {}
        self.compaction: entries.CompactionEntry | None = None
        """The compaction in force."""
        for row in store.raw.rows(session_id):
            if row.seq in self._path and row.body is not None:
                self._note(row.seq, row.body)

    def __iter__(self) -> Iterator[Message]:
        rows = (row for row in self._store.raw.rows(self._session_id) if row.seq in self._path)
        path = ((row.seq, entry) for row in rows if (entry := row.entry) is not None)
        for message in replay_entries.stream_messages(path, self._last_changes):
            if message.role == "user" and any(isinstance(part, TextPart) and part.is_notice for part in message.parts):
                shown = tuple(part for part in message.parts if not isinstance(part, TextPart) or not part.is_notice)
                message = replace(message, parts=shown)
            yield self._redactor.message(message) if self._redactor else message

    def _note(self, seq: int, body: bytes) -> None:
        if (about := read_as(body, _EntrySubject)) is None:
            return
        named = about.message or about.summary
        message_id = named.id if named else about.message_id
        if message_id:
            self._last_changes[message_id] = seq
        if about.kind == "compaction" and isinstance(entry := session_rows.decode_entry(body), entries.CompactionEntry):
            self.compaction = entry
