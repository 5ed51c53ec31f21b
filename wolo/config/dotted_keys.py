"""Reads settings by dotted key: names, types and validation errors."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from typing import Any, NamedTuple, get_args, get_origin

import msgspec
from msgspec import Struct
from msgspec.structs import fields

from wolo.config.files import find_line, parse_toml
from wolo.config.schema import Settings
from wolo.errors import ConfigError

Key = tuple[str, ...]

_PART = r'"([^"]*)"|([^."]+)'


class Leaf(NamedTuple):
    key: Key
    value: Any
    """Converted to the type of the setting."""


class SettingsPlace(NamedTuple):
    """Origin of settings, for error messages."""

    name: str
    text: str = ""
    """Content of a file, to find the line."""
    is_command_line: bool = False
    is_managed: bool = False
    """A file of the administrator."""

    def at(self, key: Key) -> str:
        line = find_line(self.text, key) if self.text else None
        return f"{self.name}, line {line}" if line else self.name

    def at_words(self, text: str) -> str:
        """Location of these words in the file."""
        at = self.text.find(text) if text else -1
        line = self.text.count("\n", 0, at) + 1
        return f"{self.name}, line {line}" if at >= 0 else self.name


def leaves(data: Mapping[str, Any], place: SettingsPlace) -> Iterator[Leaf]:
    """Every setting in nested tables. Raises ConfigError for an unknown key or a value of the wrong type."""
    return _find_leaves(data, Settings, (), place, is_text=False)


def leaf(dotted_key: str, value: str, place: SettingsPlace) -> Leaf:
    """Parses one setting from text: `5` becomes a number where needed, a list is one word or `["a", "b"]`."""
    key = parse_key(dotted_key)
    data: Any = value
    for name in reversed(key):
        data = {name: data}
    return next(_find_leaves(data, Settings, (), place, is_text=True))


def parse_key(text: str) -> Key:
    """Splits `providers."my.host".base_url` into three parts."""
    return tuple(quoted or bare.strip() for quoted, bare in re.findall(_PART, text)) or ("",)


def join_key(key: Key) -> str:
    return ".".join(name if re.fullmatch(r"[\w-]+", name) else f'"{name}"' for name in key)


def values(settings: Struct, start: Key = ()) -> Iterator[tuple[Key, Any]]:
    """Every setting and its value, in schema order."""
    for name in _types(type(settings)):
        key, value = (*start, name), getattr(settings, name)
        if isinstance(value, Struct):
            yield from values(value, key)
        elif isinstance(value, Mapping) and any(isinstance(inner, Struct) for inner in value.values()):
            for name, inner in value.items():
                yield from values(inner, (*key, name))
        else:
            yield key, value


def build(leaves: Iterable[Leaf]) -> Settings:
    """Later leaves of the same key win."""
    data: dict[str, Any] = {}
    for key, value in leaves:
        table = data
        for name in key[:-1]:
            table = table.setdefault(name, {})
        table[key[-1]] = value
    settings = _build(data, Settings)
    assert isinstance(settings, Settings)
    return settings


def _build(data: Mapping[str, Any], kind: Any) -> Any:
    """Constructs without converting, which takes a third of the time; the leaves already have the right type."""
    made = {}
    for name, value in data.items():
        child = _child(kind, name)
        made[name] = _build(value, child) if _is_group(child) else value
    return kind(**made) if isinstance(kind, type) and issubclass(kind, Struct) else made


def _find_leaves(data: Mapping[str, Any], kind: Any, key: Key, place: SettingsPlace, *, is_text: bool) -> Iterator[Leaf]:
    for name, value in data.items():
        child_key = (*key, name)
        if (child := _child(kind, name)) is None:
            near = _nearest(child_key, kind)
            hint = f"Did you mean {near}?" if near else "`wolo config show` lists them all."
            raise ConfigError(f"{place.at(child_key)}: there is no setting {join_key(child_key)}.", hint=hint)
        if not _is_group(child):
            yield Leaf(child_key, _convert(value, child, child_key, place, is_text=is_text))
        elif isinstance(value, Mapping):
            yield from _find_leaves(value, child, child_key, place, is_text=is_text)
        else:
            inside = ", ".join(join_key((*child_key, each)) for each in _names(child))
            raise ConfigError(f"{place.at(child_key)}: {join_key(child_key)} is a group of settings, not a setting.", hint=inside)


def _child(kind: Any, name: str) -> Any:
    if isinstance(kind, type) and issubclass(kind, Struct):
        return _types(kind).get(name)
    return get_args(kind)[1]


@cache
def _types(kind: type[Struct]) -> dict[str, Any]:
    return {each.encode_name: each.type for each in fields(kind)}


def _is_group(kind: Any) -> bool:
    return (isinstance(kind, type) and issubclass(kind, Struct)) or get_origin(kind) is Mapping


def _names(kind: Any) -> list[str]:
    return list(_types(kind)) if isinstance(kind, type) and issubclass(kind, Struct) else ["NAME"]


def _convert(value: Any, kind: Any, key: Key, place: SettingsPlace, *, is_text: bool) -> Any:
    if is_text and isinstance(value, str) and any(get_origin(each) is tuple for each in (kind, *get_args(kind))):
        if not value.lstrip().startswith("["):
            value = [value] if value else []
        else:
            value = parse_toml(f"list = {value}".encode(), "the list")[1]["list"]
    if is_text and kind is Any and isinstance(value, str):  # flags of a dialect have types that only their format knows
        with suppress(ConfigError):
            parsed = parse_toml(f"value = {value}".encode(), "the value")[1]["value"]
            value = parsed if isinstance(parsed, bool | int | float | list | dict) else value
    try:
        converted = msgspec.convert(value, kind, strict=not is_text)
        if isinstance(converted, float) and math.isnan(converted):  # NaN passes every limit
            raise msgspec.ValidationError("Expected `float`")
        return converted
    except msgspec.ValidationError as error:
        from wolo.config import validation_errors  # noqa: PLC0415  # rarely needed

        raise ConfigError(f"{place.at(key)}: {validation_errors.sentence(join_key(key), value, kind, str(error))}") from error


def _nearest(key: Key, kind: Any) -> str:
    """Compares the whole key, then its last part in other groups."""
    import difflib  # noqa: PLC0415  # 5 ms, for typos only

    here = [(*key[:-1], name) for name in _names(kind)]
    every = [*here, *_all_keys(Settings, ())]
    same_end = [each for each in every if each[-1] == key[-1] and len(each) <= len(key) + 1]
    if same_end:
        return join_key(same_end[0])
    for candidates in (here, every):
        found = difflib.get_close_matches(join_key(key), map(join_key, candidates), n=1, cutoff=0.75)
        if found:
            return found[0]
    close = difflib.get_close_matches(key[-1], [each[-1] for each in every], n=1, cutoff=0.75)
    return next((join_key(each) for each in every if close and each[-1] == close[0]), "")


def _all_keys(kind: type[Struct], start: Key) -> Iterator[Key]:
    for name, child in _types(kind).items():
        key = (*start, name)
        yield key
        if isinstance(child, type) and issubclass(child, Struct):
            yield from _all_keys(child, key)
