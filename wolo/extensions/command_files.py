"""Finds slash commands: Markdown files, and the TOML files of Gemini CLI.

A command's name is its path; its text has placeholders for arguments and shell commands.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from wolo.errors import ExtensionError, WoloError
from wolo.extensions.markdown_files import (
    NAME_RULE,
    Document,
    ExtensionFolder,
    decode,
    entries,
    first_notices,
    in_plugin,
    read_document,
    show_path,
    tool_names,
    word_name,
)
from wolo.extensions.settings_documents import parse_settings
from wolo.messages.terminal_text import clean_line, escape_hidden
from wolo.places import Notices
from wolo.workspace.root import resolve_path

if TYPE_CHECKING:
    from wolo.extensions.command_templates import Piece

MARKDOWN, TOML = ".md", ".toml"
RECIPES = (".yaml", ".yml", ".json")
"""Of Goose."""
MOST_COMMANDS = 500
MOST_FOLDERS = 200
DEEPEST = 4
"""Levels of folders; each is part of the name: `git/commit.md` is `git:commit`."""
LONGEST_DESCRIPTION = 200


class WrittenCommand(Struct, frozen=True):
    name: str
    description: str
    """One line; for an unusable command, the reason."""
    path: Path
    shelf: ExtensionFolder
    hint: str = ""
    """Placeholder for the arguments."""
    model: str = ""
    """Model requested by the author."""
    tools: tuple[str, ...] = ()
    """Tools requested by the author; grants nothing."""
    arguments: tuple[str, ...] = ()
    """Names of the positional arguments."""
    agent: str = ""
    """Agent requested by the author."""
    is_task: bool = False
    """A subagent works on it."""
    for_person: bool = True
    """Offered as a slash command."""
    is_usable: bool = True


class Commands(Struct, frozen=True):
    commands: tuple[WrittenCommand, ...]
    notices: tuple[str, ...]
    """Files that are not commands, with the reason."""


def find_commands(shelves: Sequence[ExtensionFolder]) -> Commands:
    """Sorted by name; the first of a name wins."""
    commands: dict[str, WrittenCommand] = {}
    notices = Notices()
    files = (found for each in shelves for found in _below(each, each, each.qualify(""), 1, notices, {resolve_path(each.folder)}))
    for number, (shelf, path, name) in enumerate(files):
        if number == MOST_COMMANDS:
            notices.add(f"There are more than {MOST_COMMANDS} written commands; the rest is left out.")
            break
        if name not in commands:
            commands[name] = _read(shelf, path, name)
    return Commands(tuple(commands[name] for name in sorted(commands)), first_notices(tuple(notices)))


def fill(command: WrittenCommand, typed: str) -> tuple[Piece, ...]:
    """Fills the current text of the file with the typed arguments. Raises WoloError."""
    from wolo.extensions.command_templates import (  # noqa: PLC0415  # only for a command that is used
        arguments,
        fill_copilot,
        fill_gemini,
        fill_markdown,
    )

    source = _source(command.shelf, command.path)
    body = in_plugin(source.body, command.shelf.plugin)
    if not body.strip():
        raise ExtensionError(f"{show_path(command.path)} has no text, so there is nothing to send.")
    if command.path.suffix == TOML:
        return fill_gemini(body, typed)
    if command.path.name.endswith(".prompt.md") or command.path.suffix in RECIPES:
        return fill_copilot(body, typed, source.written if command.path.suffix in RECIPES else {})
    is_codex = command.shelf.namespace == "prompts" and command.shelf.plugin is None
    return fill_markdown(body, arguments(typed, command.arguments, is_codex=is_codex))


def _below(
    shelf: ExtensionFolder, folder: ExtensionFolder, before: str, depth: int, notices: Notices, seen: set[str]
) -> Iterator[tuple[ExtensionFolder, Path, str]]:
    """Visits each folder once, even through links: `seen` contains real paths."""
    for entry in entries(folder, notices):
        if entry.name.endswith((MARKDOWN, TOML, *(RECIPES if shelf.folder.name == "recipes" else ()))):
            word = entry.name[: entry.name.rindex(".")].removesuffix(".prompt")
            name = word_name(word)
            if name != word:
                notices.add(f"{show_path(Path(entry.path))}: {NAME_RULE}; it is /{before}{name}.")
            yield shelf, Path(entry.path), before + name
        elif depth < DEEPEST and word_name(entry.name) == entry.name and (inner := folder.enter(entry, seen, MOST_FOLDERS)):
            yield from _below(shelf, inner, f"{before}{entry.name}:", depth + 1, notices, seen)


def _read(shelf: ExtensionFolder, path: Path, name: str) -> WrittenCommand:
    try:
        source = _source(shelf, path)
        if source.fields.get("hooks"):
            raise source.wrong("hooks", "do not run for a command; make it a skill, which runs them")
        return WrittenCommand(
            name,
            _on_one_line(source.text("description") or source.body.partition("\n")[0].lstrip("# ")),
            path,
            shelf,
            hint=_on_one_line(source.text("argument-hint")),
            model=source.text("model"),
            tools=tool_names(source.items("allowed-tools")),
            arguments=tuple(each for item in source.items("arguments") for each in item.split()),
            agent=source.text("agent"),
            is_task=source.flag("subtask", default=source.text("context") == "fork"),
            for_person=source.flag("user-invocable", default=True),
        )
    except WoloError as error:
        return WrittenCommand(name, _on_one_line(f"{error.message} {error.hint}"), path, shelf, is_usable=False)


def _source(shelf: ExtensionFolder, path: Path) -> Document:
    text = decode(shelf.read(path), show_path(path))
    read = _toml if path.suffix == TOML else _recipe if path.suffix in RECIPES else read_document
    document = read(text, show_path(path))
    return replace(document, body=escape_hidden(document.body))


def _toml(text: str, name: str) -> Document:
    """A command of Gemini CLI. Raises ExtensionError."""
    table = parse_settings(text.encode(), name)
    prompt, description = table.get("prompt"), table.get("description", "")
    if not isinstance(prompt, str) or not isinstance(description, str):
        raise ExtensionError(f"{name}: a command needs a text 'prompt', and its 'description' must be text.")
    return Document({"description": description}, prompt.strip("\n"), name)


def _recipe(text: str, name: str) -> Document:
    """Of Goose; its parameters are words of the arguments, or their defaults. Raises ExtensionError."""
    table = parse_settings(text.encode(), name)
    texts = [each for key in ("instructions", "prompt") if isinstance(each := table.get(key), str) and each.strip()]
    if not texts:
        raise ExtensionError(f"{name}: a recipe needs a text 'prompt' or 'instructions'.")
    body = re.sub(r"\{\{\s*([\w-]+)\s*\}\}", r"${input:\1}", "\n\n".join(texts))
    if "{%" in body or table.get("sub_recipes"):
        raise ExtensionError(f"{name}: wolo fills in no conditions ({{% … %}}) and runs no sub_recipes.")
    more = " (its extensions are not started)" if table.get("extensions") else ""
    parameters = each if isinstance(each := table.get("parameters"), list) else []
    defaults = {str(each.get("key")): str(each["default"]) for each in parameters if isinstance(each, dict) and "default" in each}
    about = next((each for key in ("description", "title") if isinstance(each := table.get(key), str)), "")
    return Document({"description": f"{about}{more}"}, body, name, defaults)


def _on_one_line(text: str) -> str:
    line = clean_line(" ".join(text.split()))
    return line if len(line) <= LONGEST_DESCRIPTION else f"{line[: LONGEST_DESCRIPTION - 1]}…"
