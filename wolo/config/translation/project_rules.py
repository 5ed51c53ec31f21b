"""Reads what the settings of other agents in a project deny and ask about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wolo.config.translation.findings import Reading, items, part
from wolo.config.translation.rules import add_bare, add_denials, add_gemini, add_opencode_settings, add_rule
from wolo.guard.rules import Decision


def add_project_rules(reading: Reading, place: str, table: Mapping[str, Any]) -> None:
    """`place`: as in the table of places. What they allow is not for a project to say."""
    agent = place.partition("/")[0]
    if agent in (".claude", ".qwen") and "permissions" in table:
        add_denials(reading, table["permissions"])
    if agent in (".gemini", ".qwen"):
        add_gemini(reading, table)
    elif agent == ".cursor":
        for rule in items(part(table, "permissions"), "deny"):
            add_bare(reading, "deny", rule)
    elif agent == ".factory":
        for command in items(table, "commandDenylist"):
            add_rule(reading, "deny", f"Bash({command}:*)")
    elif agent == ".amp":
        _add_amp(reading, table)
    elif "opencode" in place:
        add_opencode_settings(reading, table)
    reading.findings[:] = [each for each in reading.findings if "allow" not in each.what.split()[:1]]


def _add_amp(reading: Reading, table: Mapping[str, Any]) -> None:
    decisions: dict[str, Decision] = {"reject": "deny", "ask": "ask", "delegate": "ask"}
    for rule in items(table, "amp.permissions"):
        if not isinstance(rule, dict):
            reading.skip(f"amp.permissions {rule}", "it is no table. Calls that it forbids are NOT denied.")
        elif decision := decisions.get(str(rule.get("action"))):
            tool = "Edit" if rule.get("tool") in ("edit_file", "create_file") else rule.get("tool")
            for pattern in items(part(rule, "matches"), "cmd") or ["*"]:
                add_rule(reading, decision, f"{tool}({pattern})" if tool != "*" else tool)
