"""Names files of other agents that wolo does not read, each once in a project."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from wolo.config.files import lock_folder, read_own, replace_file
from wolo.config.project import on_one_line
from wolo.errors import ConfigError
from wolo.foreign_places import Place
from wolo.places import Notices, Places, find_home

_MOST_NAMED = 2_000
"""Over all projects; the oldest are dropped and named again."""


def name_once(places: Places, root: Path, unread: Sequence[tuple[Path, Place]]) -> list[str]:
    """A sentence for each file that was not named before; one that cannot be noted is named again."""
    file = places.state / "named-places.json"
    with suppress(OSError, ConfigError), lock_folder(places.state):
        named = _read(file)
        new = [(path, place) for path, place in unread if str(path) not in named]
        if new:
            replace_file(file, json.dumps([*named, *(str(path) for path, _ in new)][-_MOST_NAMED:], indent=1) + "\n")
        return [describe(path, place, root) for path, place in new]
    return [describe(path, place, root) for path, place in unread]


def describe(path: Path, place: Place, root: Path) -> str:
    shown = f"~/{path.relative_to(find_home())}" if place.is_users else on_one_line(path.relative_to(root))
    return f"{shown} ({place.kind} of {place.agent}) is not read: {place.why}."


def _read(file: Path) -> list[str]:
    """Raises ConfigError for a file that others may have written."""
    try:
        named = json.loads(read_own(file, Notices()) or b"[]")
    except (ValueError, RecursionError):
        return []
    return named if isinstance(named, list) and all(isinstance(each, str) for each in named) else []
