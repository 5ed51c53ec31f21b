"""AgentPress thread rows, both ways: one JSON object a line, content as JSON text, as plain text or as an object.

What a row has no place for (usage, how a call ended, who wrote it) goes into its metadata; so a conversation that went out comes
in the same. The rows of other programs go out as they came.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from wolo.errors import SessionError
from wolo.formats.encoding.cached_blocks import without_embedded_results
from wolo.messages.message import Message
from wolo.messages.parts import TextPart, new_id
from wolo.messages.unicode import whole_throughout
from wolo.sessions.exchange.chat_import import RESULTS, ChatReader
from wolo.sessions.exchange.import_result import Imported
from wolo.sessions.exchange.json_diff import completed, missing_in
from wolo.sessions.exchange.jsonl import Write
from wolo.sessions.exchange.message_stream import Said
from wolo.sessions.exchange.redaction import Redactor
from wolo.sessions.exchange.row_origin import Origin, RegisteredHook, in_original_order, original_rows
from wolo.sessions.exchange.rows_encode import OWN, ROW, STATUS, STATUS_TYPES, Row, rows_of
from wolo.sessions.exchange.sniff import Glimpse, document, lines, parsed
from wolo.sessions.listing import SessionInfo
from wolo.sessions.store import Store

FORMAT = "rows"
MESSAGE_FIELDS = {"role", "content", "tool_calls"}
"""An object with one of these is a message; any other is what was said."""
LLM_TYPES = ("system", "user", "assistant", "tool")


def write(store: Store, info: SessionInfo, out: Write, redactor: Redactor | None) -> None:
    said = Said(store, info.id, redactor)
    held = said.compaction
    short = {*held.shortened, *held.left_out} if held else set()

    def placed(message: Message) -> Sequence[RegisteredHook]:
        is_short = message.id in short
        own = () if is_short else original_rows(message, info.id)
        return own or [(None, row) for row in _with_difference(list(rows_of(message, info.id, is_short)), message)]

    for row in in_original_order(map(placed, said)):
        out(msgspec.json.encode(whole_throughout(row)) + b"\n")


def is_shape_of(glimpse: Glimpse) -> bool:
    if any({"message_id", "type", "content"} <= record.keys() for record in glimpse.records[:20]):
        return True
    return glimpse.beginning.lstrip()[:1] in (b"[", b"{") and all(
        name in glimpse.beginning for name in (b'"message_id"', b'"thread_id"', b'"type"', b'"content"')
    )


def read(source: Path) -> Imported:
    """Rows a line, or an array of them."""
    found, torn = _rows(source)
    rows = [row for row in found if _is_row(row)]
    strays = _strays(rows)
    reading = _Reading()
    for at, row in enumerate(rows):
        if at not in strays:
            reading.add(row, at)
    return Imported(
        id=next((str(row["thread_id"]) for row in rows if row.get("thread_id")), ""),
        created=next((then for row in rows if (then := _time(row))), 0.0),
        messages=reading.finish(),
        skipped=torn + len(found) - len(rows) + len(strays) + reading.skipped,
    )


class _Reading:
    """Rows become messages in their order; a row that is not for the model becomes one that never leaves."""

    def __init__(self) -> None:
        self._reader = ChatReader()
        self._differences: list[tuple[int, Any]] = []
        self._origins: dict[int, Origin] = {}

    @property
    def skipped(self) -> int:
        return self._reader.skipped

    def add(self, row: Row, at: int | None = None) -> None:
        """`at` is the place in the file, where the row is to be kept as it is."""
        item = _llm_message(row)
        if item is None:
            place: int | None = self._reader.keep(_status(row))
        else:
            place = self._reader.add(item, id=str(row.get("message_id") or ""), timestamp=_time(row))
        own = _metadata(row).get(OWN)
        if place is not None and own is not None:
            self._differences.append((place, own))
        elif place is not None and at is not None:
            self._note(place, at, row, is_result=item is not None and item.get("role") in RESULTS)

    def _note(self, place: int, at: int, row: Row, *, is_result: bool) -> None:
        if not is_result:
            self._origins[place] = Origin(at, row)
        elif place in self._origins:
            self._origins[place].add_result(self._reader.answered, at, row)

    def finish(self) -> tuple[Message, ...]:
        messages = list(self._reader.finish())
        for at, change in self._differences:
            messages[at] = completed(messages[at], change)
            self._origins.pop(at, None)
        for at, origin in self._origins.items():
            messages[at] = origin.kept_with(messages[at])
        return tuple(messages)


def _with_difference(rows: list[Row], message: Message) -> Iterator[Row]:
    """The first row tells what a reader of these rows would get wrong."""
    if message.custom_type != STATUS:
        reading = _Reading()
        for row in rows:
            reading.add(row)
        (base, *_) = reading.finish()
        rows[0]["metadata"][OWN] = missing_in(base, message)
    yield from rows


def _llm_message(row: Row) -> dict[str, Any] | None:
    """What of a row a model gets to see, in the words of Chat Completions; None: nothing."""
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
    """JSON text is read, any other text is what was said."""
    if not isinstance(content, str):
        return content
    try:
        value = json.loads(content, strict=False)
    except (ValueError, RecursionError):
        return content
    if isinstance(value, list) and all(isinstance(item, dict) and "type" in item for item in value):
        return value
    return value if isinstance(value, dict) else content


def _status(row: Row) -> Message:
    text = row.get("content")
    parts = (TextPart(text=text),) if isinstance(text, str) else ()
    id = str(row.get("message_id") or new_id("msg"))
    return Message(id=id, role="custom", custom_type=STATUS, parts=parts, timestamp=_time(row), metadata={ROW: row})


def _strays(rows: Sequence[Row]) -> set[int]:
    """Places of user rows that are a tool's result spelled as text and answer no call. Wolo's own rows hold none."""
    items = [(at, item) for at, row in enumerate(rows) if (item := _llm_message(row)) is not None]
    kept = {id(item) for item in without_embedded_results([item for _, item in items])}
    return {at for at, item in items if id(item) not in kept and OWN not in _metadata(rows[at])}


def _metadata(row: Row) -> dict[str, Any]:
    metadata = _content(row.get("metadata"))
    return metadata if isinstance(metadata, dict) else {}


def _is_row(row: Any) -> bool:
    """One of a type that wolo does not know has all that names a row; no model sees it."""
    if not isinstance(row, dict) or not isinstance(row.get("type"), str) or "content" not in row:
        return False
    return row["type"] in (*LLM_TYPES, *STATUS_TYPES) or {"message_id", "thread_id"} <= row.keys()


def _time(row: Row) -> float:
    try:
        then = datetime.fromisoformat(str(row.get("created_at")))
        return (then if then.tzinfo else then.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return 0.0


def _rows(source: Path) -> tuple[list[Any], int]:
    """And how many lines could not be read."""
    every = [parsed(line and line.strip(b" ,")) for line in lines(source) if line not in (b"[", b"]")]
    items = [item for item in every if item is not None]
    if any(_is_row(item) for item in items):
        return items, len(every) - len(items)
    found = document(source)
    if isinstance(found, dict):
        found = next((each for each in found.values() if isinstance(each, list)), [])
    if not isinstance(found, list) or not any(_is_row(row) for row in found):
        raise SessionError(f"{source} holds no thread rows.", hint="A row has at least `type` and `content`.")
    return found, 0
