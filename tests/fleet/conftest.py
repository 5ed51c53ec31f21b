"""A provider for batches, and empty ledgers of both kinds."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.components import miss
from tests.fakes.provider_server import ProviderServer
from tests.fleet.batches import serve
from tests.fleet.clocks import TestHost
from tests.fleet.postgresql import PostgresServer
from wolo.fleet.ledger.ledger import Ledger
from wolo.fleet.ledger.ledger_folder import create_ledger
from wolo.fleet.ledger.run_rows import Meta


@pytest.fixture
def env(provider: ProviderServer, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    served = serve(provider)
    for name, value in served.items():
        monkeypatch.setenv(name, value)
    return served


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    server = PostgresServer()
    server.start()
    yield server
    server.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "sqlite":
        return "sqlite"
    if find_spec("psycopg") is None:
        miss("psycopg (the extra `postgres`)")
    server = request.getfixturevalue("postgres")
    monkeypatch.setenv("PGPASSWORD", server.password)
    return str(server.url)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    folder.mkdir()
    return folder


@pytest.fixture
def host() -> TestHost:
    return TestHost()


@pytest.fixture
def ledger(run: Path, store: str, host: TestHost) -> Iterator[Ledger]:
    made = create_ledger(run, Meta(version="1"), store, host)
    yield made
    made.close()
