"""Applies the agent that a conversation works as: a file of the user's or of a trusted project, named by `--agent` or `agent`."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

from msgspec.structs import replace

from wolo.config.schema import Config
from wolo.conversation.resources.request_prefix import PromptOptions
from wolo.conversation.resources.user_files import UserFiles
from wolo.errors import UsageError
from wolo.extensions.agent_files import MODELS_ELSEWHERE, Profile
from wolo.places import Places
from wolo.tools.toolbox import IN_TEXT, OF_SERVERS

KNOWN_TOOLS = frozenset(tool.name for tool in IN_TEXT)


def find_main_agent(config: Config, places: Places, root: Path, cwd: Path) -> Profile:
    """The one that the settings name. Raises UsageError for one that is not there, or does tasks only."""
    name = config.settings.agent.strip()
    found = UserFiles(config, places, root, cwd).all_agents()
    profile = next((each for each in found.found if each.name.lower() == name.lower()), None)
    usable = [each.name for each in found.found if each.mode != "subagent"]
    if profile is None:
        hint = " ".join([*_near(name, usable), *_named(usable), *found.notices[:1], *config.notices])
        raise UsageError(f"There is no agent {name}.", hint=hint)
    if profile.mode == "subagent":
        raise UsageError(f"The agent {profile.name} does tasks only (mode: subagent).", hint=" ".join(_named(usable)))
    return profile


def as_agent(config: Config, profile: Profile) -> Config:
    """The settings as they hold for an agent: its tools and turns narrow them, and its model stands before theirs.

    The model of a project's agent is left out: a project leads to no other provider.
    """
    settings, sources, said_by = config.settings, dict(config.sources), f"--agent {profile.name}"
    tools = settings.tools
    if profile.tools is not None:
        tools = replace(tools, offer=_both(tools.offer, _known(profile.tools)))
        sources["tools.offer"] = said_by
    if without := _known(profile.without):
        tools = replace(tools, hide=tuple(dict.fromkeys((*tools.hide, *without))))
        sources["tools.hide"] = said_by
    limits = settings.limits
    if profile.max_turns is not None:
        limits = replace(limits, max_turns=min(profile.max_turns, limits.max_turns or profile.max_turns))
    model = settings.model
    if _leads(profile) and not config.endpoint.base_url and not sources.get("model", "").startswith(("--", "WOLO_")):
        model = profile.model
        sources["model"] = f"the agent {profile.name}"
    return replace(config, settings=replace(settings, tools=tools, limits=limits, model=model), sources=sources)


def model_notice(profile: Profile) -> str:
    """A word to the user where the agent names a model that is not asked; empty: nothing to say."""
    if not profile.model or _leads(profile):
        return ""
    why = "a project's agent leads to no other model" if profile.is_projects else "it is the name of another program's"
    return f"The agent {profile.name} names the model {profile.model}, which is not used: {why}."


def with_prompt(prompts: PromptOptions, profile: Profile) -> PromptOptions:
    """What the agent is told stands behind the rest of the system prompt."""
    return prompts._replace(appendix="\n\n".join(filter(None, (profile.prompt, prompts.appendix))))


def _leads(profile: Profile) -> bool:
    return bool(profile.model) and not profile.is_projects and profile.model not in MODELS_ELSEWHERE


def _known(names: Sequence[str]) -> tuple[str, ...]:
    """Those that wolo has, or a server may have."""
    return tuple(name for name in names if name in KNOWN_TOOLS or name.startswith(OF_SERVERS))


def _both(offer: Sequence[str] | None, named: Sequence[str]) -> tuple[str, ...]:
    """What both let the model have: `mcp__SERVER` stands for all tools of the server."""
    if offer is None:
        return tuple(named)
    kept = [name for name in named if any(_covers(each, name) for each in offer)]
    return tuple(dict.fromkeys((*kept, *(each for each in offer if any(_covers(name, each) for name in named)))))


def _covers(wide: str, name: str) -> bool:
    return name == wide or (wide.startswith(OF_SERVERS) and name.startswith(f"{wide.removesuffix('__')}__"))


def _near(name: str, usable: Sequence[str]) -> list[str]:
    return [f"Did you mean {near}?" for near in get_close_matches(name, usable, n=1)]


def _named(usable: Sequence[str]) -> list[str]:
    return [f"The agents are: {', '.join(usable)}." if usable else "No agent file of yours can be worked as; see /agents."]
