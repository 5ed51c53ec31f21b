"""The database where it may only be read: in a directory that cannot be written, or written by a newer wolo."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import RLock

from wolo.errors import SessionError
from wolo.sessions.connection import check_ours, only_reading
from wolo.sessions.storage_errors import Unwritable, explain


class ReadOnlyDatabase:
    """What a store asks of a database, as far as reading allows. Nothing is made, locked or changed."""

    def __init__(self, path: Path) -> None:
        """Raises SessionError for what is no database of wolo's, or cannot be read."""
        self.path = path
        self._mutex = RLock()
        self._stack = ExitStack()
        try:
            if not path.stat().st_size:
                raise SessionError(f"{path} is empty.", hint="There is no session in it.")
            self._connection = self._stack.enter_context(only_reading(path))
            check_ours(self._connection, path)
        except (sqlite3.Error, OSError) as error:
            self._stack.close()
            raise explain(error, path) from error
        except BaseException:
            self._stack.close()
            raise

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        try:
            with self._mutex:
                yield self._connection
        except sqlite3.OperationalError as error:
            raise SessionError(f"{self.path} cannot be read by this wolo: {error}.", hint="Upgrade wolo.") from error
        except (sqlite3.Error, OSError) as error:
            raise explain(error, self.path) from error

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Raises Unwritable."""
        raise Unwritable(f"{self.path} can only be read here.", hint="Set WOLO_HOME to a directory that can be written.")
        yield self._connection

    def rescue(self, why: str) -> str:
        """Nothing can be done about damage."""
        return ""

    def checkpoint(self) -> None:
        """There is nothing to copy."""

    def close(self) -> None:
        self._stack.close()
