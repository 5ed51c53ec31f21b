"""Finds slash commands written as Markdown files and fills in their arguments.

A command's name is its path; its text has placeholders for arguments and shell commands.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from wolo.errors import ExtensionError, WoloError
from wolo.extensions.markdown_files import Document, ExtensionFolder, decode, entries, first_notices, read_document, shown
from wolo.messages.terminal_text import clean_line, escape_hidden

ENDING = ".md"
MOST_COMMANDS = 500
MOST_FOLDERS = 200
DEEPEST = 4
"""Levels of folders; each is part of the name: `git/commit.md` is `git:commit`."""
LONGEST_DESCRIPTION = 200
_WORD = r"\w[\w.-]*"
_PLACE = r"\\?\$(?:ARGUMENTS\b|@|([1-9])(?!\d)|\{@:(\d{1,2})(?::(\d{1,2}))?\})"
_RUN = r"!`([^`\n]+)`"
_NOT_PLAIN = r"[\\'\"`$#]|<<"
"""Shell syntax that could defeat the quoting of arguments."""


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
    is_usable: bool = True


class Run(Struct, frozen=True):
    """A shell command whose output becomes part of the prompt."""

    written: str
    """As written in the file."""
    line: str
    """The command to run; empty if the arguments cannot be inserted safely."""


class Commands(Struct, frozen=True):
    found: tuple[WrittenCommand, ...]
    notices: tuple[str, ...]
    """Files that are not commands, with the reason."""


def find_commands(shelves: Sequence[ExtensionFolder]) -> Commands:
    """Sorted by name; the first of a name wins."""
    found: dict[str, WrittenCommand] = {}
    notices: list[str] = []
    for number, (shelf, path, name) in enumerate(_files(shelves, notices)):
        if number == MOST_COMMANDS:
            notices.append(f"There are more than {MOST_COMMANDS} written commands; the rest is left out.")
            break
        if name not in found:
            found[name] = _read(shelf, path, name)
    return Commands(tuple(found[name] for name in sorted(found)), first_notices(notices))


def fill(command: WrittenCommand, typed: str) -> tuple[str | Run, ...]:
    """Fills the current text of the file with the typed arguments. Raises WoloError."""
    body = _document(command.shelf, command.path).body
    if not body.strip():
        raise ExtensionError(f"{shown(command.path)} has no text, so there is nothing to send.")
    words = split(typed)
    filled: list[str | Run] = []
    for number, piece in enumerate(re.split(_RUN, body)):
        if number % 2:
            filled.append(Run(f"!`{piece}`", _line(piece, words)))
        else:
            filled.append(re.sub(_PLACE, lambda found: _replacement(found, typed, words), piece))
    if typed and all(map(_is_escaped, re.finditer(_PLACE, body))):
        filled.append(f"\n\n{typed}")
    return tuple(filled)


def split(typed: str) -> list[str]:
    """Splits like a shell; an unmatched quote is an ordinary character."""
    try:
        return shlex.split(typed)
    except ValueError:
        return typed.split()


def _replacement(found: re.Match[str], typed: str, words: list[str]) -> str:
    if _is_escaped(found):
        return found[0][1:]
    return " ".join(_arguments_for(found, words)) if found[1] or found[2] else typed


def _is_escaped(found: re.Match[str]) -> bool:
    return found[0].startswith("\\")


def _arguments_for(found: re.Match[str], words: list[str]) -> list[str]:
    """The arguments that a placeholder stands for."""
    number, first, count = found[1], found[2], found[3]
    if number:
        return words[int(number) - 1 : int(number)]
    begin = max(int(first) - 1, 0) if first else 0
    return words[begin : begin + int(count) if count else None]


def _line(command: str, words: list[str]) -> str:
    """Quotes each argument.

    Placeholders must stand alone and nothing else may be quoted, so that no argument becomes a command.
    """
    places = list(re.finditer(_PLACE, command))
    if all(map(_is_escaped, places)):
        return re.sub(_PLACE, lambda found: found[0][1:], command)
    stands_alone = all(
        command[found.start() - 1 : found.start()].strip() == "" == command[found.end() : found.end() + 1].strip()
        for found in places
    )
    if any(map(_is_escaped, places)) or not stands_alone or re.search(_NOT_PLAIN, re.sub(_PLACE, "", command)):
        return ""
    return re.sub(_PLACE, lambda found: shlex.join(_arguments_for(found, words)), command)


def _files(shelves: Sequence[ExtensionFolder], notices: list[str]) -> Iterator[tuple[ExtensionFolder, Path, str]]:
    for shelf in shelves:
        yield from _below(shelf, shelf, "", 1, notices, {os.path.realpath(shelf.folder)})


def _below(
    shelf: ExtensionFolder, folder: ExtensionFolder, before: str, depth: int, notices: list[str], seen: set[str]
) -> Iterator[tuple[ExtensionFolder, Path, str]]:
    """Visits each folder once, even through links: `seen` contains real paths."""
    for entry in entries(folder, notices):
        if entry.name.endswith(ENDING):
            word = entry.name.removesuffix(ENDING)
            if re.fullmatch(_WORD, word):
                yield shelf, Path(entry.path), before + word
            else:
                notices.append(f"{shown(Path(entry.path))} is no command: its name must be letters, digits, '.', '_' and '-'.")
        elif depth < DEEPEST and len(seen) < MOST_FOLDERS and _is_new_folder(entry, seen):
            inner = replace(folder, folder=Path(entry.path))
            yield from _below(shelf, inner, f"{before}{entry.name}:", depth + 1, notices, seen)


def _is_new_folder(entry: os.DirEntry[str], seen: set[str]) -> bool:
    if not re.fullmatch(_WORD, entry.name) or not os.path.isdir(entry.path):  # noqa: PTH112  # text all along
        return False
    real = os.path.realpath(entry.path)
    is_new = real not in seen
    seen.add(real)
    return is_new


def _read(shelf: ExtensionFolder, path: Path, name: str) -> WrittenCommand:
    try:
        document = _document(shelf, path)
        return WrittenCommand(
            name,
            _on_one_line(document.text("description") or document.body.partition("\n")[0].lstrip("# ")),
            path,
            shelf,
            hint=_on_one_line(document.text("argument-hint")),
            model=document.text("model"),
            tools=document.items("allowed-tools"),
        )
    except WoloError as error:
        return WrittenCommand(name, _on_one_line(f"{error.message} {error.hint}"), path, shelf, is_usable=False)


def _document(shelf: ExtensionFolder, path: Path) -> Document:
    document = read_document(decode(shelf.read(path), shown(path)), shown(path))
    return replace(document, body=escape_hidden(document.body))


def _on_one_line(text: str) -> str:
    line = clean_line(" ".join(text.split()))
    return line if len(line) <= LONGEST_DESCRIPTION else f"{line[: LONGEST_DESCRIPTION - 1]}…"
