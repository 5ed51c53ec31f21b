"""Stores the user's answers about folders: whether a project is trusted, and what of it may run.

An answer holds for one folder, identified by its real path and by `identity_of`. A folder that was moved or replaced, one
next to it or above it, and whatever a link leads to later are asked about again. A consent to run something also holds for its
exact digest only.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, get_args

from wolo.config.files import lock_folder, read_json, replace_file
from wolo.errors import ConfigError
from wolo.places import Notices, Places
from wolo.workspace.root import identity_of, may_be_project, origin_of

Trust = Literal["trusted", "never"]
"""Stored answers. A plain no holds for one run and is not stored."""
Consent = Literal["yes", "never"]
MOST_CONSENTS = 200
"""Per folder; the oldest are dropped and asked about again."""
Store = dict[str, Mapping[str, Any]]
"""By the real path of a folder."""
_TRUST, _CONSENTS = "trust.json", "consents.json"


def trust_in(places: Places, root: Path, notices: Notices) -> Trust | None:
    """`root` must be real; a session's worktree is its origin. Raises ConfigError for a store that others may have written."""
    root = origin_of(places.worktrees, root)
    saved = _read(places.state / _TRUST, notices).get(str(root), {})
    if not may_be_project(root) or not _is_about(saved, root):
        return None
    return next((answer for answer in get_args(Trust) if answer == saved.get("answer")), None)


def save_trust(places: Places, root: Path, answer: Trust) -> None:
    """Raises ConfigError when it cannot be saved."""
    root = origin_of(places.worktrees, root)
    entry = {"answer": answer, "identity": _identity_now(root), "since": time.strftime("%Y-%m-%d", time.gmtime())}
    with _change(places, _TRUST) as store:
        store[str(root)] = entry


def forget(places: Places, root: Path) -> None:
    """The trust in a folder, and the consents to what it may run. Raises ConfigError."""
    for name in (_TRUST, _CONSENTS):
        with _change(places, name) as store:
            store.pop(str(origin_of(places.worktrees, root)), None)


def consent_to(places: Places, root: Path, what: str, notices: Notices) -> Consent | None:
    """`what` contains the digest; `root` must be real; a session's worktree is its origin. Raises ConfigError."""
    root = origin_of(places.worktrees, root)
    saved = _read(places.state / _CONSENTS, notices).get(str(root), {})
    if not _is_about(saved, root):
        return None
    answer = _answers(saved).get(what)
    return next((each for each in get_args(Consent) if each == answer), None)


def save_consent(places: Places, root: Path, what: str, answer: Consent) -> None:
    """Raises ConfigError when it cannot be saved."""
    root = origin_of(places.worktrees, root)
    identity = _identity_now(root)
    with _change(places, _CONSENTS) as store:
        saved = store.get(str(root), {})
        answers = _answers(saved) if saved.get("identity") == identity else {}
        answers = {**{each: given for each, given in answers.items() if each != what}, what: answer}
        store[str(root)] = {"identity": identity, "answers": dict(list(answers.items())[-MOST_CONSENTS:])}


def _answers(saved: Mapping[str, Any]) -> Mapping[str, Any]:
    answers = saved.get("answers")
    return answers if isinstance(answers, dict) else {}


def _read(path: Path, notices: Notices) -> Store:
    """Raises ConfigError for a damaged file, and for one that others may have written."""
    hint = f"Remove it: wolo asks again about {'each folder' if path.name == _TRUST else 'what may run'}."
    store = read_json(path, notices, hint)
    if not all(isinstance(each, dict) for each in store.values()):
        raise ConfigError(f"{path} is damaged.", hint=hint)
    return store


@contextmanager
def _change(places: Places, name: str) -> Iterator[Store]:
    """The stored answers, which are saved in the end if they differ."""
    with lock_folder(places.state):
        store = _read(places.state / name, Notices())
        before = dict(store)
        yield store
        if store != before:
            replace_file(places.state / name, json.dumps(store, indent=1) + "\n")


def _is_about(saved: Mapping[str, Any], root: Path) -> bool:
    return bool(identity := _identity_now(root)) and saved.get("identity") == identity


def _identity_now(root: Path) -> str:
    """Empty when the folder is gone."""
    try:
        return identity_of(root)
    except OSError:
        return ""
