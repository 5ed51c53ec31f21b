"""A look at the sessions in passing: nothing is made, repaired or waited for, and where it cannot be had there is none."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from wolo.sessions.listing import SessionInfo, newest_first
from wolo.sessions.wal import log_path

WAIT_S = 0.05


def peek(data_dir: Path, cwd: Path, most: int) -> list[SessionInfo]:
    """Of this directory, newest first, those in which something was said."""
    path = data_dir / "wolo.db"
    log = log_path(path)
    try:
        if not path.stat().st_size:
            return []
        # Without a log nothing is under way, and `immutable` leaves no file behind.
        how = "mode=ro" if log.exists() and log.stat().st_size else "mode=ro&immutable=1"
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?{how}", uri=True, timeout=WAIT_S)) as connection:
            return [info for info in newest_first(connection, cwd) if info.turns][:most]
    except (OSError, sqlite3.Error):
        return []
