"""Prompts and schemas of constrained mode."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import PurePath
from typing import Any, Final

from wolo.models.local.simple_texts import LANGUAGES

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


def language_of(path: str) -> str:
    return LANGUAGES.get(PurePath(path).suffix.lower(), "text")


def fence_of(language: str) -> str:
    return "~~~~" if language == "markdown" else "```"
