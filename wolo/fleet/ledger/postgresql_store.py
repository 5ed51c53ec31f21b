"""Keeps a ledger in PostgreSQL, for workers on any number of machines."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Sequence
from threading import RLock
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from wolo.errors import ConfigError
from wolo.fleet.ledger.ledger_store import SCHEMA, Execute, LedgerError
from wolo.models.secret_references import VARIABLE, resolve

try:
    import psycopg
except ImportError as missing:
    raise LedgerError("A ledger in PostgreSQL needs psycopg.", hint="pip install 'wolo-cli[postgres]'") from missing

T = TypeVar("T")
OUTAGE_S = 300.0
"""A server that restarts or cannot be reached is tried again this long, by all threads together."""
_PAUSE_S = 0.5
_CONNECTION: dict[str, Any] = {"connect_timeout": 10, "keepalives_idle": 10, "keepalives_interval": 5, "tcp_user_timeout": 20_000}
_LIMITS = "SET LOCAL lock_timeout = '30s'; SET LOCAL idle_in_transaction_session_timeout = '60s'"


class PostgresStore:
    """One schema for each run. Nothing depends on the state of a connection, so that poolers may be between."""

    skip_locked = " FOR UPDATE SKIP LOCKED"
    lock_row = " FOR UPDATE"
    next_fence = "SELECT nextval('fences')"
    one_host = False

    def __init__(self, url: str, schema: str) -> None:
        """Opens a schema that is there. Raises LedgerError."""
        self._shown, self._mutex = without_password(url), RLock()
        self.say: Callable[[str], None] = lambda text: None
        self._down_since: float | None = None
        self._back_at: float | None = None
        try:
            self._url = resolve(url, os.environ, setting="--store")
            self._password = urlsplit(self._url).password or ""
        except (ConfigError, ValueError) as error:
            raise LedgerError(f"Cannot use --store {self._shown}: {error}", hint="postgresql://USER@HOST/DATABASE") from error
        self._begin = f"BEGIN; SET LOCAL search_path TO {schema}; {_LIMITS}"
        self._connection = self._connect()

    @classmethod
    def create(cls, url: str, schema: str, meta: str) -> PostgresStore:
        store = cls(url, schema)

        def fill(execute: Execute) -> None:
            execute(f"CREATE SCHEMA {schema}", ())
            execute("CREATE SEQUENCE fences", ())
            for statement in SCHEMA:
                execute(statement, ())
            execute("INSERT INTO run (one, meta) VALUES (1, ?)", (meta,))

        store.transaction(fill)
        return store

    def now(self, execute: Execute) -> float:
        return float(execute("SELECT extract(epoch FROM clock_timestamp())::float8", ())[0][0])

    def transaction(self, work: Callable[[Execute], T]) -> T:
        with self._mutex:
            while True:
                try:
                    connection = self._connection
                    connection.execute(self._begin)
                    try:
                        result = work(self._execute)
                        connection.execute("COMMIT")
                    except BaseException:
                        if not connection.closed:
                            connection.rollback()
                            connection.execute("ROLLBACK")
                        raise
                    self._down_since = None
                    return result
                except (psycopg.errors.DeadlockDetected, psycopg.errors.SerializationFailure):
                    continue
                except (psycopg.OperationalError, psycopg.InterfaceError) as error:
                    if not self._connection.closed and not isinstance(error, psycopg.errors.AdminShutdown):
                        raise self._explain(error) from error
                    self._reconnect(error)
                except psycopg.Error as error:
                    raise self._explain(error) from error

    def _execute(self, statement: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
        cursor = self._connection.execute(statement.replace("?", "%s"), values)
        rows: list[tuple[Any, ...]] = cursor.fetchall() if cursor.description else []
        return rows

    def _connect(self) -> psycopg.Connection[tuple[Any, ...]]:
        try:
            return psycopg.connect(
                self._url, autocommit=True, prepare_threshold=None, client_encoding="utf8", application_name="wolo", **_CONNECTION
            )
        except psycopg.Error as error:
            raise self._explain(error) from None  # its text may have the password

    def _reconnect(self, error: psycopg.Error) -> None:
        self._connection.close()
        if self._down_since is None:
            self._down_since = time.monotonic()
            self.say(f"The database of the run does not answer. It is waited for, at most {OUTAGE_S:.0f} s.")
        while True:
            try:
                self._connection = self._connect()
                self._back_at = time.monotonic()
                return
            except LedgerError:
                if time.monotonic() >= self._down_since + OUTAGE_S:
                    explained = self._explain(error)
                    raise LedgerError(f"{explained.message} (for {OUTAGE_S:.0f} s)", hint=explained.hint) from None
                time.sleep(_PAUSE_S)

    def since_outage_s(self) -> float | None:
        return None if self._back_at is None else time.monotonic() - self._back_at

    def _explain(self, error: psycopg.Error) -> LedgerError:
        message = " ".join(str(error).split())
        if self._password:
            message = message.replace(self._password, "***")
        if isinstance(error, psycopg.errors.InvalidSchemaName | psycopg.errors.UndefinedTable):
            return LedgerError(f"The ledger of this run is not in {self._shown}: {message}", hint="Was the database replaced?")
        hint = "Check server, user and database. The password comes from PGPASSWORD, ~/.pgpass or ${NAME} in the address."
        return LedgerError(f"Cannot use the ledger in {self._shown}: {message}", hint=hint)

    def close(self) -> None:
        with self._mutex:
            self._connection.close()


def without_password(url: str) -> str:
    """Leaves a reference such as `${NAME}` in its place."""
    parts = urlsplit(url)
    user, separator, place = parts.netloc.rpartition("@")
    name, colon, password = user.partition(":")
    if colon and not re.fullmatch(VARIABLE, password):
        user = name
    query = urlencode([(key, value) for key, value in parse_qsl(parts.query) if key not in ("password", "sslpassword")])
    return urlunsplit((parts.scheme, f"{user}{separator}{place}", parts.path, query, ""))
