"""Adds marketplaces, lists and searches their plugins, and finds the source of one."""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from wolo.config.managed import read_policy
from wolo.config.plugins.install import PluginOrigin, changing, fetch_source, move, save_index
from wolo.config.plugins.installed import Marketplace, PluginIndex, root_of
from wolo.errors import ExtensionError, UsageError, WoloError
from wolo.extensions.markdown_files import decode
from wolo.extensions.plugins.manifest import MARKETPLACE_FILES, NAME
from wolo.extensions.sources.source import Source, read_source
from wolo.messages.terminal_text import clean_line, quantity
from wolo.places import Notices, Places


class Listed(Struct, frozen=True, kw_only=True):
    """A plugin in a marketplace."""

    name: str
    marketplace: str
    description: str
    version: str
    searchable: str
    """Keywords, category and tags, for searching."""
    entry: Mapping[str, Any]


def add_marketplace(source: Source, places: Places) -> tuple[str, Marketplace]:
    """Fetches it again if it is there from the same source. Raises WoloError."""
    with fetch_source(source, places, MARKETPLACE_FILES) as checkout:
        table = _read(checkout.folder)
        name = str(table.get("name") or source.name)
        if not re.fullmatch(NAME, name):
            raise ExtensionError(f"The marketplace has no usable name: {clean_line(name)}.")
        read_policy(os.environ).check_marketplace(name, source)
        with changing(places) as index:
            old = index.marketplaces.get(name)
            if old is not None and old.source != source:
                raise UsageError(
                    f"There is a marketplace {name} already, from {old.source}.", hint=f"wolo plugin marketplace remove {name}"
                )
            folder = move(checkout.folder, f"marketplace-{name}", checkout.pin, places)
            new = Marketplace(source=source, pin=checkout.pin, folder=folder, added=time.strftime("%Y-%m-%d", time.gmtime()))
            save_index(replace(index, marketplaces={**index.marketplaces, name: new}), places)
    if old is not None:
        shutil.rmtree(root_of(old, places), ignore_errors=True)
    return name, new


def remove_marketplace(name: str, places: Places) -> Marketplace:
    """Its plugins stay. Raises UsageError."""
    with changing(places) as index:
        old = index.marketplaces.get(name)
        if old is None:
            known = ", ".join(sorted(index.marketplaces))
            raise UsageError(f"There is no marketplace {name}.", hint=f"There are: {known}." if known else "")
        rest = {each: there for each, there in index.marketplaces.items() if each != name}
        save_index(replace(index, marketplaces=rest), places)
    shutil.rmtree(root_of(old, places), ignore_errors=True)
    return old


def listed_plugins(index: PluginIndex, places: Places, notices: Notices) -> Iterator[Listed]:
    """Sorted by marketplace and name. A damaged marketplace becomes a notice."""
    for name, marketplace in sorted(index.marketplaces.items()):
        try:
            read_policy(os.environ).check_marketplace(name, marketplace.source)
            table = _read(root_of(marketplace, places))
        except WoloError as error:
            notices.add(f"The marketplace {name} is not searched: {error.message}")
            continue
        entries = [each for each in table["plugins"] if isinstance(each, dict) and isinstance(each.get("name"), str)]
        if unnamed := len(table["plugins"]) - len(entries):
            notices.add(f"The marketplace {name} has {quantity(unnamed, 'entry', 'entries')} without a name, left out.")
        first = {each["name"]: each for each in reversed(entries)}
        if again := len(entries) - len(first):
            notices.add(f"The marketplace {name} names {quantity(again, 'plugin')} again; the first entry of a name counts.")
        for each in sorted(first.values(), key=lambda each: str(each["name"])):
            words = [each.get("category"), *_words(each.get("keywords")), *_words(each.get("tags"))]
            yield Listed(
                name=clean_line(each["name"]),
                marketplace=name,
                description=clean_line(" ".join(str(each.get("description") or "").split())),
                version=clean_line(str(each.get("version") or "")),
                searchable=clean_line(" ".join(str(word) for word in words if word)),
                entry=each,
            )


def search(text: str, listed: Iterator[Listed]) -> list[Listed]:
    """Those that contain every word, whole names first."""
    wanted = text.casefold().split()
    matching = [
        each
        for each in listed
        if all(word in f"{each.name} {each.description} {each.searchable} {each.marketplace}".casefold() for word in wanted)
    ]
    name = text.casefold()
    return sorted(matching, key=lambda each: (each.name.casefold() != name, name not in each.name.casefold()))


def origin_of(listed: Listed, index: PluginIndex, places: Places) -> PluginOrigin:
    """Raises WoloError for a source that cannot be fetched."""
    marketplace = index.marketplaces[listed.marketplace]
    table = _read(root_of(marketplace, places))
    source = _source(listed, marketplace, table)
    if source.kind == "git" and source.location == marketplace.source.location and not source.ref:
        source = replace(source, ref=marketplace.source.ref)
    return PluginOrigin(source=source, marketplace=listed.marketplace, entry=listed.entry)


def _source(listed: Listed, marketplace: Marketplace, table: Mapping[str, Any]) -> Source:
    value = listed.entry.get("source", ".")
    if isinstance(value, str):
        return _relative(value, marketplace, table)
    if not isinstance(value, dict):
        raise ExtensionError(f"{listed.name}: its source is neither a path nor a table.")
    kind = value.get("source") or value.get("type")
    ref = str(value.get("sha") or value.get("commit") or value.get("ref") or "")
    folder = str(value.get("path") or value.get("subdir") or "")
    if kind in ("local", "directory", "path", "file"):
        return _relative(folder, marketplace, table)
    if kind == "npm":
        registry, version = str(value.get("registry") or ""), str(value.get("version") or "")
        package = f"{registry.rstrip('/')}/{value.get('package')}" if registry else value.get("package")
        return read_source(f"npm:{package}{f'@{version}' if version else ''}", Path("/nowhere"))
    if kind not in ("github", "url", "git", "git-subdir", "gitlab"):
        raise ExtensionError(f"{listed.name} comes from {clean_line(str(kind))}, which wolo does not fetch from.")
    address = str(value.get("repo") or value.get("url") or "")
    return read_source(f"{address}#{ref}:{folder}" if ref or folder else address, Path("/nowhere"))


def _relative(path: str, marketplace: Marketplace, table: Mapping[str, Any]) -> Source:
    """A folder of the marketplace itself, of the same commit line."""
    metadata = table.get("metadata")
    base = str(metadata.get("pluginRoot") or "") if isinstance(metadata, dict) else ""
    inner, outer = _plain(path), _plain(base)
    if inner and outer and inner != outer and not inner.startswith(f"{outer}/"):
        inner = f"{outer}/{inner}"
    folder = _plain(f"{marketplace.source.folder}/{inner}")
    if ".." in folder.split("/") or path.startswith(("/", "~")):
        raise ExtensionError(f"The marketplace names {clean_line(path)}, which is outside of it.")
    return replace(marketplace.source, folder=folder)


def _plain(path: str) -> str:
    return "/".join(part for part in path.split("/") if part not in ("", "."))


def _read(folder: Path) -> Mapping[str, Any]:
    path = next((each for name in MARKETPLACE_FILES if (each := folder / name).is_file()), None)
    if path is None:
        raise UsageError("This is no marketplace: it has no .claude-plugin/marketplace.json.", hint="wolo plugin add SOURCE")
    try:
        table = json.loads(decode(path.read_bytes(), path.name))
    except (OSError, ValueError, RecursionError) as error:
        raise ExtensionError(f"{path.name} cannot be read: {error}.") from error
    if not isinstance(table, dict) or not isinstance(table.get("plugins"), list):
        raise ExtensionError(f"{path.name} has no list of plugins.")
    return table


def _words(value: object) -> list[object]:
    return value if isinstance(value, list) else []
