"""Finds and reads Markdown files with YAML frontmatter, tolerantly.

Accepts files without frontmatter, Windows line ends, and lists where text is expected.
"""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from wolo.errors import ExtensionError
from wolo.messages.terminal_text import escape_hidden, quantity
from wolo.places import Notices
from wolo.workspace.root import resolve_path

if TYPE_CHECKING:
    from wolo.extensions.yaml_fields import Value

MAX_BYTES = 256 * 1024
"""Per file."""
_FLAGS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


class Document(Struct, frozen=True):
    fields: Mapping[str, Value]
    body: str
    """Without surrounding empty lines."""
    name: str = ""
    """File name for errors."""
    written: Mapping[str, str] = {}
    """Fields as written: `1.10` stays `1.10`, and `[path]` is not a list."""
    lines: Mapping[str, int] = {}
    """Line of each field, counted from 1."""
    problem: str = ""
    """The error of YAML if the settings were read line by line; see `reading_notice`."""

    @property
    def has_hooks(self) -> bool:
        """Also where they could not be read."""
        return "hooks" in self.fields or "hooks" in self.lines

    def text(self, key: str) -> str:
        """Empty if missing. Numbers and lists are returned as written."""
        value = self.fields.get(key)
        return value.strip() if isinstance(value, str) else "" if value is None else self.written.get(key, "")

    def flag(self, key: str, *, default: bool) -> bool:
        """Raises ExtensionError unless it is a boolean."""
        value = self.text(key).lower()
        if not value:
            return default
        if value not in _FLAGS:
            raise self.wrong(key, "must be true or false")
        return _FLAGS[value]

    def items(self, key: str) -> tuple[str, ...]:
        """A list of texts, or one text with commas: `Read, Bash(git log:*)`."""
        value = self.fields.get(key)
        if value is None:
            return ()
        if not isinstance(value, list):
            return split_at_commas(self.text(key), "()")
        if any(isinstance(each, list | dict) for each in value):
            raise self.wrong(key, "must be a list of words")
        return tuple(str(each).strip() for each in value if each is not None)

    def wrong(self, key: str, why: str) -> ExtensionError:
        return ExtensionError(f"{self.name}:{self.lines.get(key, 1)}: '{key}' {why}.")


def split_at_commas(text: str, brackets: str) -> tuple[str, ...]:
    """Only at those outside of the pair of brackets."""
    parts, depth = [""], 0
    for character in text:
        depth = max(0, depth + (character == brackets[0]) - (character == brackets[1]))
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return tuple(part.strip() for part in parts if part.strip())


def decode(data: bytes, name: str) -> str:
    """Normalises line ends and removes a byte order mark. Raises ExtensionError for binary or too long files."""
    if len(data) > MAX_BYTES:
        raise ExtensionError(f"{name} is longer than {MAX_BYTES // 1024} KiB.")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ExtensionError(f"{name}:{line}: this is not UTF-8.", hint="Save the file as UTF-8.") from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


def read_document(text: str, name: str) -> Document:
    """Text without frontmatter is all body. Raises ExtensionError with the file's name and line."""
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
    start = next((number for number, line in enumerate(lines) if line.strip()), len(lines))
    if start == len(lines) or lines[start].rstrip() != "---":
        return Document({}, _body(lines), name)
    end = next((number for number in range(start + 1, len(lines)) if lines[number].rstrip() in ("---", "...")), None)
    if end is None:
        raise ExtensionError(f"{name}:{start + 1}: no second line of '---' ends the settings.")
    from wolo.extensions.yaml_fields import read_fields  # noqa: PLC0415  # PyYAML is loaded where there is something to read

    found = read_fields(lines[start + 1 : end], name, start + 2)
    return Document(found.values, _body(lines[end + 1 :]), name, found.written, found.lines, found.problem)


def reading_notice(problems: Sequence[str]) -> tuple[str, ...]:
    """One sentence about all files whose settings are not valid YAML; `problems` as in `Document.problem`."""
    if not problems:
        return ()
    more = f" The same goes for {quantity(len(problems) - 1, 'more file')}." if len(problems) > 1 else ""
    return (f"{problems[0]} Its settings were read line by line; quote the value.{more}",)


def _body(lines: list[str]) -> str:
    start = next((number for number, line in enumerate(lines) if line.strip()), len(lines))
    return "\n".join(lines[start:]).rstrip()


MOST_ENTRIES = 1_000
"""Per folder."""
MOST_NOTICES = 12


class ExtensionFolder(Struct, frozen=True):
    folder: Path
    read: Callable[[Path], bytes]
    """Reads a regular file. Raises WoloError if it must not be read."""
    project: Path | None = None
    """Real path of the project's root; None for the user's own folder."""
    namespace: str = ""
    """Prefix of all names: `plugin:name`."""
    plugin: Path | None = None
    """Root of the plugin that contains it."""
    only: tuple[str, ...] | None = None
    """Entries to use; None: all that are not hidden."""

    def qualify(self, name: str) -> str:
        return f"{self.namespace}:{name}" if self.namespace else name

    def enter(self, entry: os.DirEntry[str], seen: set[str], most: int) -> ExtensionFolder | None:
        """A folder in it, each once, even through links: `seen` has the real paths of at most so many."""
        is_folder = os.path.isdir(entry.path)  # noqa: PTH112  # entry.is_dir raises for a link to itself
        if len(seen) >= most or not is_folder or (real := resolve_path(entry.path)) in seen:
            return None
        seen.add(real)
        return replace(self, folder=Path(entry.path), only=None)


def entries(shelf: ExtensionFolder, notices: Notices) -> list[os.DirEntry[str]]:
    """Sorted by name, without hidden files. Empty for a project's folder that links to outside."""
    try:
        with os.scandir(shelf.folder) as found:
            first, only = islice(found, MOST_ENTRIES), shelf.only
            listed = [each for each in first if (not each.name.startswith(".") if only is None else each.name in only)]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        notices.add(f"{show_path(shelf.folder)} cannot be listed: {error.strerror}.")
        return []
    if shelf.project and not Path(os.path.realpath(shelf.folder)).is_relative_to(shelf.project):
        notices.add(f"{show_path(shelf.folder)} is not read: it is a link to a folder outside {show_path(shelf.project)}.")
        return []
    return sorted(listed, key=lambda entry: entry.name)


def first_notices(notices: Sequence[str]) -> tuple[str, ...]:
    """The first notices and the number of further ones."""
    more = len(notices) - MOST_NOTICES
    return (*notices[:MOST_NOTICES], *([f"The same goes for {quantity(more, 'more file')}."] if more > 0 else []))


def show_path(path: Path) -> str:
    """Escapes line breaks and invisible characters in a path."""
    return escape_hidden(str(path)).replace("\n", "\\n").replace("\t", "\\t")


PLUGIN_ROOTS = ("CLAUDE_PLUGIN_ROOT", "extensionPath")
"""Names of a plugin's folder in its files."""
LONGEST_NAME = 64


def word_name(text: str) -> str:
    """A name as one word of any script, for a command line and a list; never empty."""
    name = re.sub(r"[\s/\\:<>\"`]+", "-", text.strip())[:LONGEST_NAME].strip("-.")
    if name and name.isprintable() and escape_hidden(name) == name:
        return name
    return f"x{zlib.crc32(text.encode('utf-8', 'surrogateescape')):08x}"


NAME_RULE = 'a name has no blanks and none of / \\ : < > " `, 64 characters at most'


def in_plugin(text: str, plugin: Path | None) -> str:
    """Inserts the folder of the plugin that a file belongs to."""
    if plugin is not None:
        for name in PLUGIN_ROOTS:
            text = text.replace(f"${{{name}}}", str(plugin))
        text = text.replace("${/}", "/")
    return text


def tool_names(items: Sequence[str]) -> tuple[str, ...]:
    """Splits names separated by blanks: `Read Bash(git log:*)`."""
    return tuple(name for item in items for name in re.findall(r"[^\s(]+(?:\([^)]*\))?", item))
