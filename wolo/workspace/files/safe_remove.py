"""Removing a file as carefully as one is replaced: only the content that is meant, and told right before."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

from wolo.workspace.files.atomic_write import (
    UNLIMITED,
    FileChange,
    FileChanged,
    open_expected,
    refuse_read_only,
    sync_folder,
    unnoted,
)
from wolo.workspace.files.file_locks import locked
from wolo.workspace.files.safe_open import open_folder, read_all


def remove_file(path: Path, *, locks: Path, expected: str, note: Callable[[FileChange], None] = unnoted) -> None:
    """Removes the file at the real `path`, whose content must still hash to `expected`.

    `note` hears of it under the file's lock, right before. Raises FileChanged, ToolError or OSError; then the file is as before.
    """
    with locked(path, locks):
        os.close(remove_locked(path, expected=expected, note=note))


def remove_locked(path: Path, *, expected: str, note: Callable[[FileChange], None] = unnoted) -> int:
    """As `remove_file`, for who holds the lock. Returns the removed file, still open: what it was can be read from it.

    The caller closes it.
    """
    folder = open_folder(path.parent)
    try:
        handle = open_expected(folder, path.name, expected)
        if handle is None:
            raise FileChanged("The file was deleted in the meantime.")
        try:
            status = os.fstat(handle)
            refuse_read_only(folder, path.name, status)
            note(FileChange(path, read_all(handle, UNLIMITED), stat.S_IMODE(status.st_mode), None))
            os.unlink(path.name, dir_fd=folder)
            sync_folder(folder)
        except BaseException:
            os.close(handle)
            raise
        return handle
    finally:
        os.close(folder)
