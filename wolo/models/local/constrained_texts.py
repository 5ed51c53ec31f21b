"""Texts of constrained mode: its prompts and schemas, the conversation that fits the window, and the answers."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from wolo.errors import ContextOverflow
from wolo.formats.tolerant_json import read_json
from wolo.messages.message import NAMED_MODE, Message
from wolo.messages.parts import TextPart, ToolPart
from wolo.models.local import local_chat, local_response, simple_texts
from wolo.models.local.simple_reports import FileText, file_text
from wolo.models.tokens import estimate_text

TEXT: Final[Mapping[str, Any]] = {"type": "string"}
NUMBER: Final[Mapping[str, Any]] = {"type": "integer"}
_STEP: Final = {
    "type": "object",
    "properties": {"text": TEXT, "status": {"enum": ["pending", "in_progress", "completed"]}},
    "required": ["text", "status"],
    "additionalProperties": False,
}
ARGUMENTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "read": {"path": TEXT, "offset": NUMBER},
    "grep": {"pattern": TEXT, "path": TEXT},
    "glob": {"pattern": TEXT},
    "edit": {"path": TEXT},
    "write": {"path": TEXT},
    "shell": {"command": TEXT},
    "todo": {"items": {"type": "array", "items": _STEP, "maxItems": 8}},
}
"""Arguments inside the object; the contents of `write` and `edit` follow as text."""
ON_FILES: Final = frozenset(("read", "edit"))
"""Calls on files that exist."""
OPTIONAL: Final = frozenset(("offset",))
_EXPLAINED: Final[Mapping[str, str]] = {
    "read": '{"call":"read","path":"FILE"} shows a file; add "offset" to begin at a later line',
    "grep": '{"call":"grep","pattern":"def load","path":"."} searches in files',
    "glob": '{"call":"glob","pattern":"*.py"} finds files by name',
    "edit": '{"call":"edit","path":"FILE"} changes a file that exists; you are asked for the change next',
    "write": '{"call":"write","path":"FILE"} creates a new file; you are asked for its content next',
    "shell": '{"call":"shell","command":"python3 FILE"} runs a command',
    "todo": '{"call":"todo","items":[{"text":"…","status":"pending"}]} keeps the plan of a task with several steps',
}
_RULES: Final = """\
You are Wolo, a coding agent. You work in a folder, one step at a time.
Each of your replies is one JSON object: a call, or the end.

Calls:
{calls}

The end, when all is done or when the user only wants to know something:
{{"say":"ANSWER"}}

Rules:
- Read a file before you change it or talk about it.
- Do everything that was asked, one file after the other.
- After a result, go on with the next step. Do not repeat a call that worked.
- When a command fails, read its error and correct the cause.
- Say only what the results show."""

CONTENT: Final = "Now give the complete content of {path} as one code block and nothing else."
CHANGED: Final = (
    "This is {path} now:\n{fence}{language}\n{text}\n{fence}\n"
    "The task: {request}\nNow give the complete new content of {path} as one code block and nothing else."
)
BLOCK: Final = (
    "Now give the change of {path} in this form and nothing else: lines copied from the file, then what replaces them.\n"
    "<<<<<<< OLD\nlines of the file\n=======\nnew lines\n>>>>>>> NEW"
)
OLD: Final = "<<<<<<< OLD\n"
NEW_END: Final = "\n>>>>>>> NEW"
IS_WORK: Final = "Does the user ask you to create or change files, or to run something? Answer yes or no."
PLACEHOLDER: Final = "ANSWER"
GO_ON: Final = "The task: {request}\nIf all of it is done, end with what you did. Otherwise make the next call."
UNCHANGED: Final = "{path} is as it should be already. Go on with the next step, or end."
NOTHING_DONE: Final = "Nothing has been done yet, no file was changed. Make the next call."
OMITTED: Final = "[omitted to save space; make the call again if you need it]"


def schema(tools: Collection[str], files: Sequence[str], *, may_end: bool = True) -> dict[str, Any]:
    """One object: the end, or a call whose name comes first. `files`: all that can be read; empty: unknown."""
    kinds = [_object({"say": TEXT}, ())] if may_end else []
    for name, arguments in ARGUMENTS.items():
        if name in tools:
            known = {"path": {"enum": list(files)}} if files and name in ON_FILES else {}
            kinds.append(_object({"call": {"const": name}, **arguments, **known}, OPTIONAL))
    return {"anyOf": kinds}


def _object(properties: Mapping[str, Any], optional: Collection[str]) -> dict[str, Any]:
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": dict(properties), "required": required, "additionalProperties": False}


def system_prompt(tools: Collection[str], names: Sequence[str], instructions: str) -> str:
    calls = "\n".join(explained for name, explained in _EXPLAINED.items() if name in tools)
    parts = [_RULES.format(calls=calls), f"Files here: {', '.join(names) if names else 'none yet'}"]
    return "\n\n".join([*parts, *([instructions] if instructions else [])])


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
    turns: list[local_chat.Turn]
    num_omitted: int
    """Results and messages that did not fit."""


def fit_window(messages: Sequence[Message], system: str, window: int, reserved: int) -> FittedHistory:
    """The conversation with short results, the oldest omitted: turns that leave `reserved` tokens of the window.

    Raises ContextOverflow if the last prompt alone is too long.
    """
    limit = min(MAX_RESULT_CHARS, window * CHARS_PER_TOKEN // RESULT_SHARE)
    entries = [entry for message in messages for entry in _entries(message, limit)]
    room = (window - reserved) * CHARS_PER_TOKEN // 4 - estimate_text(system)
    num_omitted = 0
    for at, entry in enumerate(entries[:-1]):
        if _size(entries) <= room:
            break
        if entry.short:
            entries[at] = HistoryEntry(entry.role, entry.short)
            num_omitted += 1
    begins = max((at for at, entry in enumerate(entries) if entry.role == "prompt"), default=0)
    while _size(entries) > room and begins > 0:
        del entries[0]
        begins, num_omitted = begins - 1, num_omitted + 1
    while _size(entries) > room and len(entries) > begins + 2:
        del entries[begins + 1]
        num_omitted += 1
    if _size(entries) > room:
        raise ContextOverflow("The prompt is too long for this model's window.", hint="Ask for less, or use a larger model.")
    turns: list[local_chat.Turn] = [("system", system)]
    for entry in entries:  # roles alternate, which many chat templates require
        role = "assistant" if entry.role == "assistant" else "user"
        if turns[-1][0] == role:
            turns[-1] = (role, f"{turns[-1][1]}\n\n{entry.text}")
        elif len(turns) > 1 or role == "user":
            turns.append((role, entry.text))
    return FittedHistory(turns, num_omitted)


def _size(entries: Sequence[HistoryEntry]) -> int:
    return sum(estimate_text(entry.text) + 4 for entry in entries)


def _entries(message: Message, limit: int) -> list[HistoryEntry]:
    if message.role == "user":
        text = "\n\n".join(part.text for part in message.of(TextPart) if not part.is_notice)
        if mode := message.metadata.get(NAMED_MODE, ""):
            text = f"{text}\n\n{local_response.mode_notice(mode)}" if message.is_prompt else local_response.mode_notice(mode)
        return [HistoryEntry("prompt" if message.is_prompt else "user", text)] if text else []
    entries: list[HistoryEntry] = []
    for part in message.parts:
        if isinstance(part, TextPart) and part.text.strip():
            entries.append(HistoryEntry("assistant", as_json({"say": part.text})))
        elif isinstance(part, ToolPart):
            arguments = {name: value for name, value in part.input.items() if name not in CONTENTS}
            entries += [HistoryEntry("assistant", as_json({"call": part.tool, **arguments})), _result(part, limit)]
    return entries


def _result(call: ToolPart, limit: int) -> HistoryEntry:
    head = f"Result of {call.tool}{' (failed)' if call.is_error else ''}:\n"
    text = head + simple_texts.shorten(call.output.strip() or "(no output)", limit)
    content = call.input.get("content")
    if call.tool == "write" and isinstance(content, str) and not call.is_error:
        return HistoryEntry("user", f"{text}\nIts content:\n{simple_texts.shorten(content, limit)}", text)
    return HistoryEntry("user", text, head + OMITTED)


def as_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def known_file(messages: Sequence[Message], path: str) -> FileText | None:
    """Last known content of a file in this session; None: neither read nor written since the last edit."""
    for message in reversed(messages):
        for call in reversed(message.calls):
            if call.is_error or call.status != "completed" or call.input.get("path") != path:
                continue
            if call.tool == "write":
                return FileText(str(call.input.get("content", "")), is_whole=True)
            if call.tool == "edit":
                return None
            if call.tool == "read":
                return file_text(call.output)
    return None


class StepAnswer(Struct, frozen=True):
    """One step: `say`, or a call."""

    say: str = ""
    tool: str = ""
    arguments: dict[str, Any] = msgspec.field(default_factory=dict)


def read_answer(text: str, tools: Sequence[str]) -> StepAnswer | None:
    """None: not one of the objects that were asked for."""
    step = read_json(text.strip().encode("utf-8", "replace"))
    if not isinstance(step, dict):
        return None
    if isinstance(say := step.get("say"), str):
        return StepAnswer(say=say)
    tool = step.pop("call", None)
    if tool not in tools or any(name not in ARGUMENTS[tool] for name in step):
        return None
    return StepAnswer(tool=tool, arguments=step)
