"""Finds skills, folders with a SKILL.md, and formats them for the model.

The system prompt lists names and descriptions; the text is read when needed. A skill is advice: its text and the tools it names
never change permissions.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from wolo.errors import ExtensionError, WoloError
from wolo.extensions.markdown_files import Document, ExtensionFolder, decode, entries, first_notices, read_document, shown
from wolo.messages.terminal_text import clean_line, escape_hidden

FILE_NAMES = ("SKILL.md", "skill.md")
NAME = r"[a-z0-9]+(?:-[a-z0-9]+)*"
LONGEST_NAME = 64
LONGEST_DESCRIPTION = 1024
MOST_SKILLS = 300
MOST_LISTED_CHARS = 24_000
"""Limit in the system prompt; beyond it descriptions are shortened, then entries dropped."""
SHORT_DESCRIPTION = 160
MOST_BODY_CHARS = 60_000
MOST_FILES = 100
MOST_SEEN = 2_000
_PASSED_OVER = frozenset(("node_modules", "__pycache__"))


class Skill(Struct, frozen=True):
    name: str
    description: str
    """One line."""
    path: Path
    """Path of its SKILL.md."""
    shelf: ExtensionFolder
    for_model: bool = True
    """Listed in the system prompt."""
    for_person: bool = True
    """Offered as a slash command."""
    hint: str = ""
    """Placeholder for the arguments."""
    tools: tuple[str, ...] = ()
    """Tools requested by the author; grants nothing."""

    @property
    def folder(self) -> Path:
        return self.path.parent


class Skills(Struct, frozen=True):
    found: tuple[Skill, ...] = ()
    notices: tuple[str, ...] = ()
    """Files that are not skills, with the reason."""

    @property
    def for_model(self) -> tuple[Skill, ...]:
        return tuple(skill for skill in self.found if skill.for_model)


NO_SKILLS = Skills()


def find_skills(shelves: Sequence[ExtensionFolder]) -> Skills:
    """Sorted by name; the first of a name wins."""
    found: dict[str, Skill] = {}
    notices: list[str] = []
    seen: set[tuple[Path | None, str]] = set()
    for shelf, path in _files(shelves, notices):
        if (file := (shelf.project, os.path.realpath(path))) in seen:
            continue
        seen.add(file)
        if len(seen) > MOST_SKILLS:
            notices.append(f"There are more than {MOST_SKILLS} skills; the rest is left out.")
            break
        try:
            skill = _read(shelf, path)
        except WoloError as error:
            notices.append(clean_line(f"{error.message} {error.hint}".strip()))
        else:
            found.setdefault(skill.name, skill)
    return Skills(tuple(found[name] for name in sorted(found)), first_notices(notices))


def listed(skills: Skills) -> str:
    """List for the system prompt, a line each; empty if there are no skills."""
    offered = skills.for_model
    rows = [_row(skill, skill.description) for skill in offered]
    if sum(map(len, rows)) > MOST_LISTED_CHARS:
        rows = [_row(skill, _shortened(skill.description)) for skill in offered]
    while sum(map(len, rows)) > MOST_LISTED_CHARS:
        rows.pop()
    more = [f"{len(offered) - len(rows)} more are not named here."] if len(rows) < len(offered) else []
    return "\n".join([*rows, *more])


def result_text(skill: Skill) -> str:
    """Current text of a skill, its folder and the other files in it, for the model. Raises WoloError."""
    body = escape_hidden(_document(skill.shelf, skill.path).body)
    if len(body) > MOST_BODY_CHARS:
        body = f"{body[:MOST_BODY_CHARS]}\n[The rest is in {shown(skill.path)}.]"
    files = _files_beside(skill.path)
    beside = "\n".join(["", "Files in this folder:", *files]) if files else ""
    return f'<skill name="{skill.name}" folder="{shown(skill.folder)}">\n{body}\n</skill>{beside}'


def _files(shelves: Sequence[ExtensionFolder], notices: list[str]) -> Iterator[tuple[ExtensionFolder, Path]]:
    for shelf in shelves:
        for entry in entries(shelf, notices):
            path = next((path for name in FILE_NAMES if os.path.lexists(path := Path(entry.path, name))), None)
            if path is not None:
                yield shelf, path


def _document(shelf: ExtensionFolder, path: Path) -> Document:
    return read_document(decode(shelf.read(path), shown(path)), shown(path))


def _read(shelf: ExtensionFolder, path: Path) -> Skill:
    document = _document(shelf, path)
    name, description = document.text("name"), " ".join(escape_hidden(document.text("description")).split())
    if not name or not description:
        raise ExtensionError(f"{document.name}: a skill needs a '{'description' if name else 'name'}' above its text.")
    if len(name) > LONGEST_NAME or not re.fullmatch(NAME, name):
        raise document.wrong("name", f"must be small letters, digits and single hyphens, {LONGEST_NAME} at most")
    if name != path.parent.name:
        raise document.wrong("name", f"is {name}, but its folder is {shown(Path(path.parent.name))}: they must be the same")
    if len(description) > LONGEST_DESCRIPTION:
        raise document.wrong("description", f"has {len(description):,} characters, {LONGEST_DESCRIPTION:,} is the most")
    return Skill(
        name,
        description,
        path,
        shelf,
        for_model=not document.flag("disable-model-invocation", default=False),
        for_person=document.flag("user-invocable", default=True),
        hint=escape_hidden(document.text("argument-hint")),
        tools=document.items("allowed-tools"),
    )


def _row(skill: Skill, description: str) -> str:
    return f"- {skill.name}: {description} ({shown(skill.path)})"


def _shortened(description: str) -> str:
    return description if len(description) <= SHORT_DESCRIPTION else f"{description[: SHORT_DESCRIPTION - 1].rstrip()}…"


def _files_beside(path: Path) -> list[str]:
    """Relative to the folder, sorted; links are not followed."""
    found: list[str] = []
    seen = 0
    for folder, folders, files in os.walk(path.parent):
        folders[:] = sorted(name for name in folders if name not in _PASSED_OVER and not name.startswith("."))
        for name in sorted(files):
            seen += 1
            if not name.startswith(".") and (beside := Path(folder, name)) != path:
                found.append(shown(beside.relative_to(path.parent)))
        if seen > MOST_SEEN:
            break
    more = len(found) - MOST_FILES
    return [*found[:MOST_FILES], f"and {more} more"] if more > 0 else found
