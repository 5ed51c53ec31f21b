"""Reads folders of rules: further instructions, some only for files that match a pattern.

Agents name the patterns differently (`paths`, `globs`, `applyTo`, `fileMatchPattern`) and mark otherwise what always applies.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Literal

from msgspec.structs import replace

from wolo.errors import ExtensionError
from wolo.extensions.instructions.file_reading import InstructionFile, Owner, one_line, read_file, read_named
from wolo.extensions.markdown_files import Document, read_document, split_at_commas
from wolo.messages.terminal_text import clean_line
from wolo.places import Notices
from wolo.workspace.globs import compile_glob

MAX_RULES = 200
"""Per folder."""
_MAX_FOLDERS = 500
_SUFFIXES = (".md", ".mdc", ".txt")
_OTHER_FOLDERS = frozenset(("workflows", "hooks", "skills"))
"""Below `.clinerules`, which holds more than rules."""
_PATTERN_FIELDS = ("paths", "globs", "glob", "applyTo", "fileMatchPattern")
_EVERYTHING = frozenset(("*", "**", "**/*", "**/*.*"))
Trigger = Literal["always", "match", "request", "mention"]
"""`request`: the model reads the file when its description fits; `mention`: when the user names it."""
_TRIGGERS: Mapping[str, Trigger] = {
    "always": "always",
    "always_on": "always",
    "glob": "match",
    "filematch": "match",
    "model_decision": "request",
    "auto": "request",
    "manual": "mention",
}
"""Values of Windsurf's `trigger` and Kiro's `inclusion`."""
_INDEX = "Read one of these files as soon as its subject comes up:"


def read_rules(folder: Path, base: Path, place: str, notices: Notices, remarks: Notices) -> list[InstructionFile]:
    """Rules in `folder / place` of a project, sorted by path; a file in that place is one rule.

    Links to folders are not followed. `remarks` name those that only the user can call up.
    """
    top = folder / place
    if not top.is_dir():
        return [*_select([read_named(top, base, notices)], folder, place, notices, remarks)] if top.is_file() else []
    if not Path(os.path.realpath(top)).is_relative_to(base):
        notices.add(f"{top} is not read: it is a link to a folder outside {base}.")
        return []
    files = (read_named(path, base, notices) for path in _paths(top, place, notices))
    return [*_select(files, folder, place, notices, remarks)]


def read_users_rules(home: Path, place: str, root: Path, notices: Notices) -> list[InstructionFile]:
    """The user's rules for other agents; their patterns are relative to `root`."""
    owner: Owner = "user"
    files = (
        read_file(path, one_line(f"your own ~/{path.relative_to(home)}"), notices, owner=owner)
        for path in _paths(home / place, place, notices)
    )
    return [*_select(files, root, place, notices, Notices())]


def _paths(top: Path, place: str, notices: Notices) -> list[Path]:
    paths: list[Path] = []
    walk = os.walk(top)
    for at, folders, names in islice(walk, _MAX_FOLDERS):
        if place == ".clinerules" and at == str(top):
            folders[:] = [each for each in folders if each not in _OTHER_FOLDERS]
        suffixes = (".instructions.md",) if place.endswith("/instructions") else _SUFFIXES
        paths += (Path(at, name) for name in names if name.endswith(suffixes))
    if len(paths) > MAX_RULES or next(walk, None) is not None:
        notices.add(f"{top} has more than {MAX_RULES} files or too many folders; the rest is left out.")
    return sorted(paths)[:MAX_RULES]


def _select(
    files: Iterable[InstructionFile | None],
    folder: Path,
    place: str,
    notices: Notices,
    remarks: Notices,
) -> Iterator[InstructionFile]:
    index: list[str] = []
    first: InstructionFile | None = None
    for file in files:
        if file is None:
            continue
        try:
            document = read_document(file.text, str(file.path))
            trigger, patterns = _condition(document, place)
        except ExtensionError as error:
            notices.add(error.message)
            continue
        if not document.body:
            continue
        if trigger == "request":
            first = first or file
            index.append(f"- {file.name}: {clean_line(' '.join(document.text('description').split()))}")
        elif trigger == "mention":
            remarks.add(f"{file.path} is read only when you mention it.")
        else:
            yield replace(file, text=document.body, paths=patterns, folder=folder)
    if first is not None:
        yield replace(
            first, name=f"{first.name.rpartition('/')[0]}: rules by subject", text="\n".join([_INDEX, *index]), folder=folder
        )


def matches(file: InstructionFile, path: Path) -> bool:
    """Tells whether a rule applies to `path`, a real path."""
    if not path.is_relative_to(file.folder):
        return False
    relative = path.relative_to(file.folder).as_posix()
    return any(compile_glob(pattern).fullmatch(relative) for pattern in file.paths)


def _condition(document: Document, place: str) -> tuple[Trigger, tuple[str, ...]]:
    """When a rule applies, and the patterns of its files. Raises ExtensionError for a pattern that can match nothing."""
    patterns = next((each for name in _PATTERN_FIELDS if (each := _patterns(document, name))), ())
    by_subject: Trigger = "request" if document.text("description") else "mention"
    word = (document.text("trigger") or document.text("inclusion")).strip("\"'").lower()
    if word in _TRIGGERS:
        trigger = _TRIGGERS[word]
        if trigger == "request" or (trigger == "match" and not patterns):
            return by_subject, ()
        return trigger, patterns if trigger == "match" else ()
    if document.text("alwaysApply").lower() == "true" or _EVERYTHING.intersection(patterns):
        return "always", ()
    if patterns:
        return "match", patterns
    # Without a pattern these two wait to be called
    is_called = place == ".github/instructions" or (place == ".cursor/rules" and document.name.endswith(".mdc"))
    return by_subject if is_called or document.text("alwaysApply").lower() == "false" else "always", ()


def _patterns(document: Document, field: str) -> tuple[str, ...]:
    value = document.fields.get(field)
    if value is None or value == "":
        return ()
    texts = document.items(field) if isinstance(value, list) else split_at_commas(document.text(field).strip("\"'"), "{}")
    # A folder stands for the files below it
    plain = [each.strip("\"'").removeprefix("./").removeprefix("/") for each in texts if each]
    patterns = tuple(f"{each}**" if each.endswith("/") else each for each in plain)
    for pattern in patterns:
        try:
            compile_glob(pattern)
        except (ValueError, re.error) as error:
            raise document.wrong(field, f"has the pattern {pattern}, which is invalid") from error
    return patterns


def _as_glob(text: str) -> str:
    """A folder stands for the files below it."""
    pattern = text.strip("\"'").removeprefix("./").removeprefix("/")
    return f"{pattern}**" if pattern.endswith("/") else pattern
