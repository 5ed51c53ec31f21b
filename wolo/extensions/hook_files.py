"""Hooks in the form that Claude Code has made known: `hooks.json`, or the `hooks` key of its settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from wolo.errors import ExtensionError
from wolo.extensions.hook_settings import EVENTS, TIMEOUT_S, Hook, complaint

_KNOWN_KEYS = frozenset(("type", "command", "timeout", "strict", "statusMessage", "description"))
OTHERS_EVENTS = frozenset(
    (
        *("StopFailure", "PermissionDenied", "PostToolBatch", "UserPromptExpansion", "TeammateIdle", "TaskCreated"),
        *("TaskCompleted", "InstructionsLoaded", "ConfigChange", "CwdChanged", "FileChanged", "WorktreeCreate"),
        *("WorktreeRemove", "Elicitation", "ElicitationResult", "Setup", "BeforeModel", "AfterModel", "BeforeToolSelection"),
    )
)
"""Of other agents; wolo has no such moment."""


class FromFile(NamedTuple):
    hooks: tuple[tuple[str, Hook], ...]
    """By event, in the order of the file."""
    problems: tuple[str, ...]
    """What is not used of it, and why: a sentence each."""


class _Entry(Struct, frozen=True):
    command: str = ""
    type: str = "command"
    timeout: float = TIMEOUT_S
    strict: bool = False


class _Group(Struct, frozen=True):
    matcher: str | None = None
    hooks: tuple[dict[str, Any], ...] = ()


def read_hooks(data: bytes, path: Path) -> FromFile:
    """Raises ExtensionError for a file that cannot be understood at all."""
    try:
        content = msgspec.json.decode(data.removeprefix(b"\xef\xbb\xbf") or b"{}")
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise ExtensionError(f"{path} is no JSON: {error}.", hint="Nothing of it is used.") from error
    if not isinstance(content, dict):
        raise ExtensionError(f"{path} holds no table of hooks.", hint='{"hooks": {"PreToolUse": [...]}}')
    table = content.get("hooks", {} if path.name.startswith("settings") else content)
    if not isinstance(table, dict):
        raise ExtensionError(f"{path}: hooks is no table of events.", hint='{"hooks": {"PreToolUse": [...]}}')
    problems: list[str] = []
    hooks = [each for event, groups in table.items() for each in _of_event(event, groups, problems)]
    return FromFile(tuple(hooks), tuple(f"{path}: {problem}" for problem in problems))


def _of_event(event: str, groups: Any, problems: list[str]) -> Iterator[tuple[str, Hook]]:
    if event not in EVENTS:
        problems.append(_unknown(event))
        return
    try:
        for group in msgspec.convert(groups, tuple[_Group, ...]):
            matcher = group.matcher or ""
            if wrong := complaint(matcher):
                problems.append(f"{event}: {wrong}.")
                continue
            for entry in group.hooks:
                if hook := _hook(event, matcher, entry, problems):
                    yield event, hook
    except msgspec.ValidationError as error:
        problems.append(f"{event} is not used: {_plainly(error)}.")


def _hook(event: str, matcher: str, entry: Mapping[str, Any], problems: list[str]) -> Hook | None:
    read = msgspec.convert(entry, _Entry)
    if read.type != "command":
        problems.append(f"{event}: a hook of type {read.type} is not used: wolo runs commands.")
        return None
    if not read.command.strip():
        problems.append(f"{event}: a hook without a command is not used.")
        return None
    if "\0" in read.command:
        problems.append(f"{event}: a hook with a NUL character in its command is not used.")
        return None
    if unknown := sorted(entry.keys() - _KNOWN_KEYS):
        problems.append(f"{event}: {', '.join(unknown)} of `{read.command}` says nothing to wolo.")
    timeout_s = read.timeout if read.timeout > 0 else TIMEOUT_S
    return Hook(command=read.command, matcher=matcher, timeout_s=timeout_s, strict=read.strict)


def _unknown(event: str) -> str:
    if event in OTHERS_EVENTS:
        return f"wolo has no event {event}; its hooks are not used."
    from difflib import get_close_matches  # noqa: PLC0415  # 5 ms, for a typing mistake only

    near = get_close_matches(event, EVENTS, n=1, cutoff=0.6)
    return f"there is no event {event}; its hooks are not used.{f' Did you mean {near[0]}?' if near else ''}"


def _plainly(error: msgspec.ValidationError) -> str:
    return str(error).replace("`", "").removesuffix(".")
