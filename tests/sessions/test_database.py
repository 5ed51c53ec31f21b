"""Acknowledged entries are on disk, whichever process is killed and however many write."""

from __future__ import annotations

import random
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sessions.samples import APPENDER, appender, environment, python_argv, said, texts
from wolo.errors import SessionError
from wolo.sessions import database_file
from wolo.sessions.store import Store

ROUNDS = 10


def check_kept(data: Path, session_id: str, acknowledged: int, text: str = "entry") -> int:
    """Every acknowledged entry is there, in order, without a gap; at most one more was on its way."""
    with Store.open(data) as store:
        loaded = store.load(session_id)
        kept = [text_.split(" x")[0].strip() for text_ in texts(loaded.entries)]
        assert loaded.skipped == 0
        assert kept == [f"{text} {number}" for number in range(1, len(kept) + 1)]
        assert acknowledged <= len(kept) <= acknowledged + 1
        with store._database.reading() as connection:
            sequence = [
                seq for (seq,) in connection.execute("SELECT seq FROM entries WHERE session = ? ORDER BY seq", (session_id,))
            ]
            assert sequence == list(range(1, len(kept) + 1))
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        # It can be gone on with.
        store.append(session_id, [said("after")])
    return len(kept)


def finish(process: subprocess.Popen[str]) -> tuple[str, int]:
    """The session a killed appender told, unless that was read before, and the last number it acknowledged."""
    assert process.stdout is not None
    lines = process.stdout.read().splitlines()  # what a `readline` has buffered is seen by the stream only
    process.wait(timeout=60)
    numbers = [int(line) for line in lines if line.isdigit()]
    return (lines[0] if lines else ""), (numbers[-1] if numbers else 0)


def test_kill_at_any_moment_loses_nothing_acknowledged(data: Path) -> None:
    chance = random.Random(20)
    total = 0
    for _ in range(ROUNDS):
        with appender(data) as process:
            assert process.stdout is not None
            session_id = process.stdout.readline().strip()
            try:
                process.wait(chance.uniform(0.002, 0.08))
            except subprocess.TimeoutExpired:
                process.kill()
            _, acknowledged = finish(process)
        total += check_kept(data, session_id, acknowledged)
    assert total > ROUNDS, "the appender was killed before it did anything"


@pytest.mark.parametrize("call", ["fdatasync", "fsync", "pwrite64", "rename", "ftruncate"])
def test_kill_at_any_system_call_loses_nothing_acknowledged(tmp_path: Path, strace: list[str], call: str) -> None:
    happened = 0
    for nth in (1, 2, 3, 4, 6, 9, 14):
        data = tmp_path / f"data-{nth}"
        inject = [*strace, "-o", "/dev/null", "-e", f"trace={call}", "-e", f"inject={call}:signal=KILL:when={nth}"]
        with appender(data, count=10, before=inject) as process:
            session_id, acknowledged = finish(process)
            happened += process.returncode == -signal.SIGKILL
        if session_id:
            check_kept(data, session_id, acknowledged)
        else:
            with Store.open(data) as store:
                assert store.list() == [] or store.list()[0].turns == 0
        assert not list(data.glob("*.new*"))
    assert happened, f"{call} was never called"


def test_kill_within_a_checkpoint_loses_nothing(tmp_path: Path, strace: list[str]) -> None:
    code = (
        "import sys; from pathlib import Path; from wolo.sessions.store import Store; Store.open(Path(sys.argv[1])).checkpoint()"
    )
    for nth in (1, 2, 5, 20, 45):
        data = tmp_path / f"data-{nth}"
        with appender(data) as process:
            assert process.stdout is not None
            lines = [process.stdout.readline() for _ in range(70)]
            process.kill()
            process.wait()
        inject = [*strace, "-o", "/dev/null", "-e", "trace=pwrite64", "-e", f"inject=pwrite64:signal=KILL:when={nth}"]
        killed = subprocess.run([*inject, *python_argv("-c", code, data)], env=environment(), check=False)
        assert killed.returncode == -signal.SIGKILL
        with Store.open(data) as store:
            loaded = store.load(lines[0].strip())
            assert loaded.skipped == 0
            assert len(loaded.entries) >= 69


def test_every_append_waits_for_the_disk(data: Path, tmp_path: Path, strace: list[str]) -> None:
    """With synchronous=NORMAL this counts none: the promise would hold against kills, but not against a power cut."""
    log = tmp_path / "calls"
    with appender(data, count=50, before=[*strace, "-o", str(log), "-e", "trace=fdatasync,fsync,write"]) as process:
        finish(process)
    waited, synced = 0, False
    for line in log.read_text().splitlines():
        if re.search(r"(fdatasync|fsync)\(", line):
            synced = True
        elif re.search(r"write\(1, \"\d+\\n\"", line):
            waited += synced
            synced = False
    assert waited == 50


def test_every_write_and_checkpoint_runs_under_the_lock(data: Path, tmp_path: Path, strace: list[str]) -> None:
    log = tmp_path / "calls"
    watched = [*strace, "-y", "-o", str(log), "-e", "trace=flock,close,pwrite64,ftruncate,fdatasync,unlink"]
    with appender(data, count=30, before=watched) as process:
        finish(process)
    locked, outside, inside = False, [], 0
    for line in log.read_text().splitlines():
        if "flock(" in line and "wolo.lock" in line and "= 0" in line:
            locked = True
        elif "close(" in line and "wolo.lock" in line:
            locked = False
        elif re.search(r"(pwrite64|ftruncate|fdatasync|unlink)\(.*wolo\.db", line):
            inside += locked
            if not locked:
                outside.append(line)
    assert outside == []
    assert inside > 60


def test_many_processes_may_write_at_once(data: Path) -> None:
    processes = [
        subprocess.Popen(
            python_argv(APPENDER, data, f"writer{number}", "20"),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(),
        )
        for number in range(8)
    ]
    ends = [process.communicate(timeout=100) for process in processes]
    assert [errors for _, errors in ends] == [""] * 8
    for number, (output, _) in enumerate(ends):
        assert check_kept(data, output.splitlines()[0], 20, f"writer{number}") == 20


def test_two_processes_killed_at_once_lose_nothing_acknowledged(data: Path) -> None:
    chance = random.Random(5)
    for _ in range(4):
        with appender(data, "left") as left, appender(data, "right") as right:
            assert left.stdout is not None
            assert right.stdout is not None
            sessions = left.stdout.readline().strip(), right.stdout.readline().strip()
            for _ in range(chance.randrange(1, 30)):
                left.stdout.readline()
            left.kill()
            right.kill()
            kept = finish(left)[1], finish(right)[1]
        for session_id, acknowledged, text in zip(sessions, kept, ("left", "right"), strict=True):
            check_kept_at_least(data, session_id, acknowledged, text)


def check_kept_at_least(data: Path, session_id: str, acknowledged: int, text: str) -> None:
    with Store.open(data) as store:
        loaded = store.load(session_id)
        assert loaded.skipped == 0
        assert len(loaded.entries) >= acknowledged
        assert all(kept.startswith(f"{text} {number} ") for number, kept in enumerate(texts(loaded.entries), 1))


def test_stopped_lock_holder_is_reported_soon(data: Path) -> None:
    with Store.open(data) as store:
        session = store.create("/")
        code = (
            "import fcntl, sys, time\n"
            "f = open(sys.argv[1], 'r+'); fcntl.flock(f, fcntl.LOCK_EX); print('held', flush=True); time.sleep(60)"
        )
        holder = subprocess.Popen([sys.executable, "-c", code, str(data / "wolo.lock")], stdout=subprocess.PIPE, text=True)
        try:
            assert holder.stdout is not None
            holder.stdout.readline()
            with pytest.raises(SessionError, match="does not answer"):
                store.append(session.id, [said("one")])
        finally:
            holder.kill()
            holder.communicate()
        store.append(session.id, [said("two")])
        assert texts(store.load(session.id).entries) == ["two"]


def test_the_lock_survives_the_loss_of_its_file(data: Path) -> None:
    with Store.open(data) as store:
        session = store.create("/")
        (data / "wolo.lock").unlink()
        store.append(session.id, [said("one")])
        assert (data / "wolo.lock").exists()


def test_log_is_copied_before_unbounded_growth(data: Path) -> None:
    with Store.open(data) as store:
        session = store.create("/")
        for _ in range(40):
            store.append(session.id, [said("x" * 60_000) for _ in range(10)])
        assert (data / "wolo.db-wal").stat().st_size < 16_000_000
        assert (data / "wolo.db").stat().st_size > 15_000_000
        store.checkpoint()
        assert (data / "wolo.db-wal").stat().st_size == 0


@pytest.fixture
def far_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every file system counts as one on another machine, in this process and those it starts."""
    monkeypatch.setattr(database_file, "REMOTE", ("",))
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "sitecustomize.py").write_text("from wolo.sessions import database_file\ndatabase_file.REMOTE = ('',)\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "far"))


@pytest.mark.usefixtures("far_away")
def test_rollback_journal_is_used_without_reliable_logs(data: Path, strace: list[str]) -> None:
    with Store.open(data) as store:
        assert any("not a local disk" in warning for warning in store.warnings)
        store.create("/")
        assert not (data / "wolo.db-wal").exists()
    with appender(data, count=10, before=[*strace, "-o", "/dev/null", "-e", "inject=fdatasync:signal=KILL:when=25"]) as process:
        session_id, acknowledged = finish(process)
    assert acknowledged
    check_kept(data, session_id, acknowledged)


def test_journal_follows_a_moved_directory(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def journal() -> str:
        with Store.open(data) as store, store._database.reading() as connection:
            (found,) = connection.execute("PRAGMA journal_mode").fetchone()
            assert any("not a local disk" in warning for warning in store.warnings) == (found == "delete")
            return str(found)

    assert journal() == "wal"
    with monkeypatch.context() as far:
        far.setattr(database_file, "REMOTE", ("",))
        assert journal() == "delete"
    assert journal() == "wal"
