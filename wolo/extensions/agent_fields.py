"""Reads the fields of agent files: tools, model, limits, and rights in the spellings of other agents."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import get_args

from wolo.errors import ConfigError
from wolo.extensions.markdown_files import Document
from wolo.formats.format import ThinkingLevel
from wolo.guard.modes import MODES, SPELLINGS, Ceiling
from wolo.guard.rules import Decision, Rule, RuleTool, parse_rule

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
    """None: all tools. `ceiling` enforces a pattern in parentheses."""
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


_STRICTNESS: tuple[Decision, ...] = ("allow", "ask", "deny")
_CODEX_MODES = {"read-only": "plan", "workspace-write": "auto", "danger-full-access": "yolo"}
_TOOLS: Mapping[str, RuleTool] = {
    **dict.fromkeys(("bash", "shell", "run_shell_command"), "shell"),
    **dict.fromkeys(("edit", "write", "multiedit", "patch", "apply_patch", "write_file", "replace"), "write"),
    **dict.fromkeys(("read", "grep", "glob", "list", "ls", "read_file"), "read"),
    **dict.fromkeys(("webfetch", "fetch", "websearch", "web_fetch", "web_search"), "fetch"),
    "mcp": "mcp",
    "task": "task",
}
"""Tool names of other agents, in lower case, and the rule tool that covers them."""
_PARTS = frozenset(("grep", "glob", "list", "ls", "websearch", "web_search"))
"""Tools that a denial removes, while others of the same rule tool stay."""


def ceiling(document: Document, name: str) -> Ceiling | None:
    """None: the file sets no limits. Raises ExtensionError."""
    source = f"the agent {name}"
    mode, asks_nobody = _mode(document)
    rules: list[Rule] = []
    defaults: dict[RuleTool, Decision] = {}
    lost: list[tuple[RuleTool, Decision]] = []
    for tool, pattern, decision in (*_permissions(document), *_tools(document)):
        if pattern == "*":
            defaults[tool] = decision
        elif (rule := _rule(tool, pattern, decision, source)) is not None:
            rules.append(rule)
        else:
            lost.append((tool, decision))
    for tool, decision in lost:  # a pattern without a meaning here must not make the limits wider
        defaults[tool] = max(defaults.get(tool, "allow"), decision, key=_STRICTNESS.index)
    found = Ceiling(source=source, mode=mode, asks_nobody=asks_nobody, rules=tuple(rules), defaults=tuple(defaults.items()))
    return found if found.is_limited else None


def _mode(document: Document) -> tuple[str, bool]:
    if value := document.text("sandbox_mode"):
        if value not in _CODEX_MODES:
            raise document.wrong("sandbox_mode", f"must be one of {', '.join(_CODEX_MODES)}")
        mode = _CODEX_MODES[value]
        return ("" if mode == "yolo" else mode), False
    value = document.text("permissionMode")
    mode = SPELLINGS.get(value, value)
    if value == "dontAsk":
        return "", True
    if value and mode not in MODES:
        raise document.wrong("permissionMode", f"must be one of {', '.join((*MODES, *SPELLINGS, 'dontAsk'))}")
    return ("" if mode == "yolo" else mode), False


def _permissions(document: Document) -> Iterator[tuple[RuleTool, str, Decision]]:
    """OpenCode's: a decision for everything, or by tool, or by tool and pattern. Raises ExtensionError."""
    said = document.fields.get("permission")
    table = said if isinstance(said, dict) else {} if said is None else {"*": said}
    for name, value in table.items():
        if name != "*" and (name.lower() not in _TOOLS or (name.lower() in _PARTS and value == "deny")):
            continue
        tools = tuple(dict.fromkeys(_TOOLS.values())) if name == "*" else (_TOOLS[name.lower()],)
        for pattern, decision in value.items() if isinstance(value, dict) else [("*", value)]:
            if decision not in get_args(Decision):
                raise document.wrong("permission", f"for {name} must be one of {', '.join(get_args(Decision))}")
            for tool in tools:
                yield tool, pattern, decision  # type: ignore[misc]  # it was just looked up


def _tools(document: Document) -> Iterator[tuple[RuleTool, str, Decision]]:
    """Claude Code's `Bash(git log:*)`: the tool, for this only."""
    if isinstance(document.fields.get("tools"), dict):
        return
    named = document.items("tools")
    plain = {each.strip().lower() for each in named if "(" not in each}
    for each in named:
        word, parenthesis, rest = each.partition("(")
        tool = _TOOLS.get(word.strip().lower())
        if parenthesis and tool is not None and word.strip().lower() not in plain:
            yield tool, "*", "deny"
            yield tool, rest.rstrip(") ").replace(":*", " *") if tool == "shell" else rest.rstrip(") "), "allow"


def _rule(tool: RuleTool, pattern: str, decision: Decision, source: str) -> Rule | None:
    """None: the pattern has no meaning here."""
    if tool == "fetch":
        pattern = pattern.removeprefix("domain:")
    try:
        return parse_rule(f"{tool}:{pattern}", decision, source)
    except ConfigError:
        return None
