"""Hooks as a person writes them into the settings: at which event, for which tools, which command."""

from __future__ import annotations

import re
import shlex
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta, Struct, field

from wolo.errors import ExtensionError

TIMEOUT_S = 60.0
ALL_TOOLS = ("", "*")
RULE = re.compile(r"\s*([\w*-]+)\s*(?:\((.*)\))?\s*", re.DOTALL)


class Hook(Struct, frozen=True, forbid_unknown_fields=True):
    """A command that is told of an event as JSON on its stdin, and answers by its exit status or as JSON on its stdout."""

    command: Annotated[str, Meta(min_length=1)]
    """Read by a shell, in the directory that is worked in."""
    matcher: str = ""
    """A list of names of tools (`Edit|Write`) or a regular expression that may match anywhere in one; empty or `*`: every one."""
    condition: str = field(default="", name="if")
    """About calls: a rule such as `Bash(git *)` that narrows which of them run it."""
    timeout_s: Annotated[float, Meta(gt=0)] = TIMEOUT_S
    """After that it is ended, with all it has started, and has failed."""
    strict: bool = False
    """A failure of the hook is a no."""


class Settings(Struct, frozen=True, forbid_unknown_fields=True):
    """By event, under the names that other agents have made known."""

    SessionStart: tuple[Hook, ...] = ()
    """Before the first prompt of a conversation."""
    SessionEnd: tuple[Hook, ...] = ()
    """When it is closed."""
    UserPromptSubmit: tuple[Hook, ...] = ()
    """Before a prompt is sent: may keep it back."""
    PreToolUse: tuple[Hook, ...] = ()
    """Before a call: may refuse it, have a person asked, or change its arguments."""
    PermissionRequest: tuple[Hook, ...] = ()
    """Before a person is asked about a call: may answer instead."""
    PostToolUse: tuple[Hook, ...] = ()
    """After a call that went well."""
    PostToolUseFailure: tuple[Hook, ...] = ()
    """After a call that ran and failed."""
    Stop: tuple[Hook, ...] = ()
    """When the model says it is done: may send it back."""
    SubagentStart: tuple[Hook, ...] = ()
    """Before a subagent begins."""
    SubagentStop: tuple[Hook, ...] = ()
    """When a subagent is done."""
    PreCompact: tuple[Hook, ...] = ()
    """Before the conversation is summed up."""
    PostCompact: tuple[Hook, ...] = ()
    """After room was made in the window."""
    Notification: tuple[Hook, ...] = ()
    """When something waits for the person."""


EVENTS: tuple[str, ...] = Settings.__struct_fields__
ABOUT_TOOLS = frozenset(("PreToolUse", "PermissionRequest", "PostToolUse", "PostToolUseFailure"))
"""At the other events a matcher is held against what the event is about, where it is about something."""


def pattern(matcher: str) -> re.Pattern[str]:
    """Raises what `re.compile` does. What that has against a form which means something is nothing for a person's screen."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return re.compile(matcher, re.IGNORECASE)


def is_rule(condition: str) -> bool:
    """Whether it has the form of one rule."""
    return RULE.fullmatch(condition) is not None


def complaint(matcher: str) -> str:
    """What is wrong with it; empty when nothing is."""
    try:
        if matcher not in ALL_TOOLS:
            pattern(matcher)
    except (re.error, RecursionError, OverflowError) as error:
        return f'the matcher "{matcher}" is no regular expression: {error}'
    return ""


_KNOWN_KEYS = frozenset(("type", "command", "args", "if", "timeout", "strict", "statusMessage", "description"))
_KEYS_OF_A_GROUP = frozenset(("matcher", "hooks", "description"))
_KEYS_OF_A_FILE = frozenset(("hooks", "description", "$schema", "disableAllHooks"))
_GUARD = "PreToolUse"
"""Its hooks guard something: one that cannot be read must not go unnoticed."""
_OTHER_TYPES = {
    "http": "sends no requests for hooks",
    "prompt": "asks no model for hooks",
    "agent": "asks no agent for hooks",
    "mcp_tool": "calls no MCP server for hooks",
}
OTHERS_EVENTS = frozenset(
    (
        *("StopFailure", "PermissionDenied", "PostToolBatch", "UserPromptExpansion", "TeammateIdle", "TaskCreated"),
        *("TaskCompleted", "InstructionsLoaded", "ConfigChange", "CwdChanged", "FileChanged", "WorktreeCreate"),
        *("WorktreeRemove", "Elicitation", "ElicitationResult", "Setup", "BeforeModel", "AfterModel", "BeforeToolSelection"),
        *("MessageDisplay", "DirectoryAdded"),
    )
)
"""Of other agents; wolo has no such moment."""


_PROJECT_DIR = re.compile(r"\$\{CLAUDE_PROJECT_DIR\}|\$CLAUDE_PROJECT_DIR\b")


class FromFile(NamedTuple):
    hooks: tuple[tuple[str, Hook], ...]
    """By event, in the order of the file."""
    problems: tuple[str, ...]
    """What is not used of it, and why: a sentence each."""
    unreadable_guards: tuple[str, ...] = ()
    """Those of the problems that leave calls of tools unguarded which somebody wanted guarded."""


class _Entry(Struct, frozen=True):
    command: str = ""
    type: str = "command"
    args: tuple[str, ...] | None = None
    condition: str = msgspec.field(default="", name="if")
    timeout: float = TIMEOUT_S
    strict: bool = False


def read_hooks(data: bytes, path: Path) -> FromFile:
    """Raises ExtensionError for a file that cannot be understood at all."""
    try:
        content = msgspec.json.decode(data.removeprefix(b"\xef\xbb\xbf") or b"{}")
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise ExtensionError(f"{path} is no JSON: {error}.", hint="Nothing of it is used.") from error
    if not isinstance(content, dict):
        raise ExtensionError(f"{path} holds no table of hooks.", hint='{"hooks": {"PreToolUse": [...]}}')
    is_settings = path.name.startswith("settings")
    is_bare = "hooks" not in content and not is_settings
    bare = {name: value for name, value in content.items() if name not in _KEYS_OF_A_FILE}
    table = bare if is_bare else content.get("hooks", {})
    if not isinstance(table, dict):
        raise ExtensionError(f"{path}: hooks is no table of events.", hint='{"hooks": {"PreToolUse": [...]}}')
    if content.get("disableAllHooks") is True:
        return FromFile((), (f"{path}: disableAllHooks is set; its hooks are not used.",) if table else ())
    reading = _Reading()
    hooks = [each for event, groups in table.items() for each in reading.of_event(event, groups)]
    if unknown := sorted(content.keys() - _KEYS_OF_A_FILE) if not is_settings and not is_bare else []:
        reading.problems.append(f"{', '.join(unknown)} says nothing to wolo.")
    problems, guards = ([f"{path}: {each}" for each in said] for said in (reading.problems, reading.guards))
    return FromFile(tuple(hooks), (*guards, *problems), tuple(guards))


class _Reading:
    """Of one file: its hooks as they come, and what is wrong with it."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.guards: list[str] = []

    def of_event(self, event: str, groups: Any) -> Iterator[tuple[str, Hook]]:
        if event not in EVENTS:
            self.problems.append(_unknown(event))
            return
        if not isinstance(groups, list):
            self._unreadable(event, f"{event} is not used: it is no list of groups")
            return
        for group in groups:
            yield from self._of_group(event, group)

    def _of_group(self, event: str, group: Any) -> Iterator[tuple[str, Hook]]:
        if not isinstance(group, dict) or not isinstance(entries := group.get("hooks"), list):
            self._unreadable(event, f'{event}: a group without a list of hooks is not used: {{"matcher": …, "hooks": [...]}}')
            return
        matcher = "" if group.get("matcher") is None else group["matcher"]
        wrong = complaint(matcher) if isinstance(matcher, str) else "the matcher is no text"
        if wrong:
            self._unreadable(event, f"{event}: {wrong}")
            return
        if unknown := sorted(group.keys() - _KEYS_OF_A_GROUP):
            self.problems.append(f"{event}: {', '.join(unknown)} beside `matcher` says nothing to wolo.")
        for entry in entries:
            if hook := self._hook(event, matcher, entry):
                yield event, hook

    def _hook(self, event: str, matcher: str, entry: Any) -> Hook | None:
        try:
            read = msgspec.convert(entry, _Entry)
        except msgspec.ValidationError as error:
            self._unreadable(event, f"{event}: a hook is not used: {_plainly(error)}")
            return None
        if read.type != "command":
            why = _OTHER_TYPES.get(read.type, "runs commands")
            self.problems.append(f"{event}: a hook of type {read.type} is not used: wolo {why}.")
            return None
        if not read.command.strip() or "\0" in "".join((read.command, *(read.args or ()))):
            said = "with a NUL character in its command" if read.command.strip() else "without a command"
            self._unreadable(event, f"{event}: a hook {said} is not used")
            return None
        if unknown := sorted(entry.keys() - _KNOWN_KEYS):
            self.problems.append(f"{event}: {', '.join(unknown)} of `{read.command}` says nothing to wolo.")
        if read.condition and not self._is_usable(event, read.condition):
            return None
        command = read.command if read.args is None else " ".join(map(_literally, (read.command, *read.args)))
        timeout_s = read.timeout if read.timeout > 0 else TIMEOUT_S
        return Hook(command=command, matcher=matcher, condition=read.condition, timeout_s=timeout_s, strict=read.strict)

    def _is_usable(self, event: str, condition: str) -> bool:
        if event not in ABOUT_TOOLS:
            self.problems.append(f"{event}: a hook with an `if` is not used: the event is about no call.")
            return False
        if not is_rule(condition):
            self._unreadable(event, f"{event}: the `if` of a hook is no rule: {condition}")
            return False
        return True

    def _unreadable(self, event: str, why: str) -> None:
        (self.guards if event == _GUARD else self.problems).append(f"{why}.")


def _literally(word: str) -> str:
    """A word for a shell that takes nothing of it for a sign, but for the folder of the project."""
    pieces = _PROJECT_DIR.split(word)
    return '"$CLAUDE_PROJECT_DIR"'.join(shlex.quote(piece) if piece else "" for piece in pieces) or "''"


def _unknown(event: str) -> str:
    if event in OTHERS_EVENTS:
        return f"wolo has no event {event}; its hooks are not used."
    from difflib import get_close_matches  # noqa: PLC0415  # 5 ms, for a typing mistake only

    near = get_close_matches(event, EVENTS, n=1, cutoff=0.6)
    return f"there is no event {event}; its hooks are not used.{f' Did you mean {near[0]}?' if near else ''}"


def _plainly(error: msgspec.ValidationError) -> str:
    return str(error).replace("`", "").removesuffix(".")
