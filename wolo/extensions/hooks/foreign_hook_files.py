"""Reads hook files of Cursor, Copilot, Windsurf, Gemini CLI, Qwen Code, Factory and Codex."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec.structs import asdict

from wolo.errors import ExtensionError
from wolo.extensions.hooks.definitions import EVENTS, ForeignHook, Hook, complaint, mistake
from wolo.extensions.hooks.hook_files import GUARD, OF_GEMINI, FromFile, read_hooks
from wolo.extensions.settings_documents import parse_settings

Contract = Literal["cursor", "copilot", "gemini", "factory", "windsurf"]
_CURSOR: Mapping[str, str] = {
    "preToolUse": "PreToolUse",
    "beforeShellExecution": "PreToolUse",
    "beforeMCPExecution": "PreToolUse",
    "beforeReadFile": "PreToolUse",
    "postToolUse": "PostToolUse",
    "afterShellExecution": "PostToolUse",
    "afterMCPExecution": "PostToolUse",
    "afterFileEdit": "PostToolUse",
    "postToolUseFailure": "PostToolUseFailure",
    "beforeSubmitPrompt": "UserPromptSubmit",
    "sessionStart": "SessionStart",
    "sessionEnd": "SessionEnd",
    "subagentStart": "SubagentStart",
    "subagentStop": "SubagentStop",
    "preCompact": "PreCompact",
    "stop": "Stop",
}
_COPILOT: Mapping[str, str] = {
    "preToolUse": "PreToolUse",
    "postToolUse": "PostToolUse",
    "postToolUseFailure": "PostToolUseFailure",
    "userPromptSubmitted": "UserPromptSubmit",
    "permissionRequest": "PermissionRequest",
    "sessionStart": "SessionStart",
    "sessionEnd": "SessionEnd",
    "subagentStart": "SubagentStart",
    "subagentStop": "SubagentStop",
    "agentStop": "Stop",
    "errorOccurred": "StopFailure",
    "preCompact": "PreCompact",
    "notification": "Notification",
}
_WINDSURF: Mapping[str, str] = {
    "pre_read_code": "PreToolUse",
    "pre_write_code": "PreToolUse",
    "pre_run_command": "PreToolUse",
    "pre_mcp_tool_use": "PreToolUse",
    "post_read_code": "PostToolUse",
    "post_write_code": "PostToolUse",
    "post_run_command": "PostToolUse",
    "post_mcp_tool_use": "PostToolUse",
    "pre_user_prompt": "UserPromptSubmit",
    "post_cascade_response": "Stop",
}
_FLAT: Mapping[Contract, Mapping[str, str]] = {"cursor": _CURSOR, "copilot": _COPILOT, "windsurf": _WINDSURF}
"""Events of agents whose files have no groups of hooks."""
_DEFAULT_TIMEOUT_S: Mapping[Contract, float] = {"copilot": 30.0}
_KEYS: Mapping[Contract, frozenset[str]] = {
    "cursor": frozenset(("command", "type", "timeout", "matcher", "failClosed", "loop_limit", "prompt", "model")),
    "copilot": frozenset(
        ("command", "bash", "powershell", "type", "timeout", "timeoutSec", "matcher", "cwd", "env", "comment", "description")
    ),
    "windsurf": frozenset(("command", "powershell", "show_output", "working_directory")),
}


def contract_of(place: str) -> Contract | None:
    """The contract of the hooks in a place of a project; None: Claude Code's, which wolo speaks."""
    agent = place.partition("/")[0]
    return _BY_FOLDER.get(agent)


_BY_FOLDER: Mapping[str, Contract] = {
    ".cursor": "cursor",
    ".github": "copilot",
    ".windsurf": "windsurf",
    ".gemini": "gemini",
    ".qwen": "gemini",
    ".factory": "factory",
}


def read_foreign_hooks(data: bytes, path: Path, contract: Contract | None) -> FromFile:
    """Raises ExtensionError for an unreadable file."""
    table = parse_settings(data, str(path))
    if contract is not None and contract in _FLAT:
        return _Flat(path, contract).read(table)
    hooks = table.get("hooks", {} if path.name != "hooks.json" else table)
    if isinstance(hooks, dict):  # switches beside the events
        hooks = {name: each for name, each in hooks.items() if name not in ("enabled", "disabled", "notifications", "state")}
    if table.get("disableAllHooks") is True:
        return FromFile((), (f"{path}: disableAllHooks is set; its hooks are not used.",) if hooks else ())
    reading = read_hooks(json.dumps({"hooks": hooks}).encode(), path)
    if contract is None:
        return reading
    theirs = {ours: name for name, ours in OF_GEMINI.items()} if path.parent.name == ".gemini" else {}
    own = tuple((event, _as_foreign(hook, contract, theirs.get(event, event))) for event, hook in reading.hooks)
    return FromFile(own, reading.problems, reading.unreadable_guards)


def _as_foreign(hook: Hook, contract: Contract, event: str) -> Hook:
    if hook.type != "command":
        return hook
    return ForeignHook(**{**asdict(hook), "matcher": ""}, contract=contract, their_event=event, their_matcher=hook.matcher)


class _Flat:
    """Collects the hooks and problems of a file without groups."""

    def __init__(self, path: Path, contract: Contract) -> None:
        self._path = path
        self._contract: Contract = contract
        self._problems: list[str] = []
        self._guards: list[str] = []

    def read(self, table: Mapping[str, Any]) -> FromFile:
        events = table.get("hooks", {})
        if not isinstance(events, dict):
            raise ExtensionError(f"{self._path}: hooks is no table of events.")
        hooks = [each for name, entries in events.items() for each in self._of_event(name, entries)]
        problems, guards = ([f"{self._path}: {each}" for each in texts] for texts in (self._problems, self._guards))
        return FromFile(tuple(hooks), (*guards, *problems), tuple(guards))

    def _of_event(self, name: str, entries: Any) -> Iterator[tuple[str, Hook]]:
        event = _FLAT[self._contract].get(name, name if self._contract == "copilot" and name in EVENTS else "")
        if not event:
            # A check that runs before something must not be missing in silence
            unguarded = name.startswith(("before", "pre"))
            self._add(name if not unguarded else GUARD, f"wolo has no event {name}; its hooks are not run")
            return
        for entry in entries if isinstance(entries, list) else [entries]:
            hook = self._hook(event, name, entry)
            if isinstance(hook, str):
                self._add(event, f"{name}: a hook is not run: {hook}")
            else:
                yield event, hook

    def _hook(self, event: str, name: str, entry: Any) -> Hook | str:
        """The hook, or why there is none."""
        if not isinstance(entry, dict):
            return "it is no table"
        if self._contract == "cursor" and entry.get("type") == "prompt":
            entry = {**entry, "command": entry.get("prompt")}
        elif entry.get("type", "command") != "command":
            return f"of type {entry['type']}: wolo runs commands of other agents only"
        command = entry.get("bash") or entry.get("command")
        if not isinstance(command, str) or not command.strip():
            return "it is for PowerShell only" if entry.get("powershell") else "it has no command"
        matcher = entry.get("matcher") or ""
        if wrong := "the matcher is no text" if not isinstance(matcher, str) else complaint(matcher):
            return f"`{command}`: {wrong}"
        if unknown := sorted(entry.keys() - _KEYS[self._contract]):
            self._problems.append(f"{name}: {', '.join(unknown)} of `{command}` is unknown and ignored.")
        timeout = entry.get("timeoutSec", entry.get("timeout", _DEFAULT_TIMEOUT_S.get(self._contract)))
        is_prompt = entry.get("type") == "prompt"
        fields = {
            "type": "prompt" if is_prompt else "command",
            "prompt" if is_prompt else "command": command,
            "model": entry.get("model") or "" if is_prompt else "",
            "timeout_s": timeout if timeout else None,
            "strict": entry.get("failClosed") is True,
            # In the form of Claude Code, where it has Claude Code's event
            **({"matcher": matcher} if name == event else {"contract": self._contract, "their_event": name}),
            **({} if name == event else {"their_matcher": matcher, "variables": entry.get("env") or {}}),
            **({} if name == event else {"folder": entry.get("cwd") or entry.get("working_directory") or ""}),
        }
        try:
            hook: Hook = msgspec.convert(fields, Hook if name == event else ForeignHook)
        except msgspec.ValidationError as error:
            return f"`{command}`: {str(error).replace('`', '')}"
        if wrong := mistake(event, hook):
            return f"`{command}`: {wrong}"
        return hook

    def _add(self, event: str, why: str) -> None:
        (self._guards if event == GUARD else self._problems).append(f"{why}.")
