"""Which folders a person trusts: what a project brings along counts once they have said yes to its folder.

An answer holds for one folder, known by its real path and by what it is (`workspace.identity`). So a folder that was moved, one
beside or above it, another one put in its place and whatever a link leads to later are all asked about anew.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, get_args

from wolo.config.files import locked, read_own, replace_file
from wolo.errors import ConfigError
from wolo.places import Places
from wolo.workspace.identity import identity_of
from wolo.workspace.root import may_be_project

Answer = Literal["trusted", "never"]
"""What is kept. A plain no is good for one run: whoever starts anew may have changed their mind."""
Kept = dict[str, Mapping[str, str]]
"""The answer, the identity and the day by the real path of a folder."""


def answer_for(places: Places, root: Path, notices: list[str]) -> Answer | None:
    """What a person said of this very folder; `root` must be real. Raises ConfigError for a store others may have written."""
    kept = _read(_store(places), notices).get(str(root), {})
    if not may_be_project(root) or kept.get("identity") != (_identity(root) or None):
        return None
    return next((answer for answer in get_args(Answer) if answer == kept.get("answer")), None)


def keep(places: Places, root: Path, answer: Answer) -> None:
    """Raises ConfigError when it cannot be kept."""
    said = {"answer": answer, "identity": _identity(root), "since": time.strftime("%Y-%m-%d", time.gmtime())}
    _change(places, {str(root): said})


def forget(places: Places, root: Path) -> None:
    """The next start asks again."""
    _change(places, {}, without=str(root))


def _change(places: Places, more: Kept, *, without: str = "") -> None:
    path = _store(places)
    with locked(places.state):
        kept = {**_read(path, []), **more}
        kept.pop(without, None)
        replace_file(path, json.dumps(kept, indent=1) + "\n")


def _read(path: Path, notices: list[str]) -> Kept:
    data = read_own(path, notices, is_secret=True)
    try:
        kept = json.loads(data or b"{}")
    except (ValueError, RecursionError):
        kept = None
    if not isinstance(kept, dict) or not all(isinstance(each, dict) for each in kept.values()):
        raise ConfigError(f"{path} is damaged.", hint="Remove it: wolo asks again about each folder.")
    return kept


def _store(places: Places) -> Path:
    return places.state / "trust.json"


def _identity(root: Path) -> str:
    """Empty when the folder is gone."""
    try:
        return identity_of(root)
    except OSError:
        return ""
