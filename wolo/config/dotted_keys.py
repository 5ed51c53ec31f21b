"""Settings by their dotted keys: which there are, of which type, and what is wrong with a value."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple, get_args, get_origin

import msgspec
from msgspec import Struct
from msgspec.structs import fields

from wolo.config.files import find_line, parse_toml
from wolo.config.schema import Settings
from wolo.errors import ConfigError

Key = tuple[str, ...]

_PART = re.compile(r'"([^"]*)"|([^."]+)')


class Leaf(NamedTuple):
    key: Key
    value: Any
    """Of the type the key has."""


class Place(NamedTuple):
    """Where settings stand, for the sentence that says what is wrong with one."""

    name: str
    text: str = ""
    """Of a file: to find the line."""
    is_command_line: bool = False

    def at(self, key: Key) -> str:
        line = find_line(self.text, key) if self.text else None
        return f"{self.name}, line {line}" if line else self.name

    def at_words(self, words: str) -> str:
        """Where exactly these words stand."""
        at = self.text.find(words) if words else -1
        line = self.text.count("\n", 0, at) + 1
        return f"{self.name}, line {line}" if at >= 0 else self.name


def leaves(data: Mapping[str, Any], place: Place) -> Iterator[Leaf]:
    """Every single setting in nested tables. Raises ConfigError for an unknown key and a value of the wrong type."""
    return _walk(data, Settings, (), place, is_text=False)


def leaf(dotted_key: str, value: str, place: Place) -> Leaf:
    """One setting given as words: `5` is a number where the setting is one, a list is one word or `["a", "b"]`."""
    key = parse_key(dotted_key)
    data: Any = value
    for name in reversed(key):
        data = {name: data}
    return next(_walk(data, Settings, (), place, is_text=True))


def parse_key(text: str) -> Key:
    """`providers."my.host".base_url` has three parts."""
    return tuple(quoted or bare.strip() for quoted, bare in _PART.findall(text)) or ("",)


def dotted(key: Key) -> str:
    return ".".join(name if re.fullmatch(r"[\w-]+", name) else f'"{name}"' for name in key)


def values(settings: Struct, start: Key = ()) -> Iterator[tuple[Key, Any]]:
    """Every single setting and its value, in the order of the schema."""
    for name in _types(type(settings)):
        key, value = (*start, name), getattr(settings, name)
        if isinstance(value, Struct):
            yield from values(value, key)
        elif isinstance(value, Mapping) and any(isinstance(inner, Struct) for inner in value.values()):
            for name, inner in value.items():
                yield from values(inner, (*key, name))
        else:
            yield key, value


def build(found: Iterable[Leaf]) -> Settings:
    """Later leaves of the same key win."""
    data: dict[str, Any] = {}
    for key, value in found:
        table = data
        for name in key[:-1]:
            table = table.setdefault(name, {})
        table[key[-1]] = value
    settings = _built(data, Settings)
    assert isinstance(settings, Settings)
    return settings


def _built(data: Mapping[str, Any], kind: Any) -> Any:
    """The leaves are of the right type: constructing takes a third of the time that converting all would."""
    made = {}
    for name, value in data.items():
        child = _child(kind, name)
        made[name] = _built(value, child) if _is_group(child) else value
    return kind(**made) if isinstance(kind, type) and issubclass(kind, Struct) else made


def _walk(data: Mapping[str, Any], kind: Any, key: Key, place: Place, *, is_text: bool) -> Iterator[Leaf]:
    for name, value in data.items():
        child_key = (*key, name)
        child = _child(kind, name)
        if child is None:
            raise _unknown(child_key, kind, place)
        if not _is_group(child):
            yield Leaf(child_key, _convert(value, child, child_key, place, is_text=is_text))
        elif isinstance(value, Mapping):
            yield from _walk(value, child, child_key, place, is_text=is_text)
        else:
            inside = ", ".join(dotted((*child_key, each)) for each in _names(child))
            raise ConfigError(f"{place.at(child_key)}: {dotted(child_key)} is a group of settings, not one.", hint=inside)


def _child(kind: Any, name: str) -> Any:
    """The type of what stands under `name`; None when nothing may."""
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


def _convert(value: Any, kind: Any, key: Key, place: Place, *, is_text: bool) -> Any:
    if is_text and any(get_origin(each) is tuple for each in (kind, *get_args(kind))):
        value = _list(value)
    try:
        converted = msgspec.convert(value, kind, strict=not is_text)
        if isinstance(converted, float) and math.isnan(converted):  # it passes every limit, being neither above nor below
            raise msgspec.ValidationError("Expected `float`")
        return converted
    except msgspec.ValidationError as error:
        from wolo.config import validation_errors  # noqa: PLC0415  # few make any

        raise ConfigError(f"{place.at(key)}: {validation_errors.sentence(dotted(key), value, kind, str(error))}") from error


def _list(text: str) -> Any:
    if not text.lstrip().startswith("["):
        return [text] if text else []
    return parse_toml(f"list = {text}".encode(), "the list")[1]["list"]


def _unknown(key: Key, kind: Any, place: Place) -> ConfigError:
    near = _nearest(key, kind)
    hint = f"Did you mean {near}?" if near else "`wolo config show` lists them all."
    return ConfigError(f"{place.at(key)}: there is no setting {dotted(key)}.", hint=hint)


def _nearest(key: Key, kind: Any) -> str:
    """By the whole key, or by its last part in another group."""
    import difflib  # noqa: PLC0415  # 5 ms, for a typing mistake only

    here = [(*key[:-1], name) for name in _names(kind)]
    every = [*here, *_all_keys(Settings, ())]
    same_end = [each for each in every if each[-1] == key[-1] and len(each) <= len(key) + 1]
    if same_end:
        return dotted(same_end[0])
    for candidates in (here, every):
        found = difflib.get_close_matches(dotted(key), map(dotted, candidates), n=1, cutoff=0.75)
        if found:
            return found[0]
    close = difflib.get_close_matches(key[-1], [each[-1] for each in every], n=1, cutoff=0.75)
    return next((dotted(each) for each in every if close and each[-1] == close[0]), "")


def _all_keys(kind: type[Struct], start: Key) -> Iterator[Key]:
    for name, child in _types(kind).items():
        key = (*start, name)
        yield key
        if isinstance(child, type) and issubclass(child, Struct):
            yield from _all_keys(child, key)
