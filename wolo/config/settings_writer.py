"""Changing the user's settings files: comments and order stay, nothing is written that could not be read back."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import NODEFAULT, Struct, to_builtins
from msgspec.structs import FieldInfo, fields

from wolo.config.dotted_keys import Place, dotted, leaf, parse_key
from wolo.config.files import locked, read_own, read_toml, replace_file
from wolo.config.layers import check_user_file
from wolo.config.permission_rules import EVERYWHERE
from wolo.errors import ConfigError, UsageError
from wolo.guard.rules import parse_rule
from wolo.models.secret_references import COMMAND, is_reference
from wolo.places import Places

if TYPE_CHECKING:
    from tomlkit import TOMLDocument


def set_value(places: Places, key: str, value: str) -> None:
    """Writes one setting to the user's config.toml. Raises ConfigError, and leaves the file, when it makes no sense."""
    one = leaf(key, value, Place("config.toml"))
    path = places.config / "config.toml"
    with locked(places.config):
        document = open_document(path)
        table: Any = document
        for name in one.key[:-1]:
            table = table.setdefault(name, {})
            if not isinstance(table, dict):
                raise ConfigError(f"{path}: {dotted(one.key)} does not fit what the file says.")
        if one.value is None:
            table.pop(one.key[-1], None)
        else:
            table[one.key[-1]] = _plain(to_builtins(one.value))
        text = document.as_string()
        check_user_file(text.encode(), path)
        replace_file(path, text)


def write_setting(places: Places, key: str, value: str) -> str:
    """As `set_value`, for what a user typed; returns the dotted key. Raises UsageError for an API key: others could read it."""
    name = dotted(parse_key(key))
    if name.endswith(".api_key") and not (is_reference(value) or value.startswith(COMMAND)):
        raise UsageError(
            "A key is never an argument: others could read it there.",
            hint='`wolo auth login` keeps it; the setting may be "$VARIABLE" or "!command".',
        )
    set_value(places, key, value)
    return name


def set_table(places: Places, group: str, name: str, table: Struct) -> None:
    """Writes `group.NAME` to the user's config.toml, all of it that is no default. Raises ConfigError where it makes no sense."""
    path = places.config / "config.toml"
    with locked(places.config):
        document = open_document(path)
        within: Any = document.setdefault(group, {})
        said = {field.encode_name: getattr(table, field.name) for field in fields(table) if not _is_default(table, field)}
        within[name] = _plain(to_builtins(said))
        text = document.as_string()
        check_user_file(text.encode(), path)
        replace_file(path, text)


def remove_table(places: Places, group: str, name: str) -> bool:
    """Takes `group.NAME` out of the user's config.toml; False where it was not there."""
    path = places.config / "config.toml"
    with locked(places.config):
        document = open_document(path)
        within: Any = document.get(group, {})
        if name not in within:
            return False
        del within[name]
        if not within:
            del document[group]
        replace_file(path, document.as_string())
    return True


def replace_settings(places: Places, before: bytes, after: bytes) -> None:
    """The whole config.toml, as somebody edited it and `check_user_file` found it right.

    Raises ConfigError when it is not what it was `before`.
    """
    path = places.config / "config.toml"
    with locked(places.config):
        if (read_own(path, []) or b"") != before:
            beside = path.with_name("config.toml.edited")
            replace_file(beside, after.decode())
            raise ConfigError(f"{path} was changed by another program meanwhile.", hint=f"Your text is in {beside}.")
        replace_file(path, after.decode())


def remember_rule(places: Places, workspace: Path | None, rule: str) -> None:
    """Keeps a person's "always" for this workspace, or for all of them. A `Judge` found no fault in the rule."""
    rule = str(parse_rule(rule, "allow"))
    path = places.config / "permissions.toml"
    with locked(places.config):
        document = open_document(path)
        table: Any = document.setdefault(_named(workspace), {})
        rules = table.setdefault("allow", [])
        if rule not in rules:
            rules.append(rule)
            replace_file(path, document.as_string())


def forget_rule(places: Places, workspace: Path | None, rule: str) -> list[str]:
    """Takes a kept rule away again, of whatever decision; under which of them it stood."""
    path = places.config / "permissions.toml"
    with locked(places.config):
        document = open_document(path)
        table: Any = document.get(_named(workspace), {})
        found = [decision for decision, rules in table.items() if rule in rules]
        for decision in found:
            table[decision].remove(rule)
        if found:
            replace_file(path, document.as_string())
    return found


def _is_default(table: Struct, field: FieldInfo) -> bool:
    value = getattr(table, field.name)
    return value == field.default or (field.default_factory is not NODEFAULT and not value)


def _named(workspace: Path | None) -> str:
    return EVERYWHERE if workspace is None else os.path.realpath(workspace)


def open_document(path: Path, *, is_secret: bool = False) -> TOMLDocument:
    """Empty when there is no such file. Raises ConfigError for one that is damaged, or that others may have written."""
    import tomlkit  # noqa: PLC0415  # 30 ms, for writing only

    text, _ = read_toml(path, [], is_secret=is_secret)
    return tomlkit.parse(text)


def _plain(value: Any) -> Any:
    """As TOML can say it: what is not said has no value there."""
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items() if each not in (None, {}, [])}
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value
