"""Reads and writes AgentPress thread rows, one JSON object per line.

A row's metadata hold what a row has no field for (usage, outcomes, producers), so an exported conversation is imported the same.
Rows of other programs are exported as they were imported.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from wolo.errors import SessionError
from wolo.formats.encoding.attachments import base64_text, data_url
from wolo.formats.encoding.cached_blocks import without_embedded_results
from wolo.formats.encoding.encoder import SUMMARIES
from wolo.formats.encoding.wire_forms import arguments_text, result_text
from wolo.messages.message import Message
from wolo.messages.parts import AudioPart, ImagePart, MediaPart, TextPart, ThinkingPart, ToolPart, new_id
from wolo.messages.unicode import whole_throughout
from wolo.sessions.exchange.export_stream import MessageStream, Write
from wolo.sessions.exchange.json_diff import apply, complete, difference, missing_in
from wolo.sessions.exchange.json_files import FilePreview, Imported, read_items, unix_time
from wolo.sessions.exchange.openai_messages import RESULTS, ChatReader
from wolo.sessions.exchange.redaction import Redactor
from wolo.sessions.exchange.text_export import timestamp
from wolo.sessions.listing import SessionInfo
from wolo.sessions.store import Store

Row = dict[str, Any]

TRUNCATED_CHARS = 400
HINT = '... (truncated)\n\nmessage_id "{id}"\nUse expand-message tool to see full content'
"""End of a compressed content: tells the model how to read the rest."""
OWN = "wolo"
"""Metadata key of the difference to the message."""
STATUS_TYPES = ("status", "llm_response_end")
STATUS = "agentpress.status"
"""`custom_type` of a message that stores a row not meant for the model."""
ROW = "row"


def rows_of(message: Message, thread_id: str, compressed: bool) -> Iterator[Row]:
    """Yields a row for the message and one for each result. `compressed` truncates the results, or the text without any."""
    if message.custom_type == STATUS and isinstance(kept := message.metadata.get(ROW), dict):
        yield dict(kept)
        return
    results = [call for call in message.calls if call.status in ("completed", "failed") and call.outcome != "never_started"]
    yield _row(
        message.id, thread_id, _type(message), _message_body(message), message.timestamp, compressed=compressed and not results
    )
    for call in results:
        text = result_text(call)
        attached = [_attachment(part) for part in call.output_parts]
        content = [{"type": "text", "text": text}, *attached] if attached else text
        row = _row(
            call.id,
            thread_id,
            "tool",
            {"role": "tool", "tool_call_id": call.wire_id, "name": call.tool, "content": content},
            call.end_time or message.timestamp,
            compressed=compressed,
        )
        row["metadata"]["tool_call_id"] = call.wire_id
        yield row


def _type(message: Message) -> str:
    if message.role in SUMMARIES:
        return "user"
    return "status" if message.role == "custom" else message.role


def _row(id: str, thread_id: str, type: str, content: Any, then: float, *, compressed: bool) -> Row:
    metadata: dict[str, Any] = {}
    spoken = content.get("content")
    text = spoken if isinstance(spoken, str) else "".join(item.get("text", "") for item in spoken or ())
    if compressed and len(text) > TRUNCATED_CHARS:
        content = text[:TRUNCATED_CHARS] + HINT.format(id=id)
        metadata |= {"compressed": True, "compressed_content": content}
    elif type not in ("tool", *STATUS_TYPES):
        content = json.dumps(content, ensure_ascii=False)
    at = timestamp(then)
    return {
        "message_id": id,
        "thread_id": thread_id,
        "type": type,
        "content": content,
        "is_llm_message": type not in STATUS_TYPES,
        "metadata": metadata,
        "agent_id": None,
        "agent_version_id": None,
        "created_at": at,
        "updated_at": at,
    }


def _message_body(message: Message) -> dict[str, Any]:
    if message.role == "custom":
        return {"status_type": message.custom_type or "custom", "text": message.text}
    spoken = [part for part in message.parts if not isinstance(part, ThinkingPart | ToolPart)]
    items = [{"type": "text", "text": part.text} if isinstance(part, TextPart) else _attachment(part) for part in spoken]
    only = spoken[0] if len(spoken) == 1 else None
    body: dict[str, Any] = {"role": _type(message), "content": only.text if isinstance(only, TextPart) else items or ""}
    for part in message.of(ThinkingPart):
        body["reasoning_content"] = body.get("reasoning_content", "") + part.text
    if message.calls:
        body["tool_calls"] = [
            {"id": call.wire_id, "type": "function", "function": {"name": call.tool, "arguments": arguments_text(call)}}
            for call in message.calls
        ]
    return body


def _attachment(part: MediaPart) -> dict[str, Any]:
    if isinstance(part, ImagePart):
        url = data_url(part.media_type or "image/png", part.data) if part.data else part.url
        return {"type": "image_url", "image_url": {"url": url}}
    if isinstance(part, AudioPart):
        kind = part.media_type.removeprefix("audio/") or "wav"
        return {"type": "input_audio", "input_audio": {"data": base64_text(part.data), "format": kind}}
    file = {"filename": part.name, "file_data": data_url(part.media_type or "application/pdf", part.data)}
    return {"type": "file", "file": file}


ORIGIN = "agentpress"
"""Metadata key of the imported rows."""
AT, RESULT_ROWS = "at", "results"

PlacedRow = tuple[int | None, Row]
"""A row and its index in the imported file; None for a new row."""


class RowOrigin:
    def __init__(self, at: int, row: Row) -> None:
        self._at, self._row = at, row
        self._results: dict[str, tuple[int, Row]] = {}

    def add_result(self, part_id: str, at: int, row: Row) -> None:
        self._results[part_id] = (at, row)

    def with_origin(self, message: Message) -> Message:
        if message.custom_type == STATUS:
            return replace(message, metadata={**message.metadata, AT: self._at})
        own, *results = rows_of(message, str(self._row.get("thread_id") or ""), compressed=False)
        wire_rows = {row["message_id"]: row for row in results}
        kept = {
            AT: self._at,
            ROW: difference(own, self._row),
            RESULT_ROWS: {
                part_id: {AT: at, ROW: difference(wire_rows[part_id], row)}
                for part_id, (at, row) in self._results.items()
                if part_id in wire_rows
            },
        }
        return replace(message, metadata={**message.metadata, ORIGIN: kept})


def original_rows(message: Message, thread_id: str) -> list[PlacedRow]:
    """The rows as imported; empty for a message that was not imported from rows, or changed since."""
    if message.custom_type == STATUS:
        return [(message.metadata.get(AT), row) for row in rows_of(message, thread_id, compressed=False)]
    kept = message.metadata.get(ORIGIN)
    if not isinstance(kept, dict):
        return []
    own, *results = rows_of(message, thread_id, compressed=False)
    try:
        rows: list[PlacedRow] = [(int(kept[AT]), _restore(own, kept[ROW]))]
        for row in results:
            if (result := kept[RESULT_ROWS].get(row["message_id"])) is not None:
                rows.append((int(result[AT]), _restore(row, result[ROW])))
    except (KeyError, TypeError, ValueError, AttributeError):
        return []
    return rows


def in_original_order(groups: Iterator[Sequence[PlacedRow]]) -> Iterator[Row]:
    """Yields rows, moving results behind the rows that preceded them in the file."""
    waiting: list[tuple[int, int, Row]] = []
    count = 0
    for group in groups:
        first = group[0][0]
        while waiting and (first is None or waiting[0][0] < first):
            yield heapq.heappop(waiting)[2]
        for number, (at, row) in enumerate(group):
            if at is None or not number:
                yield row
            else:
                heapq.heappush(waiting, (at, count := count + 1, row))
    while waiting:
        yield heapq.heappop(waiting)[2]


def _restore(row: Row, change: Any) -> Row:
    """Raises ValueError when the change belongs to another row."""
    plain = json.loads(json.dumps(row))
    restored = plain if change is None else apply(plain, change)
    if not isinstance(restored, dict):
        raise ValueError("The change makes no row.")
    return restored


FORMAT = "rows"
MESSAGE_FIELDS = {"role", "content", "tool_calls"}
"""An object with one of these keys is a message; any other is content."""
LLM_TYPES = ("system", "user", "assistant", "tool")


def write(store: Store, info: SessionInfo, out: Write, redactor: Redactor | None) -> None:
    messages = MessageStream(store, info.id, redactor)
    held = messages.compaction
    short = {*held.shortened, *held.left_out} if held else set()

    def place(message: Message) -> Sequence[PlacedRow]:
        is_short = message.id in short
        if own := () if is_short else original_rows(message, info.id):
            return own
        rows = list(rows_of(message, info.id, is_short))
        if message.custom_type != STATUS:
            # The first row gets the difference to what an importer would read.
            reading = _RowReader()
            for row in rows:
                reading.add(row)
            rows[0]["metadata"][OWN] = missing_in(reading.finish()[0], message)
        return [(None, row) for row in rows]

    for row in in_original_order(map(place, messages)):
        out(msgspec.json.encode(whole_throughout(row)) + b"\n")


def matches(preview: FilePreview) -> bool:
    if any({"message_id", "type", "content"} <= record.keys() for record in preview.records[:20]):
        return True
    return preview.beginning.lstrip()[:1] in (b"[", b"{") and all(
        name in preview.beginning for name in (b'"message_id"', b'"thread_id"', b'"type"', b'"content"')
    )


def read(source: Path) -> Imported:
    records, torn = read_items(source, _is_row)
    if not any(map(_is_row, records)):
        raise SessionError(f"{source} holds no thread rows.", hint="A row has at least `type` and `content`.")
    rows = [row for row in records if _is_row(row)]
    # User rows that spell a tool result as text and answer no call. Wolo writes no such rows.
    items = [(at, item) for at, row in enumerate(rows) if (item := _llm_message(row)) is not None]
    kept = {id(item) for item in without_embedded_results([item for _, item in items])}
    strays = {at for at, item in items if id(item) not in kept and OWN not in _metadata(rows[at])}
    reading = _RowReader()
    for at, row in enumerate(rows):
        if at not in strays:
            reading.add(row, at)
    return Imported(
        id=next((str(row["thread_id"]) for row in rows if row.get("thread_id")), ""),
        created=next((then for row in rows if (then := unix_time(row.get("created_at")))), 0.0),
        messages=reading.finish(),
        skipped=torn + len(records) - len(rows) + len(strays) + reading.skipped,
    )


class _RowReader:
    """Turns rows into messages; a row not meant for the model becomes a custom message."""

    def __init__(self) -> None:
        self._reader = ChatReader()
        self._differences: list[tuple[int, Any]] = []
        self._origins: dict[int, RowOrigin] = {}

    @property
    def skipped(self) -> int:
        return self._reader.skipped

    def add(self, row: Row, at: int | None = None) -> None:
        """`at` is the index in the file, for a row to be exported as it is."""
        if (item := _llm_message(row)) is None:
            text = row.get("content")
            parts = (TextPart(text=text),) if isinstance(text, str) else ()
            id = str(row.get("message_id") or new_id("msg"))
            place: int | None = self._reader.add_message(
                Message(
                    id=id,
                    role="custom",
                    custom_type=STATUS,
                    parts=parts,
                    timestamp=unix_time(row.get("created_at")),
                    metadata={ROW: row},
                )
            )
        else:
            place = self._reader.add(item, id=str(row.get("message_id") or ""), timestamp=unix_time(row.get("created_at")))
        own = _metadata(row).get(OWN)
        if place is not None and own is not None:
            self._differences.append((place, own))
        elif place is not None and at is not None:
            if item is None or item.get("role") not in RESULTS:
                self._origins[place] = RowOrigin(at, row)
            elif place in self._origins:
                self._origins[place].add_result(self._reader.answered, at, row)

    def finish(self) -> tuple[Message, ...]:
        messages = list(self._reader.finish())
        for at, change in self._differences:
            messages[at] = complete(messages[at], change)
            self._origins.pop(at, None)
        for at, origin in self._origins.items():
            messages[at] = origin.with_origin(messages[at])
        return tuple(messages)


def _llm_message(row: Row) -> dict[str, Any] | None:
    kind, metadata = row["type"], _metadata(row)
    if kind not in LLM_TYPES or row.get("is_llm_message") is False:
        return None
    content = _content(row.get("content"))
    is_message = isinstance(content, dict) and bool(MESSAGE_FIELDS & content.keys())
    item = dict(content) if is_message else {"content": content if isinstance(content, list) else row.get("content")}
    item.setdefault("role", kind)
    if metadata.get("compressed") and isinstance(short := metadata.get("compressed_content"), str):
        item["content"] = short
    if kind == "tool":
        item["role"] = kind
        item.setdefault("tool_call_id", metadata.get("tool_call_id"))
    return item


def _content(content: Any) -> Any:
    """Parses JSON text; other text is content."""
    if not isinstance(content, str):
        return content
    try:
        value = json.loads(content, strict=False)
    except (ValueError, RecursionError):
        return content
    if isinstance(value, list) and all(isinstance(item, dict) and "type" in item for item in value):
        return value
    return value if isinstance(value, dict) else content


def _metadata(row: Row) -> dict[str, Any]:
    metadata = _content(row.get("metadata"))
    return metadata if isinstance(metadata, dict) else {}


def _is_row(row: Any) -> bool:
    """A row of an unknown type needs all identifying fields; the model does not see it."""
    if not isinstance(row, dict) or not isinstance(row.get("type"), str) or "content" not in row:
        return False
    return row["type"] in (*LLM_TYPES, *STATUS_TYPES) or {"message_id", "thread_id"} <= row.keys()
