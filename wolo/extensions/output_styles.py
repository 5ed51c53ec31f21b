"""Finds output styles: Markdown files, one of which the user can choose for the system prompt."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from wolo.errors import WoloError
from wolo.extensions.markdown_files import ExtensionFolder, decode, entries, in_plugin, read_document, show_path, word_name
from wolo.messages.terminal_text import clean_line
from wolo.places import Notices

DEFAULT = "default"
"""Chooses no style."""


class OutputStyle(Struct, frozen=True):
    name: str
    description: str
    text: str


def find_styles(shelves: Iterable[ExtensionFolder], notices: Notices) -> tuple[OutputStyle, ...]:
    """The nearest style of a name wins. Notices name files that cannot be used."""
    styles: dict[str, OutputStyle] = {}
    for shelf in shelves:
        for path in (Path(each.path) for each in entries(shelf, notices) if each.name.endswith(".md")):
            try:
                document = read_document(decode(shelf.read(path), show_path(path)), show_path(path))
            except WoloError as error:
                notices.add(f"This output style is left out: {error.message}")
                continue
            name = ":".join(filter(None, (shelf.namespace, word_name(document.text("name") or path.stem))))
            style = OutputStyle(name, clean_line(document.text("description")), in_plugin(document.body, shelf.plugin))
            styles.setdefault(name.lower(), style)
    return tuple(styles.values())


def find_style(styles: Iterable[OutputStyle], name: str) -> OutputStyle | None:
    """By its name in any case, or by the last part of it if only one style ends with that."""
    by_name = {each.name.lower(): each for each in styles}
    ending = [each for key, each in by_name.items() if key.endswith(f":{name.lower()}")]
    return by_name.get(name.lower()) or (ending[0] if len(ending) == 1 else None)
