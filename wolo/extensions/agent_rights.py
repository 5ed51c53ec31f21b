"""Reads the rights in agent files: modes, and rules in the spellings of other agents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import get_args

from wolo.errors import ConfigError
from wolo.extensions.markdown_files import Document
from wolo.guard.modes import MODES, SPELLINGS, Ceiling
from wolo.guard.rules import Decision, Rule, RuleTool, parse_rule

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
