"""Finds entry points of tools and extensions among installed packages; remembers them as long as nothing is installed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from wolo.places import make_private

GROUPS = ("tools", "extensions")
"""The group is `wolo.tools` or `wolo.extensions`."""


def find_installed(known: Path, folders: Sequence[str], state: str, kind: str = GROUPS[0]) -> list[str]:
    """`NAME=MODULE:ATTRIBUTE` for each of a kind. The file `known` has all since the last time that `state` changed."""
    return [entry.removeprefix(f"{kind} ") for entry in find_all(known, folders, state) if entry.startswith(f"{kind} ")]


def find_entry_points(folder: Path, kind: str) -> list[str]:
    """`NAME=MODULE:ATTRIBUTE` for each of a kind in an unpacked package."""
    return [entry.removeprefix(f"{kind} ") for entry in _entries(str(folder)) if entry.startswith(f"{kind} ")]


def find_all(known: Path, folders: Sequence[str], state: str) -> list[str]:
    """As above, with the kind before each."""
    with suppress(OSError, UnicodeError):
        first, *entries = known.read_text(encoding="utf-8").splitlines()
        if first == state:
            return entries
    entries = sorted({entry for folder in folders if os.path.isdir(folder) for entry in _entries(folder)})  # noqa: PTH112  # fast
    from wolo.workspace.files.unfinished import write_whole  # noqa: PLC0415  # few runs write this

    with suppress(OSError):
        make_private(known.parent)
        write_whole(known, ("\n".join([state, *entries]) + "\n").encode(), durable=False)
    return entries


def _entries(folder: str) -> list[str]:
    entries = []
    for path in Path(folder).glob("*.dist-info/entry_points.txt"):
        with suppress(OSError, UnicodeError):
            text = path.read_text(encoding="utf-8")
            if "[wolo." in text:
                lines, kind = [], ""
                for line in map(str.strip, text.splitlines()):
                    if line.startswith("["):
                        kind = line.removeprefix("[wolo.").removesuffix("]")
                    elif kind in GROUPS and "=" in line and not line.startswith("#"):
                        name, _, value = line.partition("=")
                        lines.append(f"{kind} {name.strip()}={value.partition('[')[0].strip()}")
                entries += lines
    return entries
