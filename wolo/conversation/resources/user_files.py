"""Finds the skills, commands and agents of the user and of a trusted project."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from wolo.config import layers, project
from wolo.config.project import Kind
from wolo.config.schema import Config
from wolo.conversation.resources.model_selection import alias_notice, resolve_alias
from wolo.errors import ToolError, UsageError, WoloError
from wolo.extensions.agent_files import NONE as NO_AGENTS
from wolo.extensions.agent_files import AgentProfile, Agents, find_agent, find_agents
from wolo.extensions.markdown_files import ExtensionFolder
from wolo.extensions.skill_files import NO_SKILLS, Skill, Skills, find_skill, find_skills, result_text
from wolo.foreign_places import first_names, present
from wolo.guard.protected_paths import is_secret
from wolo.models.provider import ModelChoice
from wolo.places import TOOL_PACKAGES, Notices, Places, Site, find_home, installation_state, package_folders
from wolo.tools.tool import OfferedSkill
from wolo.tools.toolbox import BUILTIN_WITH_COMPLETION, MCP_PREFIX

if TYPE_CHECKING:
    from wolo.config.python_files.custom_tools import FoundExtensions, FoundTools
    from wolo.extensions.command_files import Commands
    from wolo.extensions.hooks.definitions import Hook
    from wolo.extensions.output_styles import OutputStyle


Hooks = tuple[tuple[str, "Hook"], ...]


def search_paths(kind: Kind, config: Config, site: Site) -> tuple[ExtensionFolder, ...]:
    """Nearest first, the project's before the user's; skips an untrusted project."""
    search_folders: list[ExtensionFolder] = []
    if config.is_safe:
        return ()
    if config.trusts_project:
        folders = reversed(project.folders(site.root, site.real_cwd))
        read = _reader_below(site.root)
        search_folders = [
            ExtensionFolder(folder / place, read, site.root)
            for folder in folders
            for place in _usual_or_present(kind.places, folder)
        ]
    home, read_own = find_home(), _reader_below(Path("/"))
    search_folders.append(ExtensionFolder(site.places.config / kind.name, read_own))
    for place in _usual_or_present(kind.own, home):
        namespace = "prompts" if place == project.CODEX_PROMPTS else ""
        search_folders.append(ExtensionFolder(home / place, read_own, namespace=namespace))
    if site.places.plugin_index.exists():
        from wolo.config.plugins.installed import plugin_folders  # noqa: PLC0415  # most users have no plugins

        search_folders += plugin_folders(kind.name, site.places)
    return _share(tuple(search_folders))


@lru_cache(16)
def _reader_below(root: Path) -> Callable[[Path], bytes]:
    return partial(project.read_file, root=root)


@lru_cache(16)
def _share(folders: tuple[ExtensionFolder, ...]) -> tuple[ExtensionFolder, ...]:
    """Equal folders are the same object in all conversations of a process."""
    return folders


_USUAL = frozenset((".wolo", ".agents", ".claude", ".config"))
"""Folders in which files may appear while wolo runs; others are searched where they exist."""


def _usual_or_present(places: tuple[str, ...], folder: Path) -> list[str]:
    return present(places, first_names(folder) | _USUAL)


async def find_custom_tools(config: Config, site: Site) -> FoundTools | None:
    """None: there are no files and no packages of tools."""
    if config.is_safe or not _has_python_files(site, project.TOOLS):
        return None
    from wolo.config.python_files.custom_tools import find_files, find_tools  # noqa: PLC0415  # few users have some

    return await find_tools(find_files(config, site), config, site)


async def find_extensions(config: Config, site: Site) -> FoundExtensions | None:
    """None: there are none."""
    has_some = not config.is_safe and _has_python_files(site, project.EXTENSIONS)
    if not config.is_safe and not has_some and site.places.plugin_index.exists():
        from wolo.config.plugins.installed import enabled_plugins  # noqa: PLC0415  # most users have no plugins

        has_some = any(each.contents.extensions for each in enabled_plugins(site.places, Notices()))
    if not has_some:
        return None
    from wolo.config.python_files import custom_tools  # noqa: PLC0415  # few users have some

    return await custom_tools.find_extensions(config, site)


def _has_python_files(site: Site, kind: Kind) -> bool:
    folders = project.folders(site.root, site.real_cwd)
    if any((folder / place).is_dir() for folder in folders for place in kind.places):
        return True
    if (site.places.config / kind.name).is_dir():
        return True
    known, state = site.places.cache / TOOL_PACKAGES, installation_state()
    with suppress(OSError, UnicodeError):
        listed_at, *entries = known.read_text(encoding="utf-8").splitlines()
        if listed_at == state:
            return any(entry.startswith(f"{kind.name} ") for entry in entries)
    from wolo.extensions.custom_tools.tool_packages import find_installed  # noqa: PLC0415  # after an installation

    return bool(find_installed(known, package_folders(), state, kind.name))


class ProgramFiles(Struct, frozen=True):
    """Files of skills and agents of an embedding program, before those of the user."""

    skills: tuple[Path, ...] = ()
    """Folders of skills, or with one."""
    agents: tuple[Path, ...] = ()
    """Folders of agents, or files."""


class UserFiles:
    def __init__(
        self, config: Config, site: Site, agents: Sequence[AgentProfile] = (), files: ProgramFiles | None = None
    ) -> None:
        """`agents` are defined by the embedding program."""
        self._programs_agents = {each.name: each for each in agents}
        files = files or ProgramFiles()
        self._skills = (*map(_folder_of, files.skills), *search_paths(project.SKILLS, config, site))
        self._commands = search_paths(project.COMMANDS, config, site)
        self._agents = (*map(_folder_of, files.agents), *search_paths(project.AGENTS, config, site))
        self._config, self._site = config, site
        self._running_hooks: dict[str, Hooks] | None = None
        """The hooks of skills and agents that run in this conversation; None: nothing is run here."""

    def use_hooks(self, running: dict[str, Hooks]) -> None:
        """From now on a skill or agent whose hooks do not run is left out. Keys are `skill NAME` and `agent NAME`."""
        self._running_hooks = running

    def _is_guarded(self, kind: str, each: Skill | AgentProfile) -> bool:
        return not each.hooks or self._running_hooks is None or self._running_hooks.get(f"{kind} {each.name}") == each.hooks

    @property
    def untrusted(self) -> str:
        """Names the commands and skills of a project that are not used; empty if there are none."""
        if self._config.trusts_project:
            return ""
        found = project.find(self._site.root, self._site.real_cwd)
        kinds = (project.COMMANDS.name, project.SKILLS.name)
        return project.name_files([each for each in found if each.kind in kinds], self._site.root)

    def skills(self, choice: ModelChoice | None = None) -> Skills:
        """None for a model that is too small for them."""
        if choice is not None and choice.provider.name == "local":
            return NO_SKILLS
        skills = find_skills(self._skills)
        return replace(skills, skills=tuple(each for each in skills.skills if self._is_guarded("skill", each)))

    def agents(self, choice: ModelChoice) -> Agents:
        """Agents that this model may delegate to; none for a model that is too small."""
        return NO_AGENTS if choice.provider.name == "local" else self.all_agents()

    def all_agents(self) -> Agents:
        agents = find_agents(self._agents)
        profiles = {each.name: each for each in agents.profiles} | self._programs_agents
        return replace(
            agents, profiles=tuple(profiles[name] for name in sorted(profiles) if self._is_guarded("agent", profiles[name]))
        )

    def commands(self) -> Commands:
        from wolo.extensions.command_files import find_commands  # noqa: PLC0415  # for lines that begin with a slash

        return find_commands(self._commands)

    def output_styles(self, notices: Notices) -> tuple[OutputStyle, ...]:
        from wolo.extensions.output_styles import find_styles  # noqa: PLC0415  # few users have one

        return find_styles(search_paths(project.OUTPUT_STYLES, self._config, self._site), notices)

    def load_skill(self, name: str) -> OfferedSkill:
        """The skill that a call loads. Raises ToolError."""
        skills = self.skills().for_model
        if (skill := find_skill(skills, name)) is None:
            raise ToolError(f"Unknown skill: `{name}`. Skills: {', '.join(each.name for each in skills) or 'none'}.")
        return OfferedSkill(Path(os.path.realpath(skill.path)), partial(_read_skill, skill))


def _folder_of(path: Path) -> ExtensionFolder:
    read = partial(project.read_file, root=Path("/"))
    is_one = path.is_file() or (path / "SKILL.md").is_file()
    return ExtensionFolder(path.parent, read, only=(path.name,)) if is_one else ExtensionFolder(path, read)


def own_folders(skills: Sequence[Skill], places: Places) -> tuple[Path, ...]:
    """Folders of the user's skills and plugins, readable anywhere. Excludes links to the home directory or to secrets."""
    home = Path(os.path.realpath(find_home()))
    folders = [skill.folder for skill in skills if skill.shelf.project is None and skill.shelf.plugin is None]
    if places.plugin_index.exists():
        from wolo.config.plugins.installed import enabled_plugins, root_of  # noqa: PLC0415  # most users have no plugins

        folders += [root_of(each, places) for each in enabled_plugins(places, Notices())]
    real = dict.fromkeys(Path(os.path.realpath(folder)) for folder in folders)
    return tuple(folder for folder in real if not home.is_relative_to(folder) and not is_secret(f"{folder}/"))


def _read_skill(skill: Skill) -> str:
    try:
        return result_text(skill)
    except WoloError as error:
        raise ToolError(f"The skill `{skill.name}` cannot be read: {error.message}") from error


KNOWN_TOOLS = frozenset(tool.name for tool in BUILTIN_WITH_COMPLETION)


def find_main_agent(config: Config, site: Site, programs_agents: Sequence[AgentProfile] = ()) -> AgentProfile:
    """The agent of `--agent`. Raises UsageError for an unknown one, or one for tasks only."""
    name = config.settings.agent.strip()
    agents = UserFiles(config, site, programs_agents).all_agents()
    profile = find_agent(agents.profiles, name)
    usable = [each.name for each in agents.profiles if each.mode != "subagent"]
    if profile is None:
        from difflib import get_close_matches  # noqa: PLC0415  # only on the way to an error

        near = [f"Did you mean {other}?" for other in get_close_matches(name, usable, n=1)]
        hint = " ".join([*near, *_agents_hint(usable), *agents.notices[:1], *config.notices])
        raise UsageError(f"Unknown agent: {name}.", hint=hint)
    if profile.mode == "subagent":
        raise UsageError(f"The agent {profile.name} is for tasks only (mode: subagent).", hint=" ".join(_agents_hint(usable)))
    return profile


def read_output_style(config: Config, site: Site) -> str:
    """The part of the system prompt that the setting names; empty, with a notice, for one that does not exist."""
    if config.is_safe or not (name := config.settings.output_style.strip()):
        return ""
    from wolo.extensions.output_styles import DEFAULT, find_style  # noqa: PLC0415  # few users have one

    if name.lower() == DEFAULT:
        return ""
    styles = UserFiles(config, site).output_styles(site.notices)
    if (style := find_style(styles, name)) is None:
        known = ", ".join(each.name for each in styles) or "none"
        site.notices.add(f"The output style {name} is not used: there is none of this name. Styles: {known}.")
        return ""
    return f"# Output style: {style.name}\n\n{style.text}"


def as_agent(config: Config, profile: AgentProfile) -> Config:
    """Narrows tools and turns to those of the agent; its model takes precedence.

    Ignores the model of a project's agent: a project must not select a provider.
    """
    settings, sources, said_by = config.settings, dict(config.sources), f"--agent {profile.name}"
    tools = settings.tools
    if profile.tools is not None:
        tools = replace(tools, offer=_both(tools.offer, _known_tools(profile.tools)))
        sources["tools.offer"] = said_by
    if without := _known_tools(profile.without):
        tools = replace(tools, hide=tuple(dict.fromkeys((*tools.hide, *without))))
        sources["tools.hide"] = said_by
    limits = settings.limits
    if profile.max_turns is not None:
        limits = replace(limits, max_turns=min(profile.max_turns, limits.max_turns or profile.max_turns))
    model, wanted = settings.model, _model_of(profile, config)
    if wanted and not config.endpoint.base_url and not sources.get("model", "").startswith(("--", "WOLO_", layers.MANAGED)):
        model = wanted
        sources["model"] = f"the agent {profile.name}"
    if profile.thinking is not None and not sources.get("thinking", "").startswith(("--", layers.MANAGED)):
        settings = replace(settings, thinking=profile.thinking)
    return replace(config, settings=replace(settings, tools=tools, limits=limits, model=model), sources=sources)


def model_notice(profile: AgentProfile, config: Config) -> str:
    """Says why the model of the agent is not used; empty: it is."""
    if not profile.model or _model_of(profile, config):
        return ""
    if resolve_alias(config.settings, profile.model, "") is None:
        return alias_notice(profile.name, profile.model)
    return (
        f"The agent {profile.name} names the model {profile.model}, which is not used: a project's agent cannot select a model."
    )


def _model_of(profile: AgentProfile, config: Config) -> str:
    """Empty: the model of the conversation. A project's agent gets a model only by an alias that the user has mapped."""
    named = resolve_alias(config.settings, profile.model, "") if profile.model else ""
    return "" if named is None or (profile.is_projects and named == profile.model) else named


def _known_tools(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for name in names if name in KNOWN_TOOLS or name.startswith(MCP_PREFIX))


def _both(offer: Sequence[str] | None, named: Sequence[str]) -> tuple[str, ...]:
    """The intersection; `mcp__SERVER` stands for all tools of the server."""
    if offer is None:
        return tuple(named)
    common = [name for name in named if any(_covers(each, name) for each in offer)]
    return tuple(dict.fromkeys((*common, *(each for each in offer if any(_covers(name, each) for name in named)))))


def _covers(wide: str, name: str) -> bool:
    return name == wide or (wide.startswith(MCP_PREFIX) and name.startswith(f"{wide.removesuffix('__')}__"))


def _agents_hint(usable: Sequence[str]) -> list[str]:
    return [f"Agents: {', '.join(usable)}." if usable else "You have no agent for this; see /agents."]
