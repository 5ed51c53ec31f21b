"""/tools, /map, /agents, /lsp, /skills: what the model has, and how it sees the project."""

from __future__ import annotations

import asyncio
import textwrap
from collections.abc import Iterator

from wolo.commands.command import Command, CommandContext, Outcome, ShowText, rows
from wolo.conversation.resources.edit_checks import find_installed
from wolo.conversation.subagents.subagent_run import SubagentRun
from wolo.errors import ToolError, UsageError
from wolo.extensions.agent_files import AgentProfile, find_agent
from wolo.extensions.markdown_files import show_path
from wolo.extensions.skill_files import Skill
from wolo.lsp.language_servers import LanguageServers
from wolo.messages.terminal_text import clean, clean_line
from wolo.places import Notices, find_places
from wolo.tools.search.repo_map import DEFAULT_TOKENS, draw_map


async def _tools(context: CommandContext, rest: str) -> Outcome:
    if not (tools := context.conversation.tools):
        return ShowText("The model has no tools.")
    return ShowText(
        "\n".join(
            rows([(tool.name, " ".join(tool.description.split()).split(". ")[0].rstrip(".")) for tool in tools], context.columns)
        )
    )


async def _map(context: CommandContext, rest: str) -> Outcome:
    services = context.conversation.files.services
    try:
        text, _ = await draw_map(services.workspace.resolve(rest.strip() or "."), DEFAULT_TOKENS, services)
    except ToolError as error:
        raise UsageError(str(error)) from error
    return ShowText(services.secrets.hide(text))


NO_AGENTS = "This model cannot delegate tasks to other agents."


async def _agents(context: CommandContext, rest: str) -> Outcome:
    subagents = context.conversation.subagents
    if not subagents.agents.profiles:
        return ShowText(NO_AGENTS)
    if rest:
        if (profile := find_agent(subagents.agents.profiles, rest)) is None:
            raise UsageError(
                f"Unknown agent: {clean_line(rest)}.",
                hint=f"Agents: {', '.join(each.name for each in subagents.agents.profiles)}.",
            )
        facts = [
            ("description", profile.description),
            ("file", str(profile.path) if profile.path else "built in"),
            ("tools", "all of this conversation" if profile.tools is None else ", ".join(profile.tools) or "none"),
            ("without", ", ".join(profile.without)),
            ("model", profile.model or "the model of the conversation"),
            ("temperature", "" if profile.temperature is None else f"{profile.temperature:g}"),
            ("thinking", profile.thinking or ""),
            ("skills", ", ".join(profile.skills)),
            ("color", profile.color),
            ("rights", _rights(profile)),
            ("turns", f"at most {profile.max_turns}" if profile.max_turns else ""),
            ("used by", _availability(profile) or "the model"),
        ]
        lines = [f"{name:<12} {clean_line(value)}" for name, value in facts if value]
        return ShowText("\n".join([profile.name, *lines, *(["", clean(profile.prompt)] if profile.prompt else [])]))
    lines = rows([(each.name, _in_short(each)) for each in subagents.agents.profiles], context.columns)
    if subagents.running:
        lines += ["", "Running:", *map(_running, subagents.running)]
    return ShowText("\n".join(lines))


def _agent_arguments(context: CommandContext) -> list[tuple[str, str]]:
    subagents = context.conversation.subagents
    return [(each.name, clean_line(each.description)) for each in subagents.agents.profiles]


def _in_short(profile: AgentProfile) -> str:
    words = clean_line(profile.description)
    reads = "read-only" if profile.only_reads and "read-only" not in words else ""
    return f"{', '.join(filter(None, (_origin(profile), reads, _availability(profile))))} · {words}"


def _rights(profile: AgentProfile) -> str:
    """Limits of its file; empty: none."""
    if (ceiling := profile.ceiling) is None:
        return ""
    facts = [f"at most mode {ceiling.mode}" if ceiling.mode else "", "never asks" if ceiling.asks_nobody else ""]
    facts += [f"{tool}: {decision}" for tool, decision in ceiling.defaults]
    return ", ".join(filter(None, (*facts, *(f"{rule.decision} {rule}" for rule in ceiling.rules))))


def _origin(profile: AgentProfile) -> str:
    if profile.plugin:
        return f"plugin {profile.plugin}"
    return "built in" if profile.path is None else "project" if profile.is_projects else "yours"


def _availability(profile: AgentProfile) -> str:
    if profile.mode == "primary":
        return f"`wolo --agent {profile.name}`, not for tasks"
    return "hidden from the model" if profile.is_hidden else ""


def _running(run: SubagentRun) -> str:
    return f"  {run.agent}: {clean_line(run.doing)} · {run.so_far} · {run.seconds:.0f} s  ({run.session_id})"


async def _lsp(context: CommandContext, rest: str) -> Outcome:
    permissions, shell = context.conversation.permissions, context.conversation.files.services.shell
    if not permissions.config.settings.lsp.enabled:
        return ShowText("Edits are not checked: lsp.enabled is false.")
    problems = Notices()
    installed = await asyncio.to_thread(find_installed, permissions.config, permissions.workspace, find_places(), problems)
    servers = shell.language_servers
    states = servers.states() if isinstance(servers, LanguageServers) else {}
    if not installed:
        none = "No language server is installed, so edits are not checked. `lsp.servers` in the settings adds one."
        return ShowText("\n".join((none, *problems)))
    width = max(len(each.name) for each in installed)
    known = {name: clean_line(state) for name, state in states.items() if state}
    lines = [
        f"{each.name:<{width}}  {known.get(each.name, 'starts at the first edit')}  {' '.join(each.extensions)}"
        for each in installed
    ]
    return ShowText("\n".join((*lines, *problems)))


LEAST_COLUMNS, MOST_COLUMNS = 20, 80
NO_SKILLS = (
    "No skills. A skill is a folder NAME with a SKILL.md, in .agents/skills or .wolo/skills of a trusted project, or in"
    " ~/.agents/skills for all projects."
)


async def _skills(context: CommandContext, rest: str) -> Outcome:
    library = context.conversation.user_files
    skills, commands = await asyncio.to_thread(lambda: (library.skills(), library.commands()))
    columns = max(min(context.columns - 1, MOST_COLUMNS), LEAST_COLUMNS)
    lines = [line for skill in skills.skills for line in _skill_lines(skill, columns)] or textwrap.wrap(NO_SKILLS, columns)
    if skills.skills:
        lines += ["", *textwrap.wrap("The model loads a skill when it needs it; /skill:NAME sends one now.", columns)]
    return ShowText("\n".join([*lines, *(f"! {notice}" for notice in (*skills.notices, *commands.notices))]))


def _skill_lines(skill: Skill, columns: int) -> Iterator[str]:
    whose = "yours" if skill.shelf.project is None else "project"
    whose = f"plugin {skill.shelf.namespace}" if skill.shelf.plugin else whose
    yield f"{skill.name}  ({whose}: {show_path(skill.path)})"
    yield from textwrap.wrap(skill.description, columns, initial_indent="  ", subsequent_indent="  ")
    limits = [
        "" if skill.for_model else "Hidden from the model.",
        "" if skill.for_person else "Not a command.",
        f"Names the tools {', '.join(skill.tools)}; this grants no permission." if skill.tools else "",
    ]
    if any(limits):
        yield f"  {' '.join(filter(None, limits))}"


COMMANDS = (
    Command("tools", "tools of the model", _tools, group="Extensions", while_working=True),
    Command(
        "map", "the symbols of a folder that are used most", _map, usage="[PATH]", doing="reading symbols", while_working=True
    ),
    Command(
        "agents",
        "agents for tasks, and those at work",
        _agents,
        usage="[NAME]",
        more="NAME shows one in full. Define your own as Markdown files in agents/ next to config.toml, or in .wolo/agents of a "
        "trusted project.",
        group="Extensions",
        arguments=_agent_arguments,
        while_working=True,
    ),
    Command("lsp", "language servers that check edits", _lsp, group="Extensions", while_working=True),
    Command(
        "skills",
        "available skills and their files",
        _skills,
        more="/skill:NAME WORDS sends a skill with your instructions.",
        group="Extensions",
        while_working=True,
    ),
)
