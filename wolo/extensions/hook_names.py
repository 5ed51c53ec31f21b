"""Tools and their arguments under the names that hooks written for other agents know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wolo.extensions.hook_settings import ALL_TOOLS, pattern

_ALSO_CALLED: Mapping[str, tuple[str, ...]] = {
    "shell": ("Bash",),
    "read": ("Read",),
    "write": ("Write",),
    "edit": ("Edit", "MultiEdit"),
    "apply_patch": ("ApplyPatch", "Edit", "MultiEdit", "Write"),
    "grep": ("Grep",),
    "glob": ("Glob",),
    "fetch": ("WebFetch",),
    "todo": ("TodoWrite",),
    "ask": ("AskUserQuestion",),
    "task": ("Task", "Agent"),
    "skill": ("Skill",),
    "jobs": ("BashOutput", "KillShell"),
}
"""Whoever guards every write must see patches, too."""
_ARGUMENTS: Mapping[str, str] = {"path": "file_path", "old": "old_string", "new": "new_string"}
_OF_FILES = frozenset(("read", "write", "edit"))


def concerns(matcher: str, name: str) -> bool:
    """Whether a hook with this matcher is meant for this tool; upper and lower case are the same."""
    if matcher in ALL_TOOLS:
        return True
    wanted = pattern(matcher)
    return any(wanted.fullmatch(each) for each in (name, *_ALSO_CALLED.get(name, ())))


def with_other_names(tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments, and those of them that are known elsewhere by another name under that, too."""
    if tool not in _OF_FILES:
        return dict(arguments)
    also = {other: arguments[ours] for ours, other in _ARGUMENTS.items() if ours in arguments}
    return {**also, **arguments}


def in_our_names(tool: str, told: Mapping[str, Any], changed: Mapping[str, Any]) -> dict[str, Any]:
    """What a hook made of the arguments it was told: where it changed only one of two names, that one counts."""
    if tool not in _OF_FILES:
        return dict(changed)
    arguments = dict(changed)
    for ours, other in _ARGUMENTS.items():
        if other not in arguments:
            continue
        value = arguments.pop(other)
        if ours not in arguments or (value != told.get(other) and arguments[ours] == told.get(ours)):
            arguments[ours] = value
    return arguments
