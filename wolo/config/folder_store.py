"""What a person has answered about folders: a JSON file by real paths, and what each folder was then (`workspace.identity`)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wolo.config.files import read_own, replace_file
from wolo.errors import ConfigError
from wolo.workspace.root import identity_of

Kept = dict[str, Mapping[str, Any]]
"""By the real path of a folder."""


def read(path: Path, notices: list[str], *, again: str) -> Kept:
    """`again`: what wolo asks about anew once the file is gone. Raises ConfigError for one that others may have written."""
    data = read_own(path, notices, is_secret=True)
    try:
        kept = json.loads(data or b"{}")
    except (ValueError, RecursionError):
        kept = None
    if not isinstance(kept, dict) or not all(isinstance(each, dict) for each in kept.values()):
        raise ConfigError(f"{path} is damaged.", hint=f"Remove it: wolo asks again about {again}.")
    return kept


def write(path: Path, kept: Kept) -> None:
    """Raises ConfigError when it cannot be kept."""
    replace_file(path, json.dumps(kept, indent=1) + "\n")


def is_about(kept: Mapping[str, Any], root: Path) -> bool:
    """Whether it was said of this very folder."""
    return bool(identity := identity_now(root)) and kept.get("identity") == identity


def identity_now(root: Path) -> str:
    """Empty when the folder is gone."""
    try:
        return identity_of(root)
    except OSError:
        return ""
