"""What every request of a conversation begins with: the system prompt, and the tools on offer."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from wolo.agent.prompt_prefix import build_system_prompt
from wolo.config.cli_options import Given, text, text_or_file
from wolo.config.schema import Config
from wolo.conversation.resources.user_files import UserFiles
from wolo.errors import UsageError
from wolo.extensions.agent_files import NONE as NO_AGENTS
from wolo.extensions.agent_files import Agents
from wolo.extensions.instructions import read_instructions
from wolo.extensions.skill_files import NO_SKILLS, Skills, listed
from wolo.formats.default_prompt import NAME
from wolo.models.provider import EditTool
from wolo.places import Places
from wolo.tools.agent_profiles import described
from wolo.tools.tool import ForeignTool
from wolo.tools.toolbox import BUILTIN, IN_TEXT, TO_DELEGATE, WITH_A_PERSON, WITH_SKILLS, Toolbox


class PromptOptions(NamedTuple):
    """The options that change the system prompt."""

    name: str = ""
    """The display name; empty: wolo's own."""
    replacement: str = ""
    appendix: str = ""


def prompt_options(given: Given) -> PromptOptions:
    """Reads the files that are named. Raises UsageError."""
    return PromptOptions(text(given, "name"), text_or_file(given, "system_prompt"), text_or_file(given, "append_system_prompt"))


class RequestPrefix(Struct, frozen=True):
    system: str
    without_skills: str
    """The same for whoever has no tool to load one with."""
    toolbox: Toolbox
    notices: tuple[str, ...]
    """What a person should know about the instructions and skills that were read."""


def build_prefix(
    config: Config,
    places: Places,
    root: Path,
    cwd: Path,
    prompts: PromptOptions,
    *,
    calls_in_text: bool = False,
    edit_tool: EditTool = "edit",
    most_tools: int | None = None,
    attended: bool = False,
    skills: Skills = NO_SKILLS,
    agents: Agents = NO_AGENTS,
    more_tools: Iterable[ForeignTool] = (),
) -> RequestPrefix:
    """`root` is the workspace's, `edit_tool` what the model was trained on, `most_tools` what its provider takes; `attended`: a
    person is there. `more_tools` stand behind ours.

    Raises UsageError for a tool that is not there.
    """
    more = dict.fromkeys(TO_DELEGATE, described(agents.offers))
    toolbox = Toolbox(IN_TEXT if calls_in_text else BUILTIN, edit_tool=edit_tool, more=more, most=most_tools)
    needs = ((attended, WITH_A_PERSON), (skills.for_model, WITH_SKILLS), (agents.offers, TO_DELEGATE))
    hide = (name for is_there, names in needs if not is_there for name in names)
    offered = toolbox.offer(config.settings.tools.offer, (*config.settings.tools.hide, *hide))
    offered.add(more_tools)
    compose, notices = _composer(places, root, cwd, prompts)
    bare = compose()
    system = compose(skills=listed(skills)) if WITH_SKILLS & {*offered.names} else bare
    return RequestPrefix(system, bare, offered, (*notices, *skills.notices, *agents.notices))


def reload_prompt(
    before: RequestPrefix, places: Places, root: Path, cwd: Path, prompts: Callable[[], PromptOptions], library: UserFiles
) -> str:
    """The system prompt as the files on disk make it now; the one `before` where they cannot be read any more."""
    skills = library.skills() if WITH_SKILLS & {*before.toolbox.names} else NO_SKILLS
    try:
        return _composer(places, root, cwd, prompts())[0](skills=listed(skills))
    except UsageError:
        return before.system


def _composer(places: Places, root: Path, cwd: Path, prompts: PromptOptions) -> tuple[Callable[..., str], tuple[str, ...]]:
    """Makes the system prompt, with `skills` or without."""
    instructions = read_instructions(root, Path(os.path.realpath(cwd)), places.config)
    compose = partial(
        build_system_prompt,
        cwd,
        instructions=instructions.text,
        display_name=prompts.name or NAME,
        replacement=prompts.replacement or None,
        appendix=prompts.appendix,
    )
    return compose, instructions.notices
