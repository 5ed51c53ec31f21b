"""/agents: who can be given a task here, from where, and what each may do; and those at work."""

from __future__ import annotations

from wolo.commands.command import CommandContext, Outcome, ShowText
from wolo.commands.two_columns import rows
from wolo.conversation.subagents.run import SubagentRun
from wolo.errors import UsageError
from wolo.extensions.agents import Profile
from wolo.messages.terminal_text import clean, clean_line

NONE = "This model is given no other agents."


async def run(desk: CommandContext, rest: str) -> Outcome:
    subagents = desk.conversation.subagents
    if subagents is None or not subagents.agents.found:
        return ShowText(NONE)
    if rest:
        return ShowText(_page(_find(rest, subagents.agents.found)))
    lines = rows([(each.name, _in_short(each)) for each in subagents.agents.found], desk.columns)
    if subagents.running:
        lines += ["", "At work:", *map(_at_work, subagents.running)]
    return ShowText("\n".join(lines))


def arguments(desk: CommandContext) -> list[tuple[str, str]]:
    subagents = desk.conversation.subagents
    return [(each.name, clean_line(each.description)) for each in subagents.agents.found] if subagents else []


def _find(name: str, found: tuple[Profile, ...]) -> Profile:
    profile = next((each for each in found if each.name.lower() == name.lower()), None)
    if profile is None:
        raise UsageError(f"There is no agent {clean_line(name)}.", hint=f"There are: {', '.join(each.name for each in found)}.")
    return profile


def _in_short(profile: Profile) -> str:
    words = clean_line(profile.description)
    reads = "only reads" if profile.only_reads and "only reads" not in words else ""
    return f"{', '.join(filter(None, (_where(profile), reads, _told(profile))))} · {words}"


def _page(profile: Profile) -> str:
    facts = [
        ("description", profile.description),
        ("from", str(profile.path) if profile.path else "wolo"),
        ("tools", "all that this conversation has" if profile.tools is None else ", ".join(profile.tools) or "none"),
        ("not", ", ".join(profile.without)),
        ("model", profile.model or "that of the conversation"),
        ("answers", f"{profile.max_turns} at most" if profile.max_turns else ""),
        ("offered", _told(profile) or "to the model"),
    ]
    lines = [f"{name:<12} {clean_line(value)}" for name, value in facts if value]
    return "\n".join([profile.name, *lines, *(["", clean(profile.prompt)] if profile.prompt else [])])


def _where(profile: Profile) -> str:
    return "wolo's own" if profile.path is None else "the project's" if profile.is_projects else "yours"


def _told(profile: Profile) -> str:
    if profile.mode == "primary":
        return f"not for tasks; `wolo --agent {profile.name}` works as it"
    return "hidden from the model" if profile.is_hidden else ""


def _at_work(errand: SubagentRun) -> str:
    return f"  {errand.agent}: {clean_line(errand.doing)} · {errand.so_far} · {errand.seconds:.0f} s  ({errand.session_id})"
