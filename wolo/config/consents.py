"""What of a trusted folder a person lets run: an answer to exactly that, by its digest; whatever changes is asked about anew."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal, get_args

from wolo.config.files import locked, read_own, replace_file
from wolo.errors import ConfigError
from wolo.places import Places
from wolo.workspace.identity import identity_of

Answer = Literal["yes", "never"]
"""What is kept. A plain no is good for one run: whoever starts anew may have changed their mind."""
MOST_KEPT = 200
"""Of one folder; the oldest are forgotten, and asked about again."""


def answer_for(places: Places, root: Path, what: str, notices: list[str]) -> Answer | None:
    """What a person said to it in this very folder; `what` holds the digest, `root` must be real. Raises ConfigError."""
    kept = _read(_store(places), notices).get(str(root), {})
    if kept.get("identity") != (_identity(root) or None):
        return None
    said = kept.get("answers", {}).get(what)
    return next((answer for answer in get_args(Answer) if answer == said), None)


def keep(places: Places, root: Path, what: str, answer: Answer) -> None:
    """Raises ConfigError when it cannot be kept."""
    path, identity = _store(places), _identity(root)
    with locked(places.state):
        kept = _read(path, [])
        here = kept.get(str(root), {})
        answers = here.get("answers", {}) if here.get("identity") == identity else {}
        answers = {**{each: said for each, said in answers.items() if each != what}, what: answer}
        kept[str(root)] = {"identity": identity, "answers": dict(list(answers.items())[-MOST_KEPT:])}
        replace_file(path, json.dumps(kept, indent=1) + "\n")


def forget(places: Places, root: Path) -> None:
    """Whatever was answered there is asked again. Raises ConfigError."""
    path = _store(places)
    with locked(places.state):
        kept = _read(path, [])
        if kept.pop(str(root), None) is not None:
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
