"""Imports a file as a session: wolo's own format entry by entry, other formats as a conversation."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from wolo.errors import SessionError, UsageError
from wolo.messages.message import MESSAGES, Message
from wolo.messages.parts import ToolPart
from wolo.sessions import listing, raw_rows
from wolo.sessions.entries import AnyEntry, CompactionEntry, MessageEntry
from wolo.sessions.exchange import format_table, json_files, jsonl, jsonl_import, text_export
from wolo.sessions.listing import SessionInfo, is_task
from wolo.sessions.session_rows import StoredRow, check_id, check_name, encode_entry, link_row, new_session_id, title_of
from wolo.sessions.store import Store

DIGEST_BYTES = 16
ID_SHOWN = 200


class ImportSource(Struct, frozen=True, kw_only=True):
    """A file that was read, before import."""

    format: str
    label: str
    cwd: str
    """The directory named in the file."""
    skipped: int
    notices: tuple[str, ...]
    origin: jsonl.ImportOrigin
    facts: raw_rows.SessionFields
    """With the preferred id, or an empty one."""
    survey: jsonl_import.Survey | None = None
    imported: json_files.Imported | None = None
    path: Path


class ImportReport(Struct, frozen=True, kw_only=True):
    info: SessionInfo
    format: str
    entries: int
    skipped: int
    notices: tuple[str, ...]
    was_there: bool = False
    """The file was imported before; nothing was added."""
    wanted_id: str = ""
    """The id in the file, when another session has it."""


def formats() -> tuple[str, ...]:
    return (jsonl.FORMAT, *(shape.name for shape in format_table.IMPORT_FORMATS))


def read(path: Path, format: str = "") -> ImportSource:
    """Reads a file; an empty `format` is detected from the content.

    Raises UsageError for an unknown format and SessionError for a file without a session.
    """
    if format and format not in formats():
        raise UsageError(f"Unknown import format {format}.", hint=f"Choose one of {', '.join(formats())}.")
    if (chosen := format_table.import_format(format)) is not None:
        return _read_foreign(path, chosen)
    glimpse = json_files.preview(path)
    if format or jsonl_import.matches(glimpse):
        survey = jsonl_import.survey(path)
        if not survey.kept:
            raise SessionError(f"{path} has no readable entry.", hint="It may be truncated; export it again.")
        header = survey.header or jsonl.JsonlHeader(version=jsonl.VERSION, id="")
        origin = jsonl.ImportOrigin(format=jsonl.FORMAT, digest=survey.digest)
        if survey.is_exact:
            origin = msgspec.structs.replace(origin, header=survey.header_line, last=len(survey.kept))
        facts = raw_rows.SessionFields(
            **{field: getattr(header, field) for field in ("id", "name", "title", "model", "mode", "created", "updated")},
            parent=None if is_task(header.parent) else header.parent,  # the user who imports it wants to see it
            cwd=header.cwd,
            head=survey.head,
        )
        return ImportSource(
            format=jsonl.FORMAT,
            label="a session of wolo",
            cwd=header.cwd,
            skipped=survey.skipped,
            notices=tuple(_remarks(survey)),
            origin=origin,
            facts=facts,
            survey=survey,
            path=path,
        )
    if (shape := format_table.recognise(glimpse)) is None:
        raise SessionError(
            f"{path} is not a session in a known format.", hint=f"Name its format with --format: {', '.join(formats())}."
        )
    return _read_foreign(path, shape)


def import_session(store: Store, source: ImportSource, cwd: str) -> ImportReport:
    """Imports as the latest session of `cwd`, durable on return. Raises SessionError."""
    with store.raw.import_lock():
        origin = msgspec.json.encode(source.origin)
        if (known := store.raw.find_imported(origin)) is not None:
            if known.cwd == listing.directory(cwd):
                store.raw.touch(known.id)
            entries = store.raw.ends(known.id)[1]
            return ImportReport(info=known, format=source.format, entries=entries, skipped=0, notices=(), was_there=True)
        facts, notices = _with_free_names(store, source.facts)
        facts = msgspec.structs.replace(
            facts, cwd=listing.directory(cwd), created=_valid_time(facts.created), updated=_valid_time(facts.updated)
        )
        found = jsonl_import.rows(source.path, source.survey) if source.survey else _link(_entries(source), facts.updated)
        info = store.raw.import_rows(facts, origin, found)
        if source.survey:
            for name, data in jsonl_import.outputs(source.path):
                store.store_blob(info.id, name, data)
        return ImportReport(
            info=info,
            format=source.format,
            entries=store.raw.ends(info.id)[1],
            skipped=source.skipped,
            notices=(*source.notices, *notices),
            wanted_id=source.facts.id if source.facts.id not in ("", info.id) else "",
        )


def _remarks(survey: jsonl_import.Survey) -> Iterator[str]:
    if survey.header is None:
        yield "Its header line cannot be read; the fields were derived from the entries."
    elif survey.header.version > jsonl.VERSION:
        yield f"A newer wolo wrote it (version {survey.header.version}); unknown parts were left out."
    if survey.checked.redacted:
        yield f"Secrets were redacted in {survey.checked.redacted} of its entries."
    if survey.checked.broken and not survey.skipped:
        yield f"It was changed after the export: entry {survey.checked.broken.seq} {survey.checked.broken.text}."
    if not survey.is_exact:
        yield "Its entries were linked again, so their hashes differ from the file."


def _read_foreign(path: Path, shape: format_table.ImportFormat) -> ImportSource:
    imported = shape.read(path)
    if not imported.messages:
        raise SessionError(f"{path} has no messages.", hint=f"It was read as {shape.label}; name another format with --format.")
    created = imported.created or next((message.timestamp for message in imported.messages if message.timestamp), 0.0)
    wrote = next((message.producer for message in reversed(imported.messages) if message.producer), None)
    last_model = f"{wrote.provider}/{wrote.model}" if wrote and wrote.provider and wrote.model else ""
    facts = raw_rows.SessionFields(
        id=text_export.plain(imported.id)[:ID_SHOWN],
        cwd=imported.cwd,
        title=title_of(imported.title),
        model=text_export.plain(imported.model) or last_model,
        created=created or time.time(),
        updated=max((message.timestamp for message in imported.messages), default=0.0) or created or time.time(),
    )
    running = blake2b(digest_size=DIGEST_BYTES)  # of the content, without ids and times
    for message in imported.messages:
        parts = [msgspec.to_builtins(part, enc_hook=str) for part in message.parts]
        parts = [
            {**part, "id": "", "output_parts": [{**each, "id": ""} for each in part.get("output_parts", ())]} for part in parts
        ]
        running.update(msgspec.json.encode([message.role, repr(parts)]) + b"\n")
    return ImportSource(
        format=shape.name,
        label=shape.label,
        cwd=imported.cwd,
        skipped=imported.skipped,
        notices=imported.notices,
        origin=jsonl.ImportOrigin(format=shape.name, digest=running.hexdigest()),
        facts=facts,
        imported=imported,
        path=path,
    )


def _valid_time(then: float) -> float:
    return then if 0 < then < json_files.END_OF_TIME else time.time()


def _with_free_names(store: Store, facts: raw_rows.SessionFields) -> tuple[raw_rows.SessionFields, list[str]]:
    notices = []
    try:
        taken = not facts.id or store.raw.has(check_id(facts.id))
    except SessionError:
        taken = True
    if taken:
        facts = msgspec.structs.replace(facts, id=new_session_id(time.time()))
    if facts.name:
        try:
            holder = store.exactly(check_name(facts.name))
        except SessionError:
            holder = None
            facts = msgspec.structs.replace(facts, name=None)
        if holder is not None:
            notices.append(f"It was named {facts.name}, like session {holder.id}; the name was dropped.")
            facts = msgspec.structs.replace(facts, name=None)
    return facts, notices


def _entries(source: ImportSource) -> Iterator[tuple[float, AnyEntry]]:
    assert source.imported is not None
    for message in source.imported.messages:
        yield message.timestamp, MessageEntry(message=_storable(message))
    if source.imported.left_out:
        left_out = source.imported.left_out
        sent_from = next((message.id for message in source.imported.messages if message.id not in left_out), "")
        yield source.facts.updated, CompactionEntry(left_out=left_out, sent_from=sent_from, reason="imported")


def _storable(message: Message) -> Message:
    """Returns the message, or one without arguments, usage and metadata when it cannot be encoded as JSON."""
    try:
        MESSAGES.decode(MESSAGES.encode(message))
    except (msgspec.MsgspecError, OverflowError, ValueError, RecursionError):
        parts = list(message.parts)
        for at, part in enumerate(parts):
            if isinstance(part, ToolPart):
                raw = part.raw_input or repr(part.input)
                changes: dict[str, Any] = {"input": {}, "raw_input": raw, "metadata": {}, "start_time": 0.0, "end_time": 0.0}
                parts[at] = msgspec.structs.replace(part, **changes)
        return msgspec.structs.replace(message, parts=tuple(parts), usage=None, metadata={}, timestamp=0.0)
    return message


def _link(entries: Iterable[tuple[float, AnyEntry]], now: float) -> Iterator[StoredRow]:
    prev_hash = b""
    for seq, (then, entry) in enumerate(entries, 1):
        row = link_row(encode_entry(entry), seq=seq, parent=seq - 1, time_utc=float(then or now), prev_hash=prev_hash)
        prev_hash = row.hash
        yield row
