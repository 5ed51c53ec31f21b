"""Extracts from entries the text and figures that the index holds."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct

from wolo.messages.message import Message, Usage
from wolo.messages.parts import ToolPart
from wolo.sessions.entries import AnyEntry, BranchEntry, CompactionEntry, CustomEntry, MessageEntry, ResultsEntry
from wolo.sessions.session_rows import extra_usage

# Patterns are compiled on first use: this module is loaded before a conversation starts.

JOINER = "\u2060"
"""Zero-width separator; no part of a word."""

_UNSPACED = (
    "([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u2fdf\u3005-\u3007\u3040-\u312f\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff])"
)
"""Thai, Chinese, Japanese, Korean and related scripts: any run of characters may be searched for."""
_HUMP = "[a-z0-9][A-Z]"
_IDENTIFIER_CHARS = 100
"""A longer run of letters and digits is data."""
_PIECE = r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+"
_CONTROLS = "\x1b\\[[0-?]*[ -/]*[@-~]|\x1b\\][^\x07\x1b\n]*|[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2060-\u206f\ud800-\udfff]+"


def clean(text: str) -> str:
    """Removes control characters and marks that change the direction of text."""
    return text if text.replace("\n", "").isprintable() else re.sub(_CONTROLS, " ", text)


def space_out(text: str) -> str:
    """Makes each character of a script without spaces a word; a search for several is a phrase search."""
    return text if text.isascii() else re.sub(_UNSPACED, f"{JOINER}\\1{JOINER}", text)


def pieces(text: str) -> str:
    """`parse Http Request` for each distinct `parseHttpRequest`. `_`, `.` and `/` separate words anyway."""
    # From hump to hump: checking every word takes three times as long.
    word = re.compile(r"\w+")
    words: dict[str, None] = {}
    end = 0
    for hump in re.finditer(_HUMP, text):
        if (begin := hump.start()) < end:
            continue
        while begin > end and (text[begin - 1].isalnum() or text[begin - 1] == "_"):
            begin -= 1
        identifier = word.match(text, begin)
        assert identifier is not None
        end = identifier.end()
        if end - begin <= _IDENTIFIER_CHARS:
            words[identifier[0]] = None
    return "\n".join(" ".join(re.findall(_PIECE, each)) for each in words)


def one_line(text: str) -> str:
    """Undoes `spaced`, for display."""
    return " ".join(text.replace(JOINER, "").split())


TEXT_CHARS = 64_000
OUTPUT_CHARS = 16_000
"""Characters indexed of a message, and of the arguments or output of a call; of a longer text, both ends."""

ROLES = {"user": "user", "assistant": "assistant", "compaction_summary": "summary", "branch_summary": "summary"}
"""Indexed message roles → role in a search; calls have the role `tool`."""

_PATH_NAMES = frozenset({"path", "paths", "file_path", "notebook_path", "file", "filename", "directory", "cwd", "glob"})
_COMMAND_NAMES = frozenset({"command", "cmd"})


class Passage(Struct, frozen=True, kw_only=True):
    seq: int
    """`seq` of its entry."""
    at: float
    """Unix seconds."""
    role: str
    body: str
    """The text, with spaces between the characters of scripts without them."""
    pieces: str
    """Parts of the identifiers in the text."""
    tool: str = ""
    paths: str = ""
    """One a line, each behind a slash."""


class IndexedAnswer(Struct, frozen=True, kw_only=True):
    message_id: str
    at: float
    model: str
    """`provider/model`."""
    usage: Usage


class IndexedCall(Struct, frozen=True, kw_only=True):
    part_id: str
    passage: Passage
    failed: bool


class Extracted(Struct):
    texts: list[Passage]
    prompts: list[tuple[str, float]]
    """Id and time."""
    answers: list[IndexedAnswer]
    calls: dict[str, IndexedCall]
    """By part id, in their last state."""


def extract(entries: Iterable[tuple[int, float, AnyEntry]]) -> Extracted:
    """Extracts from entries, given in the order they were added."""
    extracted = Extracted([], [], [], {})
    for seq, time_utc, entry in entries:
        if isinstance(entry, MessageEntry):
            _add_message(extracted, seq, entry.message.timestamp or time_utc, entry.message)
        elif isinstance(entry, ResultsEntry):
            _add_calls(extracted, seq, time_utc, entry.parts)
        elif isinstance(entry, BranchEntry | CompactionEntry) and entry.summary is not None:
            _add_message(extracted, seq, time_utc, entry.summary)
        if isinstance(entry, CompactionEntry | CustomEntry) and (usage := extra_usage(entry)) is not None:
            # Asked of the model that gave the answers around it.
            model = extracted.answers[-1].model if extracted.answers else ""
            asked_id = f"aside_{seq}_{time_utc}"
            if isinstance(entry, CompactionEntry):
                asked_id = entry.summary.id if entry.summary else f"compaction_{seq}_{time_utc}"
            extracted.answers.append(IndexedAnswer(message_id=asked_id, at=time_utc, model=model, usage=usage))
    return extracted


def _add_message(extracted: Extracted, seq: int, at: float, message: Message) -> None:
    is_prompt, text, calls = message.is_from_user, message.text, message.calls
    if is_prompt:
        extracted.prompts.append((message.id, at))
    if message.usage is not None:
        wrote = message.producer
        model = f"{wrote.provider}/{wrote.model}" if wrote and wrote.provider else wrote.model if wrote else ""
        extracted.answers.append(IndexedAnswer(message_id=message.id, at=at, model=model, usage=message.usage))
    if message.role in ROLES and text.strip():
        extracted.texts.append(_passage(seq, at, ROLES[message.role], _both_ends(text, TEXT_CHARS)))
    _add_calls(extracted, seq, at, calls)


def _add_calls(extracted: Extracted, seq: int, at: float, parts: Iterable[ToolPart]) -> None:
    for part in parts:
        arguments = _both_ends("\n".join(_texts(part.input or part.raw_input)), OUTPUT_CHARS)
        text = f"{arguments}\n{_both_ends(part.output, OUTPUT_CHARS)}"
        passage = _passage(seq, at, "tool", text, one_line(clean(part.tool)), _paths(part.input))
        extracted.calls[part.id] = IndexedCall(part_id=part.id, passage=passage, failed=part.status == "failed")


def _passage(seq: int, at: float, role: str, text: str, tool: str = "", paths: Iterable[str] = ()) -> Passage:
    text = clean(text)
    lines = "\n".join(f"/{clean(each).removeprefix('./').removeprefix('/')}" for each in paths)
    return Passage(seq=seq, at=at, role=role, body=space_out(text), pieces=space_out(pieces(text)), tool=tool, paths=lines)


def _both_ends(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most * 3 // 4]}\n…\n{text[-most // 4 :]}"


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)


def _paths(arguments: dict[str, Any]) -> Iterator[str]:
    for name, value in arguments.items():
        if name in _PATH_NAMES:
            yield from _texts(value)
        elif name in _COMMAND_NAMES and isinstance(value, str):
            yield from (word.strip("'\"`;,()") for word in value.split() if "/" in word or "." in word)
        elif name == "patch" and isinstance(value, str):
            headings = (line for line in value.splitlines() if line.startswith("*** "))
            yield from (line.partition(": ")[2].strip() for line in headings if ": " in line)
