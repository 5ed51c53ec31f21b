"""Edits the user's settings files; preserves comments and order, and validates before writing."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from msgspec import NODEFAULT, Struct, to_builtins
from msgspec.structs import fields

from wolo.config.dotted_keys import SettingsPlace, join_key, leaf, parse_key
from wolo.config.files import change_document, lock_folder, read_own, replace_file
from wolo.config.layers import check_user_file
from wolo.config.permission_rules import EVERYWHERE
from wolo.config.schema import THEMES
from wolo.errors import ConfigError, UsageError
from wolo.guard.rules import Decision, parse_rule
from wolo.models.secret_references import COMMAND, is_reference
from wolo.places import Notices, Places
from wolo.workspace.root import origin_of


def set_value(places: Places, key: str, value: str) -> None:
    """Sets one setting in config.toml. Raises ConfigError and leaves the file unchanged if the value is invalid."""
    one = leaf(key, value, SettingsPlace("config.toml"))
    path = places.config / "config.toml"
    with change_document(path) as document:
        table = document
        for name in one.key[:-1]:
            table = table.setdefault(name, {})
            if not isinstance(table, dict):
                raise ConfigError(f"{path}: {join_key(one.key)} conflicts with the file: a part of the key is not a table.")
        if one.value is None:
            table.pop(one.key[-1], None)
        else:
            table[one.key[-1]] = _plain(to_builtins(one.value))
        check_user_file(document.as_string().encode(), path)


def write_setting(places: Places, key: str, value: str) -> str:
    """Like `set_value`, for user input; returns the dotted key. Raises UsageError for an API key: other users could read it."""
    name = join_key(parse_key(key))
    if name.endswith(".api_key") and not (is_reference(value) or value.startswith(COMMAND)):
        raise UsageError(
            "API keys cannot be arguments: other users could read them.",
            hint='`wolo auth login` saves it; the setting may be "$VARIABLE" or "!command".',
        )
    if name == "ui.theme" and value not in THEMES and not (places.config / "themes" / f"{value}.toml").is_file():
        hint = f"Built in: {', '.join(THEMES)}; your own are files in {places.config / 'themes'}."
        raise UsageError(f"There is no theme {value}.", hint=hint)
    set_value(places, key, value)
    return name


def set_table(places: Places, group: str, name: str, table: Struct) -> None:
    """Writes all non-default fields to `group.NAME` in config.toml. Raises ConfigError if the result is invalid."""
    path = places.config / "config.toml"
    with change_document(path) as document:
        document.setdefault(group, {})[name] = _plain(changed_fields(table))
        check_user_file(document.as_string().encode(), path)


def changed_fields(table: Struct) -> dict[str, Any]:
    """The non-default fields as JSON values, those of nested tables too."""
    changed = {}
    for field in fields(table):
        value = getattr(table, field.name)
        if value != field.default and (field.default_factory is NODEFAULT or value):
            changed[field.encode_name] = changed_fields(value) if isinstance(value, Struct) else to_builtins(value)
    return changed


def remove_table(places: Places, group: str, name: str) -> bool:
    """Removes `group.NAME` from config.toml; returns False if it was not there."""
    with change_document(places.config / "config.toml") as document:
        within = document.get(group, {})
        if name not in within:
            return False
        del within[name]
        if not within:
            del document[group]
    return True


def replace_settings(places: Places, before: bytes, after: bytes) -> None:
    """Replaces config.toml with edited text that `check_user_file` accepted.

    Raises ConfigError if the file is no longer as it was `before`.
    """
    path = places.config / "config.toml"
    with lock_folder(places.config):
        if (read_own(path, Notices()) or b"") != before:
            beside = path.with_name("config.toml.edited")
            replace_file(beside, after.decode())
            raise ConfigError(f"{path} was changed by another program.", hint=f"Your text is in {beside}.")
        replace_file(path, after.decode())


def save_rule(places: Places, workspace: Path | None, rule: str, decision: Decision = "allow") -> None:
    """Saves a rule of an answer, checked by a `Judge`, for this workspace or for all."""
    rule = str(parse_rule(rule, decision))
    with change_document(places.config / "permissions.toml") as document:
        rules = document.setdefault(_table_name(places, workspace), {}).setdefault(decision, [])
        if rule not in rules:
            rules.append(rule)


def delete_rule(places: Places, workspace: Path | None, rule: str) -> list[str]:
    """Removes a saved rule; returns the decisions it was saved under."""
    with change_document(places.config / "permissions.toml") as document:
        table = document.get(_table_name(places, workspace), {})
        decisions = [decision for decision, rules in table.items() if rule in rules]
        for decision in decisions:
            table[decision].remove(rule)
    return decisions


def _table_name(places: Places, workspace: Path | None) -> str:
    return EVERYWHERE if workspace is None else str(origin_of(places.worktrees, Path(os.path.realpath(workspace))))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items() if each not in (None, {}, [])}
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value
