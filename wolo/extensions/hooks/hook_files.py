"""Reads hooks in the form of Claude Code and Gemini CLI: from files, and from the settings of skills and agents."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from wolo.errors import ExtensionError
from wolo.extensions.hooks.definitions import EVENTS, FILE_CHANGED, Hook, complaint, mistake
from wolo.extensions.markdown_files import Document, ExtensionFolder

_KEYS_OF_A_GROUP = frozenset(("matcher", "hooks", "description"))
_KEYS_OF_A_FILE = frozenset(("hooks", "description", "$schema", "disableAllHooks"))
GUARD = "PreToolUse"
"""Its hooks protect something, so an unreadable one must be reported."""
_OTHER_TYPES = {"mcp_tool": "calls no MCP server for hooks"}
OF_GEMINI: Mapping[str, str] = {
    "BeforeTool": "PreToolUse",
    "AfterTool": "PostToolUse",
    "BeforeAgent": "UserPromptSubmit",
    "AfterAgent": "Stop",
    "PreCompress": "PreCompact",
}
"""Gemini CLI's names of events; its timeouts are in milliseconds."""
OTHERS_EVENTS = frozenset(
    (
        *("PostToolBatch", "TeammateIdle", "TaskCreated", "TaskCompleted", "CwdChanged"),
        *("WorktreeCreate", "WorktreeRemove", "Elicitation", "ElicitationResult", "MessageDisplay", "DirectoryAdded"),
        *("BeforeModel", "AfterModel", "BeforeToolSelection"),
    )
)
"""Events of other agents that wolo does not have."""
_PROJECT_DIR = r"\$\{(?:CLAUDE|GEMINI)_PROJECT_DIR\}|\$(?:CLAUDE|GEMINI)_PROJECT_DIR\b"
_SKILL_DIR = r"\$\{CLAUDE_SKILL_DIR\}|\$CLAUDE_SKILL_DIR\b"


class FromFile(Struct, frozen=True):
    hooks: tuple[tuple[str, Hook], ...]
    """By event, in the order of the file."""
    problems: tuple[str, ...]
    """A sentence for each part that is not used."""
    unreadable_guards: tuple[str, ...] = ()
    """Problems that leave tool calls without an intended check."""


class _HookEntry(Struct, frozen=True, rename={"condition": "if", "in_background": "async", "wakes": "asyncRewake"}):
    command: str = ""
    type: str = "command"
    args: tuple[str, ...] | None = None
    condition: str = ""
    timeout: float = 0
    strict: bool = False
    prompt: str = ""
    model: str = ""
    url: str = ""
    headers: dict[str, str] = {}
    allowedEnvVars: tuple[str, ...] = ()
    in_background: bool = False
    wakes: bool = False
    once: bool = False
    shell: str = "bash"


_KNOWN_KEYS = frozenset((*_HookEntry.__struct_encode_fields__, "statusMessage", "description", "name"))


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
    reading = _HookReader()
    hooks = [each for event, groups in table.items() for each in reading.of_event(event, groups)]
    if unknown := sorted(content.keys() - _KEYS_OF_A_FILE) if not is_settings and not is_bare else []:
        reading.problems.append(f"{', '.join(unknown)} is unknown and ignored.")
    return reading.beside(hooks, path)


def read_table(table: Mapping[str, Any]) -> tuple[tuple[tuple[str, Hook], ...], tuple[str, ...]]:
    """Reads events with their groups; returns the hooks and everything that is wrong."""
    reading = _HookReader()
    hooks = [each for event, groups in table.items() for each in reading.of_event(event, groups)]
    return tuple(hooks), (*reading.guards, *reading.problems)


class HookProblems:
    """Collects what is wrong with the hooks of one file."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.guards: list[str] = []

    def add(self, event: str, why: str) -> None:
        (self.guards if event == GUARD else self.problems).append(f"{why}.")

    def beside(self, hooks: Iterable[tuple[str, Hook]], path: Path) -> FromFile:
        found = tuple(hooks)  # finds the problems
        problems, guards = ([f"{path}: {each}" for each in said] for said in (self.problems, self.guards))
        return FromFile(found, (*guards, *problems), tuple(guards))


class _HookReader(HookProblems):
    def of_event(self, name: str, groups: Any) -> Iterator[tuple[str, Hook]]:
        event = OF_GEMINI.get(name, name)
        if event not in EVENTS:
            self.problems.append(_unknown(event))
            return
        if not isinstance(groups, list):
            self.add(event, f"{name} is not used: it is no list of groups")
            return
        for group in groups:
            yield from self._of_group(event, group, in_milliseconds=name in OF_GEMINI)

    def _of_group(self, event: str, group: Any, *, in_milliseconds: bool) -> Iterator[tuple[str, Hook]]:
        if not isinstance(group, dict) or not isinstance(entries := group.get("hooks"), list):
            self.add(event, f'{event}: a group without a list of hooks is not used: {{"matcher": …, "hooks": [...]}}')
            return
        matcher = "" if group.get("matcher") is None else group["matcher"]
        wrong = "the matcher is no text" if not isinstance(matcher, str) else complaint(matcher) if event != FILE_CHANGED else ""
        if wrong:
            self.add(event, f"{event}: {wrong}")
            return
        if unknown := sorted(group.keys() - _KEYS_OF_A_GROUP):
            self.problems.append(f"{event}: {', '.join(unknown)} beside `matcher` is unknown and ignored.")
        for entry in entries:
            if hook := self._hook(event, matcher, entry, in_milliseconds=in_milliseconds):
                yield event, hook

    def _hook(self, event: str, matcher: str, entry: Any, *, in_milliseconds: bool) -> Hook | None:
        try:
            read = msgspec.convert(entry, _HookEntry)
            if read.type not in ("command", "prompt", "agent", "http"):
                why = _OTHER_TYPES.get(read.type, "has hooks of type command, prompt, agent and http")
                self.add(event, f"{event}: a hook of type {read.type} is not used: wolo {why}")
                return None
            command = read.command if read.args is None else " ".join(map(_literally, (read.command, *read.args)))
            hook = msgspec.convert(
                {
                    "type": read.type,
                    "command": command if read.command.strip() else "",
                    "matcher": matcher,
                    "if": read.condition,
                    "timeout_s": (read.timeout / 1000 if in_milliseconds else read.timeout) if read.timeout > 0 else None,
                    "strict": read.strict,
                    "prompt": read.prompt,
                    "model": read.model,
                    "url": read.url,
                    "headers": read.headers,
                    "allowed_env_vars": read.allowedEnvVars,
                    "async": read.in_background or read.wakes,
                    "once": read.once,
                },
                Hook,
            )
        except msgspec.ValidationError as error:
            self.add(event, f"{event}: a hook is not used: {str(error).replace('`', '').removesuffix('.')}")
            return None
        if unknown := sorted(entry.keys() - _KNOWN_KEYS):
            self.problems.append(f"{event}: {', '.join(unknown)} of `{hook.action}` is unknown and ignored.")
        if read.shell not in ("", "bash"):
            self.add(event, f"{event}: `{hook.action}` is not used: wolo runs hooks in bash, not in {read.shell}")
            return None
        if wrong := mistake(event, hook):
            self.add(event, f"{event}: a hook is not used: {wrong}")
            return None
        return hook


def _literally(word: str) -> str:
    """Quotes a word for the shell, except for the project folder's variable."""
    pieces = re.split(_PROJECT_DIR, word)
    return '"$CLAUDE_PROJECT_DIR"'.join(shlex.quote(piece) if piece else "" for piece in pieces) or "''"


def _unknown(event: str) -> str:
    if event in OTHERS_EVENTS:
        return f"wolo has no event {event}; its hooks are not used."
    from difflib import get_close_matches  # noqa: PLC0415  # 5 ms, for a typing mistake only

    near = get_close_matches(event, (*EVENTS, *OF_GEMINI), n=1, cutoff=0.6)
    return f"there is no event {event}; its hooks are not used.{f' Did you mean {near[0]}?' if near else ''}"


def hooks_of(document: Document, path: Path, shelf: ExtensionFolder) -> tuple[tuple[str, Hook], ...]:
    """Raises ExtensionError for hooks that cannot run: the file is not used without its checks."""
    if document.problem and "hooks" in document.lines:
        raise document.wrong("hooks", "cannot be read, because the settings are not valid YAML")
    table = document.fields.get("hooks")
    if not table:
        return ()
    if shelf.plugin is not None:
        raise document.wrong("hooks", "do not run for a plugin's file; the plugin's own hooks/hooks.json is the place for them")
    if not isinstance(table, dict):
        raise document.wrong("hooks", "is no table of events")
    hooks, problems = read_table(table)
    if problems:
        raise document.wrong("hooks", f"cannot be used: {problems[0].rstrip('.')}")
    return tuple((event, _with_folder(hook, path.parent)) for event, hook in hooks)


def _with_folder(hook: Hook, folder: Path) -> Hook:
    """Inserts the folder of the file, unless a shell would have to quote it."""
    if not re.search(_SKILL_DIR, hook.command):
        return hook
    if not re.fullmatch(r"[\w./@+-]+", str(folder)):
        raise ExtensionError(f"{folder}: a hook names CLAUDE_SKILL_DIR, but the folder has characters that a shell reads.")
    return replace(hook, command=re.sub(_SKILL_DIR, lambda _: str(folder), hook.command))
