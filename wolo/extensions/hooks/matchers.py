"""Matches hooks to tool calls: matchers by name, and conditions by arguments, as Claude Code does.

A condition that cannot be evaluated holds: a needless hook is better than a missing check.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from wolo.errors import ToolError
from wolo.extensions.hooks.claude_calls import ClaudeCall
from wolo.extensions.hooks.definitions import ALL_TOOLS, RULE, pattern
from wolo.guard.shell.nested_commands import commands_in
from wolo.guard.shell.parser import TooComplex
from wolo.guard.shell.words import unwrap
from wolo.workspace.globs import BadPattern, compile_glob

_ALSO_CALLED: Mapping[str, tuple[str, ...]] = {
    "Bash": ("run_shell_command",),
    "Read": ("read_file",),
    "Write": ("write_file",),
    "Edit": ("MultiEdit", "replace"),
    "Grep": ("search_file_content", "grep_search"),
    "WebFetch": ("web_fetch",),
    "Task": ("Agent",),
    "BashOutput": ("TaskOutput",),
    "KillShell": ("KillBash", "TaskStop"),
}
"""Names of the same tool in older and newer versions, and in Gemini CLI."""
PERMISSION_MODES: Mapping[str, str] = {
    "plan": "plan",
    "ask": "default",
    "edit": "acceptEdits",
    "auto": "auto",
    "yolo": "bypassPermissions",
}
_LIST = re.compile(r"[A-Za-z0-9_\-| ,]*")
"""A matcher of these characters only is a list of names; any other is a regular expression."""
_NEGATIVE = re.compile(r"\(\?<?!|\[\^")
"""A pattern that excludes names, which another spelling would evade."""


def names_of(tool: str, told_as: str) -> tuple[str, ...]:
    """The names that a matcher may use for a call: Claude Code's first, wolo's last."""
    return tuple(dict.fromkeys((told_as, *_ALSO_CALLED.get(told_as, ()), tool)))


def matches(matcher: str, names: Sequence[str]) -> bool:
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


def names_file(matcher: str, path: str) -> bool:
    """Tells whether a list of file names (`.env|.envrc`) contains this file."""
    name = Path(path).name
    return any(each.strip() in (name, path) for each in matcher.split("|"))


_ALSO: dict[str, tuple[str, ...]] = {"Edit": ("Write",), "Write": ("Edit",), "Read": ("Grep", "Glob")}
"""Rules about a tool also apply to tools with the same effect on files."""
_EXPANDS = re.compile(r"[`$]")


def holds(condition: str, call: ClaudeCall, names: Sequence[str], start: Path) -> bool:
    """`names` are those of the tool; relative paths start at `start`."""
    rule = re.fullmatch(RULE, condition)
    if rule is None:
        return True
    tool, pattern = rule[1], rule[2]
    if not any(re.fullmatch(each.replace("*", ".*"), name) for each in (tool, *_ALSO.get(tool, ())) for name in names):
        return False
    if pattern is None or pattern.strip() in ("", "*"):
        return True
    if call.name == "Bash":
        # Any command of the line counts, including those in `$(…)`, after wrappers and after assignments
        command = str(call.input.get("command", ""))
        if re.search(r"[\s:]", pattern.strip().removesuffix("*").strip()) and _EXPANDS.search(command):
            return True  # more than the name of a program, and what it is given is not known
        try:
            parts = [" ".join(words) for each in commands_in(command) for words in unwrap(each.words)]
        except (TooComplex, ToolError, RecursionError):
            return True
        prefix = re.sub(r"(?::\*|\s+\*)$", "", pattern.strip())
        written = ".*".join(map(re.escape, prefix.split("*")))
        tail = r"(?:\s.*)?" if prefix != pattern.strip() else ""
        line = re.compile(written + tail, re.DOTALL)
        return any(line.fullmatch(re.sub(r"^(?:\w+=\S*\s+)+", "", each)) for each in (command.strip(), *parts))
    if call.file:
        file = Path(call.file)
        if pattern.startswith("//"):
            return _matches(pattern[2:], str(file).lstrip("/"))
        if pattern.startswith("~/"):
            return file.is_relative_to(Path.home()) and _matches(pattern[2:], str(file.relative_to(Path.home())))
        if not file.is_relative_to(start):
            return pattern.startswith("**/") and _matches(pattern, str(file).lstrip("/"))
        return _matches(pattern.removeprefix("./").removeprefix("/"), str(file.relative_to(start)))
    if call.name == "WebFetch":
        kind, _, host = pattern.partition(":")
        if kind.strip() != "domain":
            return True
        asked = (urlsplit(str(call.input.get("url", ""))).hostname or "").lower()
        allowed = host.strip().lower().removeprefix("*.")
        return asked == allowed or asked.endswith(f".{allowed}")
    return True


def _matches(pattern: str, path: str) -> bool:
    try:
        return compile_glob(pattern).fullmatch(path) is not None
    except (BadPattern, re.error):
        return True
