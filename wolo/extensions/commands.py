"""Slash commands that a person wrote as Markdown: named for where they lie, with places for what is typed behind the name."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from wolo.errors import ExtensionError, WoloError
from wolo.extensions.frontmatter import Document, decode, read_document
from wolo.extensions.shelves import Shelf, entries, shown
from wolo.messages.terminal_text import clean_line, show_hidden

ENDING = ".md"
MOST_COMMANDS = 500
DEEPEST = 4
"""Folders within folders; each is one word of the name: `git/commit.md` is `git:commit`."""
LONGEST_DESCRIPTION = 200
_WORD = re.compile(r"\w[\w.-]*")
_PLACE = re.compile(r"\\?\$(?:ARGUMENTS\b|@|([1-9])(?!\d)|\{@:(\d{1,2})(?::(\d{1,2}))?\})")
_RUN = re.compile(r"!`[^`\n]+`")


class WrittenCommand(NamedTuple):
    name: str
    description: str
    """On one line; of one that cannot be used, why not."""
    path: Path
    shelf: Shelf
    hint: str = ""
    """What may follow the name."""
    model: str = ""
    """Which model its author wants to answer."""
    tools: tuple[str, ...] = ()
    """What its author thinks it needs; it grants nothing."""
    is_usable: bool = True


class Filled(NamedTuple):
    text: str
    unrun: tuple[str, ...]
    """Commands in it that its author wanted to be run beforehand; they stand there as text."""


class Commands(NamedTuple):
    found: tuple[WrittenCommand, ...]
    notices: tuple[str, ...]
    """For a person: what is no command, and why."""


def find_commands(shelves: Sequence[Shelf]) -> Commands:
    """By name; the first of a name counts."""
    found: dict[str, WrittenCommand] = {}
    notices: list[str] = []
    for number, (shelf, path, name) in enumerate(_files(shelves, notices)):
        if number == MOST_COMMANDS:
            notices.append(f"There are more than {MOST_COMMANDS} written commands; the rest is left out.")
            break
        if name not in found:
            found[name] = _read(shelf, path, name)
    return Commands(tuple(found[name] for name in sorted(found)), tuple(notices))


def fill(command: WrittenCommand, typed: str) -> Filled:
    """Its prompt as the file has it now, with what was typed behind the name. Raises WoloError."""
    body = _document(command.shelf, command.path).body
    if not body.strip():
        raise ExtensionError(f"{shown(command.path)} has no text, so there is nothing to send.")
    words = split(typed)
    text, places = _PLACE.subn(lambda found: _filling(found, typed, words), body)
    is_placed = places > sum(found[0].startswith("\\") for found in _PLACE.finditer(body))
    return Filled(text if is_placed or not typed else f"{text}\n\n{typed}", tuple(found[0] for found in _RUN.finditer(body)))


def split(typed: str) -> list[str]:
    """As a shell does; a quote without its other half is a letter."""
    try:
        return shlex.split(typed)
    except ValueError:
        return typed.split()


def _filling(found: re.Match[str], typed: str, words: list[str]) -> str:
    whole, number, first, count = found[0], found[1], found[2], found[3]
    if whole.startswith("\\"):
        return whole[1:]
    if number:
        return words[int(number) - 1] if int(number) <= len(words) else ""
    if first:
        begin = max(int(first) - 1, 0)
        return " ".join(words[begin : begin + int(count) if count else None])
    return typed


def _files(shelves: Sequence[Shelf], notices: list[str]) -> Iterator[tuple[Shelf, Path, str]]:
    for shelf in shelves:
        yield from _below(shelf, shelf, "", 1, notices)


def _below(shelf: Shelf, folder: Shelf, before: str, depth: int, notices: list[str]) -> Iterator[tuple[Shelf, Path, str]]:
    for entry in entries(folder, notices):
        if entry.name.endswith(ENDING):
            word = entry.name.removesuffix(ENDING)
            if _WORD.fullmatch(word):
                yield shelf, Path(entry.path), before + word
            else:
                notices.append(f"{shown(Path(entry.path))} is no command: its name must be letters, digits, '.', '_' and '-'.")
        elif depth < DEEPEST and _WORD.fullmatch(entry.name) and os.path.isdir(entry.path):  # noqa: PTH112  # text all along
            yield from _below(shelf, folder._replace(folder=Path(entry.path)), f"{before}{entry.name}:", depth + 1, notices)


def _read(shelf: Shelf, path: Path, name: str) -> WrittenCommand:
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


def _document(shelf: Shelf, path: Path) -> Document:
    document = read_document(decode(shelf.read(path), shown(path)), shown(path))
    return document._replace(body=show_hidden(document.body))


def _on_one_line(text: str) -> str:
    line = clean_line(" ".join(text.split()))
    return line if len(line) <= LONGEST_DESCRIPTION else f"{line[: LONGEST_DESCRIPTION - 1]}…"
