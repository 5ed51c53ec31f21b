"""Reads sessions of OpenCode, from its SQLite database, older file trees and `opencode export`, and writes such exports.

The database is only read: in place while OpenCode has it open or when it is complete, as a private copy when a crash left changes
in its log.
"""

from __future__ import annotations

import re
import shutil
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from msgspec import Struct

from wolo.errors import SessionError
from wolo.formats.anthropic.encode import SIGNATURE
from wolo.formats.encoding.wire_forms import IdPolicy
from wolo.formats.gemini.encode import THOUGHT_SIGNATURE
from wolo.formats.openai_responses.encode import ENCRYPTED
from wolo.messages.message import Usage
from wolo.messages.parts import AnyPart, FilePart, MediaPart, TextPart, ThinkingPart, ToolPart, blob_of
from wolo.messages.roles import AssistantMessage, ToolMessage
from wolo.places import Notices
from wolo.sessions.exchange import json_files
from wolo.sessions.exchange.export_stream import MessageStream, Write
from wolo.sessions.exchange.foreign import builder, discovery, record_writer
from wolo.sessions.exchange.foreign.opencode_messages import MessageRow, OpenCodeReader, convert_row, gather
from wolo.sessions.exchange.json_files import FilePreview, Imported, Record, read_object, record, records, text, unix_time
from wolo.sessions.exchange.redaction import Redactor
from wolo.sessions.listing import SessionInfo
from wolo.sessions.store import Store
from wolo.workspace.files import sqlite_connection, unfinished

MAGIC = b"SQLite format 3\0"
DAMAGES = (sqlite3.Error, OSError, ValueError)
"""Errors of a damaged database; SQLite's messages may contain bytes that are not text."""
_EXPORT = re.compile(rb'\s*\{\s*"info"\s*:\s*\{')
"""The beginning of an `opencode export`."""
_SESSIONS = "SELECT id, directory, title, time_created, time_updated FROM session WHERE parent_id IS NULL"
_MESSAGES = "SELECT id, data FROM message WHERE session_id = ? ORDER BY time_created, id"
_PARTS = "SELECT data FROM part WHERE message_id = ? ORDER BY id"
_NEWER = "SELECT id, type, data FROM session_message WHERE session_id = ? ORDER BY seq, time_created, id"


class StoredSession(Struct):
    id: str
    info: Record
    rows: Iterable[MessageRow]
    subagents: int = 0
    skipped: int = 0


def matches(preview: FilePreview) -> bool:
    if preview.path.parent.parent.name == "session" and preview.path.name.startswith("ses_"):
        return True
    return preview.beginning.startswith(MAGIC) or _EXPORT.match(preview.beginning) is not None


def read(source: Path) -> Imported:
    """Reads an export, a session file of the tree, or the database, with a session id appended like a file name.

    A database alone means its newest session. Raises SessionError without a conversation.
    """
    notices = Notices()
    if source.parent.is_file():
        return _from_database(source.parent, source.name, notices)
    if _is_database(source):
        return _from_database(source, "", notices)
    document = read_object(source)
    if "messages" in document:
        messages = [MessageRow(record(each, "info"), records(each, "parts")) for each in records(document, "messages")]
        return _import(source, StoredSession(text(record(document, "info"), "id"), record(document, "info"), messages), notices)
    # Files: `storage/session/PROJECT/ID.json`, `message/ID/*.json` and `part/MESSAGE/*.json`
    id, storage = text(document, "id") or source.stem, source.absolute().parent.parent.parent
    stored = StoredSession(id, document, ())
    stored.subagents = sum(text(read_object(each), "parentID") == id for each in discovery.children(source.parent, "ses_*.json"))
    stored.rows = _files(storage, stored)
    return _import(source, stored, notices)


def find_sessions(cwd: Path, environ: Mapping[str, str]) -> list[discovery.FoundSession]:
    base = environ.get("XDG_DATA_HOME")
    home = Path(base) / "opencode" if base else discovery.home_of(".local/share/opencode", environ)
    sessions: dict[str, discovery.FoundSession] = {}
    for path in discovery.children(home / "storage" / "session", "*/ses_*.json"):
        info = read_object(path)
        if discovery.same_directory(text(info, "directory"), cwd) and not info.get("parentID"):
            at = unix_time(record(info, "time").get("updated")) or discovery.last_change_at(path)
            sessions[path.stem] = discovery.FoundSession(path, path.stem, text(info, "title"), at)
    for path in discovery.children(home, "opencode*.db"):
        try:
            with _open(path) as connection:
                for id, directory, title, _, changed in connection.execute(_SESSIONS):
                    if discovery.same_directory(str(directory), cwd):
                        sessions[str(id)] = discovery.FoundSession(path / str(id), str(id), str(title), unix_time(changed))
        except DAMAGES:
            continue
    return discovery.newest_first(sessions.values())


def _is_database(source: Path) -> bool:
    try:
        with source.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError as error:
        raise json_files.read_error(source, error) from error


def _from_database(path: Path, id: str, notices: Notices) -> Imported:
    try:
        with _open(path) as connection:
            listed = {str(row[0]): row for row in connection.execute(f"{_SESSIONS} ORDER BY time_updated DESC, id")}
            if id and id not in listed:
                listed = {
                    str(row[0]): row for row in connection.execute(_SESSIONS.partition(" WHERE")[0] + " WHERE id = ?", (id,))
                }
            chosen = id or next(iter(listed), "")
            if chosen not in listed:
                missing = f"There is no session {id} in {path}." if id else f"{path} holds no session of OpenCode."
                raise SessionError(missing, hint="`wolo sessions import --from opencode` lists those of this directory.")
            if not id and len(listed) > 1:
                notices.add(f"The newest of {len(listed)} sessions was imported: {chosen}.")
            return _import(path, _session(connection, *listed[chosen]), notices)
    except DAMAGES as error:
        hint = "If OpenCode can still open it, `opencode export ID` writes a file that wolo reads."
        raise SessionError(f"{path} cannot be read as a database of OpenCode: {error}.", hint=hint) from error


def _session(connection: sqlite3.Connection, id: str, directory: str, title: str, created: object, _: object) -> StoredSession:
    (subagents,) = connection.execute("SELECT count(*) FROM session WHERE parent_id = ?", (id,)).fetchone()
    columns = {str(row[1]) for row in connection.execute("PRAGMA table_info(session)")}
    column = "revert" if "revert" in columns else "NULL"
    (revert,) = connection.execute(f"SELECT {column} FROM session WHERE id = ?", (id,)).fetchone() or (None,)
    info = {"directory": directory, "title": title, "time": {"created": created}, "revert": _json(revert)}
    stored = StoredSession(id, info, (), subagents)
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    rows = connection.execute(_MESSAGES, (id,)).fetchall() if {"message", "part"} <= tables else []
    stored.rows = _rows(connection, stored, rows) if rows or "session_message" not in tables else _newer_rows(connection, stored)
    return stored


def _newer_rows(connection: sqlite3.Connection, stored: StoredSession) -> Iterator[MessageRow]:
    for id, kind, packed in connection.execute(_NEWER, (stored.id,)):
        data = _json(packed)
        stored.skipped += not data
        if data and (each := convert_row(str(kind), {**data, "id": str(id)})) is not None:
            yield each


def _rows(connection: sqlite3.Connection, stored: StoredSession, rows: list[tuple[object, object]]) -> Iterator[MessageRow]:
    for id, data in rows:
        each = MessageRow({**_json(data), "id": str(id)}, [])
        for (packed,) in connection.execute(_PARTS, (id,)):
            part = _json(packed)
            each.parts += [part] if part else []
            stored.skipped += not part
        if "role" in each.info:
            yield each
        else:
            stored.skipped += 1


def _json(data: object) -> Record:
    return (json_files.parse_object(data.encode("utf-8", "replace")) if isinstance(data, str) else None) or {}


@contextmanager
def _open(path: Path) -> Iterator[sqlite3.Connection]:
    log, shared = (path.with_name(path.name + end) for end in ("-wal", "-shm"))
    if shared.exists():
        with closing(sqlite_connection.open_sqlite(f"{path.absolute().as_uri()}?mode=ro")) as connection:
            yield connection
    elif log.exists() and log.stat().st_size:
        with unfinished.unfinished_folder() as folder:
            for each in (path, log):
                shutil.copyfile(each, folder / each.name)
            with closing(sqlite_connection.open_sqlite((folder / path.name).as_uri())) as connection:
                yield connection
    else:
        with closing(sqlite_connection.open_sqlite(f"{path.absolute().as_uri()}?immutable=1")) as connection:
            yield connection


def _files(storage: Path, stored: StoredSession) -> Iterator[MessageRow]:
    infos = []
    for path in discovery.children(storage / "message" / stored.id, "*.json"):
        info = read_object(path)
        infos += [{"id": path.stem, **info}] if "role" in info else []
        stored.skipped += "role" not in info
    for info in sorted(infos, key=lambda each: (unix_time(record(each, "time").get("created")), text(each, "id"))):
        parts = [read_object(path) for path in sorted(discovery.children(storage / "part" / text(info, "id"), "*.json"))]
        stored.skipped += sum(not part for part in parts)
        yield MessageRow(info, [part for part in parts if part])


def _import(source: Path, stored: StoredSession, notices: Notices) -> Imported:
    gathered, undone = gather(stored.rows, text(record(stored.info, "revert"), "messageID"))
    return gathered.to_imported(
        source,
        "OpenCode",
        "~/.local/share/opencode",
        title=text(stored.info, "title"),
        cwd=text(stored.info, "directory"),
        created_at=unix_time(record(stored.info, "time").get("created")),
        skipped=stored.skipped,
        notices=[
            *notices,
            *builder.count_notice(
                stored.subagents, "The session of a subagent was left out.", "The sessions of {} subagents were left out."
            ),
            *builder.count_notice(undone, "One undone message was left out.", "{} undone messages were left out."),
        ],
    )


VERSION = "1.2.10"
"""The OpenCode version whose exports these resemble."""
STOPS = {"stop": "stop", "length": "length", "tool_calls": "tool-calls", "refused": "content-filter", "error": "error"}
SIGNATURES = {
    SIGNATURE: ("anthropic", "signature"),
    ENCRYPTED: ("openai", "reasoningEncryptedContent"),
    THOUGHT_SIGNATURE: ("google", "thoughtSignature"),
}


def write(store: Store, info: SessionInfo, out: Write, redactor: Redactor | None) -> None:
    session, header = _id("ses", info.id), record_writer.header_of(info, redactor)
    head = {
        "id": session,
        "projectID": "global",
        "directory": header.cwd,
        "title": header.title,
        "version": VERSION,
        "time": {"created": record_writer.milliseconds(info.created), "updated": record_writer.milliseconds(info.updated)},
    }
    between = b'{"info": ' + record_writer.encode(head) + b',\n"messages": [\n'
    stream, writer = MessageStream(store, info.id, redactor), _OpenCodeWriter(header.cwd)
    for number, row in enumerate(record_writer.session_records(stream, writer, _ExportReader)):
        message = _id("msg", info.id, f"{number:08}")
        named = {**row["info"], "id": message, "sessionID": session}
        parts = [
            {"id": f"{message.replace('msg', 'prt')}{at:04}", "sessionID": session, "messageID": message, **part}
            for at, part in enumerate(row["parts"])
        ]
        out(between + record_writer.encode({"info": named, "parts": parts}))
        between = b",\n"
    out(b"\n]}\n")


class _OpenCodeWriter:
    id_policy: IdPolicy = "anthropic"

    def __init__(self, cwd: str) -> None:
        self._cwd = cwd
        self._answer: Record = {}
        """The last answer: results go into its parts."""

    def user(self, parts: Sequence[TextPart | MediaPart], at: float) -> list[Record]:
        info = {"role": "user", "time": _span(at), "agent": "build", "model": {"providerID": "", "modelID": ""}}
        return [{"info": info, "parts": [_part(part) for part in parts]}]

    def results(self, message: ToolMessage) -> list[Record]:
        """Adds the results to the last answer."""
        at = record_writer.milliseconds(message.timestamp)
        for result in message.contents:
            call: Any = next(part for part in self._answer["parts"] if part.get("callID") == result.id)
            head = {"status": "error" if result.is_error else "completed", "input": call["state"]["input"]}
            time = {"start": at, "end": at}
            if result.is_error:
                call["state"] = {**head, "error": result.content, "time": time}
                continue
            attached = {"attachments": [_part(part) for part in result.media]} if result.media else {}
            call["state"] = {**head, "output": result.content, "title": "", "metadata": {}, "time": time, **attached}
        return []

    def answer(self, message: AssistantMessage) -> list[Record]:
        parts = [each for part in message.contents for each in _answer_parts(part)]
        usage, producer = message.usage or Usage(), message.producer
        self._answer = {
            "info": {
                "role": "assistant",
                "providerID": record_writer.provider_name(producer.provider) if producer else "",
                "modelID": producer.model if producer else "",
                "mode": "build",
                "agent": "build",
                "path": {"cwd": self._cwd, "root": self._cwd},
                "cost": usage.cost.total if usage.cost else 0,
                "tokens": {
                    "input": usage.input_tokens,
                    "output": usage.output_tokens,
                    "reasoning": usage.reasoning_tokens,
                    "cache": {"read": usage.cache_read_tokens, "write": usage.cache_write_tokens},
                },
                "finish": STOPS.get(message.stop_reason, "stop"),
                "time": _span(message.timestamp),
            },
            "parts": [{"type": "step-start"}, *parts],
        }
        return [self._answer] if parts else []


class _ExportReader(OpenCodeReader):
    def read(self, records: Iterable[Record]) -> builder.ConversationBuilder:
        return super().read(MessageRow(each["info"], each["parts"]) for each in records)


def _span(at: float) -> Record:
    return {"created": record_writer.milliseconds(at), "completed": record_writer.milliseconds(at)}


def _answer_parts(part: AnyPart) -> list[Record]:
    if isinstance(part, ToolPart):
        return [{"type": "tool", "callID": part.call_id, "tool": part.tool, "state": {"status": "pending", "input": part.input}}]
    if isinstance(part, ThinkingPart):
        signed = {name: {key: sealed} for kind, (name, key) in SIGNATURES.items() if (sealed := blob_of(part.blobs, kind))}
        return [{"type": "reasoning", "text": part.text, "metadata": signed, "time": {"start": 0}}] if part.text.strip() else []
    return [] if record_writer.is_blank(part) else [_part(part)]


def _part(part: TextPart | MediaPart) -> Record:
    if isinstance(part, TextPart):
        return record_writer.text_block(part.text)
    name = part.name if isinstance(part, FilePart) else ""
    return {"type": "file", "mime": part.media_type, "filename": name, "url": record_writer.address(part)}


def _id(kind: str, *names: str) -> str:
    """Sorts in the order of the messages."""
    return f"{kind}_{names[-1] if len(names) > 1 else ''}{record_writer.stable_uuid(*names).replace('-', '')[:18]}"
