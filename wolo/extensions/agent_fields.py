"""Reads the fields of agent files: tools, model, limits."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import get_args

from wolo.extensions.markdown_files import Document
from wolo.formats.format import ThinkingLevel

_EVERYTHING = frozenset(("*", "all", "inherit"))
_ELSEWHERE: Mapping[str, tuple[str, ...]] = {
    "bash": ("shell", "jobs"),
    "run_shell_command": ("shell", "jobs"),
    "execute": ("shell", "jobs"),
    "bashoutput": ("jobs",),
    "killshell": ("jobs",),
    "multiedit": ("edit",),
    "patch": ("edit",),
    "apply_patch": ("edit",),
    "read_file": ("read",),
    "ls": ("glob",),
    "list": ("glob",),
    "search": ("grep",),
    "webfetch": ("fetch",),
    "web_fetch": ("fetch",),
    "websearch": ("web_search",),
    "todowrite": ("todo",),
    "todoread": ("todo",),
    "question": ("ask",),
    "read_many_files": ("read",),
    "notebookread": ("read",),
    "notebookedit": ("edit",),
    "list_directory": ("glob",),
    "search_file_content": ("grep",),
    "grep_search": ("grep",),
    "replace": ("edit",),
    "write_file": ("write",),
    "write_todos": ("todo",),
    "activate_skill": ("skill",),
    "google_web_search": ("web_search",),
    "askuserquestion": ("ask",),
}
"""Tool names of other agents, in lower case, and wolo's equivalents."""
_NOT_HERE = frozenset(("task", "agent", "notebookedit", "notebookread", "exitplanmode"))
"""Tools of other agents without an equivalent here; `task` because agents cannot delegate further."""
_TURNS = ("max_turns", "max_steps", "maxTurns", "maxSteps", "steps")
_LEVELS = ("effort", "reasoningEffort", "model_reasoning_effort", "thinking")
USED_FIELDS = frozenset(
    (
        *("name", "description", "prompt", "mode", "hidden", "color", "disable", "skills", "kind", "agent_card_url"),
        *("model", "temperature", *_LEVELS, *_TURNS, "tools", "disallowedTools", "disallowed-tools"),
        *("permission", "permissionMode", "sandbox_mode", "hooks"),
    )
)


def model_name(document: Document) -> str:
    model = document.text("model")
    return "" if model.lower() in ("inherit", "default") else model


def thinking(document: Document) -> ThinkingLevel | None:
    """Raises ExtensionError."""
    for key in _LEVELS:
        if level := document.text(key).lower():
            if level not in get_args(ThinkingLevel):
                raise document.wrong(key, f"must be one of {', '.join(get_args(ThinkingLevel))}")
            return level  # type: ignore[return-value]  # it was just looked up
    return None


def temperature(document: Document) -> float | None:
    """Raises ExtensionError."""
    value = document.fields.get("temperature")
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 2:
        raise document.wrong("temperature", "must be a number from 0 to 2")
    return float(value)


def tools(document: Document) -> tuple[str, ...] | None:
    """None: all tools. `agent_rights.py` enforces a pattern in parentheses."""
    table = document.fields.get("tools")
    if isinstance(table, dict):
        return _ours(name for name, said in table.items() if said is True) if table.get("*") is False else None
    if table is None:
        return None
    named = [each.strip("[]\"'` ") for each in document.items("tools")]
    if any(each.lower() in _EVERYTHING for each in named):
        return None
    return _ours(each.partition("(")[0] for each in named)


def removed_tools(document: Document) -> tuple[str, ...]:
    """Tools from `disallowedTools`, and those denied in a table `tools` or `permission`."""
    named = [*document.items("disallowedTools"), *document.items("disallowed-tools")]
    for key, refusal in (("tools", False), ("permission", "deny")):
        table = document.fields.get(key)
        if isinstance(table, dict):
            named += [name for name, said in table.items() if said == refusal and said is not None]
            named += ["write"] if key == "permission" and table.get("edit") == refusal else []
    return _ours(each.partition("(")[0] for each in named)


def _ours(names: Iterable[str]) -> tuple[str, ...]:
    tools: dict[str, None] = {}
    for name in names:
        known = name.strip().lower()
        if known.endswith("_*") and not known.startswith("mcp__"):
            name = known = f"mcp__{name.strip().removesuffix('_*')}"
        if known not in _NOT_HERE:
            tools |= dict.fromkeys(_ELSEWHERE.get(known, (name.strip() if name.startswith("mcp__") else known,)))
    return tuple(tools)


def max_turns(document: Document) -> int | None:
    for key in _TURNS:
        if said := document.text(key):
            if not re.fullmatch(r"\d{1,9}", said) or not int(said):
                raise document.wrong(key, "must be a number above 0")
            return int(said)
    return None
