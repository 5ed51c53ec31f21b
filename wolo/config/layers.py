"""Combines settings in layers and records their sources.

Defaults < user's config.toml < project's config.toml < environment < command line < managed files. The project's file is read
only if its folder is trusted, and can only make wolo stricter.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import to_builtins
from msgspec.structs import replace

from wolo.config import cli_options, consents, files, managed, permission_rules, project
from wolo.config.dotted_keys import Key, Leaf, SettingsPlace, build, join_key, leaf, leaves, values
from wolo.config.project import MORE_RULES, STRICTER
from wolo.config.schema import THEMES, Config, Endpoint, Settings
from wolo.errors import ConfigError, ExtensionError, UsageError
from wolo.extensions.hooks.definitions import mistake
from wolo.foreign_places import first_names, present
from wolo.guard.modes import MODES, SPELLINGS, find_mode, is_looser
from wolo.guard.rules import Rule
from wolo.messages import secret_values, terminal_text
from wolo.models import address, headers, retry, secret_references
from wolo.places import TOOL_PACKAGES, Notices, Site, find_home
from wolo.workspace.root import find_root, origin_of

ENVIRONMENT = {"WOLO_MODEL": "model", "WOLO_MODE": "mode"}
ENDPOINT_ENVIRONMENT = {"WOLO_BASE_URL": "base_url", "WOLO_API_KEY": "api_key", "WOLO_API": "api"}
FLAGS = {
    "model": "model",
    "fallback_model": "fallback_model",
    "wait_for_reset": "retry.wait_for_reset_s",
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
"""Command line options that differ from the key of their setting."""
ENDPOINT_FLAGS = ("base_url", "api_key", "api", "drive", "account")
PROVIDER_NAME = r"(?a)[\w.-]+"
LONGEST_PLAIN = 20
"""Query values longer than this may be keys; dates and versions are shorter."""
MOST_NAMED = 20
"""Ignored settings of a project to name."""
HIDDEN = "(hidden)"
SAFE_MODE = (
    "Safe mode: project files, instructions, hooks, MCP servers, plugins, skills, agents, commands, custom tools,"
    " language servers and programs of your settings are not used."
)
_EXTENDING: frozenset[tuple[str, ...]] = frozenset(
    {
        *(("agent",), ("hooks",), ("mcp_servers",), ("verify", "command")),
        *(("lsp", "servers"), ("shell", "snapshot"), ("ui", "status_command"), ("ui", "notify_command")),
    }
)
"""Settings that bring programs and files of the user into wolo."""
MANAGED = "managed"
"""Source of settings that the administrator of this machine has fixed."""

if TYPE_CHECKING:
    from wolo.config.translation.findings import Reading


def load(site: Site, flags: cli_options.Flags | None = None, sets: Iterable[str] = ()) -> Config:
    """Ignores `flags` that are not settings. `trust` in them names the folder that is trusted for this run.

    Raises ConfigError: an unusable setting is never ignored.
    """
    flags = {} if flags is None else flags
    layers = _Layers(site.root)
    path = site.places.config / "config.toml"
    _add_user_text(layers, *files.read_toml(path, layers.notices), path)
    misplaced = find_home() / ".wolo" / "config.toml"  # home is not a project, and other programs store settings there
    if misplaced != path and os.path.lexists(misplaced):
        layers.notices.add(f"{misplaced} is not read: your settings are those in {path}.")
    layers.rules += permission_rules.read_saved_rules(
        site.places.config / "permissions.toml", origin_of(site.places.worktrees, site.root), layers.notices
    )
    if not (is_safe := bool(flags.get("safe_mode"))):
        _add_project(layers, site, flags)
        if site.places.plugin_index.exists():
            _add_plugin_denials(layers, site)
    for name, key in ENVIRONMENT.items():
        if written := site.environ.get(name, "").strip():
            layers.add(leaf(key, written, SettingsPlace(name)), name, SettingsPlace(name))
    for name, key in FLAGS.items():
        value = flags.get(name)
        if isinstance(value, str):
            place = SettingsPlace(f"--{name.replace('_', '-')}", is_command_line=True)
            layers.add(leaf(key, _normalise(key, value), place), place.name, place)
    for name in ("allow", "deny"):
        rules = flags.get(name)
        place = SettingsPlace(f"--{name}", is_command_line=True)
        if isinstance(rules, list):
            layers.add(Leaf(("permissions", name), tuple(rules)), place.name, place)
    for text in sets:
        key, equals, written = text.partition("=")
        if not equals or not key.strip():
            raise ConfigError(f'--set "{text}" is not KEY=VALUE.', hint="--set limits.max_turns=20")
        place = SettingsPlace("--set", is_command_line=True)
        layers.add(leaf(key.strip(), written.strip(), place), "--set", place)
    if is_safe:
        layers.remove_extensions(flags)
    for path, text, data in managed.read_managed(site.environ):
        layers.add_managed(data, SettingsPlace(str(path), text, is_managed=True))
    endpoint: dict[str, str] = {}
    for variable, name in ENDPOINT_ENVIRONMENT.items():
        if value := site.environ.get(variable, "").strip():
            endpoint[name] = value
            layers.sources[name] = variable
    for name in ENDPOINT_FLAGS:
        option = flags.get(name)
        if isinstance(option, str) and option:
            endpoint[name] = option
            layers.sources[name] = f"--{name.replace('_', '-')}"
    layers.lower_mode()
    layers.note_missing_theme(site.places.config / "themes")
    config = replace(layers.config(Endpoint(**endpoint)), is_safe=is_safe)
    if not is_safe and _has_extensions(site):
        from wolo.config.python_files.extension_providers import add_providers  # noqa: PLC0415  # few users have some

        config = add_providers(config, site)
    return _with_given_servers(config, flags) if flags.get("mcp_config") or flags.get("strict_mcp_config") else config


def _has_extensions(site: Site) -> bool:
    """Of the user, or of a package, as far as that is known."""
    if (site.places.config / project.EXTENSIONS.name).is_dir():
        return True
    with suppress(OSError, UnicodeError):
        return "\nextensions " in (site.places.cache / TOOL_PACKAGES).read_text(encoding="utf-8")
    return False


class _Layers:
    """The values of the layers so far, lowest first."""

    def __init__(self, root: Path) -> None:
        self.notices = Notices()
        self.rules: list[Rule] = []
        self.sources: dict[str, str] = {}
        self.trusts_project = False
        self._root = root
        self._values: dict[Key, Any] = {}

    def add(self, one: Leaf, source: str, place: SettingsPlace) -> None:
        key, value = one
        _check(one, place)
        if key[0] == "permissions":
            self.rules += permission_rules.read_rules(value, permission_rules.decision_of(key[-1]), source, place, self._root)
            value = (*self._values.get(key, ()), *value)
            source = ", ".join(dict.fromkeys([*filter(None, [self.sources.get(join_key(key))]), source]))
        self._values[key] = value
        self.sources[join_key(key)] = source

    def tighten(self, one: Leaf, place: SettingsPlace) -> bool:
        """Adds a project's setting if it makes wolo stricter. Returns False if the setting is ignored."""
        key, limit = one
        if key in MORE_RULES:
            self.add(one, place.name, place)
            return True
        if key not in STRICTER:
            return False
        held = dict(values(self._settings()))[key]
        if (stricter := STRICTER[key](held, limit)) != held:
            self.add(Leaf(key, stricter), place.name, place)
        return bool(stricter == limit or isinstance(limit, tuple))

    def remove_extensions(self, flags: cli_options.Flags) -> None:
        """Leaves the settings that extend wolo out. Raises UsageError for an option that needs them."""
        for name in ("agent", "mcp_config", "trust"):
            if flags.get(name):
                raise UsageError(f"--safe-mode does not go with --{name.replace('_', '-')}.")
        self.notices.add(SAFE_MODE)
        for key in [key for key in self._values if key[:1] in _EXTENDING or key[:2] in _EXTENDING]:
            if key[0] == "verify" and self.sources.get(join_key(key), "").startswith("--"):
                continue
            del self._values[key]
            self.sources.pop(join_key(key), None)
        self._values["lsp", "enabled"] = False
        self.sources["lsp.enabled"] = "--safe-mode"

    def add_managed(self, data: Mapping[str, Any], place: SettingsPlace) -> None:
        """Adds settings that no other layer changes. Rules and hooks of the user stay beside them."""
        for key, value in leaves(data, place):
            before, source = self._values.get(key), self.sources.get(join_key(key), "")
            if key[0] == "hooks":
                value = (*value, *(before or ()))
            elif key[0] != "permissions" and before is not None and before != value and not source.startswith(MANAGED):
                self.notices.add(f"{join_key(key)} of {source} has no effect: {place.name} sets it.")
            self.add(Leaf(key, value), f"{MANAGED} ({place.name})", place)

    def lower_mode(self) -> None:
        """Applies the modes that managed files allow. Raises UsageError for another one that was named for this run.

        A fixed mode allows only stricter ones, unless the files list some.
        """
        settings = self._settings()
        if self.sources.get("mode", "").startswith(MANAGED) and settings.managed.modes.allow is None:
            self._values["managed", "modes", "allow"] = tuple(mode for mode in MODES if not is_looser(mode, settings.mode))
            self.sources["managed.modes.allow"] = self.sources["mode"]
        if settings.managed.modes.has(settings.mode):
            return
        if self.sources.get("mode", "").startswith(("--", "WOLO_")):
            settings.managed.check_mode(settings.mode)
        self._values["mode",] = settings.managed.lower_mode(settings.mode)
        self.sources["mode"] = MANAGED

    def note_missing_theme(self, folder: Path) -> None:
        theme = self._values.get(("ui", "theme"), "auto")
        if theme not in THEMES and ("/" in theme or not (folder / f"{theme}.toml").is_file()):
            source = self.sources["ui.theme"]
            self.notices.add(f"There is no theme {theme}, which ui.theme of {source} names; the colours are those of `auto`.")

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


def _check(one: Leaf, place: SettingsPlace) -> None:
    key, value = one
    if key[0] == "managed" and not place.is_managed:
        raise ConfigError(
            f"{place.at(key)}: {join_key(key)} can only be set in managed files.", hint="`wolo config path` names them."
        )
    if key == ("mode",) and value == "yolo" and not place.is_command_line:
        raise ConfigError(
            f"{place.at(key)}: mode yolo cannot be set in a file or the environment.", hint="Use --yolo on the command line."
        )
    if key[0] == "providers" and not re.fullmatch(PROVIDER_NAME, key[1]):
        raise ConfigError(
            f'{place.at(key[:2])}: "{key[1]}" cannot be the name of a provider: nobody could write {key[1]}/MODEL.',
            hint="Use letters, digits and . _ - only.",
        )
    if (key[:2] == ("headers", "extra") or key[2:3] == ("headers",)) and not headers.may_be_set(key[-1]):
        raise ConfigError(
            f"{place.at(key)}: `{key[-1]}` cannot be set as a header.", hint=f"Remove it from {join_key(key[:-1])}."
        )
    if key[0] == "hooks" and (wrong := next(filter(None, (mistake(key[1], hook) for hook in value)), "")):
        raise ConfigError(f"{place.at(key)}: {join_key(key)}: {wrong}.")
    if key[0] == "limits" and value is not None and value <= 0:
        raise ConfigError(f"{place.at(key)}: {join_key(key)} cannot be {value:g}: it must be above 0.")


def check_user_file(data: bytes, path: Path) -> list[str]:
    """Checks the user's settings as `load` would. Raises ConfigError; returns the notices."""
    found = _Layers(find_root(Path(os.path.realpath(Path.cwd()))))
    _add_user_text(found, *files.parse_toml(data, path), path)
    found.config(Endpoint())
    return list(found.notices)


def _add_user_text(layers: _Layers, text: str, data: Mapping[str, Any], path: Path) -> None:
    place = SettingsPlace(str(path), text)
    for one in leaves(data, place):
        layers.add(one, str(path), place)


def _add_project(layers: _Layers, site: Site, flags: cli_options.Flags) -> None:
    """Reads nothing before the user has trusted the folder."""
    root, cwd = site.root, site.real_cwd
    if not (found_files := project.find(root, cwd)):
        return
    answer = "trusted" if flags.get("trust") == str(root) else consents.trust_in(site.places, root, layers.notices)
    layers.trusts_project = answer == "trusted"
    if answer is None:
        layers.notices.add(
            f"{project.on_one_line(root)} is not trusted, so these are not used: {project.name_files(found_files, root)}."
            " The next start in a terminal asks; --trust trusts it once."
        )
    if not layers.trusts_project:
        return
    for path in project.settings_files(root, cwd):
        text, data = files.parse_toml(project.read_file(path, root), path)
        place = SettingsPlace(str(path), text)
        ignored = [one.key for one in leaves(data, place) if not layers.tighten(one, place)]
        layers.notices.extend(
            f"{place.at(key)}: {join_key(key)} is ignored: a project may only make wolo stricter." for key in ignored[:MOST_NAMED]
        )
        if (more := len(ignored) - MOST_NAMED) > 0:
            layers.notices.add(f"{path}: {more} more settings are ignored.")
    for folder in project.folders(root, cwd):
        for name in present(project.RULES.places, first_names(folder)):
            if os.path.lexists(folder / name):
                _add_foreign_rules(layers, name, root, folder)


def _add_foreign_rules(layers: _Layers, name: str, root: Path, folder: Path) -> None:
    """What another agent's settings deny and ask about; a rule that wolo cannot hold is named before anything runs."""
    from wolo.config.translation.findings import Reading  # noqa: PLC0415  # only where there is such a file
    from wolo.config.translation.rules import add_project_rules  # noqa: PLC0415
    from wolo.extensions.settings_documents import parse_settings  # noqa: PLC0415

    path = folder / name
    shown = project.on_one_line(path.relative_to(root))
    try:
        table = parse_settings(project.read_file(path, root), path.name)
    except (ConfigError, ExtensionError) as error:
        layers.notices.add(f"{shown} cannot be read, so its permission rules do NOT hold: {error.message}")
        return
    reading = Reading(path, is_projects=True, anchor="" if folder == root else f"{folder.relative_to(root)}/")
    add_project_rules(reading, name, table)
    _add_rules(layers, reading, shown, SettingsPlace(str(path)))


def _add_plugin_denials(layers: _Layers, site: Site) -> None:
    """The calls that plugins deny (`excludeTools` of Gemini CLI)."""
    from wolo.config.plugins.installed import denials  # noqa: PLC0415  # most users have no plugins
    from wolo.config.translation.findings import Reading  # noqa: PLC0415  # the same
    from wolo.config.translation.rules import add_bare  # noqa: PLC0415

    for plugin, written in denials(site.places):
        reading = Reading(site.places.plugin_index)
        add_bare(reading, "deny", written)
        _add_rules(layers, reading, f"the plugin {plugin}", SettingsPlace(f"the plugin {plugin}"))


def _add_rules(layers: _Layers, reading: Reading, name: str, place: SettingsPlace) -> None:
    for finding in reading.findings:
        if finding.kind == "rule":
            decision, rule = finding.value
            layers.add(Leaf(("permissions", decision), (rule,)), name, place)
        elif finding.kind == "setting":
            layers.tighten(Leaf((finding.what,), finding.value), place)
        else:
            layers.notices.add(f"{name}: {terminal_text.clean_line(finding.what)}: {terminal_text.clean_line(finding.why)}")


def _normalise(key: str, value: str) -> str:
    """Converts to the form of the settings: modes of other agents, tools separated by commas."""
    if key == "mode":
        return find_mode(SPELLINGS.get(value, value)).name
    if key == "fallback_model" and "," in value:
        return str([name.strip() for name in value.split(",") if name.strip()])
    if key == "retry.wait_for_reset_s":
        return value or str(retry.LONGEST_RESET_S)
    if key.startswith("tools."):
        names = [name.strip() for name in value.split(",")]
        return str([name for name in names if name]) if names else value
    return value.lower() if key == "thinking" else value


def _with_given_servers(config: Config, flags: cli_options.Flags) -> Config:
    from wolo.config.foreign_servers import read_given  # noqa: PLC0415  # rarely given

    notices = Notices()
    given = read_given(cli_options.many(flags, "mcp_config"), notices)
    is_strict = bool(flags.get("strict_mcp_config"))
    return replace(config, given_servers=given, only_given_servers=is_strict, notices=(*config.notices, *notices))


def rows(config: Config) -> Iterator[tuple[str, Any, str]]:
    """Every setting with its key, plain value and source. Secrets are hidden."""
    for key, value in (*values(config.settings), *values(config.endpoint)):
        name = join_key(key)
        sources = (source for each, source in config.sources.items() if each == name or each.startswith(f"{name}."))
        yield name, _without_secrets(key, _without_none(to_builtins(value))), next(sources, "default")


def _without_none(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return type(value)(_without_none(each) for each in value)
    return {name: _without_none(each) for name, each in value.items() if each is not None} if isinstance(value, dict) else value


def _without_secrets(key: Key, value: Any) -> Any:
    """Hides keys, header values and passwords in URLs. References to secrets are shown."""
    match key[-2:]:
        case (*_, "api_key" | "client_secret" | "private_key" | "id_token") if value:
            return _hide(value)
        case ("headers", "extra") | (_, "headers" | "env") if isinstance(value, dict):
            return {name: _hide(each) for name, each in value.items()}
        case (_, "query") if isinstance(value, dict):
            return {
                name: _hide(each) if (secret_values.is_secret_name(name) or len(each) > LONGEST_PLAIN) else each
                for name, each in value.items()
            }
        case (*_, "base_url") if value:
            return address.display_url(value)
        case _:
            return value


def _hide(value: str) -> str:
    return value if secret_references.is_reference(value) else HIDDEN
