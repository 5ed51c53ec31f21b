"""What a conversation keeps to itself: where its secrets come from, and the key its placeholders are made with."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from wolo.config import keys
from wolo.config.schema import Settings
from wolo.errors import ConfigError
from wolo.guard.secrets.finder import SecretFiles
from wolo.guard.secrets.redactor import KEY_BYTES, Secrets
from wolo.messages.secret_values import Known
from wolo.models.provider import Choice
from wolo.places import Places, make_private


def make_secrets(places: Places, settings: Settings, roots: Iterable[Path], asked: Iterable[Choice | None] = ()) -> Secrets:
    """`roots` are the directories worked in, `asked` the models that requests go to."""
    known = keys.known(keys.sent_with(*asked), keys.in_environment(os.environ), _written_down(places, settings))
    return Secrets(known, SecretFiles(roots), partial(placeholder_key, places.data / "placeholders.key"))


def placeholder_key(path: Path) -> bytes:
    """The same for every session of this machine; where it cannot be kept, placeholders last as long as the process."""
    try:
        return _read(path) or _make(path)
    except OSError:
        return os.urandom(KEY_BYTES)


def _written_down(places: Places, settings: Settings) -> tuple[Known, ...]:
    try:
        return tuple(keys.written_down(places, settings))
    except ConfigError:
        return ()  # whoever needs a key from there hears what is wrong


def _read(path: Path) -> bytes:
    try:
        key = path.read_bytes()
    except FileNotFoundError:
        return b""
    return key if len(key) == KEY_BYTES else b""


def _make(path: Path) -> bytes:
    """Whole or not at all: another process may be about to do the same."""
    make_private(path.parent)
    key, beside = os.urandom(KEY_BYTES), path.with_name(f"{path.name}.{os.getpid()}")
    beside.unlink(missing_ok=True)
    try:
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(key)
        try:
            os.link(beside, path)
        except FileExistsError:
            return _read(path) or key
    finally:
        beside.unlink(missing_ok=True)
    return key
