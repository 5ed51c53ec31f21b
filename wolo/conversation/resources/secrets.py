"""Collects the secrets of a conversation, and redacts exports."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from wolo.config import keys, layers
from wolo.config.schema import Settings
from wolo.errors import ConfigError, WoloError
from wolo.guard.secrets.finder import SecretFiles
from wolo.guard.secrets.redactor import KEY_BYTES, Secrets
from wolo.messages.secret_values import Secret
from wolo.models.provider import ModelChoice
from wolo.places import Places, make_private
from wolo.workspace.root import find_root, find_site

if TYPE_CHECKING:
    from wolo.sessions.exchange.redaction import Redactor


def make_secrets(
    places: Places, settings: Settings, roots: Iterable[Path], asked: Iterable[ModelChoice | None] = (), *, search_key: str = ""
) -> Secrets:
    """`roots` are searched for secret files; `asked` are the models in use, `search_key` is sent with web searches."""
    for_search = (Secret("WEB_SEARCH_API_KEY", search_key),) if search_key else ()
    try:
        written_down = tuple(keys.written_down(places, settings))
    except ConfigError:
        written_down = ()  # whoever needs a key from there hears what is wrong
    known = keys.unique_secrets(keys.request_secrets(*asked), for_search, keys.in_environment(os.environ), written_down)
    return Secrets(known, SecretFiles(roots), partial(placeholder_key, places.data / "placeholders.key"))


def placeholder_key(path: Path) -> bytes:
    """Shared by all sessions of this machine; if it cannot be saved, it lasts as long as the process."""
    try:
        return _read(path) or _make(path)
    except OSError:
        return os.urandom(KEY_BYTES)


def _read(path: Path) -> bytes:
    try:
        key = path.read_bytes()
    except FileNotFoundError:
        return b""
    return key if len(key) == KEY_BYTES else b""


def _make(path: Path) -> bytes:
    """Atomic: another process may do the same."""
    make_private(path.parent)
    from wolo.workspace.files.unfinished import replacing  # noqa: PLC0415  # once

    key = os.urandom(KEY_BYTES)
    try:
        with replacing(path, over=False) as file:
            file.write(key)
    except FileExistsError:
        return _read(path) or key
    return key


def redactor() -> Redactor:
    """Raises ConfigError for unreadable settings: their secrets would be unknown."""
    site = find_site()
    return _knowing(keys.written_down(site.places, layers.load(site).settings))


def best_redactor() -> Redactor:
    """Uses what can be read; for crash reports."""
    try:
        return redactor()
    except (WoloError, OSError):
        return _knowing(iter(()))


def _knowing(written_down: Iterator[Secret]) -> Redactor:
    from wolo.sessions.exchange.redaction import Redactor  # noqa: PLC0415  # a run exports nothing

    on_the_line = [token.removeprefix("--api-key=") for token in sys.argv if token.startswith("--api-key=")]
    on_the_line += [value for token, value in pairwise(sys.argv) if token == "--api-key"]
    in_files: list[Secret] = []
    with suppress(OSError):
        in_files += SecretFiles([find_root(Path.cwd())]).scan_top()
    asked = (Secret("API_KEY", value) for value in on_the_line)
    found = keys.unique_secrets(asked, keys.in_environment(os.environ), written_down, in_files)
    return Redactor(each.value for each in found)
