"""Ledgers in PostgreSQL: restarts, cut networks, clocks of many machines, and the password."""

from __future__ import annotations

import json
import socket
import threading
from pathlib import Path

import pytest

from tests.fakes.command import run_wolo
from tests.fakes.provider_server import ProviderServer
from tests.fleet.batches import serve, write_tasks
from tests.fleet.clocks import TestHost, leased, outcome, results, tasks
from tests.fleet.postgresql import PostgresServer
from wolo.fleet.ledger import postgresql_store
from wolo.fleet.ledger.ledger import Ledger
from wolo.fleet.ledger.ledger_folder import create_ledger, open_ledger
from wolo.fleet.ledger.ledger_store import LedgerError
from wolo.fleet.ledger.outcomes import Owner
from wolo.fleet.ledger.run_rows import Meta


@pytest.fixture
def store(postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> str:
    pytest.importorskip("psycopg")
    monkeypatch.setenv("PGPASSWORD", postgres.password)
    return postgres.url


def test_a_restart_of_the_server_is_waited_for(ledger: Ledger, host: TestHost, run: Path, postgres: PostgresServer) -> None:
    ledger.add(tasks("a", "b"))
    lease = leased(ledger, host.owner())
    postgres.stop()
    starting = threading.Timer(0.3, postgres.start)
    starting.start()
    assert ledger.publish(lease, outcome())
    starting.join()
    postgres.stop("fast")
    postgres.start()
    assert ledger.publish(leased(ledger, host.owner()), outcome("failed"))
    assert [line["id"] for line in results(run)] == ["a", "b"]


def test_outage_costs_no_finished_attempt(run: Path, store: str, postgres: PostgresServer) -> None:
    here, there = TestHost("here", "1"), TestHost("there", "2")
    first = create_ledger(run, Meta(version="1", lease_s=0.5), store, here)
    first.add(tasks("a", "b"))
    second = open_ledger(run, there)
    held = leased(first, here.owner()), leased(second, there.owner())
    told: list[str] = []
    first.on_outage(told.append)
    postgres.stop()
    starting = threading.Timer(1.0, postgres.start)  # longer than the leases
    starting.start()
    assert first.heartbeat(held[0]) == "held"
    starting.join()
    assert first.expire() == 0, "the other one is not back yet"
    assert second.publish(held[1], outcome())
    assert first.publish(held[0], outcome())
    assert told == ["The database of the run does not answer. It is waited for, at most 300 s."]
    first.close()
    second.close()


def test_calls_share_one_deadline_in_an_outage(
    ledger: Ledger, run: Path, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgresql_store, "OUTAGE_S", 0.7)
    opened = open_ledger(run)
    assert isinstance(opened._store, postgresql_store.PostgresStore)
    postgres.stop()
    since = set()
    for _ in range(3):
        with pytest.raises(LedgerError, match=r"\(for 1 s\)"):
            opened.meta()
        since.add(opened._store._down_since)
    assert len(since) == 1
    postgres.start()
    assert opened.meta() == ledger.meta()
    assert opened._store._down_since is None, "the next outage has a time of its own"
    opened.close()


def test_the_clock_of_the_database_decides(ledger: Ledger, run: Path) -> None:
    ledger.add(tasks("a"))
    early, late = TestHost("early", "1"), TestHost("late", "2")
    early.time, late.time = 0.0, 1e12
    first, second = open_ledger(run, early), open_ledger(run, late)
    held = leased(first, Owner("early", 1, "1/1/1"))
    assert second.expire() == first.expire() == 0
    second._store.transaction(lambda execute: execute("UPDATE tasks SET expires = expires - 61", ()))
    assert second.expire() == 1
    assert leased(second, Owner("late", 1, "2/1/1")).attempt == 2
    assert not first.publish(held, outcome())
    first.close()
    second.close()


def test_the_password_is_neither_saved_nor_shown(
    ledger: Ledger, run: Path, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = (run / "store.json").read_text()
    assert "cret" not in saved
    assert "wolo@127.0.0.1" in saved
    monkeypatch.delenv("PGPASSWORD")
    with pytest.raises(LedgerError, match="password") as caught:
        open_ledger(run)
    assert "PGPASSWORD" in caught.value.hint
    with pytest.raises(LedgerError) as caught:
        create_ledger(run.parent, Meta(version="1"), postgres.url.replace("cret", "wrong"))
    assert "wrong" not in caught.value.message + caught.value.hint


def test_password_reference_is_saved_unchanged(postgres: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("psycopg")
    monkeypatch.setenv("SECRET", "se%2Fcret-word")
    create_ledger(tmp_path, Meta(version="1"), postgres.url.replace("se%2Fcret-word", "${SECRET}")).close()
    assert "${SECRET}" in (tmp_path / "store.json").read_text()
    open_ledger(tmp_path).close()
    monkeypatch.delenv("SECRET")
    with pytest.raises(LedgerError, match="SECRET"):
        open_ledger(tmp_path)


def test_a_foreign_database_address_receives_no_password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("psycopg")
    monkeypatch.setenv("SOME_KEY", "sk-secret")
    with socket.create_server(("127.0.0.1", 0)) as trap:
        trap.settimeout(0)
        url = f"postgresql://me:${{SOME_KEY}}@127.0.0.1:{trap.getsockname()[1]}/x"
        (tmp_path / "store.json").write_text(json.dumps({"url": url, "schema": "run_1", "seal": "0" * 64}))
        with pytest.raises(LedgerError, match="a database that you have not chosen") as caught:
            open_ledger(tmp_path)
        with pytest.raises(BlockingIOError):
            trap.accept()
    assert "WOLO_BATCH_STORE" in caught.value.hint


def test_a_confirmed_database_address_is_used(run: Path, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    address = json.loads((run / "store.json").read_text())
    (run / "store.json").write_text(json.dumps({**address, "seal": ""}))
    monkeypatch.setenv("WOLO_BATCH_STORE", address["url"])
    confirmed = open_ledger(run)
    assert confirmed.meta() == ledger.meta()
    confirmed.close()


def test_a_cut_connection_is_made_again(run: Path, host: TestHost, postgres: PostgresServer, store: str) -> None:
    with Cable(postgres.port) as cable:
        ledger = create_ledger(run, Meta(version="1"), postgres.url.replace(str(postgres.port), str(cable.port)), host)
        ledger.add(tasks("a"))
        lease = leased(ledger, host.owner())
        cable.cut()
        assert ledger.heartbeat(lease) == "held"
        cable.cut()
        assert ledger.publish(lease, outcome())
        ledger.close()
    assert [line["id"] for line in results(run)] == ["a"]


def test_batch_runs_and_resumes_without_password_traces(
    postgres: PostgresServer, store: str, provider: ProviderServer, tmp_path: Path
) -> None:
    env = serve(provider)
    given = {**env, "PGPASSWORD": ""}
    made = run_wolo(
        "batch",
        "run",
        "--mode",
        "yolo",
        str(write_tasks(tmp_path / "t.jsonl", 4)),
        "--out",
        "q",
        "-j",
        "0",
        "--store",
        store,
        env=given,
    )
    assert made.exit_code == 0, made.stderr
    kept = {**env, "PGPASSWORD": postgres.password}
    assert run_wolo("batch", "work", "q", "--max", "1", env=kept).exit_code == 0
    done = run_wolo("batch", "resume", "q", env=kept)
    assert done.exit_code == 0, done.stderr
    assert sorted(line["id"] for line in results(Path("q"))) == ["t0", "t1", "t2", "t3"]
    refused = run_wolo("batch", "status", "q", env={**env, "PGPASSWORD": "wrong-one"})
    assert (refused.exit_code, "PGPASSWORD" in refused.stderr, "Traceback" in refused.stderr) == (2, True, False)
    shown = made.stdout + made.stderr + done.stdout + done.stderr + refused.stdout + refused.stderr
    saved = "".join(each.read_text("utf-8", "replace") for each in Path("q").rglob("*") if each.is_file())
    assert "cret-word" not in shown + saved
    assert "wrong-one" not in shown


class Cable:
    """Passes connections on to a server, until it is cut."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._ends: list[socket.socket] = []
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self._accepting = threading.Thread(target=self._accept)
        self._copying: list[threading.Thread] = []

    def __enter__(self) -> Cable:
        self._accepting.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._accepting.join()
        self.cut()
        for each in self._copying:
            each.join()
        for end in self._ends:
            end.close()

    def cut(self) -> None:
        for end in self._ends:
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue

    def _accept(self) -> None:
        while True:
            try:
                near = self._listening.accept()[0]
            except OSError:
                return
            far = socket.create_connection(("127.0.0.1", self._target))
            self._ends += [near, far]
            for pair in ((near, far), (far, near)):
                self._copying.append(threading.Thread(target=_copy, args=pair))
                self._copying[-1].start()


def _copy(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_RDWR)
    except OSError:
        return
