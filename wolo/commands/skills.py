"""/skills: lists the skills and their files."""

from __future__ import annotations

import asyncio
import textwrap
from collections.abc import Iterator

from wolo.commands.command import Command, CommandContext, Outcome, ShowText
from wolo.extensions.markdown_files import show_path
from wolo.extensions.skill_files import Skill

LEAST_COLUMNS, MOST_COLUMNS = 20, 80
NONE = (
    "No skills. A skill is a folder NAME with a SKILL.md, in .agents/skills or .wolo/skills of a trusted project, or in"
    " ~/.agents/skills for all projects."
)


async def _run(context: CommandContext, rest: str) -> Outcome:
    library = context.conversation.user_files
    skills, commands = await asyncio.to_thread(lambda: (library.skills(), library.commands()))
    columns = max(min(context.columns - 1, MOST_COLUMNS), LEAST_COLUMNS)
    lines = [line for skill in skills.skills for line in _lines(skill, columns)] or textwrap.wrap(NONE, columns)
    if skills.skills:
        lines += ["", *textwrap.wrap("The model loads a skill when it needs it; /skill:NAME sends one now.", columns)]
    return ShowText("\n".join([*lines, *(f"! {notice}" for notice in (*skills.notices, *commands.notices))]))


def _lines(skill: Skill, columns: int) -> Iterator[str]:
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
    Command(
        "skills",
        "available skills and their files",
        _run,
        more="/skill:NAME WORDS sends a skill with your instructions.",
        group="Extensions",
        while_working=True,
    ),
)
