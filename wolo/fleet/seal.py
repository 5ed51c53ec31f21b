"""Proves that values in a run's files were chosen by this user: a file from elsewhere has no valid seal."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from typing import Any

import msgspec

from wolo.config.files import lock_folder, read_own, replace_file
from wolo.errors import ConfigError
from wolo.places import Notices, find_places

_KEY = "runs.key"


def seal_of(options: Any) -> str:
    """The seal of values that came from a command line, made with a key of the user. Raises ConfigError."""
    state = find_places().state
    with lock_folder(state):
        key = read_own(state / _KEY, Notices(), is_secret=True)
        if not key:
            key = secrets.token_hex(32).encode()
            replace_file(state / _KEY, key.decode())
    return hmac.digest(key, msgspec.json.encode(options, order="deterministic"), hashlib.sha256).hex()


def is_sealed(options: Any, seal: str) -> bool:
    try:
        return hmac.compare_digest(seal_of(options).encode(), seal.encode())
    except ConfigError:
        return False
