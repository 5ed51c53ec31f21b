"""Reads hook definitions from settings and from Claude Code's `hooks.json`."""

from __future__ import annotations

import re
import shlex
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct, field

from wolo.errors import ExtensionError

TIMEOUT_S = 60.0
ALL_TOOLS = ("", "*")
RULE = r"(?s)\s*([\w*-]+)\s*(?:\((.*)\))?\s*"


class Hook(Struct, frozen=True, forbid_unknown_fields=True):
    """A command that receives an event as JSON on stdin and answers by exit code or JSON on stdout."""

    command: Annotated[str, Meta(min_length=1)]
    """Run by a shell in the working directory."""
    matcher: str = ""
    """A list of tool names (`Edit|Write`) or a regular expression that may match anywhere; empty or `*`: all tools."""
    condition: str = field(default="", name="if")
    """For tool events: a rule such as `Bash(git *)` that calls must match."""
    timeout_s: Annotated[float, Meta(gt=0)] = TIMEOUT_S
    """After that the hook and everything it started is killed, and the hook has failed."""
    strict: bool = False
    """Treat a failure of the hook as a denial."""


class Settings(Struct, frozen=True, forbid_unknown_fields=True):
    """By event, named as in other agents."""

    SessionStart: tuple[Hook, ...] = ()
    """Before the first prompt of a conversation."""
    SessionEnd: tuple[Hook, ...] = ()
    """When the conversation is closed."""
    UserPromptSubmit: tuple[Hook, ...] = ()
    """Before a prompt is sent: may block it."""
    PreToolUse: tuple[Hook, ...] = ()
    """Before a tool call: may deny it, require approval, or change its arguments."""
    PermissionRequest: tuple[Hook, ...] = ()
    """Before an approval prompt: may answer it."""
    PostToolUse: tuple[Hook, ...] = ()
    """After a successful tool call."""
    PostToolUseFailure: tuple[Hook, ...] = ()
    """After a failed tool call."""
    Stop: tuple[Hook, ...] = ()
    """When the model finishes: may make it continue."""
    SubagentStart: tuple[Hook, ...] = ()
    """Before a subagent starts."""
    SubagentStop: tuple[Hook, ...] = ()
    """When a subagent finishes."""
    PreCompact: tuple[Hook, ...] = ()
    """Before compaction."""
    PostCompact: tuple[Hook, ...] = ()
    """After compaction."""
    Notification: tuple[Hook, ...] = ()
    """When something waits for the user."""


EVENTS: tuple[str, ...] = Settings.__struct_fields__
ABOUT_TOOLS = frozenset(("PreToolUse", "PermissionRequest", "PostToolUse", "PostToolUseFailure"))
"""For other events a matcher is compared with the subject of the event, if it has one."""


def pattern(matcher: str) -> re.Pattern[str]:
    """Raises as `re.compile` does; suppresses warnings about unusual patterns."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return re.compile(matcher, re.IGNORECASE)


def is_rule(condition: str) -> bool:
    return re.fullmatch(RULE, condition) is not None


def complaint(matcher: str) -> str:
    """Describes what is wrong with a matcher; empty if it is valid."""
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
"""Its hooks protect something, so an unreadable one must be reported."""
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
"""Events of other agents that wolo does not have."""


_PROJECT_DIR = r"\$\{CLAUDE_PROJECT_DIR\}|\$CLAUDE_PROJECT_DIR\b"


class FromFile(Struct, frozen=True):
    hooks: tuple[tuple[str, Hook], ...]
    """By event, in the order of the file."""
    problems: tuple[str, ...]
    """A sentence for each part that is not used."""
    unreadable_guards: tuple[str, ...] = ()
    """Problems that leave tool calls without an intended check."""


class _Entry(Struct, frozen=True):
    command: str = ""
    type: str = "command"
    args: tuple[str, ...] | None = None
    condition: str = msgspec.field(default="", name="if")
    timeout: float = TIMEOUT_S
    strict: bool = False


def read_hooks(data: bytes, path: Path) -> FromFile:
    """Raises ExtensionError for an unreadable file."""
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
        reading.problems.append(f"{', '.join(unknown)} is unknown and ignored.")
    problems, guards = ([f"{path}: {each}" for each in said] for said in (reading.problems, reading.guards))
    return FromFile(tuple(hooks), (*guards, *problems), tuple(guards))


class _Reading:
    """Collects the hooks and problems of one file."""

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
            self.problems.append(f"{event}: {', '.join(unknown)} beside `matcher` is unknown and ignored.")
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
            self.problems.append(f"{event}: {', '.join(unknown)} of `{read.command}` is unknown and ignored.")
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
    """Quotes a word for the shell, except for the project folder's variable."""
    pieces = re.split(_PROJECT_DIR, word)
    return '"$CLAUDE_PROJECT_DIR"'.join(shlex.quote(piece) if piece else "" for piece in pieces) or "''"


def _unknown(event: str) -> str:
    if event in OTHERS_EVENTS:
        return f"wolo has no event {event}; its hooks are not used."
    from difflib import get_close_matches  # noqa: PLC0415  # 5 ms, for a typing mistake only

    near = get_close_matches(event, EVENTS, n=1, cutoff=0.6)
    return f"there is no event {event}; its hooks are not used.{f' Did you mean {near[0]}?' if near else ''}"


def _plainly(error: msgspec.ValidationError) -> str:
    return str(error).replace("`", "").removesuffix(".")
