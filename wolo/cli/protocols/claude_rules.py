"""Translates Claude Code's rules and settings into options of wolo."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wolo.cli.options import Values
from wolo.config.translation.findings import Reading
from wolo.config.translation.rules import add_rule
from wolo.errors import UsageError
from wolo.extensions.agent_fields import removed_tools
from wolo.extensions.markdown_files import Document
from wolo.frontends.claude_protocol.can_use_tool import to_mode
from wolo.guard.rules import Decision

_WHOLE: Mapping[str, tuple[str, ...]] = {
    "Bash": ("shell:*",),
    **dict.fromkeys(("Read", "Glob", "Grep", "LS", "NotebookRead"), ("read:**",)),
    **dict.fromkeys(("Edit", "Write", "MultiEdit", "NotebookEdit"), ("write:**",)),
    **dict.fromkeys(("WebFetch", "WebSearch"), ("fetch:*",)),
    **dict.fromkeys(("Task", "Agent"), ("task:*",)),
    **dict.fromkeys(("TodoWrite", "BashOutput", "KillShell", "Skill", "AskUserQuestion", "ExitPlanMode", "ToolSearch"), ()),
}
"""Rules for all calls of a tool; several need none."""


def add_rules(values: Values, name: str, entry: Any) -> None:
    """Adds `disallowedTools` or `settings` of the initialize request. Raises UsageError."""
    if name == "settings":
        add_settings(values, entry)
    else:
        disallow(values, [str(each) for each in entry] if isinstance(entry, list) else [str(entry)])


def values_of(values: Values, name: str) -> list[str]:
    held = values.setdefault(name, [])
    assert isinstance(held, list)
    return held


def split_list(text: str) -> tuple[str, ...]:
    """At commas and blanks outside parentheses."""
    parts, depth = [""], 0
    for character in text:
        depth = max(0, depth + (character == "(") - (character == ")"))
        if character in ", " and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return tuple(part for part in parts if part)


def other_tools(text: str) -> list[str]:
    """Tools that agent files do not name: those that delegate and hand over."""
    names = split_list(text)
    return [ours for theirs, ours in (("Task", "task"), ("Agent", "task"), ("ExitPlanMode", "present_plan")) if theirs in names]


def add_permission(values: Values, decision: Decision, written: str) -> None:
    """Adds a rule. Raises UsageError for a denial or question that wolo's rules cannot express."""
    bare = written.strip().removesuffix("(*)")
    if decision == "allow" and bare in _WHOLE:
        values_of(values, "allow").extend(_WHOLE[bare])
        return
    reading = Reading(Path("claude"))
    add_rule(reading, decision, written)
    for finding in reading.findings:
        if finding.kind == "rule":
            kind, rule = finding.value
            if kind == "ask":
                values_of(values, "set").append(f"permissions.ask={json.dumps([rule])}")
            else:
                values_of(values, kind).append(rule)
        elif finding.kind == "skip" and decision != "allow":
            raise UsageError(f"The rule {decision} {written} cannot be applied: {finding.why}")


def disallow(values: Values, rules: list[str] | tuple[str, ...]) -> None:
    whole: list[Any] = [each for each in rules if "(" not in each]
    if whole:
        hidden = [*removed_tools(Document({"disallowedTools": whole}, "", "--disallowedTools")), *other_tools(",".join(whole))]
        before = str(values.get("disallow_tools") or "")
        values["disallow_tools"] = ",".join(filter(None, (before, *hidden)))
    for written in rules:
        if "(" in written:
            add_permission(values, "deny", written)


def add_settings(values: Values, entry: Any) -> None:
    """`--settings`: permissions and a mode. Raises UsageError for what wolo does not have."""
    where, table = "--settings", entry
    try:
        if isinstance(entry, str):
            text = entry if entry.lstrip().startswith("{") else Path(entry).expanduser().read_text(encoding="utf-8-sig")
            table = json.loads(text)
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{where} cannot be read: {error}.") from error
    if not isinstance(table, dict):
        raise UsageError(f"{where} is no JSON object.")
    for name, value in table.items():
        match name, value:
            case "permissions", dict():
                _add_permissions(values, value)
            case "model", str():
                values.setdefault("model", value)
            case "$schema", _:
                pass
            case _:
                raise UsageError(f"{where}: wolo does not have the setting {name} of Claude Code.")


def _add_permissions(values: Values, permissions: Mapping[str, Any]) -> None:
    for name, value in permissions.items():
        match name, value:
            case ("allow" | "deny" | "ask") as decision, list():
                for written in map(str, value):
                    if decision == "deny":
                        disallow(values, [written])
                    else:
                        add_permission(values, decision, written)
            case "defaultMode", str() if value != "dontAsk":
                values["mode"] = to_mode(value)
            case "additionalDirectories", list():
                values_of(values, "add_dir").extend(map(str, value))
            case _:
                raise UsageError(f"--settings: wolo does not have permissions.{name} = {value!r} of Claude Code.")
