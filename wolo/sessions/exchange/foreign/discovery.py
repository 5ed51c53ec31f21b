"""Finds session files of other agents on this machine."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from msgspec import Struct

from wolo.sessions.exchange.json_files import Record, content, parse_object, parse_objects, text

HEAD_BYTES = 256 * 1024
TAIL_BYTES = 64 * 1024
"""Parts of a file searched for its title."""


class FoundSession(Struct, frozen=True):
    source: Path
    """For the agent's `read`."""
    id: str
    title: str
    updated: float


def home_of(agent: str, environ: Mapping[str, str], *variables: str) -> Path:
    """The agent's directory: from a variable, or below the user's home."""
    named = next((environ[name] for name in variables if environ.get(name)), "")
    return Path(named).expanduser() if named else Path(environ.get("HOME") or Path.home()) / agent


def newest_first(sessions: Iterable[FoundSession]) -> list[FoundSession]:
    return sorted(sessions, key=lambda each: (-each.updated, each.id))


def same_directory(a: str, b: Path) -> bool:
    return bool(a) and os.path.realpath(a) == os.path.realpath(b)


def records_of(path: Path) -> list[Record]:
    """Reads a small index; empty when missing."""
    return parse_objects(_read(path))


def head(path: Path) -> list[Record]:
    """The records at the beginning; an incomplete last one is ignored."""
    return parse_objects(_read(path, HEAD_BYTES))


def first(path: Path) -> Record:
    try:
        with path.open("rb") as file:
            return parse_object(file.readline(HEAD_BYTES)) or {}
    except OSError:
        return {}


def tail(path: Path) -> list[Record]:
    return parse_objects(_read(path, TAIL_BYTES, at_end=True))


def _read(path: Path, most_bytes: int = -1, *, at_end: bool = False) -> bytes:
    try:
        with path.open("rb") as file:
            if at_end:
                file.seek(max(file.seek(0, os.SEEK_END) - most_bytes, 0))
            return file.read(most_bytes)
    except OSError:
        return b""


def first_prompt(records: Iterable[Record], own: tuple[str, ...] = ()) -> str:
    """The first text of the user, in records with a role and content; texts that begin with `own` are the agent's."""
    texts = ("".join(text(block, "text") for block in content(each)) for each in records if each.get("role") == "user")
    return next((words for words in texts if words.strip() and not words.startswith(own)), "")


def last_change_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def children(path: Path, pattern: str) -> list[Path]:
    """Matching paths; empty for an unreadable directory."""
    try:
        return list(path.glob(pattern))
    except OSError:
        return []
