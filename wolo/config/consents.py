"""What of a trusted folder a person lets run: an answer to exactly that, by its digest; whatever changes is asked about anew."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, get_args

from wolo.config.files import locked
from wolo.config.folder_store import Kept, identity_now, is_about, read, write
from wolo.places import Places

Answer = Literal["yes", "never"]
"""What is kept. A plain no is good for one run: whoever starts anew may have changed their mind."""
MOST_KEPT = 200
"""Of one folder; the oldest are forgotten, and asked about again."""


def answer_for(places: Places, root: Path, what: str, notices: list[str]) -> Answer | None:
    """What a person said to it in this very folder; `what` holds the digest, `root` must be real. Raises ConfigError."""
    kept = _read(_store(places), notices).get(str(root), {})
    if not is_about(kept, root):
        return None
    said = _answers(kept).get(what)
    return next((answer for answer in get_args(Answer) if answer == said), None)


def keep(places: Places, root: Path, what: str, answer: Answer) -> None:
    """Raises ConfigError when it cannot be kept."""
    path, identity = _store(places), identity_now(root)
    with locked(places.state):
        kept = _read(path, [])
        here = kept.get(str(root), {})
        answers = _answers(here) if here.get("identity") == identity else {}
        answers = {**{each: said for each, said in answers.items() if each != what}, what: answer}
        kept[str(root)] = {"identity": identity, "answers": dict(list(answers.items())[-MOST_KEPT:])}
        write(path, kept)


def forget(places: Places, root: Path) -> None:
    """Whatever was answered there is asked again. Raises ConfigError."""
    path = _store(places)
    with locked(places.state):
        kept = _read(path, [])
        if kept.pop(str(root), None) is not None:
            write(path, kept)


def _answers(kept: Mapping[str, Any]) -> Mapping[str, Any]:
    """What stands there instead of a table holds none."""
    answers = kept.get("answers")
    return answers if isinstance(answers, dict) else {}


def _read(path: Path, notices: list[str]) -> Kept:
    return read(path, notices, again="what may run")


def _store(places: Places) -> Path:
    return places.state / "consents.json"
