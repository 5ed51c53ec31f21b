"""Full disks and damaged files: a clear word, the file as it was, never an empty list in silence."""

from __future__ import annotations

import contextlib
import os
import resource
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sessions.samples import digest, environment, python_argv, said, texts
from wolo.errors import SessionError
from wolo.sessions.session_rows import ROW_LIMIT_BYTES
from wolo.sessions.store import Store

PAGE = 4096


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 2 MB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m,mode=700", "tmpfs", str(disk)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip(
            "a small file system cannot be mounted here (needs root): a full disk is tested by a limit on file sizes only"
        )
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


def append_for_ever(store: Store, session_id: str) -> None:
    while True:
        store.append(session_id, [said("x" * 50_000)])


def test_full_disk_is_reported_without_loss(small_disk: Path) -> None:
    with Store.open(small_disk / "data") as store:
        session = store.create("/")
        with pytest.raises(SessionError, match="disk is full") as caught:
            append_for_ever(store, session.id)
        kept = store.load(session.id).info.turns
        assert caught.value.exit_code == 3
        assert "--no-session" in caught.value.hint
        assert kept > 5
        with pytest.raises(SessionError, match="disk is full"):
            store.append(session.id, [said("x" * ROW_LIMIT_BYTES * 40)])
        with pytest.raises(SessionError, match="disk is full"):
            store.store_blob(session.id, "out", b"x" * 3_000_000)
        assert list((small_disk / "data" / "blobs").iterdir()) == []
        assert len(store.load(session.id).entries) == kept
        filler = small_disk / "data" / "wolo.db-wal"
        assert filler.stat().st_size > 1_000_000
        store.append(session.id, [said("small")])
        assert texts(store.load(session.id).entries)[-1] == "small"
    with Store.open(small_disk / "data") as store:
        assert len(store.load(session.id).entries) == kept + 1


def fill(disk: Path) -> None:
    with contextlib.suppress(OSError), (disk / "filler").open("wb", buffering=0) as file:
        while True:
            file.write(b"x" * PAGE)


def test_session_continues_on_a_full_disk(small_disk: Path) -> None:
    with Store.open(small_disk / "data") as store:
        session = store.create("/")
        store.append(session.id, [said("before")])
        fill(small_disk)
        with store.lock(session.id):
            assert texts(store.load(session.id).entries) == ["before"]
            with pytest.raises(SessionError, match="disk is full"):
                append_for_ever(store, session.id)


LIMITED = """
import resource, signal, sys
from pathlib import Path
from wolo.errors import SessionError
from wolo.messages.message import user
from wolo.sessions.entries import MessageEntry
from wolo.sessions.store import Store
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
with Store.open(Path(sys.argv[1])) as store:
    session = store.create("/")
    resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, resource.RLIM_INFINITY))
    kept = 0
    try:
        while True:
            store.append(session.id, [MessageEntry(message=user(f"{kept} " + "x" * 30_000))])
            kept += 1
    except SessionError as error:
        print(error.exit_code, error.message)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert len(store.load(session.id).entries) == kept > 5
    store.append(session.id, [MessageEntry(message=user("later"))])
    print(len(store.load(session.id).entries) == kept + 1)
"""


def test_file_size_limit_is_reported_without_loss(data: Path) -> None:
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[1] == resource.RLIM_INFINITY
    ended = subprocess.run(
        python_argv("-c", LIMITED, data), capture_output=True, text=True, env=environment(), timeout=60, check=False
    )
    assert ended.stderr == ""
    first, second = ended.stdout.splitlines()
    assert first.startswith("3 ")
    assert second == "True"


def test_foreign_program_database_is_refused_untouched(data: Path) -> None:
    import sqlite3

    Store.open(data).close()
    (data / "wolo.db").unlink()
    with sqlite3.connect(data / "wolo.db") as connection:
        connection.execute("CREATE TABLE sessions (id)")
    connection.close()
    (data / "wolo.db").chmod(0o600)
    before = digest(data / "wolo.db")
    with pytest.raises(SessionError, match="not a session database"):
        Store.open(data)
    assert digest(data / "wolo.db") == before


def test_database_missing_beside_its_log_is_not_replaced(data: Path) -> None:
    Store.open(data).close()
    database, log = data / "wolo.db", data / "wolo.db-wal"
    database.unlink()
    log.write_bytes(b"commits")
    with pytest.raises(SessionError, match="is gone"):
        Store.open(data)
    assert log.read_bytes() == b"commits"
    assert not database.exists()


def test_a_database_that_is_gone_is_missed(data: Path) -> None:
    Store.open(data).close()
    (data / "wolo.db").unlink()
    with Store.open(data) as store:
        assert any("is missing; a new one was created" in warning for warning in store.warnings)
    with Store.open(data) as store:
        assert store.warnings == ()


def test_a_log_that_is_gone_is_missed(data: Path) -> None:
    """After a crash only: whoever closes the database properly takes the log away."""
    code = "import os, sys; from pathlib import Path; from wolo.sessions.store import Store; "
    code += "store = Store.open(Path(sys.argv[1])); store.create('/'); os._exit(1)"
    subprocess.run(python_argv("-c", code, data), env=environment(), check=False)
    (data / "wolo.db-wal").unlink()
    with Store.open(data) as store:
        assert any("the last messages may be lost" in warning for warning in store.warnings)
    with Store.open(data) as store:
        assert store.warnings == ()


def test_damaged_row_is_counted_and_skipped(data: Path) -> None:
    with Store.open(data) as store:
        session = store.create("/")
        for number in range(50):
            store.append(session.id, [said(f"message {number}")])
        with store._database.writing() as connection:
            for seq, damage in (
                (5, '\'{"kind":"mess\''),
                (6, "replace(body, '5', '6')"),
                (7, "42"),
                (8, "NULL"),
                (9, "x'ff00ff'"),
            ):
                connection.execute(f"UPDATE entries SET body = {damage} WHERE session = ? AND seq = ?", (session.id, seq))
            connection.execute("DELETE FROM entries WHERE session = ? AND seq = 20", (session.id,))
            connection.execute(
                "UPDATE entries SET hash = 'text', time_utc = 'noon' WHERE session = ? AND seq = 30", (session.id,)
            )
        loaded = store.load(session.id)
        assert loaded.skipped == 7
        assert texts(loaded.entries) == [f"message {number}" for number in range(50) if number + 1 not in {5, 6, 7, 8, 9, 20, 30}]
        assert loaded.warning.startswith("7 of 50 entries")
        store.append(session.id, [said("more")])
        assert texts(store.load(session.id).entries)[-1] == "more"


def test_lost_file_of_a_large_entry_is_counted(data: Path) -> None:
    with Store.open(data) as store:
        session = store.create("/")
        store.append(session.id, [said("small"), said("x" * ROW_LIMIT_BYTES * 2), said("y" * ROW_LIMIT_BYTES * 2)])
        lost, torn = (data / "blobs").iterdir()
        lost.unlink()
        torn.write_bytes(torn.read_bytes()[:1000])
        loaded = store.load(session.id)
        assert texts(loaded.entries) == ["small"]
        assert loaded.skipped == 2


def test_later_additions_are_counted_without_failing(data: Path) -> None:
    from wolo.sessions.session_rows import link_row

    with Store.open(data) as store:
        session = store.create("/")
        store.append(session.id, [said("one")])
        body = '{"kind":"from_the_future","x":1}'
        row = link_row(body.encode(), seq=1, parent=0, time_utc=1.0, prev_hash=b"")
        with store._database.writing() as connection:
            connection.execute(
                "UPDATE entries SET body = ?, time_utc = 1.0, hash = ?, prev_hash = x'' WHERE session = ?",
                (body, row.hash, session.id),
            )
        assert store.load(session.id).skipped == 1


def test_blob_leftovers_of_dead_writers_are_cleared(data: Path) -> None:
    Store.open(data).close()
    (data / "blobs" / ".incoming").write_bytes(b"half")
    Store.open(data).close()
    assert list((data / "blobs").iterdir()) == []
