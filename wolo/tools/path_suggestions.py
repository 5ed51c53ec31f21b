"""What to say when a file is not there: the names that come nearest."""

from __future__ import annotations

import os
from itertools import islice
from pathlib import Path

from wolo.errors import ToolError
from wolo.tools.tool import ToolServices
from wolo.workspace.root import Resolved

_MAX_NAMES = 5000


def missing(resolved: Resolved, services: ToolServices) -> ToolError:
    shown = services.workspace.relative(resolved.path)
    near = [services.workspace.relative(path) for path in _nearest(resolved, services)]
    if near:
        return ToolError(f"`{shown}` does not exist. Did you mean {' or '.join(f'`{name}`' for name in near)}?")
    folder = next((parent for parent in resolved.path.parents if parent.is_dir()), resolved.path.parent)
    if folder != resolved.path.parent:
        return ToolError(
            f"`{shown}` does not exist, nor does its folder; the nearest that does is `{services.workspace.relative(folder)}`."
        )
    return ToolError(f"`{shown}` does not exist.")


def folder_names(folder: Path, services: ToolServices) -> list[str]:
    """The first names of a folder, sub-folders with a slash, without what must not be told."""
    with os.scandir(folder) as entries:
        told = (entry for entry in islice(entries, _MAX_NAMES) if services.is_readable(folder / entry.name))
        # `entry.is_dir` raises for a link that leads to itself.
        return sorted(f"{entry.name}/" if os.path.isdir(entry.path) else entry.name for entry in told)  # noqa: PTH112


def _nearest(resolved: Resolved, services: ToolServices) -> list[Path]:
    # The shell may stand elsewhere, and the model may have meant a path from there.
    elsewhere = services.shell.cwd / resolved.given
    if elsewhere.is_file() and services.workspace.holds(elsewhere.resolve()):
        return [elsewhere]
    folder = resolved.path.parent
    if not services.workspace.holds(folder):
        return []
    try:
        names = [name.rstrip("/") for name in folder_names(folder, services)]
    except OSError:
        return []
    from difflib import get_close_matches  # noqa: PLC0415  # only for a miss

    by_lower = {name.lower(): name for name in names}
    return [folder / by_lower[near] for near in get_close_matches(resolved.path.name.lower(), by_lower, n=3, cutoff=0.6)]
