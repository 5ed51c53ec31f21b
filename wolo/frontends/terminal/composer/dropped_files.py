"""Images whose paths a terminal types when they are dropped on it or pasted: they become attachments."""

from __future__ import annotations

import shlex
from pathlib import Path
from urllib.parse import unquote

from wolo.frontends.terminal.composer.completion import mention
from wolo.messages.media import image_type

LONGEST_CHARS = 8_000
HEAD_BYTES = 16
URL = "file://"


def as_mentions(pasted: str, cwd: Path) -> str:
    """`@path` for each image, when nothing but images was pasted; else empty."""
    text = pasted.strip()
    if not text or len(text) > LONGEST_CHARS:
        return ""
    for words in _readings(text):
        paths = [_path(word, cwd) for word in words]
        if paths and all(map(_is_image, paths)):
            return " ".join(mention(_shortest(path, cwd)) for path in paths) + " "
    return ""


def _readings(text: str) -> list[list[str]]:
    """As a name with blanks in it, a line a name, or as a shell would read it."""
    readings = [[text], text.split("\n")]
    try:
        readings.append(shlex.split(text))
    except ValueError:
        readings.append([])
    return readings


def _path(word: str, cwd: Path) -> Path:
    word = word.strip()
    if word.lower().startswith(URL):
        _host, slash, path_in_url = word[len(URL) :].partition("/")
        return Path(slash + unquote(path_in_url))
    path = Path(word)
    try:
        return cwd / path.expanduser()
    except RuntimeError:
        return cwd / path


def _is_image(path: Path) -> bool:
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return bool(image_type(file.read(HEAD_BYTES)))
    except (OSError, ValueError):
        return False


def _shortest(path: Path, cwd: Path) -> str:
    return str(path.relative_to(cwd)) if path.is_relative_to(cwd) else str(path)
