"""Finds the skills in a fetched folder and installs them, each whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from wolo.errors import ExtensionError, UsageError, WoloError
from wolo.extensions.markdown_files import MAX_BYTES, ExtensionFolder
from wolo.extensions.skill_files import Skill, find_skills, read_skill, skill_file
from wolo.extensions.sources.tree_copy import copy_tree, files_in
from wolo.messages.terminal_text import clean_line
from wolo.places import Notices
from wolo.workspace.files.unfinished import exchange, unfinished_folder

_HIDDEN_FOLDERS = (".agents/skills", ".claude/skills", ".wolo/skills", ".codex/skills", ".opencode/skills", ".gemini/skills")
_SCRIPTS = frozenset((".sh", ".bash", ".zsh", ".py", ".js", ".mjs", ".cjs", ".ts", ".rb", ".pl", ".php", ".lua", ".ps1", ".exe"))


class SkillFile(Struct, frozen=True):
    path: Path
    """Relative to the skill."""
    size: int
    is_script: bool


def find_in(folder: Path, name: str, notices: Notices) -> tuple[Skill, ...]:
    """The skill that the folder is, or those in it. `name` is that of the folder where it came from."""
    if path := skill_file(folder):
        shelf = ExtensionFolder(folder.parent, _read, plugin=folder)
        corrections = Notices()
        try:
            found_here = read_skill(shelf, path, corrections, folder=name)
        except WoloError as error:
            raise ExtensionError(error.message.replace(str(folder), name), hint=error.hint) from error
        notices.extend(notice.replace(str(folder), name) for notice in corrections)
        return (found_here,)
    found = find_skills([ExtensionFolder(each, _read) for each in (folder, *(folder / name for name in _HIDDEN_FOLDERS))])
    notices.extend(notice.replace(f"{folder}/", "") for notice in found.notices)
    return found.skills


def files_of(skill: Skill) -> list[SkillFile]:
    files = []
    for path in files_in(skill.folder):
        full = skill.folder / path
        with full.open("rb") as file:
            begins = file.read(2)
        is_script = path.suffix.lower() in _SCRIPTS or begins == b"#!" or os.access(full, os.X_OK)
        files.append(SkillFile(path, full.stat().st_size, is_script))
    return files


def check_target(skills: Sequence[Skill], target: Path, *, overwrite: bool) -> None:
    """Raises UsageError where something would be overwritten."""
    there = [skill.name for skill in skills if os.path.lexists(target / skill.name)]
    if there and not overwrite:
        raise UsageError(f"{target} has {', '.join(there)} already.", hint="--force replaces it.")


def install(skill: Skill, target: Path, *, overwrite: bool) -> Path:
    """Raises WoloError; then nothing has changed."""
    path = target / skill.name
    try:
        target.mkdir(parents=True, exist_ok=True)
        with unfinished_folder(target) as scratch:
            new, old = scratch / "new", scratch / "old"
            copy_tree(skill.folder, new, inside=skill.folder)
            check_target([skill], target, overwrite=overwrite)
            if not os.path.lexists(path):
                new.rename(path)
            elif not exchange(new, path):
                path.rename(old)
                try:
                    new.rename(path)
                except OSError:
                    old.rename(path)
                    raise
    except OSError as error:
        raise ExtensionError(f"{path} cannot be written: {error.strerror}.") from error
    return path


def uninstall(folder: Path) -> None:
    """Raises ExtensionError."""
    try:
        with unfinished_folder(folder.parent) as scratch:
            folder.rename(scratch / "old")
    except OSError as error:
        raise ExtensionError(f"{folder} cannot be removed: {error.strerror}.") from error


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ExtensionError(f"{clean_line(str(path))} cannot be read: {error.strerror}.") from error
