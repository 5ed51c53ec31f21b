"""Protocol of the databases that can hold a ledger, and the schema that they share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from wolo.errors import WoloError

T = TypeVar("T")
Execute = Callable[[str, Sequence[object]], list[tuple[Any, ...]]]
"""Runs one statement with `?` for its parameters; returns its rows."""


class LedgerError(WoloError):
    """The ledger cannot be read or written; nothing in it was changed."""

    kind = "ledger"
    exit_code = 2


class LedgerStore(Protocol):
    """A database, used by any thread of its process. Calls block."""

    skip_locked: str
    """Clause that passes over rows of other transactions."""
    lock_row: str
    """Clause that holds a row until the transaction ends."""
    next_fence: str
    """Statement that returns a number higher than all before."""
    one_host: bool
    """Leases are timed by the clock of the one machine that uses the file, rather than by the database's."""

    say: Callable[[str], None]
    """Is told of an outage that is waited for."""

    def since_outage_s(self) -> float | None:
        """Since the database came back, which no owner of a lease could reach; None: it was always there."""

    def transaction(self, work: Callable[[Execute], T]) -> T:
        """Durable when it returns; runs `work` again where the database asks for it. Raises LedgerError."""

    def now(self, execute: Execute) -> float:
        """Seconds on the clock that times leases and limits."""

    def close(self) -> None: ...


SCHEMA = (
    """CREATE TABLE run (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        meta TEXT NOT NULL,
        fence BIGINT NOT NULL DEFAULT 0,
        published BIGINT NOT NULL DEFAULT 0,
        tokens BIGINT NOT NULL DEFAULT 0,
        cost_usd DOUBLE PRECISION NOT NULL DEFAULT 0,
        priced BIGINT NOT NULL DEFAULT 0,
        unpriced BIGINT NOT NULL DEFAULT 0,
        refusals TEXT NOT NULL DEFAULT '{}'
    )""",
    """CREATE TABLE tasks (
        seq BIGINT PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        key TEXT NOT NULL,
        task TEXT NOT NULL,
        provider TEXT NOT NULL DEFAULT '',
        state TEXT NOT NULL,
        attempt INTEGER NOT NULL DEFAULT 0,
        retries INTEGER NOT NULL DEFAULT 0,
        fence BIGINT NOT NULL DEFAULT 0,
        host TEXT NOT NULL DEFAULT '',
        pid BIGINT NOT NULL DEFAULT 0,
        started TEXT NOT NULL DEFAULT '',
        expires DOUBLE PRECISION NOT NULL DEFAULT 0,
        cancelling INTEGER NOT NULL DEFAULT 0
    )""",
    "CREATE INDEX queue ON tasks (retries, seq) WHERE state = 'queued'",
    "CREATE INDEX leases ON tasks (started) WHERE state = 'leased'",
    """CREATE TABLE attempts (
        fence BIGINT PRIMARY KEY,
        seq BIGINT NOT NULL,
        key TEXT NOT NULL,
        attempt INTEGER NOT NULL,
        state TEXT NOT NULL,
        host TEXT NOT NULL,
        began TEXT NOT NULL,
        note TEXT NOT NULL DEFAULT '',
        tokens BIGINT NOT NULL DEFAULT 0,
        cost_usd DOUBLE PRECISION NOT NULL DEFAULT 0,
        outcome TEXT,
        number BIGINT UNIQUE
    )""",
    """CREATE TABLE limits (
        key TEXT PRIMARY KEY,
        state TEXT NOT NULL
    )""",
)
"""`run.priced`, `run.unpriced`: ended attempts whose cost is known, and whose cost is not.
`attempts.number`: place of its line in results.jsonl; none for an attempt that was repeated."""
