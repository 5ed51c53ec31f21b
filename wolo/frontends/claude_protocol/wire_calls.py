"""Translates calls to the names and arguments that the protocol has for them, and changed arguments back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from wolo.extensions.hooks.claude_calls import CLAUDE_NAMES, ClaudeCall, to_claude_calls, to_wolo_arguments

JOBS = ("BashOutput", "KillShell")
"""The tool `jobs` is two in the protocol."""
MULTI_EDIT = "MultiEdit"


class WireCall(Struct, frozen=True):
    """One call as the protocol has it: a call of several replacements stays one."""

    name: str
    input: dict[str, Any]
    tool: str
    arguments: Mapping[str, Any]
    """The call in wolo's form."""
    call: ClaudeCall | None = None
    """None: the call has several replacements or files."""

    def to_arguments(self, changed: Mapping[str, Any]) -> dict[str, Any] | None:
        """The arguments of wolo's call for a changed `input`; None: they cannot be translated."""
        if self.call is not None:
            return to_wolo_arguments(self.tool, self.arguments, self.call, changed)
        edits = changed.get("edits")
        if self.name != MULTI_EDIT or not isinstance(edits, list) or not all(isinstance(each, dict) for each in edits):
            return None
        names = {"old_string": "old", "new_string": "new", "replace_all": "replace_all"}
        parts = [{ours: each[theirs] for theirs, ours in names.items() if theirs in each} for each in edits]
        return {"path": changed.get("file_path", ""), "edits": parts}


def to_wire_call(tool: str, arguments: Mapping[str, Any], cwd: Path) -> WireCall:
    """Paths become absolute, as they are in the protocol."""
    try:
        calls = to_claude_calls(tool, arguments, cwd, follow_links=False)
    except (TypeError, KeyError, ValueError, AttributeError):  # a malformed call of the model, which is refused anyway
        return WireCall(CLAUDE_NAMES.get(tool, tool), dict(arguments), tool, arguments)
    if len(calls) == 1:
        return WireCall(calls[0].name, calls[0].input, tool, arguments, calls[0])
    if tool != "edit":
        return WireCall(tool, dict(arguments), tool, arguments)
    edits = [{name: value for name, value in each.input.items() if name != "file_path"} for each in calls]
    return WireCall(MULTI_EDIT, {"file_path": calls[0].input["file_path"], "edits": edits}, tool, arguments)


def to_wire_names(tools: Iterable[str]) -> list[str]:
    names: list[str] = []
    for tool in tools:
        names += JOBS if tool == "jobs" else [CLAUDE_NAMES.get(tool, tool)]
    return list(dict.fromkeys(names))
