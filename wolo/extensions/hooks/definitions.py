"""Hooks as the settings define them, and the events they run at."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping
from typing import Annotated, Literal

from msgspec import Meta, Struct, field

TIMEOUT_S = 60.0
Contract = Literal["cursor", "copilot", "gemini", "factory", "windsurf", "kiro", "cline"]
"""Agents whose hooks have their own form."""
PROMPT_TIMEOUT_S = 30.0
"""For hooks that ask a model."""
ALL_TOOLS = ("", "*")
RULE = r"(?s)\s*([\w*-]+)\s*(?:\((.*)\))?\s*"


class Hook(Struct, frozen=True, forbid_unknown_fields=True):
    """Receives an event as JSON, and answers by exit code or JSON."""

    command: str = ""
    """Run by a shell in the working directory, with the event on stdin."""
    matcher: str = ""
    """A list of tool names (`Edit|Write`) or a regular expression that may match anywhere; empty or `*`: all tools."""
    condition: str = field(default="", name="if")
    """For tool events: a rule such as `Bash(git *)` that calls must match."""
    timeout_s: Annotated[float, Meta(gt=0)] | None = None
    """After that the hook and everything it started is killed, and the hook has failed. Default: 60, with a prompt 30."""
    strict: bool = False
    """Treat a failure of the hook as a denial."""
    type: Literal["command", "prompt", "agent", "http"] = "command"
    prompt: str = ""
    """For type `prompt`: a question to a model, for type `agent` to one that may read files; `$ARGUMENTS` is the event.

    It answers `{"ok": false, "reason": …}` to deny."""
    model: str = ""
    """The model to ask; empty: `small_model`, else that of the conversation."""
    url: str = ""
    """For type `http`: the event is sent there by POST."""
    headers: Mapping[str, str] = {}
    """For type `http`; `$NAME` is a variable that `allowed_env_vars` lists."""
    allowed_env_vars: tuple[str, ...] = ()
    """Environment variables that headers may contain."""
    in_background: bool = field(default=False, name="async")
    """Do not wait for it; it cannot deny, and its output is delivered later."""
    once: bool = False
    """Run it only once in a session."""

    @property
    def limit_s(self) -> float:
        return self.timeout_s or (PROMPT_TIMEOUT_S if self.type == "prompt" else TIMEOUT_S)

    @property
    def action(self) -> str:
        """The command, address or prompt, for the user."""
        if self.type == "command":
            return self.command
        if self.type in ("prompt", "agent"):
            return f"{self.type}{f' to {self.model}' if self.model else ''}: {self.prompt}"
        headers = "".join(f" -H '{name}: {value}'" for name, value in self.headers.items())
        variables = f" (sends the variables {', '.join(self.allowed_env_vars)})" if self.allowed_env_vars else ""
        return f"POST {self.url}{headers}{variables}"


class ForeignHook(Hook, frozen=True, forbid_unknown_fields=True):
    """A hook of another agent, which keeps its own form of stdin and answer; see `foreign_contracts.py`."""

    contract: Contract = "cursor"
    their_event: str = ""
    their_matcher: str = ""
    """For tools by the other agent's names; of Cursor's shell events, for the command."""
    folder: str = ""
    """Working directory, relative to the project; empty: its folder."""
    variables: Mapping[str, str] = {}
    """Environment variables that its file sets."""


def describe_hook(hook: Hook) -> Iterator[tuple[str, str]]:
    """Describe a hook for a question of consent: what it runs, asks or contacts, and when. Values are whole and unescaped."""
    if hook.type == "command":
        yield "runs", hook.command
    elif hook.type in ("prompt", "agent"):
        yield "asks", f"{'an agent that reads files, with ' if hook.type == 'agent' else ''}{hook.model or 'your model'}"
        yield "prompt", hook.prompt
    else:
        yield "sends to", hook.url
    for name, value in hook.headers.items():
        yield "header", f"{name}: {value}"
    if hook.allowed_env_vars:
        yield "may send", ", ".join(hook.allowed_env_vars)
    if isinstance(hook, ForeignHook):
        yield "as", f"{hook.their_event} of {hook.contract}"
        for name, value in hook.variables.items():
            yield "sets", f"{name}={value}"
        if hook.folder:
            yield "in", hook.folder
        if hook.their_matcher not in ALL_TOOLS:
            yield "for", hook.their_matcher
    if hook.matcher not in ALL_TOOLS:
        yield "for", hook.matcher
    if hook.condition:
        yield "if", hook.condition
    marks = (("async", hook.in_background), ("once", hook.once), ("strict", hook.strict))
    if how := [name for name, is_set in marks if is_set] + ([f"{hook.timeout_s:g} s"] if hook.timeout_s else []):
        yield "how", ", ".join(how)


class HookSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """By event, named as in other agents."""

    Setup: tuple[Hook, ...] = ()
    """Before the first session in a folder, once."""
    SessionStart: tuple[Hook, ...] = ()
    """Before the first prompt of a conversation."""
    InstructionsLoaded: tuple[Hook, ...] = ()
    """For each file of instructions that was read."""
    SessionEnd: tuple[Hook, ...] = ()
    """When the conversation is closed."""
    UserPromptSubmit: tuple[Hook, ...] = ()
    """Before a prompt is sent: may block it."""
    UserPromptExpansion: tuple[Hook, ...] = ()
    """Before a custom command, skill or server's prompt that the user typed becomes a prompt: may block it."""
    PreToolUse: tuple[Hook, ...] = ()
    """Before a tool call: may deny it, require approval, or change its arguments."""
    PermissionRequest: tuple[Hook, ...] = ()
    """Before an approval prompt: may answer it."""
    PermissionDenied: tuple[Hook, ...] = ()
    """After a rule or the mode denied a tool call."""
    PostToolUse: tuple[Hook, ...] = ()
    """After a successful tool call."""
    PostToolUseFailure: tuple[Hook, ...] = ()
    """After a failed tool call."""
    Stop: tuple[Hook, ...] = ()
    """When the model finishes: may make it continue."""
    StopFailure: tuple[Hook, ...] = ()
    """When a turn ends with an error."""
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
    ConfigChange: tuple[Hook, ...] = ()
    """When a file of settings, hooks or skills has changed."""
    FileChanged: tuple[Hook, ...] = ()
    """When a file that `matcher` names (`.env|.envrc`) has changed."""


EVENTS: tuple[str, ...] = HookSettings.__struct_fields__
ABOUT_TOOLS = frozenset(("PreToolUse", "PermissionRequest", "PermissionDenied", "PostToolUse", "PostToolUseFailure"))
"""For other events a matcher is compared with the subject of the event, if it has one."""
FOR_PROMPTS = frozenset(
    (
        *("PreToolUse", "PermissionRequest", "PostToolUse", "PostToolUseFailure"),
        *("UserPromptSubmit", "UserPromptExpansion", "Stop", "SubagentStop"),
    )
)
"""Events at which a model can be asked."""
FILE_CHANGED = "FileChanged"
"""Its matcher lists names of files."""


def pattern(matcher: str) -> re.Pattern[str]:
    """Raises as `re.compile` does; suppresses warnings about unusual patterns."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return re.compile(matcher, re.IGNORECASE)


def complaint(matcher: str) -> str:
    """Describes what is wrong with a matcher; empty if it is valid."""
    try:
        if matcher not in ALL_TOOLS:
            pattern(matcher)
    except (re.error, RecursionError, OverflowError) as error:
        return f'the matcher "{matcher}" is no regular expression: {error}'
    return ""


_NEEDED = {"command": "command", "prompt": "prompt", "agent": "prompt", "http": "url"}


def mistake(event: str, hook: Hook) -> str:
    """Describes why a hook cannot work; empty if it can."""
    needed = _NEEDED[hook.type]
    if not getattr(hook, needed).strip():
        return f"a hook of type {hook.type} needs a {needed}"
    if "\0" in f"{hook.command}{hook.prompt}{hook.url}":
        return f"a {needed} contains a NUL character"
    if others := [name for name in _NEEDED.values() if name != needed and getattr(hook, name)]:
        return f"type {hook.type} takes no {others[0]}"
    if event != FILE_CHANGED and (wrong := complaint(hook.matcher)):
        return wrong
    if event == FILE_CHANGED and hook.matcher in ALL_TOOLS:
        return "the matcher must name the files to watch, such as .env|.envrc"
    asks = hook.type in ("prompt", "agent")
    if asks and event not in FOR_PROMPTS:
        return f"no model can be asked at {event}"
    if hook.in_background and asks:
        return "async needs a command or a url"
    if hook.condition and not re.fullmatch(RULE, hook.condition):
        return f"`if` is no rule: {hook.condition}"
    if hook.condition and event not in ABOUT_TOOLS:
        return "`if` is for events about calls only"
    if hook.type == "http":
        return _about_request(hook)
    if hook.headers or hook.allowed_env_vars:
        return f"type {hook.type} sends no headers"
    return f"type {hook.type} asks no model" if hook.model and not asks else ""


def _about_request(hook: Hook) -> str:
    if not re.match(r"https?://[^\s@]+$", hook.url):
        return f"the url {hook.url} is no http or https address without a user name"
    if named := [
        name for name, value in hook.headers.items() if not re.fullmatch(r"[\w-]+", name) or re.search(r"[\r\n\0]", value)
    ]:
        return f"{named[0]!r} cannot be sent as a header"
    return ""
