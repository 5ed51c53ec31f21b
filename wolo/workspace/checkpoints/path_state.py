"""What a path is right now, never through a link on the way."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from wolo.errors import ToolError
from wolo.workspace.checkpoints.states import ABSENT, UNKEPT, State, digest
from wolo.workspace.files.safe_open import open_folder, open_regular_in, read_all

MAX_BYTES = 128 << 20
"""What is larger was never kept."""
_NOT_THERE = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}
"""A link where a folder was: below it there is nothing of what was there."""


def observe(path: str) -> State:
    """Raises OSError where it cannot be told."""
    try:
        folder = open_folder(Path(path).parent)
    except OSError as error:
        if error.errno in _NOT_THERE:
            return ABSENT
        raise
    try:
        return observe_in(folder, Path(path).name)
    finally:
        os.close(folder)


def observe_in(folder: int, name: str) -> State:
    """The same, for a name in an open folder."""
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return ABSENT
    mode = stat.S_IMODE(status.st_mode)
    if stat.S_ISLNK(status.st_mode):
        return State("link", digest(os.fsencode(os.readlink(name, dir_fd=folder))))
    if stat.S_ISDIR(status.st_mode):
        return State("folder", UNKEPT, mode)
    if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_BYTES:
        return State("file", UNKEPT, mode)
    data = content_in(folder, name)
    return State("file", UNKEPT if data is None else digest(data), mode)


def content_in(folder: int, name: str) -> bytes | None:
    """Of a plain file, or where a link leads; None where there is neither. Raises OSError."""
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
    folder = open_folder(Path(path).parent)
    try:
        return content_in(folder, Path(path).name)
    finally:
        os.close(folder)
