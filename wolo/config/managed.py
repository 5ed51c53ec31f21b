"""Settings of the administrator of this machine: read above every other layer, and what they allow."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from wolo.config.files import read_toml
from wolo.errors import ConfigError, UsageError
from wolo.guard.modes import MODES, find_mode, is_looser
from wolo.models.address import display_url
from wolo.models.provider import ModelChoice
from wolo.operating_system import user_id
from wolo.places import Notices

VARIABLE = "WOLO_MANAGED_DIR"
"""A folder that is read where the system's has no file."""
FOLDERS = {"darwin": "/Library/Preferences/wolo"}
FOLDER = "/etc/wolo"
_URL = r"([^:/]+)://([^/?#\\]*)(.*)"
"""Scheme, host and the rest."""


class Allowed(Struct, frozen=True, forbid_unknown_fields=True):
    allow: tuple[str, ...] | None = None
    """Patterns with `*` and `?`; not set: all."""

    def has(self, *names: str) -> bool:
        return self.allow is None or any(_matches(name, pattern) for name in names for pattern in self.allow)


class ManagedSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """What may be chosen on this machine. Only managed files can set it."""

    models: Allowed = Allowed()
    """`PROVIDER/MODEL`."""
    providers: Allowed = Allowed()
    base_urls: Allowed = Allowed()
    """Addresses that prompts are sent to: `https://llm.example.com/*`."""
    mcp: Allowed = Allowed()
    """MCP servers by name, by URL (`https://mcp.example.com/*`) or by program (`command:npx @example/*`)."""
    plugins: Allowed = Allowed()
    """Plugins by name or source."""
    marketplaces: Allowed = Allowed()
    """Marketplaces of plugins by name or source."""
    modes: Allowed = Allowed()
    """Of plan, ask, edit, auto and yolo."""

    def check_mode(self, name: str) -> None:
        """Raises UsageError."""
        if not self.modes.has(find_mode(name).name):
            allowed = ", ".join(mode for mode in MODES if self.modes.has(mode))
            raise UsageError(f"Mode {name} is not allowed on this machine.", hint=f"Allowed are: {allowed or 'none'}.")

    def lower_mode(self, name: str) -> str:
        """The loosest allowed mode that is not looser. Raises UsageError if there is none."""
        name = find_mode(name).name
        stricter = [mode for mode in MODES if self.modes.has(mode) and not is_looser(mode, name)]
        if not stricter:
            self.check_mode(name)
        return stricter[-1]

    def check_model(self, choice: ModelChoice) -> ModelChoice:
        """Returns the choice. Raises ConfigError."""
        self.check_address(choice)
        if not self.models.has(choice.label):
            raise ConfigError(f"The model {choice.label} is not allowed on this machine.", hint=_list(self.models))
        return choice

    def check_address(self, choice: ModelChoice) -> ModelChoice:
        """Returns the choice. Raises ConfigError for its provider or base URL."""
        if not self.providers.has(choice.provider.name):
            raise ConfigError(f"The provider {choice.provider.name} is not allowed on this machine.", hint=_list(self.providers))
        if choice.base_url and not self.base_urls.has(choice.base_url, f"{choice.base_url}/"):
            url = display_url(choice.base_url)
            raise ConfigError(f"The address {url} is not allowed on this machine.", hint=_list(self.base_urls))
        return choice

    def check_plugin(self, name: str, source: object) -> None:
        """Raises ConfigError."""
        if not self.plugins.has(name, str(source)):
            raise ConfigError(f"The plugin {name} is not allowed on this machine.", hint=_list(self.plugins))

    def check_marketplace(self, name: str, source: object) -> None:
        """Raises ConfigError."""
        if not self.marketplaces.has(name, str(source)):
            raise ConfigError(f"The marketplace {name} is not allowed on this machine.", hint=_list(self.marketplaces))


def _matches(name: str, pattern: str) -> bool:
    """In URLs, `*` of the scheme and of the host stays there, so that no path of another host matches."""
    pattern = pattern.replace("[", "[[]")  # only * and ? are patterns
    allowed, url = re.match(_URL, pattern, re.DOTALL), re.match(_URL, name, re.DOTALL)
    if not (allowed and url):
        return not allowed and fnmatchcase(name, pattern)
    scheme, host, path = url.groups()
    if "@" not in allowed[2]:
        host = host.rpartition("@")[2]
    rest = allowed[3] or ("*" if allowed[2].endswith("*") else "")
    return all(map(fnmatchcase, (scheme, host, path), (allowed[1], allowed[2], rest))) and ".." not in re.split(r"[/\\]", path)


def _list(allowed: Allowed) -> str:
    return f"Allowed are: {', '.join(allowed.allow or ()) or 'none'}."


def find_managed_files(environ: Mapping[str, str]) -> tuple[Path, ...]:
    """`managed.toml`, then `managed.d/*.toml` by name. Raises ConfigError for a folder that cannot be listed.

    WOLO_MANAGED_DIR counts where the system's folder has no file, and only if root or the user owns it.
    """
    files = _files_of(Path(FOLDERS.get(sys.platform, FOLDER)))
    if files or not (named := environ.get(VARIABLE, "")):
        return files
    folder = Path(named)
    try:
        owner = folder.stat().st_uid
    except OSError as error:
        raise ConfigError(f"{VARIABLE}: {folder} cannot be read: {error.strerror}.") from error
    if owner not in (0, user_id()):
        raise ConfigError(f"{VARIABLE}: {folder} belongs to another user, so it is not read.")
    return _files_of(folder)


def _files_of(folder: Path) -> tuple[Path, ...]:
    names: list[str] = []
    for below in ("", "managed.d"):
        try:
            listed = sorted(os.listdir(folder / below))  # noqa: PTH208  # at every start
        except OSError as error:
            if isinstance(error, FileNotFoundError) and not (folder / below).is_symlink():
                continue
            raise ConfigError(f"{folder / below} cannot be read: {error.strerror}.") from error
        names += [name for name in listed if name == "managed.toml"] if not below else []
        names += [f"{below}/{name}" for name in listed if name.endswith(".toml") and name[0] != "."] if below else []
    return tuple(folder / name for name in names)


def read_managed(environ: Mapping[str, str]) -> list[tuple[Path, str, dict[str, Any]]]:
    """Path, text and content of each file. Raises ConfigError: a file that cannot be read is never passed over."""
    notices, files = Notices(), []
    for path in find_managed_files(environ):
        text, data = read_toml(path, notices)
        if not text and not path.exists():
            raise ConfigError(f"{path} has disappeared while it was read.")
        files.append((path, text, data))
    return files


def read_policy(environ: Mapping[str, str]) -> ManagedSettings:
    """The table `managed` alone, for what is decided without the other settings. Raises ConfigError."""
    tables: dict[str, Any] = {}
    for path, _, data in read_managed(environ):
        table = data.get("managed", {})
        if not isinstance(table, dict):
            raise ConfigError(f"{path}: managed is a group of settings, not a setting.")
        tables |= table
    try:
        return msgspec.convert(tables, ManagedSettings)
    except msgspec.ValidationError as error:
        raise ConfigError(f"The managed settings cannot be used: {error}.") from error
