"""/skills: the skills that lie ready here, where each comes from, and which files are neither a skill nor a command."""

from __future__ import annotations

import asyncio
import textwrap
from collections.abc import Iterator

from wolo.commands.command import CommandContext, Outcome, ShowText
from wolo.extensions.markdown_files import shown
from wolo.extensions.skills import Skill

LEAST_COLUMNS, MOST_COLUMNS = 20, 80
NONE = (
    "There are no skills here. A folder NAME with a SKILL.md is one, in .agents/skills or .wolo/skills of a project that you"
    " trust, or in ~/.agents/skills for all of them."
)


async def run(desk: CommandContext, rest: str) -> Outcome:
    library = desk.conversation.library
    skills, commands = await asyncio.to_thread(lambda: (library.skills(), library.commands()))
    columns = max(min(desk.columns - 1, MOST_COLUMNS), LEAST_COLUMNS)
    lines = [line for skill in skills.found for line in _told(skill, columns)] or textwrap.wrap(NONE, columns)
    if skills.found:
        lines += ["", *textwrap.wrap("The model loads one when the work calls for it; /skill:NAME sends one at once.", columns)]
    return ShowText("\n".join([*lines, *(f"! {notice}" for notice in (*skills.notices, *commands.notices))]))


def _told(skill: Skill, columns: int) -> Iterator[str]:
    whose = "yours" if skill.shelf.project is None else "of this project"
    yield f"{skill.name}  ({whose}: {shown(skill.path)})"
    yield from textwrap.wrap(skill.description, columns, initial_indent="  ", subsequent_indent="  ")
    limits = [
        "" if skill.for_model else "The model is not told of it.",
        "" if skill.for_person else "It is no command.",
        f"It names the tools {', '.join(skill.tools)}; that allows nothing." if skill.tools else "",
    ]
    if any(limits):
        yield f"  {' '.join(filter(None, limits))}"
