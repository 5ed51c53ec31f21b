"""`--output-format claude-stream-json`: reads the options of Claude Code, and serves a session to a program of its SDKs."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import uuid
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from wolo.cli.crash_log import log_to_file
from wolo.cli.options import Values, parse
from wolo.cli.protocols.detection import CLAUDE_MARK
from wolo.cli.signals import answer_signals, stop_on_signals
from wolo.config.translation.findings import Reading
from wolo.config.translation.rules import add_rule
from wolo.errors import UsageError, WoloError
from wolo.extensions.agent_fields import removed_tools, tools
from wolo.extensions.markdown_files import Document
from wolo.frontends.claude_protocol.can_use_tool import to_mode
from wolo.frontends.claude_protocol.claude_session import ClaudeSession
from wolo.frontends.claude_protocol.session_options import SessionOptions, set_prompt, to_level
from wolo.frontends.claude_protocol.wire_messages import failure
from wolo.frontends.streams import OutputLost, error_text, print_json, show_error
from wolo.guard.rules import Decision

_MARKS = (CLAUDE_MARK, "CLAUDE_CODE_ENTRYPOINT")
_STATE = "CLAUDE_CODE_SDK_READS_SESSION_STATE"


def serve(argv: list[str]) -> int:
    """Returns the exit code. An unusable command line is reported as a result, too."""
    try:
        options = read_claude_options(argv)
    except WoloError as error:
        show_error(error)
        try:
            print_json(failure(error_text(error)))
        except OutputLost as lost:
            return lost.exit_code
        return error.exit_code
    reports_state = bool(os.environ.get(_STATE))
    for name in (*_MARKS, _STATE):
        os.environ.pop(name, None)  # a wolo that a command starts is driven by nobody
    log_to_file()
    gc.enable()
    gc.freeze()

    async def run() -> int:
        session = ClaudeSession(options, add_rules, reports_state=reports_state)
        stop_on_signals(session)
        return await session.run()

    try:
        return asyncio.run(run())
    finally:
        answer_signals(signal.SIG_IGN)  # the exit status is final


FORM = "claude-stream-json"


def read_claude_options(argv: list[str]) -> SessionOptions:
    """Raises UsageError for an option that wolo does not have; it names the option."""
    options = SessionOptions(values={"mode": "ask"})
    options.values["set"] = []
    words = list(argv)
    own: list[str] = []
    while words:
        name, equals, value = words.pop(0).partition("=")
        if name in _FLAGS and not equals:
            switch = _FLAGS[name]
            if isinstance(switch, str):
                options.values[switch] = True
            else:
                switch(options)
        elif name in _VALUES:
            if not equals:
                if not words:
                    raise UsageError(f"{name} needs a value.")
                value = words.pop(0)
            take = _VALUES[name]
            if isinstance(take, str):
                options.values[take] = value
            else:
                take(options, value)
        elif name in _OF_WOLO:
            own += [name, value if equals else words.pop(0) if words else ""]
        else:
            raise UsageError(f"wolo does not have the option {name} of Claude Code.", hint="Leave it out of the SDK's options.")
    for name, given in parse(own).values.items():
        options.values[name] = [*values_of(options.values, name), *given] if isinstance(given, list) else given
    if "session" in options.values and {"continue", "resume"} & {*options.values}:
        raise UsageError("--session-id cannot be combined with --continue or --resume.", hint="wolo chooses the id of a copy.")
    return options


def _offer(options: SessionOptions, text: str) -> None:
    """`--tools`: built-in tools to offer; MCP servers of the program stay."""
    if text == "default":
        return
    offered = tools(Document({"tools": list(split_list(text))}, "", "--tools")) or ()
    options.values["set"] = [*values_of(options.values, "set"), f"tools.offer={json.dumps([*offered, *other_tools(text)])}"]


def _allow(options: SessionOptions, text: str) -> None:
    """`--allowedTools`: these calls need no approval."""
    for written in split_list(text):
        add_permission(options.values, "allow", written)


def _set_mode(options: SessionOptions, name: str) -> None:
    options.values["mode"] = to_mode(name)
    options.dont_ask = name == "dontAsk"
    options.may_bypass = options.may_bypass or name == "bypassPermissions"


def _ask_program(options: SessionOptions, name: str) -> None:
    if name != "stdio":
        raise UsageError(f"--permission-prompt-tool {name} is not supported by wolo, only stdio.")
    options.asks_program = True


def _choose_id(options: SessionOptions, text: str) -> None:
    try:
        options.session_id = str(uuid.UUID(text))
    except ValueError as error:
        raise UsageError(f"--session-id: {text} is no UUID.") from error
    options.values["session"] = options.session_id


def _resume(options: SessionOptions, id: str) -> None:
    options.values["resume"] = id
    try:
        options.session_id = str(uuid.UUID(id))  # the name that the program gave it
    except ValueError:
        options.session_id = ""


def _use_servers(options: SessionOptions, text: str) -> None:
    """`--mcp-config`; servers of the type sdk are inside the program."""
    try:
        document = json.loads(text) if text.lstrip().startswith("{") else None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"--mcp-config is no JSON: {error}.") from error
    servers = document.get("mcpServers") if isinstance(document, dict) else None
    if not isinstance(servers, dict):
        values_of(options.values, "mcp_config").append(text)
        return
    hosted = [name for name, entry in servers.items() if isinstance(entry, dict) and entry.get("type") == "sdk"]
    options.hosted = tuple(dict.fromkeys((*options.hosted, *hosted)))
    if others := {name: entry for name, entry in servers.items() if name not in hosted}:
        values_of(options.values, "mcp_config").append(json.dumps({"mcpServers": others}))


def _define_agents(options: SessionOptions, text: str) -> None:
    try:
        definitions = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"--agents is no JSON: {error}.") from error
    if not isinstance(definitions, dict):
        raise UsageError("--agents is no JSON object.")
    options.agents |= definitions


def _check_form(options: SessionOptions, form: str) -> None:
    if form not in (FORM, "stream-json"):
        raise UsageError(f"{FORM} is the form of both stdin and stdout, not {form}.")


def _set(name: str, options: SessionOptions, value: str | bool = True) -> None:
    setattr(options, name, value)


def _model(options: SessionOptions, value: str) -> None:
    if value != "default":
        options.values["model"] = value


def _thinking(options: SessionOptions, value: str) -> None:
    if value not in ("adaptive", "disabled", "enabled"):
        raise UsageError(f"--thinking: there is no {value}, only adaptive, enabled and disabled.")
    if value == "disabled":
        options.values["thinking"] = "off"


def _display(options: SessionOptions, value: str) -> None:
    if value != "summarized":
        raise UsageError(f"--thinking-display {value} is not supported by wolo: thinking is passed on as the provider sends it.")


def _sources(options: SessionOptions, value: str) -> None:
    """wolo reads its own settings, and a project's only where the user trusts the folder."""
    if unknown := [each for each in split_list(value) if each not in ("user", "project", "local")]:
        raise UsageError(f"--setting-sources: there is no source {unknown[0]}.")


def _refuse_url(options: SessionOptions, value: str) -> None:
    raise UsageError("--sdk-url is not supported by wolo: the protocol is spoken on stdin and stdout.")


_FLAGS: Mapping[str, str | Callable[[SessionOptions], object]] = {
    **dict.fromkeys(("--print", "-p", "--verbose", "--await-initialize"), lambda options: None),
    "--continue": "continue",
    "--fork-session": "fork",
    "--include-partial-messages": partial(_set, "partial"),
    "--replay-user-messages": partial(_set, "replays"),
    "--strict-mcp-config": "strict_mcp_config",
    "--no-session-persistence": "no_session",
    "--allow-dangerously-skip-permissions": partial(_set, "may_bypass"),
    "--dangerously-skip-permissions": lambda options: _set_mode(options, "bypassPermissions"),
}
"""Names of settings that they turn on, or functions that do more."""
_VALUES: Mapping[str, str | Callable[[SessionOptions, str], object]] = {
    "--output-format": _check_form,
    "--input-format": _check_form,
    "--permission-prompt-tool": _ask_program,
    "--permission-mode": _set_mode,
    "--model": _model,
    "--fallback-model": "fallback_model",
    "--max-turns": "max_turns",
    "--max-budget-usd": "max_cost",
    "--system-prompt": lambda options, value: set_prompt(options.values, "system_prompt", value),
    "--system-prompt-file": lambda options, value: options.values.update(system_prompt=f"@{value}"),
    "--append-system-prompt": lambda options, value: set_prompt(options.values, "append_system_prompt", value),
    "--tools": _offer,
    "--allowedTools": _allow,
    "--allowed-tools": _allow,
    "--disallowedTools": lambda options, value: disallow(options.values, split_list(value)),
    "--disallowed-tools": lambda options, value: disallow(options.values, split_list(value)),
    "--mcp-config": _use_servers,
    "--resume": _resume,
    "-r": _resume,
    "--session-id": _choose_id,
    "--settings": lambda options, value: add_settings(options.values, value),
    "--setting-sources": _sources,
    "--add-dir": lambda options, value: values_of(options.values, "add_dir").append(value),
    "--agent": "agent",
    "--agents": _define_agents,
    "--effort": "thinking",
    "--thinking": _thinking,
    "--max-thinking-tokens": lambda options, value: options.values.update(thinking=to_level(value)),
    "--thinking-display": _display,
    "--json-schema": partial(_set, "schema"),
    "--sdk-url": _refuse_url,
}
_OF_WOLO = frozenset(
    (
        *("--base-url", "--api-key", "--api", "--account", "--drive", "--allow", "--deny", "--sandbox", "--set", "--name"),
        *("--mode", "--max-cost", "--max-tokens", "--max-seconds", "--wait-for-reset", "--debug-wire", "--verify"),
    )
)
"""Options of wolo's own, which a program can pass as extra arguments."""


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
