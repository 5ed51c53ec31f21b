"""/agents: lists the agents that can be given tasks, and those at work."""

from __future__ import annotations

from wolo.commands.command import Command, CommandContext, Outcome, ShowText
from wolo.commands.two_columns import rows
from wolo.conversation.subagents.subagent_run import SubagentRun
from wolo.errors import UsageError
from wolo.extensions.agent_files import AgentProfile, find_agent
from wolo.messages.terminal_text import clean, clean_line

NONE = "This model cannot delegate tasks to other agents."


async def _run(context: CommandContext, rest: str) -> Outcome:
    subagents = context.conversation.subagents
    if not subagents.agents.profiles:
        return ShowText(NONE)
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


def _arguments(context: CommandContext) -> list[tuple[str, str]]:
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


COMMANDS = (
    Command(
        "agents",
        "agents for tasks, and those at work",
        _run,
        usage="[NAME]",
        more="NAME shows one in full. Define your own as Markdown files in agents/ next to config.toml, or in .wolo/agents of a "
        "trusted project.",
        group="Extensions",
        arguments=_arguments,
        while_working=True,
    ),
)
