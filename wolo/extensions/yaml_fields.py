"""Parses YAML frontmatter within bounds.

Tags, anchors (small files that expand to gigabytes), deep nesting and duplicate names are refused. `true`, `null` and numbers are
converted; `yes`, `on`, dates and `1.2.3` stay text.
"""

from __future__ import annotations

import math
import re
from typing import NamedTuple, Self

import yaml

from wolo.errors import ExtensionError

MAX_CHARACTERS = 32 * 1024
_MAX_EVENTS = 4_000
_MAX_DEPTH = 10
_NUMBER = r"[-+]?(?:\d{1,15}|\d{0,15}\.\d{1,15}|\d{1,15}\.)(?:[eE][-+]?\d{1,3})?"
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""Some builds of PyYAML lack libyaml."""

Value = str | int | float | bool | None | list["Value"] | dict[str, "Value"]


class Fields(NamedTuple):
    values: dict[str, Value]
    written: dict[str, str]
    """Values as written."""
    lines: dict[str, int]
    """Line numbers from 1 in the whole file."""


def read_fields(rows: list[str], name: str, first_line: int) -> Fields:
    """Raises ExtensionError with the file's `name` and line."""
    settings = _Settings(rows, name, first_line)
    try:
        return settings.read()
    except ExtensionError as error:
        return settings.with_quotes().read_or(error)


class _Settings:
    def __init__(self, rows: list[str], name: str, first_line: int) -> None:
        self._rows = rows
        self._text = "\n".join(rows) + "\n"
        self._name = name
        self._first_line = first_line

    def with_quotes(self) -> Self:
        """Quotes values such as `description: Use it so: first …`, which many files contain unquoted."""
        return type(self)([_quoted(row) for row in self._rows], self._name, self._first_line)

    def read_or(self, error: ExtensionError) -> Fields:
        try:
            return self.read()
        except ExtensionError:
            raise error from None

    def read(self) -> Fields:
        if len(self._text) > MAX_CHARACTERS:
            raise self._wrong(0, f"the settings are longer than {MAX_CHARACTERS // 1024} KiB")
        root = self._composed()
        if root is None:
            return Fields({}, {}, {})
        if not isinstance(root, yaml.MappingNode):
            raise self._wrong(root.start_mark.line, "the settings must be lines of the form 'name: value'")
        values = self._mapping(root)
        written = {key.value: self._text[value.start_mark.index : value.end_mark.index].strip() for key, value in root.value}
        return Fields(values, written, {key.value: self._first_line + key.start_mark.line for key, _ in root.value})

    def _composed(self) -> yaml.Node | None:
        try:
            self._check()
            return yaml.compose(self._text, Loader=_LOADER)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            raise self._wrong(mark.line if mark else 0, f"this is not YAML: {error.problem or error.context}") from error
        except (yaml.YAMLError, UnicodeError) as error:
            raise self._wrong(0, "the settings hold a character that is not allowed in YAML") from error

    def _check(self) -> None:
        """Checks event by event before anything is built."""
        depth = 0
        for count, event in enumerate(yaml.parse(self._text, Loader=_LOADER)):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            why = "the settings hold too much" if depth > _MAX_DEPTH or count > _MAX_EVENTS else _unfit(event)
            if why:
                raise self._wrong(event.start_mark.line if event.start_mark else 0, why)

    def _mapping(self, node: yaml.MappingNode) -> dict[str, Value]:
        found: dict[str, Value] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise self._wrong(key.start_mark.line, "a name must be a word")
            if key.value in found:
                raise self._wrong(key.start_mark.line, f"'{key.value}' is there twice")
            found[key.value] = self._value(value)
        return found

    def _value(self, node: yaml.Node) -> Value:
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node)
        if isinstance(node, yaml.SequenceNode):
            return [self._value(each) for each in node.value]
        return _plain(node.value) if isinstance(node, yaml.ScalarNode) and not node.style else str(node.value)

    def _wrong(self, line: int, why: str) -> ExtensionError:
        return ExtensionError(f"{self._name}:{self._first_line + line}: {why}.")


def _unfit(event: yaml.Event) -> str:
    if isinstance(event, yaml.NodeEvent) and event.anchor is not None:
        return "anchors and aliases (& and *) are not used here"
    return "tags (!) are not used here" if getattr(event, "tag", None) is not None else ""


def _plain(text: str) -> Value:
    """Converts an unquoted scalar."""
    if text in ("", "~", "null", "Null", "NULL"):
        return None
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    if not re.fullmatch(_NUMBER, text):
        return text
    if text.lstrip("+-").isdecimal():
        return int(text)
    return number if math.isfinite(number := float(text)) else text


def _quoted(row: str) -> str:
    """Quotes the value if YAML cannot parse the row by itself."""
    found = re.fullmatch(r"([A-Za-z][\w-]*:[ \t]+)(\S.*)", row)
    if not found:
        return row
    try:
        for _ in yaml.parse(row, Loader=_LOADER):  # not composed: ten thousand brackets would be as many calls within calls
            pass
    except (yaml.YAMLError, UnicodeError):
        return found[1] + "'" + found[2].rstrip().replace("'", "''") + "'"
    return row
