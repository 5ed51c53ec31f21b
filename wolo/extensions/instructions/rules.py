"""Reads `.claude/rules/**/*.md`: further instructions, some only for files that match a pattern."""

from __future__ import annotations

import os
from pathlib import Path

from msgspec.structs import replace

from wolo.errors import ExtensionError
from wolo.extensions.instructions.file_reading import InstructionFile, read_named
from wolo.extensions.markdown_files import Document, read_document
from wolo.places import Notices
from wolo.workspace.globs import compile_glob

MAX_RULES = 200
"""Per folder."""


def read_rules(folder: Path, base: Path, rules: Path, notices: Notices) -> list[InstructionFile]:
    """Sorted by path; links to folders are not followed. `folder` is the one that `rules` belongs to."""
    files: list[InstructionFile] = []
    paths = sorted(Path(at, name) for at, _, names in os.walk(rules) for name in names if name.endswith(".md"))
    if len(paths) > MAX_RULES:
        notices.add(f"{rules} has more than {MAX_RULES} files; the rest is left out.")
    for path in paths[:MAX_RULES]:
        file = read_named(path, base, notices)
        if file is None:
            continue
        try:
            document = read_document(file.text, str(path))
            patterns = _patterns(document)
        except ExtensionError as error:
            notices.add(error.message)
            continue
        if document.body:
            files.append(replace(file, text=document.body, paths=patterns, folder=folder))
    return files


def matches(file: InstructionFile, path: Path) -> bool:
    """Tells whether a rule applies to `path`, a real path."""
    if not path.is_relative_to(file.folder):
        return False
    relative = path.relative_to(file.folder).as_posix()
    return any(compile_glob(pattern).fullmatch(relative) for pattern in file.paths)


def _patterns(document: Document) -> tuple[str, ...]:
    """Raises ExtensionError for a pattern that can match nothing."""
    value = document.fields.get("paths")
    if value is None:
        return ()
    given = document.items("paths") if isinstance(value, list) else _split(document.text("paths").strip("\"'"))
    patterns = tuple(each.removeprefix("./").removeprefix("/") for each in given if each)
    for pattern in patterns:
        try:
            compile_glob(pattern)
        except ValueError as error:
            raise document.wrong("paths", f"has the pattern {pattern}, which is invalid") from error
    return patterns


def _split(text: str) -> list[str]:
    """Splits at commas outside braces."""
    parts, depth = [""], 0
    for character in text:
        depth = max(0, depth + (character == "{") - (character == "}"))
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts if part.strip()]
