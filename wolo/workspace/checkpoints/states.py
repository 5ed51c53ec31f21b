"""What a path is at one moment, and what became of it in one change."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Literal, NamedTuple

Kind = Literal["", "file", "link", "folder"]
"""Empty: nothing is there."""
Source = Literal["tool", "in place", "command", "unclear", "undo"]
"""Who changed it: a tool that replaces a file, one that had to write into it, a command, perhaps a command, an undo."""

UNKNOWN_MODE = -1
UNKEPT = b""
"""In place of the hash of a content that nobody has kept."""


class State(NamedTuple):
    kind: Kind = ""
    hash: bytes = UNKEPT
    """Of a file's content, or of where a link leads."""
    mode: int = UNKNOWN_MODE

    @property
    def is_known(self) -> bool:
        """It could be made again."""
        return self.kind in ("", "folder") or self.hash != UNKEPT

    def is_like(self, other: State) -> bool:
        """The same but for the mode."""
        return self.kind == other.kind and (self.kind in ("", "folder") or (self.hash == other.hash and self.hash != UNKEPT))


ABSENT = State()


class Change(NamedTuple):
    path: str
    """Absolute and real."""
    before: State
    after: State

    @property
    def changes_mode(self) -> bool:
        return self.before.kind == self.after.kind and UNKNOWN_MODE not in modes(self) and len({*modes(self)}) == 2


class Noted(NamedTuple):
    """A change as it is kept."""

    change: Change
    session: str
    turn: str
    call: str
    source: Source
    step: int = 0
    """The undo it belongs to."""


class Changes(NamedTuple):
    """What a command did to files; absolute paths."""

    made: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(sorted({*self.made, *self.changed, *self.gone}))


def modes(change: Change) -> tuple[int, int]:
    return change.before.mode, change.after.mode


def digest(data: bytes) -> bytes:
    return sha256(data).digest()


def as_text(path: Path | str) -> str:
    """For people and JSON: letters that no encoding knows are shown as such."""
    return str(path).encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def as_line(path: Path | str) -> str:
    """For people, on one line: what would break it or not show is spelled out, so that no name looks like something else."""
    return "".join(each if each.isprintable() else f"\\u{{{ord(each):x}}}" for each in as_text(path))
