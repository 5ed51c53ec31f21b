"""The conversation as constrained mode sends it: short results, the oldest omitted when the window is full."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from wolo.errors import ContextOverflow
from wolo.messages.message import Message
from wolo.messages.parts import TextPart, ToolPart
from wolo.models.local.constrained_texts import ARGUMENTS, OMITTED
from wolo.models.local.local_chat import Turn
from wolo.models.local.simple_texts import file_text, shorten
from wolo.models.tokens import estimate_text

CHARS_PER_TOKEN: Final = 3
"""Characters of code for one token; fewer than in prose."""
RESULT_SHARE: Final = 5
"""A result may take this part of the window."""
MAX_RESULT_CHARS: Final = 6_000
CONTENTS: Final = ("content", "old", "new", "edits")


class HistoryEntry(Struct, frozen=True):
    role: str
    text: str
    short: str = ""
    """Text that replaces it when the window is full; empty: it stays."""


class FittedHistory(Struct, frozen=True):
    turns: list[Turn]
    omitted: int
    """Number of results and messages that did not fit."""


def conversation(messages: Sequence[Message], system: str, window: int, reserved: int) -> FittedHistory:
    """Turns that leave `reserved` tokens of the window. Raises ContextOverflow if the last prompt alone is too long."""
    limit = min(MAX_RESULT_CHARS, window * CHARS_PER_TOKEN // RESULT_SHARE)
    entries = [entry for message in messages for entry in _entries(message, limit)]
    room = (window - reserved) * CHARS_PER_TOKEN // 4 - estimate_text(system)
    omitted = 0
    for at, entry in enumerate(entries[:-1]):
        if _size(entries) <= room:
            break
        if entry.short:
            entries[at] = HistoryEntry(entry.role, entry.short)
            omitted += 1
    begins = max((at for at, entry in enumerate(entries) if entry.role == "prompt"), default=0)
    while _size(entries) > room and begins > 0:
        del entries[0]
        begins, omitted = begins - 1, omitted + 1
    while _size(entries) > room and len(entries) > begins + 2:
        del entries[begins + 1]
        omitted += 1
    if _size(entries) > room:
        raise ContextOverflow("The prompt is too long for this model's window.", hint="Ask for less, or use a larger model.")
    return FittedHistory(_merged(system, entries), omitted)


def _size(entries: Sequence[HistoryEntry]) -> int:
    return sum(estimate_text(entry.text) + 4 for entry in entries)


def _entries(message: Message, limit: int) -> list[HistoryEntry]:
    if message.role == "user":
        text = "\n\n".join(part.text for part in message.of(TextPart))
        return [HistoryEntry("prompt" if message.is_prompt else "user", text)] if text else []
    entries: list[HistoryEntry] = []
    for part in message.parts:
        if isinstance(part, TextPart) and part.text.strip():
            entries.append(HistoryEntry("assistant", as_json({"say": part.text})))
        elif isinstance(part, ToolPart):
            entries += [HistoryEntry("assistant", as_json(shown_call(part))), _result(part, limit)]
    return entries


def _result(call: ToolPart, limit: int) -> HistoryEntry:
    head = f"Result of {call.tool}{' (failed)' if call.is_error else ''}:\n"
    text = head + shorten(call.output.strip() or "(no output)", limit)
    content = call.input.get("content")
    if call.tool == "write" and isinstance(content, str) and not call.is_error:
        return HistoryEntry("user", f"{text}\nIts content:\n{shorten(content, limit)}", text)
    return HistoryEntry("user", text, head + OMITTED)


def shown_call(call: ToolPart) -> dict[str, Any]:
    arguments = {name: value for name, value in call.input.items() if name not in CONTENTS}
    return {"call": call.tool, **arguments}


def as_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _merged(system: str, entries: Sequence[HistoryEntry]) -> list[Turn]:
    """Alternating roles, which many chat templates require."""
    turns: list[Turn] = [("system", system)]
    for entry in entries:
        role = "assistant" if entry.role == "assistant" else "user"
        if turns[-1][0] == role:
            turns[-1] = (role, f"{turns[-1][1]}\n\n{entry.text}")
        elif len(turns) > 1 or role == "user":
            turns.append((role, entry.text))
    return turns


class Known(Struct, frozen=True):
    """Last known content of a file in this session."""

    text: str
    is_whole: bool


def known_file(messages: Sequence[Message], path: str) -> Known | None:
    """None: neither read nor written since the last edit."""
    for message in reversed(messages):
        for call in reversed(message.calls):
            if call.is_error or call.status != "completed" or call.input.get("path") != path:
                continue
            if call.tool == "write":
                return Known(str(call.input.get("content", "")), is_whole=True)
            if call.tool == "edit":
                return None
            if call.tool == "read":
                read = file_text(call.output)
                return Known(read.text, read.is_whole)
    return None


class StepAnswer(Struct, frozen=True):
    """One step: `say`, or a call."""

    say: str = ""
    tool: str = ""
    arguments: dict[str, Any] = msgspec.field(default_factory=dict)


def read_answer(text: str, tools: Sequence[str]) -> StepAnswer | None:
    """None: not one of the objects that were asked for."""
    try:
        said = msgspec.json.decode(text.strip().encode("utf-8", "replace"))
    except msgspec.MsgspecError:
        return None
    if not isinstance(said, dict):
        return None
    if isinstance(say := said.get("say"), str):
        return StepAnswer(say=say)
    tool = said.pop("call", None)
    if tool not in tools or any(name not in ARGUMENTS[tool] for name in said):
        return None
    return StepAnswer(tool=tool, arguments=said)


def fenced_text(said: str, start: str, fence: str) -> str:
    """The code of an answer, with or without the given start."""
    text = said.removeprefix(start)
    if text == said and fence in said:
        text = said.partition(fence)[2].partition("\n")[2]
    text = text.partition(f"\n{fence}")[0].strip("\n")
    return f"{text}\n" if text else ""
