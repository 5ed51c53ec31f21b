"""Reads hooks in the settings of skills and agents: they run while it is active, and without them it is not used."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from wolo.errors import ExtensionError
from wolo.extensions.markdown_files import Document, ExtensionFolder

if TYPE_CHECKING:
    from wolo.extensions.hooks.definitions import Hook

_SKILL_DIR = r"\$\{CLAUDE_SKILL_DIR\}|\$CLAUDE_SKILL_DIR\b"
_LOADED = r'<skill name="([^"\n]+)" folder="'
"""Begins the text of a skill; see `skill_files.result_text`."""


def hooks_of(document: Document, path: Path, shelf: ExtensionFolder) -> tuple[tuple[str, Hook], ...]:
    """Raises ExtensionError for hooks that cannot run: the file is not used without its checks."""
    if document.problem and "hooks" in document.lines:
        raise document.wrong("hooks", "cannot be read, because the settings are not valid YAML")
    table = document.fields.get("hooks")
    if not table:
        return ()
    if shelf.plugin is not None:
        raise document.wrong("hooks", "do not run for a plugin's file; the plugin's own hooks/hooks.json is the place for them")
    if not isinstance(table, dict):
        raise document.wrong("hooks", "is no table of events")
    from wolo.extensions.hooks.hook_files import read_table  # noqa: PLC0415  # few files have hooks

    hooks, problems = read_table(table)
    if problems:
        raise document.wrong("hooks", f"cannot be used: {problems[0].rstrip('.')}")
    return tuple((event, _place(hook, path.parent)) for event, hook in hooks)


def _place(hook: Hook, folder: Path) -> Hook:
    """Inserts the folder of the file, unless a shell would have to quote it."""
    if not re.search(_SKILL_DIR, hook.command):
        return hook
    if not re.fullmatch(r"[\w./@+-]+", str(folder)):
        raise ExtensionError(f"{folder}: a hook names CLAUDE_SKILL_DIR, but the folder has characters that a shell reads.")
    return replace(hook, command=re.sub(_SKILL_DIR, lambda _: str(folder), hook.command))


def skills_loaded(text: str) -> set[str]:
    """Names of the skills whose text is part of a prompt or result."""
    return set(re.findall(_LOADED, text))
