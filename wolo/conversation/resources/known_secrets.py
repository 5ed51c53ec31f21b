"""What wolo knows that nobody else may: keys in settings, files and the environment, and what the directory at hand hides."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from wolo.config import keys, layers
from wolo.errors import WoloError
from wolo.guard.secrets.finder import SecretFiles
from wolo.messages.secret_values import Known
from wolo.places import find_places
from wolo.sessions.exchange.redaction import Redactor
from wolo.workspace.root import find_root


def redactor() -> Redactor:
    """Raises ConfigError when the settings cannot be read: then nobody knows what must not leave."""
    places = find_places()
    return _knowing(keys.written_down(places, layers.load(places, os.environ).settings))


def best_redactor() -> Redactor:
    """As much as can be known, whatever state the settings are in; for what is written on the way to the ground."""
    try:
        return redactor()
    except (WoloError, OSError):
        return _knowing(iter(()))


def _knowing(written_down: Iterator[Known]) -> Redactor:
    found = keys.known(_on_the_line(), keys.in_environment(os.environ), written_down, _in_files())
    return Redactor(each.value for each in found)


def _on_the_line() -> Iterator[Known]:
    """A key that was given for this run."""
    yield from (Known("API_KEY", token.removeprefix("--api-key=")) for token in sys.argv if token.startswith("--api-key="))
    yield from (Known("API_KEY", value) for token, value in pairwise(sys.argv) if token == "--api-key")


def _in_files() -> Iterator[Known]:
    try:
        yield from SecretFiles([find_root(Path.cwd())]).near()
    except OSError:
        return
