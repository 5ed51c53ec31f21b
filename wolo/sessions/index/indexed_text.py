"""What an entry has that can be searched and counted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct

from wolo.messages.message import Message, Usage
from wolo.messages.parts import ToolPart
from wolo.sessions.entries import AnyEntry, BranchEntry, CompactionEntry, MessageEntry, ResultsEntry, spent_beside
from wolo.sessions.index.tokenizer import clean, one_line

TEXT_CHARS = 64_000
OUTPUT_CHARS = 16_000
"""The most that is looked through of what was said, and of the arguments or the output of a call; of longer ones both ends."""

ROLES = {
    "user": "user",
    "assistant": "assistant",
    "compaction_summary": "summary",
    "branch_summary": "summary",
}
"""Whose words can be searched, and what they are called then; calls are of the role `tool`."""

_PATH_NAMES = frozenset({"path", "paths", "file_path", "notebook_path", "file", "filename", "directory", "cwd", "glob"})
_COMMAND_NAMES = frozenset({"command", "cmd"})


class Passage(Struct, frozen=True, kw_only=True):
    seq: int
    """The place of its entry."""
    at: float
    """Unix seconds."""
    role: str
    text: str
    tool: str = ""
    paths: tuple[str, ...] = ()


class Answer(Struct, frozen=True, kw_only=True):
    """An answer of a model, for the counting."""

    message_id: str
    at: float
    model: str
    """`provider/model`."""
    usage: Usage


class Call(Struct, frozen=True, kw_only=True):
    part_id: str
    passage: Passage
    failed: bool


class Facts(Struct):
    """Of a stretch of a session."""

    said: list[Passage]
    prompts: list[tuple[str, float]]
    """Id and time of each."""
    answers: list[Answer]
    calls: dict[str, Call]
    """By the id of its part, as it was kept last."""


def facts(entries: Iterable[tuple[int, float, AnyEntry]]) -> Facts:
    """Of entries with their places and times, in the order in which they were added."""
    found = Facts([], [], [], {})
    for seq, time_utc, entry in entries:
        if isinstance(entry, MessageEntry):
            _add_message(found, seq, entry.message.timestamp or time_utc, entry.message)
        elif isinstance(entry, ResultsEntry):
            _add_calls(found, seq, time_utc, entry.parts)
        elif isinstance(entry, BranchEntry | CompactionEntry) and entry.summary is not None:
            _add_message(found, seq, time_utc, entry.summary)
        if (usage := spent_beside(entry)) is not None:
            # It was the model of the answers around it that was asked.
            model = found.answers[-1].model if found.answers else ""
            asked_id = f"aside_{seq}_{time_utc}"
            if isinstance(entry, CompactionEntry):
                asked_id = entry.summary.id if entry.summary else f"compaction_{seq}_{time_utc}"
            found.answers.append(Answer(message_id=asked_id, at=time_utc, model=model, usage=usage))
    return found


def _add_message(found: Facts, seq: int, at: float, message: Message) -> None:
    if message.is_persons:
        found.prompts.append((message.id, at))
    if message.usage is not None:
        wrote = message.producer
        model = f"{wrote.provider}/{wrote.model}" if wrote and wrote.provider else wrote.model if wrote else ""
        found.answers.append(Answer(message_id=message.id, at=at, model=model, usage=message.usage))
    text = message.text
    if message.role in ROLES and text.strip():
        found.said.append(Passage(seq=seq, at=at, role=ROLES[message.role], text=_both_ends(text, TEXT_CHARS)))
    _add_calls(found, seq, at, message.calls)


def _add_calls(found: Facts, seq: int, at: float, parts: Iterable[ToolPart]) -> None:
    for part in parts:
        given = _both_ends("\n".join(_texts(part.input or part.raw_input)), OUTPUT_CHARS)
        said = f"{given}\n{_both_ends(part.output, OUTPUT_CHARS)}"
        passage = Passage(
            seq=seq, at=at, role="tool", text=said, tool=one_line(clean(part.tool)), paths=tuple(_paths(part.input))
        )
        found.calls[part.id] = Call(part_id=part.id, passage=passage, failed=part.status == "failed")


def _both_ends(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most * 3 // 4]}\n…\n{text[-most // 4 :]}"


def _texts(value: Any) -> Iterator[str]:
    """What is written in the arguments of a call, without the names."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)


def _paths(arguments: dict[str, Any]) -> Iterator[str]:
    """The files a call is about, as far as its arguments tell."""
    for name, value in arguments.items():
        if name in _PATH_NAMES:
            yield from _texts(value)
        elif name in _COMMAND_NAMES and isinstance(value, str):
            yield from (word.strip("'\"`;,()") for word in value.split() if "/" in word or "." in word)
        elif name == "patch" and isinstance(value, str):
            headings = (line for line in value.splitlines() if line.startswith("*** "))
            yield from (line.partition(": ")[2].strip() for line in headings if ": " in line)
