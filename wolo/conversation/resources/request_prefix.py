"""Builds the start of every request, system prompt and tools; instructions of subfolders follow with results of calls."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from msgspec import Struct, ValidationError, convert, field, to_builtins
from msgspec.structs import replace

from wolo.agent.agent_services import MessageHistory
from wolo.agent.compaction.compactor import Compactor
from wolo.agent.events import Noticed
from wolo.agent.hook_calls import AgentHooks
from wolo.agent.prompt_prefix import build_system_prompt
from wolo.agent.tool_execution import Emit
from wolo.config.cli_options import Flags, text, text_or_file
from wolo.config.schema import Config, Tools
from wolo.conversation.resources.user_files import UserFiles
from wolo.errors import UsageError, WoloError
from wolo.extensions.agent_files import NONE as NO_AGENTS
from wolo.extensions.agent_files import AgentProfile, Agents
from wolo.extensions.instructions import instruction_files
from wolo.extensions.instructions.file_reading import MAX_BYTES
from wolo.extensions.skill_files import NO_SKILLS, Skills, list_skills
from wolo.formats.format import NAME
from wolo.guard.intents import Intent, ReadIntent, WriteIntent
from wolo.guard.rules import Decision, Rule, parse_rule
from wolo.guard.secrets.redactor import Secrets
from wolo.messages.message import INSTRUCTIONS, NUDGE, Message, nudge
from wolo.messages.parts import ToolPart
from wolo.models.provider import EditTool
from wolo.places import Notices, Places, Site
from wolo.tools.tool import ExternalTool
from wolo.tools.tool_values import describe_subagents
from wolo.tools.toolbox import (
    BUILTIN,
    BUILTIN_WITH_COMPLETION,
    NEEDS_LANGUAGE_SERVER,
    NEEDS_NOTES,
    NEEDS_PLANNER,
    NEEDS_SEARCH_SERVICE,
    NEEDS_SKILLS,
    NEEDS_SUBAGENTS,
    NEEDS_SYMBOLS,
    NEEDS_USER,
    Toolbox,
)
from wolo.workspace.root import Workspace


class PromptOptions(Struct, frozen=True):
    """Options that change the system prompt."""

    name: str = ""
    """Display name; empty: the default."""
    replacement: str = ""
    appendix: str = ""


def read_prompts(options: Flags, agent: AgentProfile | None, style: str) -> PromptOptions:
    """Reads the named files; the prompt of the agent and the style come before what is appended. Raises UsageError."""
    appended = text_or_file(options, "append_system_prompt")
    appendix = "\n\n".join(filter(None, (agent.prompt if agent else "", style, appended)))
    return PromptOptions(text(options, "name"), text_or_file(options, "system_prompt"), appendix)


_TOOLS_SHARE = 0.1
"""Of the context window."""
_USUAL_WINDOW = 128_000
"""Where it is unknown."""


class RequestPrefix(Struct, frozen=True):
    system: str
    without_skills: str
    """For agents that have no tool to load skills."""
    toolbox: Toolbox
    notices: tuple[str, ...]
    """About instructions and skills that were read."""
    instructions: instruction_files.Instructions


def notes_files(places: Places, root: Path) -> tuple[Path, Path]:
    """Accepted notes for all projects, and for the project `root`."""
    folder, digest = places.config / "memory", sha256(os.fsencode(root)).hexdigest()[:12]
    return folder / "notes.md", folder / f"{root.name or 'root'}-{digest}.md"


class InstructionReader(Struct, frozen=True):
    """Reads the instructions of the user and of a workspace."""

    workspace: Workspace
    site: Site
    limit: int
    """Bytes of all files together."""
    is_readable: Callable[[Path], bool] = lambda path: True
    empty: dict[str, int] = field(default_factory=dict)
    """Folders that `nested` found without instructions."""
    is_safe: bool = False
    """Reads nothing."""

    def read(self) -> instruction_files.Instructions:
        if self.is_safe:
            return instruction_files.Instructions("")
        root, places = self.workspace.root, self.site.places
        more: list[tuple[Path, str]] = []
        if places.plugin_index.exists():
            from wolo.config.plugins.installed import context_files  # noqa: PLC0415  # most users have no plugins

            more = context_files(places)
        return instruction_files.read_instructions(
            root,
            self.site.real_cwd,
            places.config,
            notes=notes_files(places, root),
            more=more,
            limit=self.limit,
            is_readable=self.is_readable,
        )

    async def read_nested(self, call_id: str, touched: Sequence[Path]) -> tuple[Mapping[str, str], Sequence[str]]:
        """Instructions that apply to the `touched` files and are not in the system prompt, by name; and notices."""
        if self.is_safe:
            return {}, ()
        from wolo.extensions.instructions.nested_files import NestedFiles  # noqa: PLC0415  # not needed before the first call

        notices = Notices()
        cwd = self.site.real_cwd
        roots = (self.workspace.root, *self.workspace.extra, *(() if cwd.is_relative_to(self.workspace.root) else (cwd,)))
        nested = NestedFiles(roots, cwd, self.is_readable, min(self.limit, MAX_BYTES), self.empty)
        files = () if nested.has_none(touched) else await asyncio.to_thread(nested.for_files, touched, notices)
        return {each.name: each.text for each in files}, tuple(notices)


def tool_budget(window: int | None) -> int:
    """The most tokens of MCP tools that are offered unasked."""
    return round((window or _USUAL_WINDOW) * _TOOLS_SHARE)


def build_prefix(
    config: Config,
    site: Site,
    prompts: PromptOptions,
    *,
    calls_in_text: bool = False,
    edit_tool: EditTool = "edit",
    most_tools: int | None = None,
    budget: int | None = None,
    attended: bool = False,
    skills: Skills = NO_SKILLS,
    agents: Agents = NO_AGENTS,
    can_search: bool = False,
    can_look_up: bool = False,
    has_map: bool = False,
    custom_tools: Sequence[ExternalTool] = (),
    more_tools: Iterable[ExternalTool] = (),
    instructions: instruction_files.Instructions | None = None,
    can_learn: bool = True,
    can_plan: bool = True,
) -> RequestPrefix:
    """`most_tools` is the limit of the provider, `budget` the most tokens of MCP tools; `can_search`: there
    is a search service; `can_look_up`: the model may ask a language server; `has_map`: the tool `repo_map` is offered.

    `more_tools` come after the built-in ones. `instructions` are read if they are not given. `can_learn`:
    notes of the model can be saved. `can_plan`: the model is large enough to present a plan, and the
    agent may do more than plan.

    Raises UsageError for an unknown tool.
    """
    more = dict.fromkeys(NEEDS_SUBAGENTS, describe_subagents(agents.offers))
    if sys.platform == "win32":
        from wolo.tools.windows_shell import describe_shell  # noqa: PLC0415  # not needed elsewhere

        more["shell"] = describe_shell()
    builtin = BUILTIN_WITH_COMPLETION if calls_in_text else BUILTIN
    toolbox = Toolbox((*builtin, *custom_tools), edit_tool=edit_tool, more=more, most=most_tools, budget=budget)
    learns = config.settings.memory.learn and can_learn
    needs = (
        (learns, NEEDS_NOTES),
        (attended, NEEDS_USER),
        (attended and can_plan, NEEDS_PLANNER),
        (can_search, NEEDS_SEARCH_SERVICE),
        (can_look_up, NEEDS_LANGUAGE_SERVER),
        (has_map, NEEDS_SYMBOLS),
        (skills.for_model, NEEDS_SKILLS),
        (agents.offers, NEEDS_SUBAGENTS),
    )
    hide = (name for is_there, names in needs if not is_there for name in names)
    offered = toolbox.offer(config.settings.tools.offer, (*config.settings.tools.hide, *hide))
    offered.add(more_tools)
    if instructions is None:
        instructions = InstructionReader(Workspace(site.root), site, instruction_files.MAX_TOTAL_BYTES).read()
    compose = _composer(site.cwd, prompts, instructions)
    bare = compose()
    system = compose(skills=list_skills(skills)) if NEEDS_SKILLS & {*offered.names} else bare
    notices = (*instructions.notices, *skills.notices, *agents.notices)
    return RequestPrefix(system, bare, offered, notices, instructions)


class SystemPrompt:
    """Builds the system prompt again from the files on disk, and finds instructions that have changed."""

    def __init__(
        self,
        before: RequestPrefix,
        reader: InstructionReader,
        prompts: Callable[[], PromptOptions],
        library: UserFiles,
        hide: Callable[[str], str],
    ) -> None:
        self._before, self._reader, self._prompts = before, reader, prompts
        self._library, self._hide = library, hide
        self._known = before.instructions.texts
        """In the system prompt."""
        self._is_new = True
        """No turn has begun."""

    def reread(self) -> str:
        """Returns the previous prompt if a file cannot be read."""
        skills = self._library.skills() if NEEDS_SKILLS & {*self._before.toolbox.names} else NO_SKILLS
        try:
            prompts = self._prompts()
        except UsageError:
            return self._before.system
        instructions = self._reader.read()
        self._known = instructions.texts
        return _composer(self._reader.site.cwd, prompts, instructions)(skills=list_skills(skills))

    async def changes(self, sent: Sequence[Message]) -> Message | None:
        """A message with the instructions that differ from the system prompt and the messages `sent`; None: no difference."""
        earlier = [message.metadata.get(INSTRUCTIONS, {}) for message in sent if message.metadata.get(NUDGE) == INSTRUCTIONS]
        is_new, self._is_new = self._is_new, False
        if is_new and not earlier:
            return None
        current = await asyncio.to_thread(lambda: self._hide_all(self._reader.read().texts))
        known = self._hide_all(self._known)
        for each in earlier:
            known |= each
        changed = {name: current.get(name, "") for name in (*current, *(name for name in known if name not in current))}
        changed = {name: text for name, text in changed.items() if text != known.get(name, "")}
        if not changed:
            return None
        blocks = [
            f'<instructions file="{name}">\n{text}\n</instructions>' if text else f"{name} was removed and no longer applies."
            for name, text in changed.items()
        ]
        lead = "These instructions changed on disk and replace their earlier versions:"
        return nudge("\n".join([lead, *blocks]), INSTRUCTIONS, **{INSTRUCTIONS: changed})

    def _hide_all(self, texts: Mapping[str, str]) -> dict[str, str]:
        return {name: self._hide(text) for name, text in texts.items()}


def _composer(cwd: Path, prompts: PromptOptions, instructions: instruction_files.Instructions) -> Callable[..., str]:
    """A function that builds the prompt, with or without `skills`."""
    return partial(
        build_system_prompt,
        cwd,
        instructions=instructions.text,
        display_name=prompts.name or NAME,
        replacement=prompts.replacement or None,
        appendix=prompts.appendix,
    )


OPTIONS = "options"
"""Key of the run options in the metadata of the first prompt."""
COMMAND_LINE: Mapping[str, Decision] = {"--allow": "allow", "--deny": "deny"}
"""Sources of rules that belong to one run."""


class RunOptions(Struct, frozen=True, kw_only=True, omit_defaults=True):
    add_dirs: tuple[str, ...] = ()
    tools: tuple[str, ...] | None = None
    hidden_tools: tuple[str, ...] | None = None
    """None: as in the settings."""
    rules: tuple[tuple[str, str], ...] = ()
    """Source and text of each command-line rule."""
    name: str = ""
    system_prompt: str = ""
    append_system_prompt: str = ""

    @property
    def prompts(self) -> PromptOptions:
        return PromptOptions(self.name, self.system_prompt, self.append_system_prompt)

    def apply_to(self, config: Config) -> Config:
        held = config.settings.tools
        offer = held.offer if self.tools is None else self.tools
        hide = held.hide if self.hidden_tools is None else self.hidden_tools
        return replace(config, settings=replace(config.settings, tools=Tools(offer=offer, hide=hide)))

    def parsed_rules(self) -> tuple[Rule, ...]:
        """Skips rules that this version cannot parse."""
        rules = []
        for source, rule in self.rules:
            try:
                rules.append(parse_rule(rule, COMMAND_LINE[source], source))
            except (WoloError, KeyError):
                continue
        return tuple(rules)


def options_of(config: Config, workspace: Workspace, prompts: PromptOptions, secrets: Secrets) -> dict[str, Any]:
    """The options as they are saved, with secrets redacted."""
    hide = secrets.hide
    tools = config.settings.tools
    options = RunOptions(
        add_dirs=tuple(map(str, workspace.extra)),
        tools=tools.offer if _is_of_run("tools.offer", config) else None,
        hidden_tools=tools.hide if _is_of_run("tools.hide", config) else None,
        rules=tuple((rule.source, hide(str(rule))) for rule in config.rules if rule.source in COMMAND_LINE),
        name=hide(prompts.name),
        system_prompt=hide(prompts.replacement),
        append_system_prompt=hide(prompts.appendix),
    )
    built: dict[str, Any] = to_builtins(options)
    return built


def _is_of_run(key: str, config: Config) -> bool:
    return config.sources.get(key, "").startswith("--")


def saved_options(opened: Mapping[str, Any]) -> RunOptions | None:
    """None: recorded by an older version."""
    try:
        return convert(opened[OPTIONS], RunOptions)
    except (KeyError, ValidationError):
        return None


NestedInstructions = Callable[[str, Sequence[Path]], Awaitable[tuple[Mapping[str, str], Sequence[str]]]]
"""Takes the id of a call and the files it touched; returns texts by file name, and notices."""
_NESTED_LEAD = "[Project instructions for the files below these folders; they apply from now on.]"
_NESTED_BLOCK = '<instructions file="{name}">\n{text}\n</instructions>'


class NestedGiven:
    """Gives each file once, and again if it changed or a compaction removed it from the messages."""

    def __init__(
        self,
        read: NestedInstructions,
        compactor: Compactor,
        history: MessageHistory,
        hide: Callable[[str], str],
        emit: Emit,
        hooks: AgentHooks,
    ) -> None:
        """`hide` redacts secrets."""
        self._read, self._compactor, self._history, self._hooks = read, compactor, history, hooks
        self._hide, self._emit = hide, emit
        self._answer_id = ""
        self._in_answer: dict[str, str] = {}
        """Given with calls of the running answer, which no sent message contains yet."""
        self._noticed: set[str] = set()

    async def add_to(self, part: ToolPart, message_id: str, intents: Sequence[Intent]) -> ToolPart:
        touched = [each.path for each in intents if isinstance(each, ReadIntent | WriteIntent)]
        if not touched:
            return part
        texts, notices = await self._read(part.id, touched)
        for notice in notices:
            if notice not in self._noticed:
                self._noticed.add(notice)
                await self._emit(Noticed(text=self._hide(notice), level="warning"))
        if not texts:
            return part
        if message_id != self._answer_id:
            self._answer_id, self._in_answer = message_id, {}
        known: dict[str, str] = {}
        for message in self._compactor.apply_cut(self._history.messages):
            for call in message.calls:
                known |= call.metadata.get(INSTRUCTIONS, {})
        known |= self._in_answer
        new = {name: text for name, text in ((name, self._hide(text)) for name, text in texts.items()) if known.get(name) != text}
        if not new:
            return part
        self._in_answer |= new
        if self._hooks.is_active:
            trigger = str(touched[0])
            for name in new:
                await self._hooks.run(
                    "InstructionsLoaded", file_path=name, load_reason="nested_traversal", trigger_file_path=trigger
                )
        blocks = "\n".join(_NESTED_BLOCK.format(name=name, text=text) for name, text in new.items())
        return replace(part, output=f"{part.output}\n\n{_NESTED_LEAD}\n{blocks}", metadata={**part.metadata, INSTRUCTIONS: new})
