"""Finds skills, folders with a SKILL.md, and formats them for the model.

The system prompt lists names and descriptions; the text is read when needed. A skill is advice: its text and the tools it names
never change permissions.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from wolo.errors import ExtensionError, WoloError
from wolo.extensions import markdown_files
from wolo.messages.terminal_text import clean_line, escape_hidden
from wolo.places import Notices
from wolo.workspace.root import resolve_path

if TYPE_CHECKING:
    from wolo.extensions.hooks.definitions import Hook

FILE_NAMES = ("SKILL.md", "skill.md")
LONGEST_DESCRIPTION = 1024
MOST_SKILLS = 300
MOST_LISTED_CHARS = 24_000
"""Limit in the system prompt; beyond it descriptions are shortened, then entries dropped."""
SHORT_DESCRIPTION = 160
MOST_BODY_CHARS = 60_000
MOST_FILES = 100
MOST_SEEN = 2_000
DEEPEST = 4
"""Levels of folders in which skills may be grouped."""
MOST_FOLDERS = 400
_PASSED_OVER = frozenset(("node_modules", "__pycache__"))


class Skill(Struct, frozen=True):
    name: str
    description: str
    """One line."""
    path: Path
    """Path of its SKILL.md."""
    shelf: markdown_files.ExtensionFolder
    for_model: bool = True
    """Listed in the system prompt."""
    for_person: bool = True
    """Offered as a slash command."""
    hint: str = ""
    """Placeholder for the arguments."""
    tools: tuple[str, ...] = ()
    """Tools requested by the author; grants nothing."""
    hooks: tuple[tuple[str, Hook], ...] = ()
    """By event; they run once the skill is loaded."""

    @property
    def folder(self) -> Path:
        return self.path.parent


class Skills(Struct, frozen=True):
    skills: tuple[Skill, ...] = ()
    notices: tuple[str, ...] = ()
    """Files that are not skills, with the reason."""

    @property
    def for_model(self) -> tuple[Skill, ...]:
        return tuple(skill for skill in self.skills if skill.for_model)


NO_SKILLS = Skills()


def find_skills(shelves: Sequence[markdown_files.ExtensionFolder]) -> Skills:
    """Sorted by name; the first of a name wins."""
    skills: dict[str, Skill] = {}
    notices = Notices()
    seen: set[tuple[Path | None, str]] = set()
    for shelf, path in ((each, path) for each in shelves for path in _below(each, notices, {resolve_path(each.folder)})):
        if (file := (shelf.project, resolve_path(path))) in seen:
            continue
        seen.add(file)
        if len(seen) > MOST_SKILLS:
            notices.add(f"There are more than {MOST_SKILLS} skills; the rest is left out.")
            break
        try:
            skill = read_skill(shelf, path, notices)
        except WoloError as error:
            notices.add(clean_line(f"{error.message} {error.hint}".strip()))
        else:
            skills.setdefault(skill.name, skill)
    return Skills(tuple(skills[name] for name in sorted(skills)), markdown_files.first_notices(tuple(notices)))


def list_skills(skills: Skills) -> str:
    """List for the system prompt, a line each; empty if there are no skills."""
    offered = skills.for_model
    rows = [_row(skill, skill.description) for skill in offered]
    if sum(map(len, rows)) > MOST_LISTED_CHARS:
        rows = []
        for skill in offered:
            about = skill.description
            is_short = len(about) <= SHORT_DESCRIPTION
            rows.append(_row(skill, about if is_short else f"{about[: SHORT_DESCRIPTION - 1].rstrip()}…"))
    while sum(map(len, rows)) > MOST_LISTED_CHARS:
        rows.pop()
    more = [f"{len(offered) - len(rows)} more are not named here."] if len(rows) < len(offered) else []
    return "\n".join([*rows, *more])


def result_text(skill: Skill) -> str:
    """Current text of a skill, its folder and the other files in it, for the model. Raises WoloError."""
    body = skill_text(skill)
    if len(body) > MOST_BODY_CHARS:
        body = f"{body[:MOST_BODY_CHARS]}\n[The rest is in {markdown_files.show_path(skill.path)}.]"
    files = files_alongside(skill.path)
    listing = "\n".join(["", "Files in this folder:", *files]) if files else ""
    tools = f"\nTools named by its author: {', '.join(skill.tools)}. This grants no permission." if skill.tools else ""
    return f'<skill name="{skill.name}" folder="{markdown_files.show_path(skill.folder)}">\n{body}\n</skill>{tools}{listing}'


def skill_text(skill: Skill) -> str:
    """Current text of its SKILL.md. Raises WoloError."""
    text = markdown_files.in_plugin(_document(skill.shelf, skill.path).body, skill.shelf.plugin)
    return escape_hidden(text.replace("${CLAUDE_SKILL_DIR}", str(skill.folder)))


def skills_loaded(text: str) -> set[str]:
    """Names of the skills whose text is part of a prompt or result."""
    return set(re.findall(r'<skill name="([^"\n]+)" folder="', text))


def find_skill(skills: Sequence[Skill], name: str) -> Skill | None:
    """By its name, or by the last part of it if only one skill ends with that."""
    exact = next((each for each in skills if each.name == name), None)
    ending = [each for each in skills if each.name.endswith(f":{name}")]
    return exact or (ending[0] if len(ending) == 1 else None)


def _below(folder: markdown_files.ExtensionFolder, notices: Notices, seen: set[str], depth: int = 1) -> Iterator[Path]:
    """A folder without a SKILL.md may group others."""
    for entry in markdown_files.entries(folder, notices):
        if path := Path(entry.path) if folder.only and entry.name in FILE_NAMES else skill_file(Path(entry.path)):
            yield path
        elif depth < DEEPEST and entry.name not in _PASSED_OVER and (inner := folder.enter(entry, seen, MOST_FOLDERS)):
            yield from _below(inner, notices, seen, depth + 1)


def skill_file(folder: Path) -> Path | None:
    return next((path for name in FILE_NAMES if os.path.lexists(path := folder / name)), None)


def _document(shelf: markdown_files.ExtensionFolder, path: Path) -> markdown_files.Document:
    name = markdown_files.show_path(path)
    return markdown_files.read_document(markdown_files.decode(shelf.read(path), name), name)


def read_skill(shelf: markdown_files.ExtensionFolder, path: Path, notices: Notices, *, folder: str = "") -> Skill:
    """Corrects what can be corrected, with a notice. `folder`: the name it had where it came from. Raises WoloError."""
    document = _document(shelf, path)
    folder = folder or path.parent.name
    name, description = document.text("name"), " ".join(escape_hidden(document.text("description")).split())
    called = next(
        (each for each in (name, folder) if each and markdown_files.word_name(each) == each),
        markdown_files.word_name(name or folder),
    )
    if called != name:
        why = markdown_files.NAME_RULE if name else "there is no 'name'"
        notices.add(f"{document.name}: {why}; the skill is called {called}.")
        name = called
    if not description:
        paragraphs = [" ".join(escape_hidden(each).split()) for each in re.split(r"\n[ \t]*\n", document.body)]
        description = next((each for each in paragraphs if each and not each.startswith("#")), "")
        if description:
            notices.add(f"{document.name}: there is no 'description'; the beginning of its text is used.")
    if not description:
        raise ExtensionError(f"{document.name}: a skill needs a 'description' above its text.")
    if name != markdown_files.word_name(folder) and shelf.plugin is None:
        notices.add(f"{document.name}: the skill is called {name}, but its folder {markdown_files.show_path(Path(folder))}.")
    if len(description) > LONGEST_DESCRIPTION:
        wrong = document.wrong("description", f"has {len(description):,} characters; it is cut to {LONGEST_DESCRIPTION:,}")
        notices.add(wrong.message)
        description = f"{description[: LONGEST_DESCRIPTION - 1].rstrip()}…"
    hooks: tuple[tuple[str, Hook], ...] = ()
    if document.has_hooks:
        from wolo.extensions.hooks.hook_files import hooks_of  # noqa: PLC0415  # few files have hooks

        hooks = hooks_of(document, path, shelf)
    return Skill(
        shelf.qualify(name),
        description,
        path,
        shelf,
        for_model=not document.flag("disable-model-invocation", default=False),
        for_person=document.flag("user-invocable", default=True),
        hint=escape_hidden(document.text("argument-hint")),
        tools=markdown_files.tool_names(document.items("allowed-tools")),
        hooks=hooks,
    )


def _row(skill: Skill, description: str) -> str:
    return f"- {skill.name}: {description} ({markdown_files.show_path(skill.path)})"


def files_alongside(path: Path) -> list[str]:
    """Relative to the folder, sorted; links are not followed."""
    names: list[str] = []
    seen = 0
    for folder, folders, files in os.walk(path.parent):
        folders[:] = sorted(name for name in folders if name not in _PASSED_OVER and not name.startswith("."))
        for name in sorted(files):
            seen += 1
            if not name.startswith(".") and (beside := Path(folder, name)) != path:
                names.append(markdown_files.show_path(beside.relative_to(path.parent)))
        if seen > MOST_SEEN:
            break
    more = len(names) - MOST_FILES
    return [*names[:MOST_FILES], f"and {more} more"] if more > 0 else names
