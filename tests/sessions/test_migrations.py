"""Databases of other versions of wolo."""

from __future__ import annotations

import hashlib
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sessions.samples import environment, said, texts
from wolo.errors import SessionError
from wolo.sessions import migrations
from wolo.sessions.store import Store


def add_column(connection: sqlite3.Connection) -> None:
    connection.execute("ALTER TABLE sessions ADD COLUMN mood TEXT")


def fail(connection: sqlite3.Connection) -> None:
    connection.execute("DROP TABLE entries")
    connection.execute("SELECT * FROM no_such_table")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    with Store.open(tmp_path / "data") as store:
        store.append(store.create("/", id="session_1").id, [said("one")])
    return tmp_path / "data"


def version(data: Path) -> int:
    with sqlite3.connect(data / "wolo.db") as connection:
        (found,) = connection.execute("PRAGMA user_version").fetchone()
    connection.close()
    return int(found)


def test_first_schema_is_version_one_with_single_steps(data: Path) -> None:
    assert version(data) == 1 + len(migrations.STEPS)


def test_older_database_is_backed_up_and_migrated(data: Path) -> None:
    steps = (*migrations.STEPS, add_column)
    with Store.open(data, steps=steps) as store:
        assert any("backups" in warning for warning in store.warnings)
        assert texts(store.load("session_1").entries) == ["one"]
    assert version(data) == len(steps) + 1
    (backup,) = (data / "backups").iterdir()
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    with sqlite3.connect(backup) as connection:
        assert connection.execute("SELECT count(*) FROM entries").fetchone() == (1,)
    connection.close()
    with Store.open(data, steps=steps) as store:
        assert store.warnings == ()


def test_three_backups_are_kept(data: Path) -> None:
    (data / "backups").mkdir(0o700)
    for number in range(5):
        (data / "backups" / f"wolo-2020010{number}T000000-v1.db").touch()
    Store.open(data, steps=(*migrations.STEPS, add_column)).close()
    kept = sorted(path.name for path in (data / "backups").iterdir())
    assert len(kept) == 3
    assert kept[0].startswith("wolo-20200103")


def test_a_step_that_fails_leaves_the_old_database(data: Path) -> None:
    with pytest.raises(SessionError):
        Store.open(data, steps=(*migrations.STEPS, add_column, fail))
    assert version(data) == 1 + len(migrations.STEPS)
    with Store.open(data) as store:
        assert texts(store.load("session_1").entries) == ["one"]


def test_a_newer_database_is_refused_and_not_touched(data: Path) -> None:
    Store.open(data, steps=(*migrations.STEPS, add_column)).close()
    before = hashlib.sha256((data / "wolo.db").read_bytes()).hexdigest()
    with pytest.raises(SessionError, match="newer wolo") as caught:
        Store.open(data)
    assert caught.value.exit_code == 3
    assert hashlib.sha256((data / "wolo.db").read_bytes()).hexdigest() == before


CRASH_AFTER_MIGRATION = """
import os, sys
from pathlib import Path
from wolo.sessions import migrations
from wolo.sessions.store import Store
step = lambda connection: connection.execute("ALTER TABLE sessions ADD COLUMN mood TEXT")
store = Store.open(Path(sys.argv[1]), steps=(*migrations.STEPS, step))
os._exit(0)
"""


def test_newer_database_in_its_log_stays_untouched(data: Path) -> None:
    subprocess.run([sys.executable, "-c", CRASH_AFTER_MIGRATION, str(data)], env=environment(), check=True)
    files = [data / "wolo.db", data / "wolo.db-wal"]
    before = [hashlib.sha256(path.read_bytes()).hexdigest() for path in files]
    with pytest.raises(SessionError, match="newer wolo"):
        Store.open(data)
    assert [hashlib.sha256(path.read_bytes()).hexdigest() for path in files] == before
