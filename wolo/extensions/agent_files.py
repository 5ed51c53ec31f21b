"""Finds agent files, and defines the two built-in agents for tasks.

An agent file is Markdown, settings and then the agent's prompt, or one of Codex in TOML. It can only remove tools and rights,
never allow more.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from msgspec import Struct

from wolo.errors import ExtensionError, WoloError
from wolo.extensions.markdown_files import (
    NAME_RULE,
    Document,
    ExtensionFolder,
    decode,
    entries,
    first_notices,
    in_plugin,
    read_document,
    reading_notice,
    show_path,
    word_name,
)
from wolo.extensions.settings_documents import parse_settings
from wolo.formats.format import ThinkingLevel
from wolo.messages.terminal_text import clean_line, escape_hidden
from wolo.places import Notices
from wolo.tools.tool_values import BUILTIN as OFFERED
from wolo.tools.tool_values import SubagentOffer
from wolo.workspace.root import resolve_path

if TYPE_CHECKING:
    from wolo.extensions.hooks.definitions import Hook
    from wolo.guard.modes import Ceiling

Mode = Literal["primary", "subagent", "all"]
READING = frozenset(
    (
        *("read", "grep", "glob", "repo_map", "fetch", "web_search", "todo", "ask", "present_plan", "skill"),
        *("expand_message", "task_completion"),
    )
)
"""Tools that change nothing."""
MOST_AGENTS = 200
MOST_FOLDERS = 200
ROO_MODES = ".roomodes"
DEEPEST = 4
"""Levels of folders in which agents may be grouped."""
_NOTES = r"(?i)(readme|changelog|contributing|license|agents|claude|gemini|index)\.md"
"""Files without settings that describe a folder rather than an agent."""
_GROUPS: Mapping[str, tuple[str, ...]] = {
    **{"read": ("read", "grep", "glob", "list"), "edit": ("edit",), "command": ("bash",)},
    **{"browser": ("webfetch", "websearch"), "mcp": ("mcp",)},
}
"""Tools as OpenCode's permissions name them."""


class AgentProfile(Struct, frozen=True, kw_only=True):
    name: str
    description: str
    prompt: str = ""
    """Added to the prompt that every agent gets."""
    model: str = ""
    """Name or alias; empty: the conversation's model."""
    thinking: ThinkingLevel | None = None
    """None: as the conversation."""
    temperature: float | None = None
    tools: tuple[str, ...] | None = None
    """Allowed tools; None: all of the conversation."""
    without: tuple[str, ...] = ()
    """Tools to remove."""
    skills: tuple[str, ...] = ()
    """Skills whose text the agent gets with its prompt."""
    mode: Mode = "all"
    max_turns: int | None = None
    is_hidden: bool = False
    color: str = ""
    ceiling: Ceiling | None = None
    """The rights it may have at most; None: those of the conversation."""
    path: Path | None = None
    """None for a built-in agent."""
    is_projects: bool = False
    """Comes from a project or plugin, so it cannot switch to another provider."""
    plugin: str = ""
    """The plugin that it comes from."""
    hooks: tuple[tuple[str, Hook], ...] = ()
    """By event; they run while it works."""

    @property
    def only_reads(self) -> bool:
        return self.tools is not None and READING.issuperset(self.tools)

    @property
    def offer(self) -> SubagentOffer:
        return SubagentOffer(name=self.name, description=self.description, only_reads=self.only_reads, is_hidden=self.is_hidden)


BUILTIN = tuple(
    AgentProfile(
        name=offer.name,
        description=offer.description,
        mode="subagent",
        tools=("read", "grep", "glob", "fetch") if offer.only_reads else None,
    )
    for offer in OFFERED
)


class Agents(Struct, frozen=True):
    profiles: tuple[AgentProfile, ...] = ()
    """By name; each name once."""
    notices: tuple[str, ...] = ()
    """A sentence for each unusable file."""

    @property
    def offers(self) -> tuple[SubagentOffer, ...]:
        """Agents that tasks can be given to."""
        return tuple(each.offer for each in self.profiles if each.mode != "primary")


NONE = Agents()


def find_agents(shelves: Iterable[ExtensionFolder]) -> Agents:
    """The nearest agent of a name wins; built-in agents come last."""
    reading = _AgentReader()
    for shelf in shelves:
        reading.add(shelf)
    profiles = {each.name: each for each in BUILTIN} | reading.profiles
    return Agents(tuple(profiles[name] for name in sorted(profiles)), reading.notices())


def find_agent(profiles: Iterable[AgentProfile], name: str) -> AgentProfile | None:
    """By its name in any case, or by the last part of it if only one agent ends with that."""
    profiles, wanted = tuple(profiles), name.strip().lower()
    exact = next((each for each in profiles if each.name == name.strip()), None)
    exact = exact or next((each for each in profiles if each.name.lower() == wanted), None)
    ending = [each for each in profiles if each.name.lower().endswith(f":{wanted}")]
    return exact or (ending[0] if len(ending) == 1 else None)


class _AgentReader:
    def __init__(self) -> None:
        self.profiles: dict[str, AgentProfile] = {}
        self._notices = Notices()
        self._problems: list[str] = []
        """Files that are not valid YAML."""
        self._without_effect: dict[str, list[str]] = {}
        """Fields, and the files that have them."""

    def add(self, shelf: ExtensionFolder) -> None:
        here: dict[str, Path] = {}
        for path in _below(shelf, self._notices, {resolve_path(shelf.folder)}):
            if len(self.profiles) >= MOST_AGENTS:
                self._notices.add(f"There are more than {MOST_AGENTS} agents; the rest is left out.")
                return
            for profile in self._read(path, shelf):
                if other := here.get(profile.name):
                    self._notices.add(f"{show_path(path)} is left out: {show_path(other)} has the same name, {profile.name}.")
                here.setdefault(profile.name, path)
                self.profiles.setdefault(profile.name, profile)

    def notices(self) -> tuple[str, ...]:
        unused = [
            f"'{field}' has no effect in an agent file: {files[0]}{f' and {len(files) - 1} more' if files[1:] else ''}."
            for field, files in self._without_effect.items()
        ]
        return first_notices((*self._notices, *reading_notice(self._problems), *unused))

    def _read(self, path: Path, shelf: ExtensionFolder) -> Iterator[AgentProfile]:
        """Adds a notice for an unusable file."""
        try:
            for document in _documents(decode(shelf.read(path), show_path(path)), path):
                if profile := self._of_document(document, path, shelf):
                    yield profile
        except WoloError as error:
            self._notices.add(f"This agent is left out: {error.message}")

    def _of_document(self, document: Document, path: Path, shelf: ExtensionFolder) -> AgentProfile | None:
        try:
            if document.flag("disable", default=False) or (not document.fields and re.fullmatch(_NOTES, path.name)):
                return None
            profile = _profile(document, path, shelf, self._notices)
        except WoloError as error:
            self._notices.add(f"This agent is left out: {error.message}")
            return None
        if document.problem:
            self._problems.append(document.problem)
        from wolo.extensions.agent_fields import USED_FIELDS  # noqa: PLC0415  # only where there are files

        for field in document.fields:
            if field not in USED_FIELDS and document.fields[field] not in (None, "", False, [], {}):
                self._without_effect.setdefault(clean_line(field), []).append(show_path(path))
        return profile


def _below(folder: ExtensionFolder, notices: Notices, seen: set[str], depth: int = 1) -> Iterator[Path]:
    """Visits each folder once, even through links: `seen` contains real paths."""
    if folder.folder.name == ROO_MODES and os.path.lexists(folder.folder):
        yield folder.folder
    forms = (".md", ".toml") if ".codex" in folder.folder.parts else (".md",)
    inner: list[ExtensionFolder] = []
    for entry in entries(folder, notices):
        if entry.name.endswith(forms):
            yield Path(entry.path)
        elif below := folder.enter(entry, seen, MOST_FOLDERS):
            inner.append(below)
    for each in inner if depth < DEEPEST else ():
        yield from _below(each, notices, seen, depth + 1)


def _documents(text: str, path: Path) -> list[Document]:
    """One of Markdown, a role of Codex, or the modes of Roo Code. Raises ExtensionError."""
    name = show_path(path)
    if path.name == ROO_MODES:
        modes = parse_settings(text.encode(), name).get("customModes")
        if not isinstance(modes, list) or not all(isinstance(mode, dict) for mode in modes):
            raise ExtensionError(f"{name}: customModes is no list of modes.")
        return [_as_document(mode, name, path.parent) for mode in modes]
    if path.suffix != ".toml":
        return [read_document(text, name)]
    fields = parse_settings(text.encode(), name)
    body = fields.pop("developer_instructions", "")
    return [
        Document(fields, body.strip() if isinstance(body, str) else "", name, {key: str(each) for key, each in fields.items()})
    ]


def read_definition(name: str, table: Mapping[str, Any]) -> AgentProfile:
    """The agent that a program defines in Claude Code's form. Raises ExtensionError for an invalid or unknown field."""
    from wolo.extensions import agent_fields  # noqa: PLC0415  # only where there are definitions

    fields = {key: value for key, value in table.items() if value not in (None, [], False)}
    written = {key: value for key, value in fields.items() if not isinstance(value, list)}
    document = Document(fields, "", f"the agent {name}", {key: str(value) for key, value in written.items()})
    if unknown := [key for key in fields if key not in DEFINITION_FIELDS]:
        raise document.wrong(clean_line(unknown[0]), "is not supported in an agent that a program defines")
    if word_name(name) != name:
        raise document.wrong("name", f"is not allowed: {NAME_RULE}")
    if not document.text("description") or not document.text("prompt"):
        raise document.wrong("description" if document.text("prompt") else "prompt", "is missing")
    return AgentProfile(
        name=name,
        description=clean_line(document.text("description")),
        prompt=escape_hidden(document.text("prompt")),
        model=agent_fields.model_name(document),
        thinking=agent_fields.thinking(document),
        tools=agent_fields.tools(document),
        without=agent_fields.removed_tools(document),
        skills=document.items("skills"),
        max_turns=agent_fields.max_turns(document),
        ceiling=agent_fields.ceiling(document, name),
    )


DEFINITION_FIELDS = frozenset(
    ("description", "prompt", "tools", "disallowedTools", "model", "skills", "maxTurns", "effort", "permissionMode")
)


def _profile(document: Document, path: Path, shelf: ExtensionFolder, notices: Notices) -> AgentProfile:
    """Raises ExtensionError for invalid settings."""
    from wolo.extensions import agent_fields  # noqa: PLC0415  # only where there are files

    if document.text("kind") == "remote" or document.text("agent_card_url"):
        raise document.wrong("kind", "is remote: agents of other servers are not supported")
    name = _name(document, path, notices)
    description = document.text("description").replace("\\n", " ")
    description = clean_line(description or document.body.partition("\n")[0].lstrip("# "))
    if not description:
        raise document.wrong("description", "is missing, and there is no text either")
    mode = document.text("mode") or "all"
    if mode not in get_args(Mode):
        raise document.wrong("mode", f"must be one of {', '.join(get_args(Mode))}")
    hooks: tuple[tuple[str, Hook], ...] = ()
    if document.has_hooks:
        from wolo.extensions.hooks.hook_files import hooks_of  # noqa: PLC0415  # few files have hooks

        hooks = hooks_of(document, path, shelf)
    return AgentProfile(
        name=shelf.qualify(name),
        description=description,
        prompt=escape_hidden(in_plugin(document.body, shelf.plugin)),
        model=agent_fields.model_name(document),
        thinking=agent_fields.thinking(document),
        temperature=agent_fields.temperature(document),
        tools=agent_fields.tools(document),
        without=agent_fields.removed_tools(document),
        skills=document.items("skills") if not isinstance(document.fields.get("skills"), dict) else (),
        mode=mode,  # type: ignore[arg-type]  # it was just looked up
        max_turns=agent_fields.max_turns(document),
        is_hidden=document.flag("hidden", default=False),
        color=clean_line(document.text("color")),
        ceiling=agent_fields.ceiling(document, name),
        path=path,
        is_projects=shelf.project is not None or shelf.plugin is not None,
        plugin=shelf.namespace if shelf.plugin else "",
        hooks=hooks,
    )


def _name(document: Document, path: Path, notices: Notices) -> str:
    """With a notice, where it is not as it was written."""
    file = path.name.removesuffix(path.suffix).removesuffix(".agent").removesuffix(".chatmode")
    name = document.text("name") or file
    called = word_name(name)
    if called != name:
        notices.add(f"{document.name}: {NAME_RULE}; the agent is called {called}.")
    return called


def _as_document(mode: Mapping[str, Any], name: str, folder: Path) -> Document:
    def text(*keys: str) -> str:
        return next((each for key in keys if isinstance(each := mode.get(key), str) and each.strip()), "")

    groups: dict[str, Mapping[str, Any]] = {}
    for each in given if isinstance(given := mode.get("groups"), list) else []:
        group, *limits = each if isinstance(each, list) and each else [each]
        groups[str(group)] = limits[0] if limits and isinstance(limits[0], dict) else {}
    denied = {tool: "deny" for group, tools in _GROUPS.items() if group not in groups for tool in tools}
    pattern = groups.get("edit", {}).get("fileRegex")
    limit = f"Edit only files that match the regular expression {pattern}." if pattern else ""
    permission: dict[str, Any] = denied | ({"edit": "ask"} if pattern else {})  # wolo has no such rules
    about = text("description", "whenToUse", "roleDefinition").partition("\n")[0]
    own = f".roo/rules-{text('slug')}"
    has_rules = text("slug").replace("-", "").isalnum() and (folder / own).is_dir()
    rules = f"Before you begin, read the files in {folder / own}: the rules of this mode." if has_rules else ""
    prompt = "\n\n".join(filter(None, (text("roleDefinition"), text("customInstructions"), rules, limit)))
    return Document({"name": text("slug", "name"), "description": about, "permission": permission}, prompt, name)
