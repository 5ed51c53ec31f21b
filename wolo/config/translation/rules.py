"""Translates permission rules of other agents; a translation never allows more than the original."""

from __future__ import annotations

import ast
import itertools
import math
import re
import shlex
from collections.abc import Mapping
from typing import Any

from wolo.config.translation.findings import Reading, items, part
from wolo.errors import WoloError
from wolo.guard.rules import Decision, parse_rule
from wolo.workspace.globs import BadPattern, expand_braces

_TOOLS = {
    **dict.fromkeys(("bash", "shell", "run_shell_command", "shelltool"), "shell"),
    **dict.fromkeys(("read", "read_file", "readfile", "glob", "grep", "list", "ls", "notebookread", "read_many_files"), "read"),
    **dict.fromkeys(
        ("edit", "write", "multiedit", "notebookedit", "write_file", "writefile", "replace", "strreplacefile"), "write"
    ),
    **dict.fromkeys(("webfetch", "web_fetch", "fetchurl", "websearch", "web_search", "google_web_search"), "fetch"),
    **dict.fromkeys(("task", "agent"), "task"),
}
_EVERYTHING = {"shell": "*", "read": "**", "write": "**", "fetch": "*", "task": "*", "mcp": "*", "tool": "*"}
_MOST_ALTERNATIVES = 64
_GEMINI_LISTS: tuple[tuple[Decision, str, str], ...] = (
    ("deny", "exclude", "excludeTools"),
    ("ask", "confirmationRequired", "confirmationRequired"),
    ("allow", "allowed", "allowedTools"),
)
GEMINI_TOOLS = {"tools.core", *(f"tools.{name}" for _, name, _ in _GEMINI_LISTS)}
_NO_SERVERS = frozenset(("external_directory", "doom_loop"))
"""OpenCode's permissions that are about no tool."""


def add_rule(reading: Reading, decision: Decision, written: object) -> None:
    """Adds a rule such as `Bash(git log:*)`, of Claude Code, Gemini CLI or Kimi."""
    if not isinstance(written, str):
        _refuse(reading, decision, repr(written), "it is not text")
        return
    found = re.fullmatch(r"\s*([\w.*-]+)\s*(?:\((.*)\))?\s*", written, re.DOTALL)
    name, inside = (found[1], found[2]) if found else ("", None)
    if name == "*" and decision != "allow":
        patterns = [f"{tool}:{everything}" for tool, everything in _EVERYTHING.items()]
    elif name.startswith("mcp__"):
        server, _, tool = name.removeprefix("mcp__").partition("__")
        patterns = [f"mcp:{server}/{tool or '*'}"] if decision != "allow" or "*" not in server else []
    elif tool := _TOOLS.get(name.lower(), ""):
        patterns = _patterns(reading, tool, (inside or "").strip(), decision)
        if decision != "allow":
            patterns = [_valid_or_wider(reading, decision, pattern, written) for pattern in patterns]
    else:
        _refuse(reading, decision, written, "wolo has no such tool")
        return
    if not patterns:
        _refuse(reading, decision, written, "it cannot be expressed as a rule of wolo")
    elif decision == "allow" and not (inside or "").strip(" *") and not name.startswith("mcp__"):
        _refuse(reading, decision, written, "it allows everything; choose a mode instead (`--mode`)")
    else:
        save(reading, decision, patterns, written)


def add_denials(reading: Reading, permissions: object) -> None:
    """Adds what Claude Code's `permissions` deny and ask; what they allow is not for a project to say."""
    table = permissions if isinstance(permissions, dict) else {}
    if table is not permissions:
        reading.skip("permissions", "they are no table. Calls that they forbid are NOT denied.")
    decisions: tuple[Decision, ...] = ("deny", "ask")
    for decision in decisions:
        rules = table.get(decision, [])
        for rule in rules if isinstance(rules, list) else [rules]:
            add_rule(reading, decision, rule)


def deny_others(reading: Reading, offered: list[object]) -> None:
    """Reads Gemini CLI's `tools.core`: what it does not list is denied; calls of a tool that it lists in part are asked about."""
    listed = [found for each in offered if (found := re.fullmatch(r"(\w+)(\(.*\))?", str(each)))]
    whole = {_rule_tool(found[1]) for found in listed if not found[2]}
    parts = {_rule_tool(found[1]) for found in listed} - whole
    for tool in ("shell", "read", "write", "fetch"):
        if tool not in whole:
            decision: Decision = "ask" if tool in parts else "deny"
            save(reading, decision, [f"{tool}:{_EVERYTHING[tool]}"], f"core without {tool}")


def _rule_tool(name: str) -> str:
    """Also for the names of classes, such as `ReadFileTool`."""
    return _TOOLS.get(name.lower()) or _TOOLS.get(name.lower().removesuffix("tool"), "")


def save(reading: Reading, decision: Decision, patterns: list[str], written: str) -> None:
    if decision == "allow" and reading.is_projects:
        reading.skip(f"allow {written}", "a project cannot allow anything; add it to your own rules if you want it")
        return
    for pattern in patterns:
        try:
            rule = str(parse_rule(pattern, decision))
        except WoloError as error:
            _refuse(reading, decision, written, error.message)
        else:
            reading.add("rule", f"{decision} {rule}", (decision, rule))


def _refuse(reading: Reading, decision: Decision, written: str, why: str) -> None:
    lost = {"deny": " Calls that it forbids are NOT denied.", "ask": " Calls that it is about are NOT asked about.", "allow": ""}[
        decision
    ]
    reading.skip(f"{decision} {written}", f"{why.rstrip('.')}.{lost}")


def _valid_or_wider(reading: Reading, decision: Decision, pattern: str, written: str) -> str:
    """A denial or question that wolo's rules cannot express covers more instead: all calls of the program, or of the tool."""
    try:
        parse_rule(pattern, decision)
    except WoloError as error:
        tool, _, text = pattern.partition(":")
        program = re.match(r"[\w./-]+(?=\s)", text) if tool == "shell" else None
        wider = f"shell:{program[0]} *" if program else f"{tool}:{_EVERYTHING[tool]}"
        if tool not in ("read", "write"):  # every file would be too much: the rule is named as not taken over
            reading.add("present", f"{decision} {written}", why=f"it covers more here, {wider}: {error.message}")
            return wider
    return pattern


def _patterns(reading: Reading, tool: str, inside: str, decision: Decision) -> list[str]:
    if not inside or inside in ("*", "**"):
        return [f"{tool}:{_EVERYTHING[tool]}"]
    if tool == "shell":
        return [f"shell:{each}" for each in _commands(reading, inside, decision)]
    if tool in ("read", "write"):
        return [f"{tool}:{each}" for each in _paths(reading, inside, decision)]
    return [f"{tool}:{inside.removeprefix('domain:')}"]


def _commands(reading: Reading, text: str, decision: Decision) -> list[str]:
    """`git log:*` and `git log *` are prefixes; elsewhere only denials and questions may use a `*`, which then matches more."""
    is_prefix = text.endswith((":*", " *"))
    text = re.sub(r"(?::| )\*$", "", text).strip()
    if "*" in text and decision == "allow":
        return []
    if found := re.match(r"([^*]*\s)?[^\s*]*\*(?!(?:\s+-\S*)*$)", text):  # ours is within a word, theirs any text
        beginning = f"{found[1] or ''}*"
        if decision == "ask":
            return [beginning]
        save(reading, "ask", [f"shell:{beginning}"], text)
    if re.search(r"[^\s*]\*$", text):
        return [f"{text} *"]
    if is_prefix and decision != "allow" and re.search(r"\srun\s+[^\s*]+$", text):
        return [f"{text} *", f"{text}:* *"]  # scripts have names such as `test:unit`
    return [f"{text} *" if is_prefix else text]


def _paths(reading: Reading, text: str, decision: Decision) -> list[str]:
    """Patterns of `.gitignore`; braces, which some programs take as they are and others as alternatives, become one rule each."""
    if decision == "allow":
        return _place_rules(reading, text, decision)
    text = re.sub(r"\[[^\]/]*\]", "*", text)
    try:
        alternatives = sorted(expand_braces(text))
    except BadPattern:  # too many
        alternatives = [re.sub(r"[^/]*\{.*", "**", text)]
    return [path for each in alternatives for path in _place_rules(reading, each, decision)]


def _place_rules(reading: Reading, text: str, decision: Decision) -> list[str]:
    """`//` is the root, `/` the folder of the settings, a name matches at any depth.

    Denials and questions also hold where the pattern may have been meant: an absolute path, or one below any folder.
    """
    text = f"{text}**" if text.endswith("/") else text
    if text.startswith("//"):
        return [text[1:]]
    if text.startswith(("~", "!")):  # `!` is refused as a rule
        return [text]
    if text.startswith("/"):
        if decision == "allow":
            return [f"{reading.anchor}{text[1:]}"] if reading.is_projects else []
        return [f"{reading.anchor}{text[1:]}" if reading.is_projects else f"~/.claude{text}", text]
    path = text.removeprefix("./")
    if decision == "allow":
        return [path if "/" in text.rstrip("/") else f"**/{path}"]
    anywhere = path if path.startswith("**/") else f"**/{path}"
    return [anywhere] if "*" in path.removesuffix("/**") else [f"{reading.anchor}{path}", anywhere]


def add_bare(reading: Reading, decision: Decision, written: object) -> None:
    """Adds a rule of Gemini CLI or Cursor, whose commands are prefixes: `run_shell_command(git status)`."""
    if isinstance(written, str) and (found := re.fullmatch(r"(run_shell_command|Shell(?:Tool)?)\((.+)\)", written.strip())):
        written = f"{found[1]}({found[2].removesuffix('*').rstrip(': ')}:*)"
    add_rule(reading, decision, written)


def add_gemini(reading: Reading, table: Mapping[str, Any]) -> None:
    """The lists of tools in Gemini CLI's settings."""
    tools = part(table, "tools")
    for decision, name, old in _GEMINI_LISTS:
        for each in (*items(tools, name), *items(table, old)):
            add_bare(reading, decision, each)
    core = tools.get("core", table.get("coreTools"))
    if isinstance(core, list):
        deny_others(reading, core)


def add_opencode_settings(reading: Reading, table: Mapping[str, Any]) -> None:
    if "permission" in table:
        add_opencode(reading, table["permission"])
    if off := {name: "deny" for name, is_on in part(table, "tools").items() if is_on is False}:
        add_opencode(reading, off)


def add_opencode(reading: Reading, permission: Any) -> None:
    """The last match wins in OpenCode, the strictest one in wolo.

    A question for all commands or all edits becomes the mode `ask`, where an entry after it may still allow something.
    """
    if permission == "allow":
        reading.skip("permission = allow", "it allows everything; choose a mode instead (`--mode`)")
        return
    entries = [
        (str(tool), pattern, action)
        for tool, said in (permission if isinstance(permission, dict) else {"*": permission}).items()
        for pattern, action in (said if isinstance(said, dict) else {"*": said}).items()
    ]
    if any(pattern == "*" and action == "ask" and _asks_by_mode(tool) for tool, pattern, action in entries):
        reading.add("setting", "mode", "ask")
    for number, (tool, pattern, action) in enumerate(entries):
        later = {each for each, all_of_it, how in entries[number + 1 :] if all_of_it == "*" and how != "allow"}
        if action == "allow" and not later.isdisjoint((tool, "*")):
            reading.skip(f"allow {tool} {pattern}", "a later entry overrides it")
        elif action not in ("allow", "ask", "deny"):
            _refuse(reading, "deny", f"{tool} {pattern}", f"{action!r} is no decision of wolo")
        elif action == "allow" and tool not in _TOOLS:
            reading.skip(f"allow {tool} {pattern}", "no equivalent in wolo")
        elif not (action == "ask" and pattern == "*" and _asks_by_mode(tool)):
            # OpenCode calls tools of servers SERVER_TOOL
            server, _, name = tool.partition("_")
            is_servers = bool(name) and tool.lower() not in _TOOLS and not tool.startswith("mcp__") and tool not in _NO_SERVERS
            add_rule(reading, action, f"mcp__{server}__{name}" if is_servers else f"{tool}({pattern})" if tool != "*" else "*")


def _asks_by_mode(tool: str) -> bool:
    """The mode `ask` asks about every call of this tool."""
    return tool == "*" or _TOOLS.get(tool.lower()) in ("shell", "write", "fetch")


def add_codex(reading: Reading, text: str) -> None:
    """Reads `prefix_rule(pattern=[…], decision=…)`, a file of which is nearly Python."""
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            continue
        written = ast.unparse(node)
        if node.func.id != "prefix_rule":
            _refuse(reading, "deny", written, "wolo has no such rule")
            continue
        try:
            fields = {each.arg: ast.literal_eval(each.value) for each in node.keywords if each.arg in ("pattern", "decision")}
            words = [each if isinstance(each, list) else [each] for each in fields["pattern"]]
            if not words or not all(isinstance(word, str) and word for each in words for word in each):
                raise TypeError
            if math.prod(map(len, words)) > _MOST_ALTERNATIVES:
                raise ValueError
            commands = list(itertools.product(*words))
        except (ValueError, KeyError, TypeError):
            _refuse(reading, "deny", written, "it cannot be read")
            continue
        named: dict[str, Decision] = {"allow": "allow", "prompt": "ask", "forbidden": "deny"}
        decision = named.get(fields.get("decision", "allow"))
        if decision is None or not commands or any("*" in word for command in commands for word in command):
            _refuse(reading, decision or "deny", written, "it cannot be expressed as a rule of wolo")
            continue
        save(reading, decision, [f"shell:{shlex.join(command)} *" for command in commands], written)


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
