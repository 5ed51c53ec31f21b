"""The thread rows that a message was imported from, kept in its metadata as far as wolo would write others, and their order."""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from wolo.messages.message import Message
from wolo.sessions.exchange.json_diff import applied, difference
from wolo.sessions.exchange.rows_encode import ROW, STATUS, Row, rows_of

ORIGIN = "agentpress"
"""The key of the metadata."""
AT, RESULTS = "at", "results"

RegisteredHook = tuple[int | None, Row]
"""A row and its place in the file it came from; None: it came from none."""


class Origin:
    """The rows that one message was made of, while a file is read."""

    def __init__(self, at: int, row: Row) -> None:
        self._at = at
        self._row = row
        self._results: dict[str, tuple[int, Row]] = {}

    def add_result(self, part_id: str, at: int, row: Row) -> None:
        self._results[part_id] = (at, row)

    def kept_with(self, message: Message) -> Message:
        if message.custom_type == STATUS:
            return replace(message, metadata={**message.metadata, AT: self._at})
        own, *results = rows_of(message, str(self._row.get("thread_id") or ""), compressed=False)
        found = {row["message_id"]: row for row in results}
        kept = {
            AT: self._at,
            ROW: difference(own, self._row),
            RESULTS: {
                part_id: {AT: at, ROW: difference(found[part_id], row)}
                for part_id, (at, row) in self._results.items()
                if part_id in found
            },
        }
        return replace(message, metadata={**message.metadata, ORIGIN: kept})


def original_rows(message: Message, thread_id: str) -> list[RegisteredHook]:
    """The rows as they came; none for a message that did not come from rows, or was changed since."""
    if message.custom_type == STATUS:
        return [(message.metadata.get(AT), row) for row in rows_of(message, thread_id, compressed=False)]
    kept = message.metadata.get(ORIGIN)
    if not isinstance(kept, dict):
        return []
    own, *results = rows_of(message, thread_id, compressed=False)
    try:
        rows: list[RegisteredHook] = [(int(kept[AT]), _restored(own, kept[ROW]))]
        for row in results:
            if (result := kept[RESULTS].get(row["message_id"])) is not None:
                rows.append((int(result[AT]), _restored(row, result[ROW])))
    except (KeyError, TypeError, ValueError, AttributeError):
        return []
    return rows


def in_original_order(groups: Iterator[Sequence[RegisteredHook]]) -> Iterator[Row]:
    """The rows of each message, results moved to behind the rows that stood before them."""
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


def _restored(row: Row, change: Any) -> Row:
    """Raises ValueError when the change belongs to another row."""
    plain = json.loads(json.dumps(row))
    restored = plain if change is None else applied(plain, change)
    if not isinstance(restored, dict):
        raise ValueError("The change makes no row.")
    return restored
