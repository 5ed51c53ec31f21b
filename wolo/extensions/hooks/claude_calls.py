"""Translates tool calls to Claude Code's form for hooks, and changed arguments back."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct

from wolo.errors import ToolError
from wolo.tools.editing.patch_parser import AddFile, DeleteFile, UpdateFile, read_patch
from wolo.workspace.root import resolve_path

_TITLE_CHARS = 60
CLAUDE_NAMES: Mapping[str, str] = {
    "shell": "Bash",
    "read": "Read",
    "write": "Write",
    "edit": "Edit",
    "grep": "Grep",
    "glob": "Glob",
    "fetch": "WebFetch",
    "web_search": "WebSearch",
    "todo": "TodoWrite",
    "ask": "AskUserQuestion",
    "present_plan": "ExitPlanMode",
    "task": "Task",
    "skill": "Skill",
}
"""Tool names of wolo and Claude Code. `to_claude_calls` handles patches and jobs, which have no equivalent."""


class ClaudeCall(Struct, frozen=True, kw_only=True):
    """A call, or the part of one that concerns one file, in Claude Code's form."""

    name: str
    input: dict[str, Any]
    file: str = ""
    """Absolute path of the file concerned."""
    at: int | None = None
    """Index of the replacement in an edit that has several."""


def to_claude_calls(tool: str, arguments: Mapping[str, Any], start: Path, *, follow_links: bool) -> list[ClaudeCall]:
    """Splits a call that affects several files or makes several replacements.

    `arguments` have wolo's names; relative paths start at `start`. With `follow_links`, a path through a link is repeated with
    its target.
    """
    if tool == "apply_patch":
        call = list(_patch_calls(str(arguments.get("patch", "")))) or [ClaudeCall(name=tool, input=dict(arguments))]
    elif tool == "edit" and arguments.get("edits"):
        call = list(_replacements(arguments))
    else:
        call = [_one(tool, arguments)]
    return [each for one in call for each in _by_file(one, start, follow_links=follow_links)]


def to_wolo_arguments(
    tool: str, arguments: Mapping[str, Any], call: ClaudeCall, changed: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Applies a hook's changes to the arguments; None if the change cannot be translated."""
    if tool == "apply_patch":
        return None
    if call.at is not None:
        parts = [dict(each) for each in arguments["edits"]]
        path = changed.get("file_path")
        parts[call.at] = _merge_changes(_EDIT, parts[call.at], call.input, {**changed, "file_path": call.input["file_path"]})
        return {**arguments, "edits": parts, **({"path": path} if path not in (None, call.input["file_path"]) else {})}
    form = _form(tool, arguments)
    return _merge_changes(form, arguments, call.input, changed) if form else dict(changed)


class _Field(NamedTuple):
    ours: str
    theirs: str
    out: Callable[[Any], Any] = lambda value: value
    back: Callable[[Any], Any] = lambda value: value


class _Form(NamedTuple):
    name: str
    fields: tuple[_Field, ...]
    more: Mapping[str, Any] = {}
    """Fields that Claude Code's tool always has and wolo's lacks."""


def _form(tool: str, arguments: Mapping[str, Any]) -> _Form | None:
    if tool == "jobs":
        return _STOP_JOB if arguments.get("action") == "stop" else _LOOK_AT_JOB
    return _FORMS.get(tool)


def _one(tool: str, arguments: Mapping[str, Any]) -> ClaudeCall:
    form = _form(tool, arguments)
    if form is None:
        return ClaudeCall(name=tool, input=dict(arguments))
    call = {field.theirs: field.out(arguments[field.ours]) for field in form.fields if field.ours in arguments}
    more = {name: value(arguments) if callable(value) else value for name, value in form.more.items()}
    return ClaudeCall(name=form.name, input={**more, **call})


def _merge_changes(
    form: _Form, arguments: Mapping[str, Any], call: Mapping[str, Any], changed: Mapping[str, Any]
) -> dict[str, Any]:
    """Unchanged values stay as the model wrote them; omitted ones are removed."""
    fields = {field.theirs: field for field in form.fields}
    taken = {ours: value for ours, value in arguments.items() if all(ours != field.ours for field in form.fields)}
    for name, value in changed.items():
        field = fields.get(name)
        if name in call and call[name] == value:
            if field is not None and field.ours in arguments:
                taken[field.ours] = arguments[field.ours]
        elif field is not None:
            taken[field.ours] = field.back(value)
        elif name not in form.more:
            taken[name] = value
    return taken


def _replacements(arguments: Mapping[str, Any]) -> Iterator[ClaudeCall]:
    path = arguments.get("path", "")
    if arguments.get("old") is not None:
        yield _one("edit", {name: value for name, value in arguments.items() if name != "edits"})
    for at, each in enumerate(arguments["edits"]):
        yield ClaudeCall(name="Edit", input={**_one("edit", each).input, "file_path": path}, at=at)


def _patch_calls(patch: str) -> Iterator[ClaudeCall]:
    """Describes each file of a patch: Write for a new file, Edit for a change, an empty Edit for a deletion or move."""
    try:
        sections = read_patch(patch)
    except ToolError:
        return  # the tool refuses it with the reason
    for section in sections:
        match section:
            case AddFile(path=path, content=content):
                yield ClaudeCall(name="Write", input={"file_path": path, "content": content})
            case DeleteFile(path=path):
                yield ClaudeCall(name="Edit", input={"file_path": path, "old_string": "", "new_string": "", "replace_all": False})
            case UpdateFile(path=path, move_to=move_to, hunks=hunks):
                old, new = "".join(hunk.old for hunk in hunks), "".join(hunk.new for hunk in hunks)
                edit = {"file_path": path, "old_string": old, "new_string": new, "replace_all": False}
                yield ClaudeCall(name="Edit", input=edit)
                if move_to:
                    yield ClaudeCall(name="Write", input={"file_path": move_to, "content": new})


def _by_file(call: ClaudeCall, start: Path, *, follow_links: bool) -> Iterator[ClaudeCall]:
    key = next((each for each in ("file_path", "path") if each in call.input), None)
    if key is None or not isinstance(call.input[key], str) or call.name not in ("Read", "Write", "Edit", "Grep", "Glob"):
        yield call
        return
    written = os.path.normpath(start / _with_home(call.input[key], start))
    real = _real(start / _with_home(call.input[key], start)) if follow_links else written
    for path in dict.fromkeys((written, real)):
        yield ClaudeCall(name=call.name, input={**call.input, key: path}, file=path, at=call.at)


def _with_home(path: str, start: Path) -> str:
    return path if os.path.lexists(start / path.partition("/")[0]) else os.path.expanduser(path)  # noqa: PTH111  # may not raise


def _real(path: Path) -> str:
    try:
        return str(resolve_path(path))
    except (OSError, ValueError):
        return os.path.normpath(path)


def _title(arguments: Mapping[str, Any]) -> str:
    words = " ".join(str(arguments.get("prompt", "")).split())
    return words if len(words) <= _TITLE_CHARS else f"{words[:_TITLE_CHARS]}…"


def _todos(items: Any) -> list[dict[str, Any]]:
    listed = [each if isinstance(each, Mapping) else {"text": each} for each in items]
    return [
        {"content": each["text"], "status": each.get("status", "pending"), "activeForm": each["text"]}
        for each in listed
        if "text" in each
    ]


def _to_items(todos: Any) -> list[dict[str, Any]]:
    return [{"text": each.get("content", ""), "status": each.get("status", "pending")} for each in todos]


def _questions(questions: Any) -> list[dict[str, Any]]:
    return [
        {
            "question": each.get("question", ""),
            "header": each.get("header", ""),
            "options": [
                {"label": option.get("label", ""), "description": option.get("description", "")}
                if isinstance(option, Mapping)
                else {"label": option, "description": ""}
                for option in each.get("options", ())
            ],
            "multiSelect": each.get("multi_select", False),
        }
        for each in questions
    ]


def _to_questions(questions: Any) -> list[dict[str, Any]]:
    return [{("multi_select" if name == "multiSelect" else name): value for name, value in each.items()} for each in questions]


def _number(text: Any) -> Any:
    return int(text) if isinstance(text, str) and text.isdecimal() else text


def _same(*names: str) -> tuple[_Field, ...]:
    return tuple(_Field(name, name) for name in names)


_PATH = _Field("path", "file_path")
_EDIT = _Form(
    CLAUDE_NAMES["edit"],
    (_PATH, _Field("old", "old_string"), _Field("new", "new_string"), *_same("replace_all")),
    {"replace_all": False},
)
_SHELL_TIMEOUT = _Field(
    "timeout_s",
    "timeout",
    lambda seconds: int(seconds * 1000),
    lambda millis: millis / 1000 if isinstance(millis, int | float) else millis,
)
_SEARCH_NAMES = (("before", "-B"), ("after", "-A"), ("context", "-C"), ("ignore_case", "-i"), ("line_numbers", "-n"))
_LOOK_AT_JOB = _Form("BashOutput", (_Field("id", "bash_id", str, _number),))
_STOP_JOB = _Form("KillShell", (_Field("id", "shell_id", str, _number),))
_FORMS: Mapping[str, _Form] = {
    "shell": _Form(
        CLAUDE_NAMES["shell"],
        (*_same("command"), _SHELL_TIMEOUT, _Field("background", "run_in_background")),
        {"description": "", "run_in_background": False},
    ),
    "read": _Form(CLAUDE_NAMES["read"], (_PATH, *_same("offset", "limit", "pages"))),
    "write": _Form(CLAUDE_NAMES["write"], (_PATH, *_same("content"))),
    "edit": _EDIT,
    "grep": _Form(
        CLAUDE_NAMES["grep"],
        (
            *_same("pattern", "path", "glob", "type", "output_mode", "multiline", "head_limit", "offset"),
            *(_Field(ours, theirs) for ours, theirs in _SEARCH_NAMES),
        ),
    ),
    "glob": _Form(CLAUDE_NAMES["glob"], _same("pattern", "path")),
    "fetch": _Form(CLAUDE_NAMES["fetch"], _same("url"), {"prompt": ""}),
    "web_search": _Form(CLAUDE_NAMES["web_search"], _same("query")),
    "todo": _Form(CLAUDE_NAMES["todo"], (_Field("items", "todos", _todos, _to_items),)),
    "ask": _Form(CLAUDE_NAMES["ask"], (_Field("questions", "questions", _questions, _to_questions),)),
    "present_plan": _Form(CLAUDE_NAMES["present_plan"], _same("plan")),
    "task": _Form(
        CLAUDE_NAMES["task"],
        (*_same("prompt"), _Field("agent", "subagent_type"), _Field("background", "run_in_background")),
        {"description": _title},
    ),
    "skill": _Form(CLAUDE_NAMES["skill"], (_Field("name", "skill"),)),
}
