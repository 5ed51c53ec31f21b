"""Remembers sessions without a prompt, which are not saved, so that an editor can load them again."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

from wolo.errors import SessionError
from wolo.places import find_places, make_private
from wolo.sessions.session_rows import check_id

FOLDER = "unsent"
"""Beside the sessions: an empty file each."""
KEPT_S = 30 * 86400.0


def remember(session_id: str) -> None:
    """Blocks. Without room on the disk the session can be loaded by this process only."""
    with suppress(OSError):
        folder = _folder()
        make_private(folder)
        for path in folder.iterdir():
            if path.stat().st_mtime + KEPT_S < time.time():
                path.unlink(missing_ok=True)
        (folder / session_id).touch(mode=0o600)


def is_remembered(session_id: str) -> bool:
    """Blocks."""
    try:
        return (_folder() / check_id(session_id)).is_file()
    except (SessionError, OSError):
        return False


def forget(session_id: str) -> None:
    """Blocks."""
    with suppress(OSError):
        (_folder() / session_id).unlink(missing_ok=True)


def _folder() -> Path:
    return find_places().data / FOLDER
