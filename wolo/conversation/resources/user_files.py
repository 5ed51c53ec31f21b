"""What a person, and a project they trust, has written for conversations here: skills and commands, looked up when asked for."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from wolo.config import project
from wolo.config.project import Kind
from wolo.config.schema import Config
from wolo.errors import ToolError, WoloError
from wolo.extensions.agent_files import NONE as NO_AGENTS
from wolo.extensions.agent_files import Agents, find_agents
from wolo.extensions.markdown_commands import Commands, find_commands
from wolo.extensions.markdown_files import ExtensionFolder
from wolo.extensions.skill_files import NO_SKILLS, Skill, Skills, find_skills, told
from wolo.guard.protected_paths import is_secret
from wolo.models.provider import Choice
from wolo.places import Places, find_home
from wolo.tools.tool import OfferedSkill


def search_paths(kind: Kind, config: Config, places: Places, root: Path, cwd: Path) -> tuple[ExtensionFolder, ...]:
    """The project's before the user's, the nearest first; of a project that is not trusted none. `root` is real."""
    found = []
    if config.trusts_project:
        folders = reversed(project.folders(root, Path(os.path.realpath(cwd))))
        read = partial(project.read_file, root=root)
        found = [ExtensionFolder(folder / place, read, root) for folder in folders for place in kind.places]
    home = find_home()
    own = (places.config / kind.name, home / ".agents" / kind.name, home / ".claude" / kind.name)
    return (*found, *(ExtensionFolder(folder, partial(project.read_file, root=Path("/"))) for folder in own))


class UserFiles:
    def __init__(self, config: Config, places: Places, root: Path, cwd: Path) -> None:
        self._skills = search_paths(project.SKILLS, config, places, root, cwd)
        self._commands = search_paths(project.COMMANDS, config, places, root, cwd)
        self._agents = search_paths(project.AGENTS, config, places, root, cwd)

    def skills(self, choice: Choice | None = None) -> Skills:
        """As they are now; none for a model that can hardly do without."""
        return NO_SKILLS if choice is not None and choice.provider.name == "local" else find_skills(self._skills)

    def agents(self, choice: Choice) -> Agents:
        """Those that may be given tasks by this model; none by one that can hardly do its own."""
        return NO_AGENTS if choice.provider.name == "local" else self.all_agents()

    def all_agents(self) -> Agents:
        """As they are now."""
        return find_agents(self._agents)

    def commands(self) -> Commands:
        """As they are now."""
        return find_commands(self._commands)

    def offered(self, name: str) -> OfferedSkill:
        """What a call of the tool `skill` is about. Raises ToolError."""
        skills = self.skills().for_model
        skill = next((each for each in skills if each.name == name), None)
        if skill is None:
            raise ToolError(f"There is no skill `{name}`. The skills are: {', '.join(each.name for each in skills) or 'none'}.")
        return OfferedSkill(Path(os.path.realpath(skill.path)), partial(_tell, skill))


def own_folders(skills: Sequence[Skill]) -> tuple[Path, ...]:
    """Of the user's skills: what lies in them may be read, wherever that is. A link to home or to secrets opens nothing."""
    home = Path(os.path.realpath(find_home()))
    real = (Path(os.path.realpath(skill.folder)) for skill in skills if skill.shelf.project is None)
    return tuple(folder for folder in real if not home.is_relative_to(folder) and not is_secret(f"{folder}/"))


def _tell(skill: Skill) -> str:
    try:
        return told(skill)
    except WoloError as error:
        raise ToolError(f"The skill `{skill.name}` cannot be read: {error.message}") from error
