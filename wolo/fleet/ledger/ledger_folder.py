"""Creates and opens the ledger of a run's folder."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

import msgspec
from msgspec import Struct

from wolo.fleet.ledger.hosts import Host
from wolo.fleet.ledger.ledger import Ledger
from wolo.fleet.ledger.ledger_store import LedgerError, LedgerStore
from wolo.fleet.ledger.run_rows import Meta
from wolo.fleet.ledger.sqlite_store import NAME, SqliteStore
from wolo.fleet.seal import is_sealed, seal_of

SQLITE = "sqlite"
STORE = "store.json"


class StoreAddress(Struct, frozen=True):
    """Content of store.json, which is there unless the ledger is in the folder."""

    url: str
    """Without a password."""
    schema: str
    seal: str = ""
    """Shows that this user has chosen the address."""


CONFIRMED = "WOLO_BATCH_STORE"
"""Names the database of runs that were made elsewhere."""


def create_ledger(folder: Path, meta: Meta, store: str = SQLITE, host: Host | None = None) -> Ledger:
    """Makes an empty ledger; the folder must be there and have none. Raises LedgerError."""
    host = host or Host()
    if has_ledger(folder):
        raise LedgerError(f"{folder} has a ledger.", hint=f"wolo batch resume {folder}")
    text = msgspec.json.encode(meta).decode()
    if store == SQLITE:
        return Ledger(SqliteStore.create(folder / NAME, host, text), folder, host)
    from wolo.fleet.ledger.postgresql_store import PostgresStore, without_password  # noqa: PLC0415  # few runs need it

    schema = f"wolo_{secrets.token_hex(8)}"
    opened: LedgerStore = PostgresStore.create(store, schema, text)
    url = without_password(store)
    address = StoreAddress(url, schema, seal_of([url, schema]))
    try:
        (folder / STORE).write_bytes(msgspec.json.encode(address) + b"\n")
    except OSError as error:
        raise LedgerError(f"Cannot write {folder / STORE}: {(error.strerror or str(error)).lower()}.") from error
    return Ledger(opened, folder, host)


def open_ledger(folder: Path, host: Host | None = None, *, reads: bool = False) -> Ledger:
    """`reads`: the folder may be read-only. Raises LedgerError."""
    host = host or Host()
    if not (folder / STORE).is_file():
        return Ledger(SqliteStore(folder / NAME, host, reads=reads), folder, host)
    from wolo.fleet.ledger.postgresql_store import PostgresStore  # noqa: PLC0415  # few runs need it

    try:
        address = msgspec.json.decode((folder / STORE).read_bytes(), type=StoreAddress)
    except (OSError, msgspec.MsgspecError) as error:
        raise LedgerError(f"Cannot read {folder / STORE}: {error}.", hint="It names the database of the run.") from error
    if os.environ.get(CONFIRMED) != address.url and not is_sealed([address.url, address.schema], address.seal):
        raise LedgerError(
            f"{folder / STORE} names a database that you have not chosen: {address.url}.",
            hint=f"Passwords of yours could go there. If it is right, set {CONFIRMED} to this address.",
        )
    return Ledger(PostgresStore(address.url, address.schema), folder, host)


def has_ledger(folder: Path) -> bool:
    return (folder / NAME).exists() or (folder / STORE).exists()
