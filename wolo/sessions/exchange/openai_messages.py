"""The messages of Chat Completions, as a JSON array: what a model would be sent, and what other programs keep."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from wolo.errors import SessionError
from wolo.formats.encoding.cached_blocks import without_embedded_results
from wolo.formats.encoding.encoder import NO_ANSWER, split_system
from wolo.formats.openai_chat.encode import ChatEncoder
from wolo.messages.message import Message
from wolo.sessions.exchange.chat_import import ChatReader
from wolo.sessions.exchange.import_result import Imported
from wolo.sessions.exchange.jsonl import Write
from wolo.sessions.exchange.message_stream import Said
from wolo.sessions.exchange.redaction import Redactor
from wolo.sessions.exchange.sniff import Glimpse, document, lines, parsed
from wolo.sessions.listing import SessionInfo
from wolo.sessions.store import Store

FORMAT = "openai"
SYSTEM_STAYS = "It brings a system prompt of its own, which stays in force instead of wolo's."

FILLER = {"role": "assistant", "content": NO_ANSWER}
"""Put between two messages of the user for the servers' sake; nobody said it."""

_BEGINS = re.compile(rb'\s*(?:\[\s*\{|\{\s*"(?:\w+"\s*:\s*"[^"]*",\s*")*messages"\s*:\s*\[)')
_ROLE = re.compile(rb'"role"\s*:\s*"(?:system|developer|user|assistant|tool|function)"')


def write(store: Store, info: SessionInfo, out: Write, redactor: Redactor | None) -> None:
    """Writes the list that `to_llm_messages` gives without a system prompt of wolo's, a message a line."""
    between = b"[\n"
    for item in _laid_out(iter(Said(store, info.id, redactor))):
        out(between + msgspec.json.encode(item))
        between = b",\n"
    out(b"\n]\n" if between == b",\n" else b"[]\n")


def is_shape_of(glimpse: Glimpse) -> bool:
    if _BEGINS.match(glimpse.beginning) and _ROLE.search(glimpse.beginning):
        return True
    return any(isinstance(record.get("role"), str) and "content" in record for record in glimpse.records[:5])


def read(source: Path) -> Imported:
    """An array, an object that holds one as `messages`, or a message a line."""
    reader = ChatReader()
    items, torn = _items(source)
    kept = without_embedded_results([item for item in items if isinstance(item, dict)])
    for item in kept:
        if item != FILLER:
            reader.add(item)
    messages = reader.finish()
    opens_with_system = bool(messages) and messages[0].role == "system"
    return Imported(
        messages=messages,
        skipped=reader.skipped + len(items) - len(kept) + torn,
        notices=(SYSTEM_STAYS,) if opens_with_system else (),
    )


def _laid_out(said: Iterator[Message]) -> Iterator[dict[str, Any]]:
    """As `to_llm_messages` does, without holding the conversation."""
    layout = ChatEncoder().layout()
    opening: list[Message] = []
    first = next(said, None)
    while first is not None and first.role == "system":
        opening.append(first)
        first = next(said, None)
    prompt, _ = split_system(tuple(opening), "")
    yield from layout.opening_items(prompt)
    for message in itertools.chain([first] if first else [], said):
        yield from layout.add(message).items


def _items(source: Path) -> tuple[list[Any], int]:
    """And how many lines could not be read."""
    try:
        found = document(source)
    except SessionError:
        every = [parsed(line and line.strip(b" ,")) for line in lines(source) if line not in (b"[", b"]")]
        items = [item for item in every if item is not None]
        if not any(isinstance(item, dict) and "role" in item for item in items):
            raise
        return items, len(every) - len(items)
    if isinstance(found, dict):
        found = found["messages"] if isinstance(found.get("messages"), list) else [found]
    return (found, 0) if isinstance(found, list) else ([found], 0)
