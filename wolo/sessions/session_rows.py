"""Checks session names, and reads and adds the rows of entries, linked by hashes, with the totals of their session."""

from __future__ import annotations

import os
import re
import sqlite3
import time
from collections.abc import Iterable, MutableSequence, Sequence
from hashlib import blake2b
from pathlib import Path

import msgspec
from msgspec import Struct, ValidationError, convert

from wolo.errors import SessionError
from wolo.messages.message import Codec, Usage, task_usage
from wolo.messages.unicode import whole
from wolo.sessions import blobs, listing
from wolo.sessions.entries import (
    SIDE_QUESTION,
    AnyEntry,
    CompactionEntry,
    CustomEntry,
    LabelEntry,
    MessageEntry,
    ResultsEntry,
    SettingEntry,
)

ROW_LIMIT_BYTES = 64 * 1024
"""Larger entries are stored in files."""
NAME_LIMIT = 100
TITLE_LIMIT = 80
DIGEST_BYTES = 16

_ID = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}\Z"


def new_session_id(now: float) -> str:
    """Returns `session_<utc time>_<random>`."""
    return f"session_{time.strftime('%Y%m%dT%H%M%S', time.gmtime(now))}_{os.urandom(5).hex()}"


def check_id(session_id: str) -> str:
    if not re.match(_ID, session_id):
        raise SessionError(
            f"{session_id!r} is not a valid session id.", hint="Use letters, digits, _ . and -, at most 128 of them."
        )
    return session_id


def check_name(name: str) -> str:
    """Returns the alias, stripped. Raises SessionError unless it is printable, short and no path."""
    plain = name.strip()
    if not plain or len(plain) > NAME_LIMIT or not plain.isprintable() or re.search(r"[/\\]|^[.-]", plain):
        raise SessionError(
            f"{name[:NAME_LIMIT]!r} is not a valid session name.",
            hint=f"Use up to {NAME_LIMIT} visible characters without / or \\, not beginning with . or -",
        )
    return plain


def title_of(text: str) -> str:
    """Returns the beginning of a text, on one line."""
    beginning = text[: 8 * TITLE_LIMIT]
    if not beginning.isprintable():
        beginning = "".join(char if char.isprintable() else " " for char in beginning)
    line = " ".join(beginning.split())
    return line if len(line) <= TITLE_LIMIT else line[: TITLE_LIMIT - 1].rstrip() + "…"


_SETTINGS = ("model", "mode", "title", "name")
"""Columns that a SettingEntry may change."""


_CODEC: Codec[AnyEntry] = Codec(AnyEntry)


class StoredRow(Struct, frozen=True):
    seq: int
    parent: int
    """`seq` of the preceding entry; 0 for the first, -1 when it was lost."""
    time_utc: float
    prev_hash: bytes
    hash: bytes
    body: bytes | None
    """JSON of the entry; None when its file is missing."""

    @property
    def is_intact(self) -> bool:
        return self.body is not None and self.hash == _digest(self.body, self.seq, self.time_utc, self.prev_hash)

    @property
    def entry(self) -> AnyEntry | None:
        """None for a damaged row or an unknown kind."""
        return decode_entry(self.body) if self.body is not None and self.is_intact else None


def encode_entry(entry: AnyEntry) -> bytes:
    return _CODEC.encode(entry)


def decode_entry(body: bytes) -> AnyEntry | None:
    """None for anything but an entry of a known kind."""
    try:
        return _CODEC.decode(body)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return None


def link_row(body: bytes, *, seq: int, parent: int, time_utc: float, prev_hash: bytes) -> StoredRow:
    return StoredRow(seq, parent, time_utc, prev_hash, _digest(body, seq, time_utc, prev_hash), body)


def _digest(body: bytes, seq: int, time_utc: float, prev_hash: bytes) -> bytes:
    running = blake2b(prev_hash, digest_size=DIGEST_BYTES)
    running.update(b"%d %b\n" % (seq, repr(time_utc).encode()))
    running.update(body)
    return running.digest()


ROWS = "SELECT seq, parent, time_utc, prev_hash, hash, CAST(body AS BLOB), blob FROM entries"
BODY = 3
"""Index of the body in a row, after `seq` and `parent` are split off."""


def read_entry(blobs_dir: Path, seq: object, row: MutableSequence[object]) -> AnyEntry | None:
    """Decodes a row; None when its hash does not match. A body stored in a file is read into the row."""
    time_utc, prev_hash, digest, _, blob = row
    if isinstance(blob, str):
        try:
            row[BODY] = (blobs_dir / check_id(blob)).read_bytes()
        except (OSError, SessionError):
            return None
    match seq, time_utc, prev_hash, digest, row[BODY]:
        case int(), float(), bytes(), bytes(), bytes() as body:
            return StoredRow(seq, 0, time_utc, prev_hash, digest, body).entry
    return None


def head_and_last(connection: sqlite3.Connection, session_id: str) -> tuple[int, int]:
    """Returns `seq` of the head and of the last entry."""
    query = "SELECT head, (SELECT max(seq) FROM entries WHERE session = sessions.id) FROM sessions WHERE id = ?"
    if (row := connection.execute(query, (session_id,)).fetchone()) is None:
        raise SessionError(f"Session {session_id} is gone.", hint="It was deleted; `wolo sessions list` shows the others.")
    return row[0], max(row[0], row[1] or 0)


def hash_of(connection: sqlite3.Connection, session_id: str, seq: int) -> bytes:
    row = connection.execute("SELECT hash FROM entries WHERE session = ? AND seq = ?", (session_id, seq)).fetchone()
    return row[0] if row else b""


def parent_seq(seq: int, parent: object) -> int:
    """`seq` of the preceding entry; where that was lost, of the one added before."""
    if parent is None:
        return 0
    return parent if isinstance(parent, int) and 0 <= parent < seq else seq - 1


def add_entries(
    connection: sqlite3.Connection,
    blobs_dir: Path,
    session_id: str,
    entries: Sequence[AnyEntry],
    bodies: Sequence[bytes],
    now: float,
    behind: int | None = None,
) -> None:
    """Adds entries, encoded as `bodies`, behind the head or entry `behind`. Needs a write transaction."""
    parent, seq = head_and_last(connection, session_id)
    parent = parent if behind is None else behind
    prev_hash = hash_of(connection, session_id, parent)
    for entry, body in zip(entries, bodies, strict=True):
        row = link_row(body, seq=seq + 1, parent=parent, time_utc=now, prev_hash=prev_hash)
        insert(connection, blobs_dir, session_id, str(entry.__struct_config__.tag), row)
        parent = seq = row.seq
        prev_hash = row.hash
    update_totals(connection, session_id, entries, seq, now)


def insert(connection: sqlite3.Connection, blobs_dir: Path, session_id: str, kind: str, row: StoredRow) -> None:
    """Inserts the row of an entry. Needs a write transaction."""
    body = row.body.decode() if row.body is not None else None
    blob = None
    if row.body is not None and len(row.body) > ROW_LIMIT_BYTES:
        body, blob = None, blobs.add(blobs_dir, connection, session_id, row.body).name
    connection.execute(
        "INSERT INTO entries (session, seq, parent, kind, time_utc, prev_hash, hash, body, blob) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (session_id, row.seq, row.parent or None, kind, row.time_utc, row.prev_hash, row.hash, body, blob),
    )


def extra_usage(entry: AnyEntry) -> Usage | None:
    """Usage of a summary or a side question, which belong to no message."""
    return entry.usage if isinstance(entry, CompactionEntry) else side_question_usage(entry)


def subagent_usages(entry: AnyEntry) -> list[Usage]:
    """Usage of subagents; their answers are in sessions of their own."""
    parts = entry.parts if isinstance(entry, ResultsEntry) else ()
    return [usage for part in parts if (usage := task_usage(part)) is not None]


def side_question_usage(entry: AnyEntry) -> Usage | None:
    if isinstance(entry, CustomEntry) and entry.custom_type == SIDE_QUESTION:
        try:
            return convert(entry.data.get("usage"), Usage)
        except ValidationError:
            return None
    return None


def usages_of(entries: Sequence[AnyEntry]) -> list[Usage]:
    """Usage of answers, summaries, side questions and subagents."""
    answers = (entry.message.usage for entry in entries if isinstance(entry, MessageEntry))
    tasks = (usage for entry in entries for usage in subagent_usages(entry))
    return [*filter(None, answers), *filter(None, map(extra_usage, entries)), *tasks]


def total_cost(usages: Iterable[Usage]) -> float | None:
    """US dollars; None when a price is unknown."""
    costs = [usage.cost.total if usage.cost else None for usage in usages]
    return None if None in costs else sum(cost for cost in costs if cost)


def update_totals(connection: sqlite3.Connection, session_id: str, entries: Sequence[AnyEntry], head: int, now: float) -> None:
    """Updates the columns for listings with the entries just added."""
    is_used = not all(isinstance(entry, SettingEntry | LabelEntry) for entry in entries)
    messages = [entry.message for entry in entries if isinstance(entry, MessageEntry)]
    prompts = [message for message in messages if message.is_prompt]
    usages = usages_of(entries)
    connection.execute(
        "UPDATE sessions SET head = ?, updated = coalesce(?, updated), turns = turns + ?, tokens = tokens + ?, cost = cost + ?, "
        "title = CASE WHEN title = '' THEN ? ELSE title END WHERE id = ?",
        (
            head,
            now if is_used else None,
            len(prompts),
            sum(usage.context_tokens for usage in usages),
            total_cost(usages),
            next((title for prompt in prompts if (title := title_of(prompt.text))), ""),
            session_id,
        ),
    )
    for entry in entries:
        if isinstance(entry, SettingEntry) and entry.name in _SETTINGS:
            value = whole(entry.value)
            if entry.name == "name":
                value = check_name(value)
                if (holder := listing.read(connection, value, "name")) and holder.id != session_id:
                    raise SessionError(f"Session {holder.id} is already named {value}.", hint="Choose another name.")
            elif entry.name == "title":
                value = title_of(value)
            connection.execute(f"UPDATE sessions SET {entry.name} = ? WHERE id = ?", (value, session_id))
    if is_used:
        touch(connection, session_id)


def touch(connection: sqlite3.Connection, session_id: str) -> None:
    """Makes it the most recently used session."""
    # Saves an index write in the usual case, the same session again.
    connection.execute(
        "UPDATE sessions SET touched = (SELECT max(touched) + 1 FROM sessions) "
        "WHERE id = ? AND touched < (SELECT max(touched) FROM sessions)",
        (session_id,),
    )
