"""Adds, updates and removes plugins. Every change is whole or does not happen."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from wolo.config import key_store
from wolo.config.files import lock_folder, replace_file
from wolo.config.managed import read_policy
from wolo.config.plugins.installed import Plugin, PluginIndex, data_of, digest_of, read_index, root_of
from wolo.errors import ExtensionError, UsageError
from wolo.extensions.plugins.manifest import MARKETPLACE_FILES, Contents, PluginSetting, read_plugin
from wolo.extensions.sources.fetching import FetchedSource, fetch
from wolo.extensions.sources.source import Source
from wolo.extensions.sources.tree_copy import files_in
from wolo.places import Notices, Places, make_private
from wolo.workspace.files.unfinished import remove_leftovers, unfinished_folder


class PluginOrigin(Struct, frozen=True, kw_only=True):
    """The source of a plugin, and its entry in a marketplace."""

    source: Source
    marketplace: str = ""
    entry: Mapping[str, Any] = {}

    @property
    def name(self) -> str:
        return str(self.entry.get("name") or self.source.name)


class PluginCandidate(Struct, frozen=True, kw_only=True):
    """A fetched plugin that is not installed yet."""

    origin: PluginOrigin
    contents: Contents
    pin: str
    folder: Path


class Difference(Struct, frozen=True):
    """Files that an update changes."""

    added: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]


@contextmanager
def fetch_source(source: Source, places: Places, files: Sequence[str] = ()) -> Iterator[FetchedSource]:
    """A copy in the store, of some files or of all, that disappears unless it is moved. Raises WoloError."""
    store = places.plugins / "store"
    try:
        make_private(store)
    except OSError as error:
        raise ExtensionError(f"{store} cannot be written: {error.strerror}.") from error
    with changing(places):
        pass  # what a killed process left is gone, also where nothing is to be updated
    with unfinished_folder(store) as scratch:
        yield fetch(source, scratch, files)


@contextmanager
def candidate(origin: PluginOrigin, places: Places) -> Iterator[PluginCandidate]:
    """Raises WoloError."""
    with fetch_source(origin.source, places) as checkout:
        contents = read_plugin(checkout.folder, origin.name, origin.entry)
        if contents.is_empty and any((checkout.folder / each).is_file() for each in MARKETPLACE_FILES):
            raise UsageError(f"{origin.source} is a marketplace.", hint=f"wolo plugin marketplace add {origin.source}")
        if contents.is_empty:
            raise UsageError(
                f"{origin.source} is no plugin: it has no skills, commands, agents, hooks or MCP servers.",
                hint="For a folder in it: SOURCE#REF:FOLDER. `wolo skills add` takes single skills.",
            )
        yield PluginCandidate(origin=origin, contents=contents, pin=checkout.pin, folder=checkout.folder)


def add(new: PluginCandidate, places: Places) -> Plugin:
    """Raises UsageError for a name that is taken, ConfigError for a plugin that is not allowed."""
    read_policy(os.environ).check_plugin(new.contents.name, new.origin.source)
    with changing(places) as index:
        check_is_new(new.contents.name, index)
        plugin = _move_in(new, places)
        save_index(replace(index, plugins={**index.plugins, plugin.name: plugin}), places)
    return plugin


def check_is_new(name: str, index: PluginIndex) -> None:
    if there := index.plugins.get(name):
        raise UsageError(
            f"The plugin {name} is already installed, from {there.source}.", hint=f"wolo plugin update {name}, or remove {name}"
        )


def update(old: Plugin, new: PluginCandidate, places: Places) -> Plugin:
    """Raises UsageError if its name has changed, or the plugin was changed meanwhile."""
    if new.contents.name != old.name:
        raise UsageError(f"The plugin {old.name} is called {new.contents.name} now.", hint=f"wolo plugin remove {old.name}")
    with changing(places) as index:
        if index.plugins.get(old.name) != old:
            raise UsageError(f"The plugin {old.name} was changed by another process.", hint="Try again.")
        plugin = replace(_move_in(new, places), is_enabled=old.is_enabled, added=old.added, values=old.values)
        save_index(replace(index, plugins={**index.plugins, old.name: plugin}), places)
    shutil.rmtree(root_of(old, places), ignore_errors=True)
    return plugin


def remove(name: str, places: Places) -> Plugin:
    """With its own data and secrets, those of earlier versions too. Raises WoloError."""
    find(name, read_index(places))
    for row in key_store.read(places, Notices()):
        if row.startswith(key_store.plugin_row(name, "")):
            key_store.remove(places, row)
    with changing(places) as index:
        plugin = find(name, index)
        save_index(replace(index, plugins={each: there for each, there in index.plugins.items() if each != name}), places)
    shutil.rmtree(root_of(plugin, places), ignore_errors=True)
    shutil.rmtree(data_of(plugin, places), ignore_errors=True)
    return plugin


def save_value(plugin: Plugin, setting: PluginSetting, value: str, places: Places) -> None:
    """Of a setting: a secret goes to the keyring or keys.toml, others to the index. Raises WoloError."""
    if setting.is_secret:
        key_store.save(places, key_store.plugin_row(plugin.name, setting.key), value, in_keyring=True)
        return
    with changing(places) as index:
        old = find(plugin.name, index)
        changed = replace(old, values={**old.values, setting.key: value})
        save_index(replace(index, plugins={**index.plugins, plugin.name: changed}), places)


def set_enabled(name: str, places: Places, *, enabled: bool) -> None:
    with changing(places) as index:
        changed = replace(find(name, index), is_enabled=enabled)
        save_index(replace(index, plugins={**index.plugins, name: changed}), places)


def allow(shown: Plugin, places: Places) -> None:
    """Allows what was shown. Raises UsageError if the plugin was changed meanwhile."""
    with changing(places) as index:
        plugin = find(shown.name, index)
        if replace(plugin, allowed="") != replace(shown, allowed=""):
            raise UsageError(f"The plugin {shown.name} was changed by another process.", hint="Try again.")
        changed = replace(plugin, allowed=digest_of(plugin, places))
        make_private(data_of(plugin, places))
        save_index(replace(index, plugins={**index.plugins, plugin.name: changed}), places)


def find(name: str, index: PluginIndex) -> Plugin:
    """Raises UsageError."""
    if plugin := index.plugins.get(name.partition("@")[0]):
        return plugin
    known = ", ".join(sorted(index.plugins))
    raise UsageError(f"There is no plugin {name}.", hint=f"Installed: {known}." if known else "wolo plugin add SOURCE")


def difference(old: Plugin, new: PluginCandidate, places: Places) -> Difference:
    before, now = _hashes(root_of(old, places)), _hashes(new.folder)
    return Difference(
        tuple(sorted(now.keys() - before.keys())),
        tuple(sorted(path for path in now.keys() & before.keys() if now[path] != before[path])),
        tuple(sorted(before.keys() - now.keys())),
    )


@contextmanager
def changing(places: Places) -> Iterator[PluginIndex]:
    """The index, locked for a change."""
    with lock_folder(places.plugins):
        index = read_index(places)
        # Removes copies and data that a process left when it was killed before or after it changed the index
        owned = {each.folder for each in index.plugins.values()} | {each.folder for each in index.marketplaces.values()}
        for folder, kept in ((places.plugins / "store", owned), (places.plugins / "data", set(index.plugins))):
            with suppress(OSError):
                remove_leftovers(folder)
                for path in folder.iterdir():
                    if path.name not in kept and not path.name.startswith("."):
                        shutil.rmtree(path, ignore_errors=True)
        yield index


def move(fetched_folder: Path, name: str, pin: str, places: Places) -> str:
    """Moves a fetched folder into the store, and returns its name there."""
    folder = f"{name}-{pin.removeprefix('sha256:')[:12]}-{os.urandom(3).hex()}"
    fetched_folder.rename(places.plugins / "store" / folder)
    return folder


def _move_in(new: PluginCandidate, places: Places) -> Plugin:
    return Plugin(
        contents=new.contents,
        source=new.origin.source,
        pin=new.pin,
        folder=move(new.folder, new.contents.name, new.pin, places),
        marketplace=new.origin.marketplace,
        entry=new.origin.entry,
        added=time.strftime("%Y-%m-%d", time.gmtime()),
    )


def save_index(index: PluginIndex, places: Places) -> None:
    """Call inside `changing`."""
    content = json.dumps(msgspec.to_builtins(index), indent=1) + "\n"
    replace_file(places.plugin_index, content)


def _hashes(folder: Path) -> dict[str, tuple[bool, int, bytes]]:
    hashes = {}
    for path in files_in(folder):
        data = (folder / path).read_bytes()
        hashes[str(path)] = (os.access(folder / path, os.X_OK), len(data), data)
    return hashes
