"""Where a person keeps what they wrote for wolo, and where a trusted project does: folders that are looked through by name."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from wolo.messages.terminal_text import counted, show_hidden

MOST_ENTRIES = 1_000
"""Of one folder; nobody writes so many by hand."""

MOST_NOTICES = 12


class Shelf(NamedTuple):
    folder: Path
    read: Callable[[Path], bytes]
    """Reads a plain file that lies there. Raises WoloError for one that is not to be read."""
    project: Path | None = None
    """The root of the project it belongs to, a real path; None: it is the user's own."""


def entries(shelf: Shelf, notices: list[str]) -> list[os.DirEntry[str]]:
    """By name, without hidden ones. A folder of a project that leads out of it counts as empty."""
    try:
        with os.scandir(shelf.folder) as found:
            listed = [entry for entry in islice(found, MOST_ENTRIES) if not entry.name.startswith(".")]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        notices.append(f"{shown(shelf.folder)} cannot be looked through: {error.strerror}.")
        return []
    if shelf.project and not Path(os.path.realpath(shelf.folder)).is_relative_to(shelf.project):
        notices.append(f"{shown(shelf.folder)} is not read: it is a link that leads out of {shown(shelf.project)}.")
        return []
    return sorted(listed, key=lambda entry: entry.name)


def few(notices: Sequence[str]) -> tuple[str, ...]:
    """The first of them, and how many there are besides: a person reads no thousand."""
    more = len(notices) - MOST_NOTICES
    return (*notices[:MOST_NOTICES], *([f"The same goes for {counted(more, 'more file')}."] if more > 0 else []))


def shown(path: Path) -> str:
    """A name is data: on one line, with everything in it that nobody would see."""
    return show_hidden(str(path)).replace("\n", "\\n").replace("\t", "\\t")
