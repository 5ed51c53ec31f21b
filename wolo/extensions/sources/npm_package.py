"""Fetches the archive of a package from an npm registry, as the user has set it up. No script of the package runs."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from wolo.errors import ExtensionError
from wolo.extensions.sources.http_download import load_file
from wolo.extensions.sources.source import NPM_PACKAGE, Source
from wolo.messages.terminal_text import clean_line
from wolo.models.address import display_url, is_loopback

REGISTRY = "https://registry.npmjs.org"
_HASHES = ("sha512", "sha384", "sha256")
_MOST_TAGS = 20
_SCHEMES = {"_authToken": "Bearer", "_auth": "Basic"}


def fetch_package(source: Source) -> bytes:
    """An archive whose hash is the one that the registry names. Raises WoloError."""
    settings = _read_settings(Path.home() / ".npmrc")
    named = re.fullmatch(NPM_PACKAGE, source.location)
    assert named is not None  # as `read_source` makes it
    name, registry = named[2], (named[1] or _registry_for(named[2], settings)).rstrip("/")
    url = f"{registry}/{quote(name, safe='@')}"
    listing = _read_json(_load(url, settings, registry), source)
    version = _select_version(listing, source)
    dist = version.get("dist")
    tarball, integrity = (str(dist.get(key) or "") if isinstance(dist, dict) else "" for key in ("tarball", "integrity"))
    if not tarball:
        raise ExtensionError(f"{source} cannot be fetched: the registry names no archive of it.")
    archive = _load(tarball, settings, registry)
    _check_hash(archive, integrity, source)
    return archive


def _load(url: str, settings: Mapping[str, str], registry: str) -> bytes:
    """Without encryption only from this machine, and only where the registry is on it as well."""
    with suppress(ValueError):  # `load_file` names an address that is none
        hosts = [urlsplit(each).hostname or "" for each in (url, registry)]
        if urlsplit(url).scheme == "http" and not all(map(is_loopback, hosts)):
            raise ExtensionError(f"{display_url(url)} is not fetched: the address is not encrypted.")
    return load_file(url, _authorization(url, settings))


def _select_version(listing: Mapping[str, Any], source: Source) -> Mapping[str, Any]:
    """Of a tag or an exact version."""
    versions, tags = (each if isinstance(each := listing.get(key), dict) else {} for key in ("versions", "dist-tags"))
    wanted = source.ref or "latest"
    version = versions.get(str(tags.get(wanted, wanted)))
    if not isinstance(version, dict):
        known = clean_line(", ".join(f"{tag} ({number})" for tag, number in sorted(tags.items())[:_MOST_TAGS]))
        raise ExtensionError(f"{source} cannot be fetched: the package has no version or tag {wanted}.", hint=f"Tags: {known}.")
    return version


def _check_hash(data: bytes, integrity: str, source: Source) -> None:
    """`integrity` holds hashes as `sha512-BASE64`; the strongest one counts."""
    hashes = [each.partition("-")[::2] for each in integrity.split()]
    algorithm = next((name for name in _HASHES if name in dict(hashes)), "")
    if not algorithm:
        raise ExtensionError(f"{source} is not used: the registry names no hash of its archive.")
    actual = base64.b64encode(hashlib.new(algorithm, data).digest()).decode()
    if (algorithm, actual) not in hashes:
        raise ExtensionError(f"{source} is not used: its archive does not have the hash that the registry names.")


def _registry_for(name: str, settings: Mapping[str, str]) -> str:
    scope = name.partition("/")[0]
    of_variable = next((value for key, value in os.environ.items() if key.lower() == "npm_config_registry"), "")
    return settings.get(f"{scope}:registry") or of_variable or settings.get("registry") or REGISTRY


def _authorization(url: str, settings: Mapping[str, str]) -> Mapping[str, str]:
    """The header for an address below the one that a login belongs to, such as `//npm.example.com/:_authToken`."""
    for key, value in settings.items():
        place, _, kind = key.rpartition(":")
        if kind in _SCHEMES and re.match("//[^/]", place) and url.partition(":")[2].startswith(f"{place.rstrip('/')}/"):
            return {"authorization": f"{_SCHEMES[kind]} {value}"}
    return {}


def _read_settings(path: Path) -> dict[str, str]:
    """The user's npm settings with variables filled in; those of a project are not read."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return {}
    rows = (line.partition("=") for line in lines if "=" in line and not line.lstrip().startswith((";", "#")))
    return {
        key.strip(): re.sub(r"\$\{(\w+)\}", lambda match: os.environ.get(match[1], ""), value.strip().strip('"'))
        for key, _, value in rows
    }


def _read_json(data: bytes, source: Source) -> Mapping[str, Any]:
    try:
        listing = json.loads(data)
    except (ValueError, RecursionError):
        listing = None
    if not isinstance(listing, dict):
        raise ExtensionError(f"{source} cannot be fetched: the registry answers without a list of versions.")
    return listing
