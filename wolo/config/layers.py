"""Settings in layers: defaults < the user's config.toml < the project's < environment < command line; and who said what.

A project's `.wolo/config.toml` is read once its folder is trusted, and can only make wolo stricter.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import to_builtins

from wolo.config import consents, project
from wolo.config.cli_options import Given
from wolo.config.dotted_keys import Key, Leaf, Place, build, dotted, leaf, leaves, values
from wolo.config.files import parse_toml, read_toml
from wolo.config.permission_rules import decision_of, read_rules, read_saved_rules
from wolo.config.project import MORE_RULES, STRICTER
from wolo.config.schema import Config, Endpoint, Settings
from wolo.errors import ConfigError
from wolo.extensions.hooks.definitions import complaint
from wolo.guard.modes import SPELLINGS, find_mode
from wolo.guard.rules import Rule
from wolo.messages.secret_values import is_secret_name
from wolo.models import headers, secret_references
from wolo.models.address import display_url
from wolo.places import Places, find_home
from wolo.workspace.root import find_root

ENVIRONMENT = {"WOLO_MODEL": "model", "WOLO_MODE": "mode"}
ENDPOINT_ENVIRONMENT = {"WOLO_BASE_URL": "base_url", "WOLO_API_KEY": "api_key", "WOLO_API": "api"}
FLAGS = {
    "model": "model",
    "fallback_model": "fallback_model",
    "agent": "agent",
    "mode": "mode",
    "thinking": "thinking",
    "sandbox": "sandbox.backend",
    "max_turns": "limits.max_turns",
    "max_cost": "limits.max_cost",
    "max_tokens": "limits.max_tokens",
    "max_seconds": "limits.max_seconds",
    "tools": "tools.offer",
    "disallow_tools": "tools.hide",
    "verify": "verify.command",
    "plain": "ui.plain",
}
"""Options of the command line that are settings of another name or depth."""
ENDPOINT_FLAGS = ("base_url", "api_key", "api")
PROVIDER_NAME = re.compile(r"[\w.-]+", re.ASCII)
LONGEST_PLAIN = 20
"""What stands in the query of an address and is longer may be a key; a date or a version is not."""
MOST_NAMED = 20
"""Of the settings of a project that do not count."""
HIDDEN = "(hidden)"


def load(
    places: Places,
    environ: Mapping[str, str] | None = None,
    flags: Given | None = None,
    sets: Iterable[str] = (),
    cwd: Path | None = None,
) -> Config:
    """Of the `flags` those that are no settings are passed over. `trust` names the folder that is trusted for this run.

    Raises ConfigError: a setting that cannot be used is never passed over.
    """
    environ = os.environ if environ is None else environ
    flags = {} if flags is None else flags
    folder = Path(os.path.realpath(cwd or Path.cwd()))
    root = find_root(folder)
    found = _Found(root)
    _add_user_file(found, places.config / "config.toml")
    _notice_misplaced(found, places)
    found.rules += read_saved_rules(places.config / "permissions.toml", root, found.notices)
    _add_project(found, places, root, folder, flags)
    _add_environment(found, environ)
    _add_flags(found, flags)
    for text in sets:
        _add_set(found, text)
    return found.config(_endpoint(found, environ, flags))


class _Found:
    """What the layers have said so far, lowest first."""

    def __init__(self, root: Path) -> None:
        self.notices: list[str] = []
        self.rules: list[Rule] = []
        self.sources: dict[str, str] = {}
        self.trusts_project = False
        self._root = root
        self._values: dict[Key, Any] = {}

    def add(self, one: Leaf, source: str, place: Place) -> None:
        key, value = one
        _check(one, place)
        if key[0] == "permissions":
            self.rules += read_rules(value, decision_of(key[-1]), source, place, self._root)
            value = (*self._values.get(key, ()), *value)
            source = ", ".join(dict.fromkeys([*filter(None, [self.sources.get(dotted(key))]), source]))
        self._values[key] = value
        self.sources[dotted(key)] = source

    def tighten(self, one: Leaf, place: Place) -> bool:
        """Adds what a project says if it makes wolo stricter. False: it would not, and does not count."""
        key, wanted = one
        if key in MORE_RULES:
            self.add(one, place.name, place)
            return True
        if key not in STRICTER:
            return False
        held = dict(values(self._settings()))[key]
        stricter = STRICTER[key](held, wanted)
        if stricter != held:
            self.add(Leaf(key, stricter), place.name, place)
        return bool(stricter == wanted)

    def _settings(self) -> Settings:
        return build(Leaf(key, value) for key, value in self._values.items())

    def config(self, endpoint: Endpoint) -> Config:
        return Config(
            settings=self._settings(),
            endpoint=endpoint,
            rules=tuple(self.rules),
            sources=self.sources,
            notices=tuple(self.notices),
            trusts_project=self.trusts_project,
        )


def _check(one: Leaf, place: Place) -> None:
    key, value = one
    if key == ("mode",) and value == "yolo" and not place.is_command_line:
        raise ConfigError(
            f"{place.at(key)}: mode yolo is never taken from a file or the environment.", hint="Give --yolo on the command line."
        )
    if key[0] == "providers" and not PROVIDER_NAME.fullmatch(key[1]):
        raise ConfigError(
            f'{place.at(key[:2])}: "{key[1]}" cannot be the name of a provider: nobody could write {key[1]}/MODEL.',
            hint="Letters, digits and . _ - may be in it.",
        )
    if (key[:2] == ("headers", "extra") or key[2:3] == ("headers",)) and not headers.may_be_set(key[-1]):
        raise ConfigError(f"{place.at(key)}: `{key[-1]}` cannot be set as a header.", hint=f"Take it out of {dotted(key[:-1])}.")
    if key[0] == "hooks" and (wrong := next(filter(None, (complaint(hook.matcher) for hook in value)), "")):
        raise ConfigError(f"{place.at(key)}: {dotted(key)}: {wrong}.")
    if key[0] == "limits" and value is not None and value <= 0:
        raise ConfigError(f"{place.at(key)}: {dotted(key)} cannot be {value:g}: it must be above 0.")


def check_user_file(data: bytes, path: Path) -> list[str]:
    """Raises ConfigError for what `load` would find wrong if the user's settings said this; returns its notices."""
    found = _Found(find_root(Path(os.path.realpath(Path.cwd()))))
    _add_user_text(found, *parse_toml(data, path), path)
    found.config(Endpoint())
    return found.notices


def _add_user_file(found: _Found, path: Path) -> None:
    _add_user_text(found, *read_toml(path, found.notices), path)


def _add_user_text(found: _Found, text: str, data: Mapping[str, Any], path: Path) -> None:
    place = Place(str(path), text)
    for one in leaves(data, place):
        found.add(one, str(path), place)


def _notice_misplaced(found: _Found, places: Places) -> None:
    """Home is no project, and other programs keep their settings there."""
    misplaced = find_home() / ".wolo" / "config.toml"
    if misplaced != places.config / "config.toml" and os.path.lexists(misplaced):
        found.notices.append(f"{misplaced} is not read: your settings are those in {places.config / 'config.toml'}.")


def _add_project(found: _Found, places: Places, root: Path, cwd: Path, flags: Given) -> None:
    """Nothing is read before a person said that they trust the folder."""
    brought = project.find(root, cwd)
    if not brought:
        return
    answer = "trusted" if flags.get("trust") == str(root) else consents.trust_in(places, root, found.notices)
    found.trusts_project = answer == "trusted"
    if answer is None:
        found.notices.append(
            f"{project.on_one_line(root)} is not trusted, so what it brings along is not used: {project.named(brought, root)}."
            " The next start in a terminal asks; --trust trusts it for one run."
        )
    if not found.trusts_project:
        return
    for path in project.settings_files(root, cwd):
        _add_project_file(found, path, root)


def _add_project_file(found: _Found, path: Path, root: Path) -> None:
    text, data = parse_toml(project.read_file(path, root), path)
    place = Place(str(path), text)
    ignored = [one.key for one in leaves(data, place) if not found.tighten(one, place)]
    found.notices += [
        f"{place.at(key)}: {dotted(key)} is ignored: a project may only make wolo stricter." for key in ignored[:MOST_NAMED]
    ]
    if (more := len(ignored) - MOST_NAMED) > 0:
        found.notices.append(f"{path}: {more} more settings are ignored.")


def _add_environment(found: _Found, environ: Mapping[str, str]) -> None:
    for name, key in ENVIRONMENT.items():
        if value := environ.get(name, "").strip():
            found.add(leaf(key, value, Place(name)), name, Place(name))


def _add_flags(found: _Found, flags: Given) -> None:
    for name, key in FLAGS.items():
        value = flags.get(name)
        if isinstance(value, str):
            place = Place(f"--{name.replace('_', '-')}", is_command_line=True)
            found.add(leaf(key, _spelled(key, value), place), place.name, place)
    for name in ("allow", "deny"):
        rules = flags.get(name)
        place = Place(f"--{name}", is_command_line=True)
        if isinstance(rules, list):
            found.add(Leaf(("permissions", name), tuple(rules)), place.name, place)


def _spelled(key: str, value: str) -> str:
    """As the settings write it: other agents' names of modes, a list of tools with commas."""
    if key == "mode":
        return find_mode(SPELLINGS.get(value, value)).name
    if key.startswith("tools."):
        names = [name.strip() for name in value.split(",")]
        return str([name for name in names if name]) if names else value
    return value.lower() if key == "thinking" else value


def _add_set(found: _Found, text: str) -> None:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise ConfigError(f'--set "{text}" is not KEY=VALUE.', hint="--set limits.max_turns=20")
    place = Place("--set", is_command_line=True)
    found.add(leaf(key.strip(), value.strip(), place), "--set", place)


def _endpoint(found: _Found, environ: Mapping[str, str], flags: Given) -> Endpoint:
    given: dict[str, str] = {}
    for variable, name in ENDPOINT_ENVIRONMENT.items():
        if value := environ.get(variable, "").strip():
            given[name] = value
            found.sources[name] = variable
    for name in ENDPOINT_FLAGS:
        said = flags.get(name)
        if isinstance(said, str) and said:
            given[name] = said
            found.sources[name] = f"--{name.replace('_', '-')}"
    return Endpoint(**given)


def rows(config: Config) -> Iterator[tuple[str, Any, str]]:
    """Every setting for people: its key, its plain value and who set it. What may be a secret is not shown."""
    for key, value in (*values(config.settings), *values(config.endpoint)):
        name = dotted(key)
        said = (source for each, source in config.sources.items() if each == name or each.startswith(f"{name}."))
        yield name, _without_secrets(key, _said(to_builtins(value))), next(said, "default")


def _said(value: Any) -> Any:
    """Without what rows of a list do not say."""
    if isinstance(value, list | tuple):
        return type(value)(_said(each) for each in value)
    return {name: _said(each) for name, each in value.items() if each is not None} if isinstance(value, dict) else value


def _without_secrets(key: Key, value: Any) -> Any:
    """Keys, the values of headers, the password in an address. Where a secret comes from is none."""
    match key[-2:]:
        case (*_, "api_key") if value:
            return _hidden(value)
        case ("headers", "extra") | (_, "headers" | "env") if isinstance(value, dict):
            return {name: _hidden(each) for name, each in value.items()}
        case (_, "query") if isinstance(value, dict):
            return {name: _hidden(each) if _may_be_secret(name, each) else each for name, each in value.items()}
        case (*_, "base_url") if value:
            return display_url(value)
        case _:
            return value


def _may_be_secret(name: str, value: str) -> bool:
    return is_secret_name(name) or len(value) > LONGEST_PLAIN


def _hidden(value: str) -> str:
    return value if secret_references.is_reference(value) else HIDDEN
