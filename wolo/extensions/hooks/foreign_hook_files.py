"""Reads hook files of Cursor, Copilot, Windsurf, Kiro, Cline, Gemini CLI, Qwen Code, Factory and Codex."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import asdict

from wolo.errors import ExtensionError
from wolo.extensions.hooks.definitions import EVENTS, Contract, ForeignHook, Hook, complaint, mistake
from wolo.extensions.hooks.hook_files import GUARD, OF_GEMINI, FromFile, HookProblems, read_hooks
from wolo.extensions.settings_documents import parse_settings

_CURSOR: Mapping[str, str] = {
    **{"preToolUse": "PreToolUse", "beforeShellExecution": "PreToolUse", "beforeMCPExecution": "PreToolUse"},
    **{"beforeReadFile": "PreToolUse", "postToolUse": "PostToolUse", "afterShellExecution": "PostToolUse"},
    **{"afterMCPExecution": "PostToolUse", "afterFileEdit": "PostToolUse", "postToolUseFailure": "PostToolUseFailure"},
    **{"beforeSubmitPrompt": "UserPromptSubmit", "sessionStart": "SessionStart", "sessionEnd": "SessionEnd"},
    **{"subagentStart": "SubagentStart", "subagentStop": "SubagentStop", "preCompact": "PreCompact", "stop": "Stop"},
}
_COPILOT: Mapping[str, str] = {
    **{"preToolUse": "PreToolUse", "postToolUse": "PostToolUse", "postToolUseFailure": "PostToolUseFailure"},
    **{"userPromptSubmitted": "UserPromptSubmit", "permissionRequest": "PermissionRequest", "sessionStart": "SessionStart"},
    **{"sessionEnd": "SessionEnd", "subagentStart": "SubagentStart", "subagentStop": "SubagentStop", "agentStop": "Stop"},
    **{"errorOccurred": "StopFailure", "preCompact": "PreCompact", "notification": "Notification"},
}
_WINDSURF: Mapping[str, str] = {
    **{"pre_read_code": "PreToolUse", "pre_write_code": "PreToolUse", "pre_run_command": "PreToolUse"},
    **{"pre_mcp_tool_use": "PreToolUse", "post_read_code": "PostToolUse", "post_write_code": "PostToolUse"},
    **{"post_run_command": "PostToolUse", "post_mcp_tool_use": "PostToolUse", "pre_user_prompt": "UserPromptSubmit"},
    **{"post_cascade_response": "Stop"},
}
_KIRO: Mapping[str, str] = {
    **{name: name for name in ("PreToolUse", "PostToolUse", "UserPromptSubmit", "SessionStart", "Stop")},
    # Older spellings
    **{"preToolUse": "PreToolUse", "postToolUse": "PostToolUse", "userPromptSubmit": "UserPromptSubmit"},
    **{"promptSubmit": "UserPromptSubmit", "agentSpawn": "SessionStart", "agentStop": "Stop", "stop": "Stop"},
}
_CLINE: Mapping[str, str] = {
    **{name: name for name in ("PreToolUse", "PostToolUse", "UserPromptSubmit", "PreCompact")},
    **{"TaskStart": "SessionStart", "TaskResume": "SessionStart", "TaskComplete": "Stop"},
    **{"TaskCancel": "", "TaskError": "", "SessionShutdown": ""},
}
_INTERPRETERS: Mapping[str, str] = {
    **{"": "", ".sh": "bash ", ".bash": "bash ", ".zsh": "zsh ", ".py": "python3 "},
    **dict.fromkeys((".js", ".mjs", ".cjs", ".ts"), "node "),
}
"""Of Cline's hooks, by the ending of the file."""
_FLAT: Mapping[Contract, Mapping[str, str]] = {"cursor": _CURSOR, "copilot": _COPILOT, "windsurf": _WINDSURF, "kiro": _KIRO}
"""Events of agents whose files have no groups of hooks."""
_DEFAULT_TIMEOUT_S: Mapping[Contract, float] = {"copilot": 30.0}
_KEYS: Mapping[Contract, frozenset[str]] = {
    "cursor": frozenset(("command", "type", "timeout", "matcher", "failClosed", "loop_limit", "prompt", "model")),
    "copilot": frozenset(
        ("command", "bash", "powershell", "type", "timeout", "timeoutSec", "matcher", "cwd", "env", "comment", "description")
    ),
    "windsurf": frozenset(("command", "powershell", "show_output", "working_directory")),
    "kiro": frozenset(("command", "type", "matcher", "timeout")),
}


def contract_of(place: str) -> Contract | None:
    """The contract of the hooks in a place of a project; None: Claude Code's, which wolo speaks."""
    return _BY_FOLDER.get(place.partition("/")[0])


_BY_FOLDER: Mapping[str, Contract] = {
    ".cursor": "cursor",
    ".github": "copilot",
    ".windsurf": "windsurf",
    ".kiro": "kiro",
    ".cline": "cline",
    ".clinerules": "cline",
    ".gemini": "gemini",
    ".qwen": "gemini",
    ".factory": "factory",
}


def read_foreign_hooks(data: bytes, path: Path, contract: Contract | None) -> FromFile:
    """Raises ExtensionError for an unreadable file."""
    if contract == "cline":
        return _of_program(path)
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


def _of_program(path: Path) -> FromFile:
    """A hook of Cline: its file's name is the event, and the file is the program."""
    event, interpreter = _CLINE.get(path.stem), _INTERPRETERS.get(path.suffix)
    if event is None:
        return FromFile((), ())
    if not event:
        why = f"wolo has no event {path.stem}; it is not run"
    elif interpreter is None:
        why = "it is not run: wolo knows no program for such files"
    elif not interpreter and not os.access(path, os.X_OK):
        why = f"it is not run: it is not executable (chmod +x {shlex.quote(path.name)})"
    else:
        command = f"{interpreter}./{shlex.quote(str(path.relative_to(path.parents[2])))}"
        return FromFile(((event, ForeignHook(command=command, contract="cline", their_event=path.stem)),), ())
    problem = (f"{path}: {why}.",)
    return FromFile((), problem, problem if event == GUARD else ())


def _by_trigger(hooks: Any) -> dict[str, list[Any]]:
    """Kiro's list of hooks, or the only one of an older file, in the form of the other agents."""
    events: dict[str, list[Any]] = {}
    for each in hooks if isinstance(hooks, list) else [hooks]:
        if not isinstance(each, dict):
            events.setdefault(GUARD, []).append(each)
        elif each.get("enabled") is not False:
            when = found if isinstance(found := each.get("when"), dict) else {}
            action = found if isinstance(found := each.get("action", each.get("then")), dict) else {}
            kind = {"runCommand": "command"}.get(str(action.get("type")), action.get("type", "command"))
            tools = "|".join(map(str, kinds)) if isinstance(kinds := when.get("toolTypes"), list) else ""
            timing = {"timeout": each["timeout"]} if each.get("timeout") else {}
            entry = {**action, "type": kind, "matcher": each.get("matcher") or tools, **timing}
            events.setdefault(str(each.get("trigger", when.get("type", GUARD))), []).append(entry)
    return events


class _Flat(HookProblems):
    """Reads a file without groups."""

    def __init__(self, path: Path, contract: Contract) -> None:
        super().__init__()
        self._path = path
        self._contract: Contract = contract

    def read(self, table: Mapping[str, Any]) -> FromFile:
        events = table.get("hooks", {})
        if self._contract == "kiro" and ("when" in table or not isinstance(events, dict)):
            events = _by_trigger(table if "when" in table else events)
        if not isinstance(events, dict):
            raise ExtensionError(f"{self._path}: hooks is no table of events.")
        return self.beside((each for name, entries in events.items() for each in self._of_event(name, entries)), self._path)

    def _of_event(self, name: str, entries: Any) -> Iterator[tuple[str, Hook]]:
        event = _FLAT[self._contract].get(name, name if self._contract == "copilot" and name in EVENTS else "")
        if not event:
            # A check that runs before something must not be missing in silence
            unguarded = name.lower().startswith(("before", "pre"))
            self.add(name if not unguarded else GUARD, f"wolo has no event {name}; its hooks are not run")
            return
        for entry in entries if isinstance(entries, list) else [entries]:
            hook = self._hook(event, name, entry)
            if isinstance(hook, str):
                self.add(event, f"{name}: a hook is not run: {hook}")
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
            self.problems.append(f"{name}: {', '.join(unknown)} of `{command}` is unknown and ignored.")
        timeout = entry.get("timeoutSec", entry.get("timeout", _DEFAULT_TIMEOUT_S.get(self._contract)))
        is_claudes = name == event and self._contract != "kiro"  # in the form of Claude Code, where it has Claude Code's event
        is_prompt = entry.get("type") == "prompt"
        theirs = {
            **{"contract": self._contract, "their_event": name, "their_matcher": matcher},
            **{"variables": entry.get("env") or {}, "folder": entry.get("cwd") or entry.get("working_directory") or ""},
        }
        fields = {
            "type": "prompt" if is_prompt else "command",
            "prompt" if is_prompt else "command": command,
            "model": entry.get("model") or "" if is_prompt else "",
            "timeout_s": timeout if timeout else None,
            "strict": entry.get("failClosed") is True,
            **({"matcher": matcher} if is_claudes else theirs),
        }
        try:
            hook: Hook = msgspec.convert(fields, Hook if is_claudes else ForeignHook)
        except msgspec.ValidationError as error:
            return f"`{command}`: {str(error).replace('`', '')}"
        if wrong := mistake(event, hook):
            return f"`{command}`: {wrong}"
        return hook
