"""Which folders a person trusts: what a project brings along counts once they have said yes to its folder.

An answer holds for one folder, known by its real path and by what it is (`workspace.identity`). So a folder that was moved, one
beside or above it, another one put in its place and whatever a link leads to later are all asked about anew.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Literal, get_args

from wolo.config.files import locked
from wolo.config.folder_store import Kept, identity_now, is_about, read, write
from wolo.places import Places
from wolo.workspace.root import may_be_project

Answer = Literal["trusted", "never"]
"""What is kept. A plain no is good for one run: whoever starts anew may have changed their mind."""


def answer_for(places: Places, root: Path, notices: list[str]) -> Answer | None:
    """What a person said of this very folder; `root` must be real. Raises ConfigError for a store others may have written."""
    kept = _read(_store(places), notices).get(str(root), {})
    if not may_be_project(root) or not is_about(kept, root):
        return None
    return next((answer for answer in get_args(Answer) if answer == kept.get("answer")), None)


def keep(places: Places, root: Path, answer: Answer) -> None:
    """Raises ConfigError when it cannot be kept."""
    said = {"answer": answer, "identity": identity_now(root), "since": time.strftime("%Y-%m-%d", time.gmtime())}
    _change(places, {str(root): said})


def forget(places: Places, root: Path) -> None:
    """The next start asks again."""
    _change(places, {}, without=str(root))


def _change(places: Places, more: Kept, *, without: str = "") -> None:
    path = _store(places)
    with locked(places.state):
        kept = {**_read(path, []), **more}
        kept.pop(without, None)
        write(path, kept)


def _read(path: Path, notices: list[str]) -> Kept:
    return read(path, notices, again="each folder")


def _store(places: Places) -> Path:
    return places.state / "trust.json"
