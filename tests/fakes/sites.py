"""A `Site` of a test: the current directory, and an environment that holds only what the test names."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from wolo.places import Notices, Places, Site
from wolo.workspace.root import current_directory, find_root


def site_with(
    places: Places, environ: Mapping[str, str] | None = None, cwd: Path | None = None, notices: Notices | None = None
) -> Site:
    cwd = cwd or current_directory()
    return Site(places, find_root(cwd), cwd, environ or {}, Notices() if notices is None else notices)
