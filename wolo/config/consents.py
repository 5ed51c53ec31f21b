"""What of a trusted folder a person lets run: a yes to exactly that, by its digest; whatever has changed is asked about anew."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from wolo.config.files import locked, read_own, replace_file
from wolo.errors import ConfigError
from wolo.places import Places
from wolo.workspace.identity import identity_of

MOST_KEPT = 200
"""Of one folder; the oldest are forgotten, and asked about again."""


def is_given(places: Places, root: Path, what: str, digest: str, notices: list[str]) -> bool:
    """Whether a person said yes to it in this very folder; `root` must be real. Raises ConfigError."""
    kept = _read(_store(places), notices).get(str(root), {})
    return kept.get("identity") == (_identity(root) or None) and f"{what} {digest}" in kept.get("consents", {})


def give(places: Places, root: Path, what: str, digest: str) -> None:
    """Raises ConfigError when it cannot be kept."""
    path, identity = _store(places), _identity(root)
    with locked(places.state):
        kept = _read(path, [])
        here = kept.get(str(root), {})
        consents = here.get("consents", {}) if here.get("identity") == identity else {}
        consents = {**consents, f"{what} {digest}": time.strftime("%Y-%m-%d", time.gmtime())}
        kept[str(root)] = {"identity": identity, "consents": dict(list(consents.items())[-MOST_KEPT:])}
        replace_file(path, json.dumps(kept, indent=1) + "\n")


def _read(path: Path, notices: list[str]) -> dict[str, dict[str, Any]]:
    data = read_own(path, notices, is_secret=True)
    try:
        kept = json.loads(data or b"{}")
    except (ValueError, RecursionError):
        kept = None
    if not isinstance(kept, dict) or not all(isinstance(each, dict) for each in kept.values()):
        raise ConfigError(f"{path} is damaged.", hint="Remove it: wolo asks again about what may run.")
    return kept


def _store(places: Places) -> Path:
    return places.state / "consents.json"


def _identity(root: Path) -> str:
    """Empty when the folder is gone."""
    try:
        return identity_of(root)
    except OSError:
        return ""
