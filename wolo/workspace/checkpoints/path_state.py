"""Describes the state of a path and its changes, read without following links."""

from __future__ import annotations

import errno
import stat
from hashlib import sha256
from pathlib import Path
from typing import Literal, NamedTuple

from wolo.errors import ToolError
from wolo.operating_system import hold_open, os
from wolo.workspace.files.safe_open import open_folder, open_regular_in, read_all

Kind = Literal["", "file", "link", "folder"]
"""Empty when nothing is there."""
Source = Literal["tool", "in place", "command", "unclear", "undo"]
"""Author of a change: a tool replacing a file, one writing in place, a command, possibly a command, an undo."""

UNKNOWN_MODE = -1
NOT_STORED = b""
"""Stands for the hash of content that is not stored."""


class State(NamedTuple):
    kind: Kind = ""
    hash: bytes = NOT_STORED
    """Hash of the file's content or the link's target."""
    mode: int = UNKNOWN_MODE

    @property
    def is_known(self) -> bool:
        """The state can be restored."""
        return self.kind in ("", "folder") or self.hash != NOT_STORED

    def is_like(self, other: State) -> bool:
        """Compares all but the mode."""
        return self.kind == other.kind and (self.kind in ("", "folder") or (self.hash == other.hash and self.hash != NOT_STORED))


ABSENT = State()


class PathChange(NamedTuple):
    path: str
    """Absolute and real."""
    before: State
    after: State

    @property
    def changes_mode(self) -> bool:
        return self.before.kind == self.after.kind and UNKNOWN_MODE not in modes(self) and len({*modes(self)}) == 2


class RecordedChange(NamedTuple):
    change: PathChange
    session: str
    turn: str
    call: str
    source: Source
    step: int = 0
    """The undo that made it."""


class ChangedPaths(NamedTuple):
    """Absolute paths of files that a command changed."""

    made: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()


def modes(change: PathChange) -> tuple[int, int]:
    return change.before.mode, change.after.mode


def digest(data: bytes) -> bytes:
    return sha256(data).digest()


def as_text(path: Path | str) -> str:
    """Replaces undecodable bytes, for display and JSON."""
    return str(path).encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def as_line(path: Path | str) -> str:
    """Escapes unprintable characters, for display on one line."""
    return "".join(each if each.isprintable() else f"\\u{{{ord(each):x}}}" for each in as_text(path))


MAX_BYTES = 128 << 20
"""Larger content is not stored."""
_MISSING = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}
"""ELOOP: a link in place of a folder, so the path does not exist any more."""


def observe(path: str) -> State:
    """Raises OSError."""
    try:
        folder = open_folder(Path(path).parent)
    except OSError as error:
        if error.errno in _MISSING:
            return ABSENT
        raise
    try:
        return observe_in(folder, Path(path).name)
    finally:
        os.close(folder)


def observe_in(folder: int, name: str) -> State:
    """As `observe`, for a name in an open folder."""
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return ABSENT
    mode = stat.S_IMODE(status.st_mode)
    if stat.S_ISLNK(status.st_mode):
        return State("link", digest(os.fsencode(os.readlink(name, dir_fd=folder))))
    if stat.S_ISDIR(status.st_mode):
        return State("folder", NOT_STORED, mode)
    if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_BYTES:
        return State("file", NOT_STORED, mode)
    data = content_in(folder, name)
    return State("file", NOT_STORED if data is None else digest(data), mode)


def content_in(folder: int, name: str) -> bytes | None:
    """Content of a regular file or target of a link; otherwise None. Raises OSError."""
    try:
        if stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            return os.fsencode(os.readlink(name, dir_fd=folder))
        handle = open_regular_in(folder, name)
    except (FileNotFoundError, IsADirectoryError, ToolError):
        return None
    try:
        return read_all(handle, MAX_BYTES + 1)
    finally:
        os.close(handle)


def content(path: str) -> bytes | None:
    """As `content_in`."""
    with hold_open(open_folder(Path(path).parent)) as folder:
        return content_in(folder, Path(path).name)
