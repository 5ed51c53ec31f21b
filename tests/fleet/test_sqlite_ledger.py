"""Ledgers in SQLite: kills, full disks, damage, other machines and clocks that jump."""

from __future__ import annotations

import contextlib
import resource
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests import unprivileged
from tests.fleet.clocks import TestHost, leased, outcome, results, tasks
from wolo.fleet.ledger.hosts import Host
from wolo.fleet.ledger.ledger import ELSEWHERE, NEXT, Ledger
from wolo.fleet.ledger.ledger_folder import create_ledger, open_ledger
from wolo.fleet.ledger.ledger_store import LedgerError
from wolo.fleet.ledger.outcomes import Lease, Owner
from wolo.fleet.ledger.run_rows import Meta
from wolo.sessions import database_file

WORKER = """
import sys
from pathlib import Path
from tests import unprivileged
from tests.fleet.clocks import outcome
from wolo.fleet.ledger.hosts import Host
from wolo.fleet.ledger.ledger_folder import open_ledger
ledger, owner = open_ledger(Path(sys.argv[1])), Host().owner()
print("ready", flush=True)
while lease := ledger.lease(owner):
    ledger.heartbeat(lease, note="at work")
    ledger.publish(lease, outcome())
"""


@pytest.fixture
def store() -> str:
    return "sqlite"


def counted(run: Path) -> dict[str, int]:
    with contextlib.closing(open_ledger(run, reads=True)) as ledger:
        return dict(ledger.counts())


def cancelled(run: Path) -> int:
    with contextlib.closing(open_ledger(run)) as ledger:
        return ledger.cancel(None)


def test_unwritable_folder_can_be_read(host: TestHost) -> None:
    with unprivileged.folder() as run:
        writer = create_ledger(run, Meta(version="1"), "sqlite", host)
        writer.add(tasks("a", "b"))
        writer.publish(leased(writer, host.owner()), outcome())
        assert (run / "ledger.db-wal").stat().st_size > 0, "a part is in the log"
        for path in run.iterdir():
            path.chmod(0o444)
        run.chmod(0o555)
        names = sorted(run.iterdir())
        assert unprivileged.call(counted, run) == {"passed": 1, "queued": 1}
        assert sorted(run.iterdir()) == names
        with pytest.raises(LedgerError, match="read-only"):
            unprivileged.call(cancelled, run)
        writer.close()


def killed(run: Path, after_s: float) -> None:
    with subprocess.Popen([sys.executable, "-c", WORKER, run], stdout=subprocess.PIPE) as worker:
        assert worker.stdout
        assert worker.stdout.readline()
        with contextlib.suppress(subprocess.TimeoutExpired):
            worker.wait(after_s)
        worker.send_signal(signal.SIGKILL)


def check_kills(run: Path, count: int, kills: int) -> None:
    ledger = open_ledger(run)
    ledger.add(tasks(*(f"t{number}" for number in range(count))))
    for kill in range(kills):
        killed(run, 0.02 + 0.0037 * kill % 0.1)
        ledger.expire()
    owner = Host().owner()
    while lease := ledger.lease(owner):
        ledger.publish(lease, outcome())
    ledger.close()
    again = open_ledger(run)
    again.complete_files()
    assert sorted(line["id"] for line in results(run)) == sorted(f"t{number}" for number in range(count))
    again.close()


def test_killed_workers_lose_nothing_and_double_nothing(ledger: Ledger, run: Path) -> None:
    check_kills(run, 100, 4)


@pytest.mark.soak
def test_many_killed_workers_lose_nothing_and_double_nothing(ledger: Ledger, run: Path) -> None:
    check_kills(run, 3000, 70)


def beat_forever(ledger: Ledger, lease: Lease) -> None:
    while True:
        ledger.heartbeat(lease, note="x" * 500)


def test_full_disk_is_one_sentence_without_loss(ledger: Ledger, run: Path, host: TestHost) -> None:
    ledger.add(tasks("a", "b"))
    lease = leased(ledger, host.owner())
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    smallest = min(path.stat().st_size for path in (run / "ledger.db", run / "ledger.db-wal"))
    resource.setrlimit(resource.RLIMIT_FSIZE, (smallest, before[1]))
    try:
        with pytest.raises(LedgerError) as caught:
            beat_forever(ledger, lease)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert ("disk" in caught.value.message, caught.value.exit_code) == (True, 2)
    assert "resume" in caught.value.hint
    assert ledger.publish(lease, outcome())
    assert [line["id"] for line in results(run)] == ["a"]


def test_results_that_could_not_be_written_are_completed(ledger: Ledger, run: Path, host: TestHost) -> None:
    for name in ("results.jsonl", "results.lock"):
        (run / name).unlink(missing_ok=True)
        (run / name).mkdir()
        ledger.add(tasks(name))
        with pytest.raises(LedgerError, match=name) as caught:
            ledger.publish(leased(ledger, host.owner()), outcome())
        assert caught.value.exit_code == 2
        (run / name).rmdir()
    ledger.complete_files()
    assert [line["id"] for line in results(run)] == ["results.jsonl", "results.lock"]


@pytest.mark.parametrize("content", [b"", b"no database at all" * 99])
def test_a_damaged_ledger_says_what_is_left(ledger: Ledger, run: Path, content: bytes) -> None:
    ledger.close()
    (run / "ledger.db").write_bytes(content)
    with pytest.raises(LedgerError, match="damaged") as caught:
        open_ledger(run)
    assert "results.jsonl" in caught.value.hint


def test_damage_inside_is_found_when_it_is_read(ledger: Ledger, run: Path, host: TestHost) -> None:
    ledger.add(tasks(*(f"t{number}" for number in range(200))))
    ledger.close()
    with contextlib.closing(sqlite3.connect(run / "ledger.db")) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    content = (run / "ledger.db").read_bytes()
    (run / "ledger.db").write_bytes(content[:4096] + b"\xff" * (len(content) - 4096))
    with pytest.raises(LedgerError, match="damaged"):
        open_ledger(run, host).rows()


def test_no_ledger_and_a_newer_one_are_refused(ledger: Ledger, run: Path, tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="no ledger"):
        open_ledger(tmp_path)
    ledger.close()
    with contextlib.closing(sqlite3.connect(run / "ledger.db")) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(LedgerError, match="newer"):
        open_ledger(run)


def test_hung_worker_loses_its_lease_by_time(ledger: Ledger, host: TestHost, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger.add(tasks("a"))
    lease = leased(ledger, host.owner())
    monkeypatch.setattr(time, "time", lambda: 4e9)  # the date jumps
    assert ledger.expire() == 0
    host.time += 59
    assert ledger.expire() == 0
    assert ledger.heartbeat(lease) == "held"
    host.time += 59
    assert ledger.expire() == 0
    host.time += 2
    assert ledger.expire() == 1


def test_machine_restart_ends_all_leases(ledger: Ledger, run: Path, host: TestHost) -> None:
    ledger.add(tasks("a"))
    before = host.owner()
    leased(ledger, Owner(before.host, before.pid, f"before/{before.started.partition('/')[2]}"))
    assert ledger.expire() == 1


def test_a_second_machine_is_noticed_and_refused(ledger: Ledger, run: Path, host: TestHost) -> None:
    ledger.add(tasks("a", "b"))
    held = leased(ledger, host.owner())
    other = TestHost("other", "other-boot")
    elsewhere = open_ledger(run, other)
    assert elsewhere.lease(other.owner()) is None  # it may have been left behind
    assert elsewhere.expire() == 0
    host.time += 1
    ledger.heartbeat(held)
    elsewhere.expire()
    with pytest.raises(LedgerError, match="one machine") as caught:
        elsewhere.lease(other.owner())
    assert "postgresql://" in caught.value.hint
    elsewhere.close()


def test_lease_of_another_machine_is_taken_after_timeout(ledger: Ledger, run: Path, host: TestHost) -> None:
    ledger.add(tasks("a"))
    leased(ledger, host.owner())
    other = TestHost("other", "other-boot")
    other.time = 5.0
    elsewhere = open_ledger(run, other)
    assert elsewhere.expire() == 0
    other.time += 60
    assert elsewhere.expire() == 1
    assert leased(elsewhere, other.owner()).attempt == 2
    elsewhere.close()


def test_the_next_task_is_found_by_an_index(ledger: Ledger, run: Path) -> None:
    with contextlib.closing(sqlite3.connect(run / "ledger.db")) as connection:
        plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {NEXT}")]
        others = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {ELSEWHERE}", ("", ""))]
    assert plan == ["SCAN tasks USING INDEX queue"]  # in its order, until the first one
    assert sum("INDEX leases (started" in step for step in others) == 2


def test_a_remote_file_system_gets_a_rollback_journal(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database_file, "is_remote", lambda _: True)
    create_ledger(run, Meta(version="1")).close()
    with contextlib.closing(sqlite3.connect(run / "ledger.db")) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
