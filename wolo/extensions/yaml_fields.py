"""Parses YAML frontmatter within bounds, and line by line where it is not valid YAML.

Tags, anchors (small files that expand to gigabytes), deep nesting and duplicate names are refused. `true`, `null` and numbers are
converted; `yes`, `on`, dates and `1.2.3` stay text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import NamedTuple

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
    problem: str = ""
    """The error of YAML if the settings were read without it: `x.md:3: …`."""


class _NotYaml(ExtensionError):
    """The settings are text, but not YAML."""


def read_fields(rows: list[str], name: str, first_line: int) -> Fields:
    """Raises ExtensionError with the file's `name` and line."""
    settings = _Settings(rows, name, first_line)
    try:
        return settings.read()
    except ExtensionError as error:
        fields = settings.correct()
        if fields is None and isinstance(error, _NotYaml):
            # `name: value` rows, each with the rows that continue it. None: the first row is not of this form.
            groups = _group([_without_tabs(row) for row in rows], _NAME_ROW)
            if groups is not None:
                values: dict[str, Value] = {}
                written, lines = {}, {}
                for name, number, parts in groups:
                    values[name] = _line_value(parts, 1)
                    written[name] = "\n".join(parts).strip()
                    lines[name] = first_line + number
                fields = Fields(values, written, lines)
        if fields is None:
            raise
        return fields._replace(problem=error.message)


class _Settings:
    def __init__(self, rows: list[str], name: str, first_line: int) -> None:
        self._rows = rows
        self._text = "\n".join(rows) + "\n"
        self._name = name
        self._first_line = first_line

    def correct(self) -> Fields | None:
        """Replaces tabs, and quotes values such as `description: Use it so: first …`. None: it is still not YAML."""
        try:
            return type(self)([_quote(_without_tabs(row)) for row in self._rows], self._name, self._first_line).read()
        except ExtensionError:
            return None

    def read(self) -> Fields:
        if len(self._text) > MAX_CHARACTERS:
            raise self._wrong(0, f"the settings are longer than {MAX_CHARACTERS // 1024} KiB")
        root = self._compose()
        if root is None:
            return Fields({}, {}, {})
        if not isinstance(root, yaml.MappingNode):
            raise self._wrong(root.start_mark.line, "the settings must be lines of the form 'name: value'")
        values = self._mapping(root)
        written = {key.value: self._text[value.start_mark.index : value.end_mark.index].strip() for key, value in root.value}
        return Fields(values, written, {key.value: self._first_line + key.start_mark.line for key, _ in root.value})

    def _compose(self) -> yaml.Node | None:
        try:
            # Checks event by event before anything is built
            depth = 0
            for count, event in enumerate(yaml.parse(self._text, Loader=_LOADER)):
                depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
                why = ""
                if depth > _MAX_DEPTH or count > _MAX_EVENTS:
                    why = "the settings hold too much"
                elif isinstance(event, yaml.NodeEvent) and event.anchor is not None:
                    why = "anchors and aliases (& and *) are not used here"
                elif getattr(event, "tag", None) is not None:
                    why = "tags (!) are not used here"
                if why:
                    raise self._wrong(event.start_mark.line if event.start_mark else 0, why)
            return yaml.compose(self._text, Loader=_LOADER)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            raise _NotYaml(
                f"{self._name}:{self._first_line + (mark.line if mark else 0)}: this is not YAML: "
                f"{error.problem or error.context}."
            ) from error
        except (yaml.YAMLError, UnicodeError) as error:
            raise self._wrong(0, "the settings hold a character that is not allowed in YAML") from error

    def _mapping(self, node: yaml.MappingNode) -> dict[str, Value]:
        fields: dict[str, Value] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise self._wrong(key.start_mark.line, "a name must be a word")
            if key.value in fields:
                raise self._wrong(key.start_mark.line, f"'{key.value}' is there twice")
            fields[key.value] = self._value(value)
        return fields

    def _value(self, node: yaml.Node) -> Value:
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node)
        if isinstance(node, yaml.SequenceNode):
            return [self._value(each) for each in node.value]
        return _plain(node.value) if isinstance(node, yaml.ScalarNode) and not node.style else str(node.value)

    def _wrong(self, line: int, why: str) -> ExtensionError:
        return ExtensionError(f"{self._name}:{self._first_line + line}: {why}.")


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


def _without_tabs(row: str) -> str:
    text = row.lstrip(" \t")
    return row[: len(row) - len(text)].replace("\t", "  ") + text


def _quote(row: str) -> str:
    """Quotes the value if YAML cannot parse the row by itself, and a nested name such as `*`."""
    if nested := re.fullmatch(r"( +)([*&!%@][^:'\"]*)(:(?: .*)?)", row):
        return f"{nested[1]}'{nested[2]}'{nested[3]}"
    match = re.fullmatch(r"([A-Za-z][\w-]*:[ \t]+)(\S.*)", row)
    if not match:
        return row
    try:
        for _ in yaml.parse(row, Loader=_LOADER):  # not composed: ten thousand brackets would be as many calls within calls
            pass
    except (yaml.YAMLError, UnicodeError):
        return match[1] + "'" + match[2].rstrip().replace("'", "''") + "'"
    return row


_NAME_ROW = r"([a-z][\w.-]*)[ \t]*:(?:[ \t]+(.*))?"
_NESTED_ROW = r"['\"]?([^\s:'\"][^:'\"]*)['\"]?[ \t]*:(?:[ \t]+(.*))?"
_BLOCK = r"[|>][-+\d]*"


def _group(rows: Sequence[str], row_form: str) -> list[tuple[str, int, list[str]]] | None:
    """Name, index of its row, and the parts of its value; a name that comes again is text of the value before it."""
    groups: list[tuple[str, int, list[str]]] = []
    names: set[str] = set()
    closing = ""
    for number, row in enumerate(rows):
        found = re.fullmatch(row_form, row) if not closing else None
        if found and found[1] not in names:
            names.add(found[1])
            groups.append((found[1], number, [found[2] or ""]))
        elif groups:
            groups[-1][2].append(row)
        elif row.strip() and not row.startswith("#"):
            return None
        closing = "" if closing and closing in row else closing or _open_part(row, rows[number + 1 :])
    return groups or None


def _open_part(row: str, following: Sequence[str]) -> str:
    """The tag that ends an `<example>` beginning in this row; empty if there is none."""
    for name in re.findall(r"<([a-z_]+)>", row):
        if (closing := f"</{name}>") not in row and any(closing in each for each in following):
            return closing
    return ""


def _line_value(parts: list[str], depth: int) -> Value:
    first, *more = parts
    first, filled = first.strip(), [row for row in more if row.strip()]
    if re.fullmatch(_BLOCK, first):
        return _dedent(more).strip("\n")
    if not first and filled and all(re.match(r"\s*- ", row) for row in filled):
        return [_plain_or_quoted(row.strip()[2:].strip()) for row in filled]
    if not first and filled and depth < _MAX_DEPTH and all(row.startswith(" ") for row in filled):
        nested = _group(_dedent(filled).split("\n"), _NESTED_ROW)
        if nested is not None:
            return {name: _line_value(parts, depth + 1) for name, _, parts in nested}
    if not filled and first.startswith("["):
        return [_plain_or_quoted(each.strip()) for each in first.strip("[]").split(",") if each.strip()]
    return _plain_or_quoted("\n".join([first, *more]).strip())


def _plain_or_quoted(text: str) -> Value:
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        inner = text[1:-1]
        return inner.replace('\\"', '"').replace("\\n", "\n") if text[0] == '"' else inner.replace("''", "'")
    return _plain(text)


def _dedent(rows: Sequence[str]) -> str:
    depth = min((len(row) - len(row.lstrip()) for row in rows if row.strip()), default=0)
    return "\n".join(row[depth:] for row in rows)
