"""Migrates the schema, one function per version, after a backup."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from wolo.errors import SessionError
from wolo.sessions.storage import make_directory, sync
from wolo.workspace.files.sqlite_connection import transaction

Step = Callable[[sqlite3.Connection], None]

STEPS: tuple[Step, ...] = ()
"""The first one migrates version 1, the original schema.sql, to version 2. Keep `schema.sql` up to date."""

BACKUPS_KEPT = 3


def migrate(connection: sqlite3.Connection, path: Path, version: int, steps: Sequence[Step] = STEPS) -> str:
    """Runs the missing steps in one transaction, under the database lock. Returns a message for the user.

    When a step fails or the process dies, the database is unchanged.
    """
    folder = path.parent / "backups"
    make_directory(folder)
    unfinished = folder / "unfinished.db"
    unfinished.unlink(missing_ok=True)
    unfinished.touch(0o600, exist_ok=False)
    unfinished.chmod(0o600)
    connection.execute("VACUUM INTO ?", (str(unfinished),))
    sync(unfinished)
    backup = folder / f"{path.stem}-{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-v{version}.db"
    unfinished.rename(backup)
    sync(folder)
    for outdated in backups(path)[:-BACKUPS_KEPT]:
        outdated.unlink()
    try:
        with transaction(connection):
            for step in steps[version - 1 :]:
                step(connection)
            connection.execute(f"PRAGMA user_version = {len(steps) + 1}")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode == sqlite3.SQLITE_ERROR:
            # A mistake of the step, which must not pass for damage.
            raise SessionError(f"{path} could not be migrated: {error}.", hint="The file was not changed.") from error
        raise
    return f"The session database was migrated to format {len(steps) + 1}; the old one is saved as {backup}."


def backups(path: Path) -> list[Path]:
    """Returns the paths, oldest first."""
    return sorted((path.parent / "backups").glob(f"{path.stem}-*.db"))
