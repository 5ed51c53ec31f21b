"""Matches hooks to events: matchers as Claude Code evaluates them, and the names under which hooks know tools."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from wolo.extensions.hooks.settings import ALL_TOOLS, pattern

CLAUDE_NAMES: Mapping[str, str] = {
    "shell": "Bash",
    "read": "Read",
    "write": "Write",
    "edit": "Edit",
    "grep": "Grep",
    "glob": "Glob",
    "fetch": "WebFetch",
    "todo": "TodoWrite",
    "ask": "AskUserQuestion",
    "task": "Task",
    "skill": "Skill",
}
"""Tools of wolo → of Claude Code. A patch and a job have no counterpart of their own: `hook_calls` says what they are."""
_ALSO_CALLED: Mapping[str, tuple[str, ...]] = {
    "Edit": ("MultiEdit",),
    "Task": ("Agent",),
    "BashOutput": ("TaskOutput",),
    "KillShell": ("KillBash", "TaskStop"),
}
"""Names of the same tool in older and newer versions."""
PERMISSION_MODES: Mapping[str, str] = {
    "plan": "plan",
    "ask": "default",
    "edit": "acceptEdits",
    "auto": "auto",
    "yolo": "bypassPermissions",
}
_LIST = re.compile(r"[A-Za-z0-9_\-| ,]*")
"""A matcher of these characters alone is a list of names; any other is a regular expression."""
_NEGATIVE = re.compile(r"\(\?<?!|\[\^")
"""It matches by what is absent, so another spelling of an excluded name would match."""


def names_of(tool: str, told_as: str) -> tuple[str, ...]:
    """The names that a matcher may use for a call: Claude Code's first, wolo's last."""
    return tuple(dict.fromkeys((told_as, *_ALSO_CALLED.get(told_as, ()), tool)))


def concerns(matcher: str, names: Sequence[str]) -> bool:
    """Tells whether a matcher selects one of these names.

    As in Claude Code, a list (`Edit|Write`, `Edit, Write`) selects exact names, and anything else is a regular expression
    that may match anywhere in the name. Upper and lower case are the same, and `mcp__SERVER` selects all tools of a server.
    """
    if matcher.strip() in ALL_TOOLS:
        return True
    if not _LIST.fullmatch(matcher):
        searched = names[:1] if _NEGATIVE.search(matcher) else names
        return any(pattern(matcher).search(each) for each in searched)
    wanted = {each.strip().lower() for each in re.split(r"[|,]", matcher)}
    servers = tuple(f"{each}__" for each in wanted if each.startswith("mcp__"))
    return any(each.lower() in wanted or each.lower().startswith(servers) for each in names)
