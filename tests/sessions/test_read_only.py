"""Sessions where nothing may be written: in a directory without that permission, and those of a newer wolo."""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import unprivileged
from tests.fakes.command import run_wolo
from tests.sessions.samples import said, texts, tool_turn
from wolo.errors import SessionError
from wolo.places import find_places
from wolo.sessions import migrations
from wolo.sessions.exchange.format_table import export
from wolo.sessions.exchange.jsonl import check
from wolo.sessions.exchange.redaction import Redactor
from wolo.sessions.search import index_update
from wolo.sessions.search.passage_search import parse, search
from wolo.sessions.storage import StorageReadOnly
from wolo.sessions.store import Store


def fill(data: Path) -> None:
    with Store.open(data) as store:
        store.create("/", id="session_a", model="a/b")
        store.append("session_a", [said("find the postern"), *tool_turn(1)])


def look(data: Path) -> dict[str, object]:
    """All that can be done without writing."""
    pieces: list[bytes] = []
    with Store.open_to_read(data) as store:
        (info,) = store.list()
        hits = index_update.ask(store, lambda index: search(index, [info], parse("postern", 0.0)))
        export(store, info, "jsonl", pieces.append, Redactor())
        try:
            store.rename(info.id, title="x")
            refused = False
        except StorageReadOnly:
            refused = True
        return {
            "warnings": store.warnings,
            "texts": texts(store.load(info.id).entries),
            "found": [hit.seq for hit in hits],
            "exported": b"".join(pieces).count(b"\n"),
            "broken": check(store, info.id).broken,
            "refused": refused,
            "live": info.live,
        }


def digests(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.rglob("*")) if path.is_file()}


def closed(data: Path) -> None:
    for each in (*data.rglob("*"), data):
        each.chmod(0o500 if each.is_dir() else 0o400)


@pytest.fixture
def folder() -> Iterator[Path]:
    with unprivileged.folder() as path:
        yield path


def look_closed(data: Path) -> dict[str, object]:
    fill(data)
    closed(data)
    before = digests(data)
    found = look(data)
    assert digests(data) == before
    return found


def test_unwritable_directory_can_be_read(folder: Path) -> None:
    found = unprivileged.call(look_closed, folder / "data")
    (warning,) = found.pop("warnings")  # type: ignore[misc]
    assert "read-only" in warning
    assert found == {
        **{"texts": ["find the postern", "Looking at file 1."], "found": [1], "exported": 4, "broken": None},
        **{"refused": True, "live": False},
    }


def look_with_log(data: Path) -> dict[str, object]:
    """A copy of a database that was open: what was said last stands in its log."""
    live = data.with_name("live")
    store = Store.open(live)
    store.create("/", id="session_a", model="a/b")
    store.append("session_a", [said("find the postern"), *tool_turn(1)])
    data.mkdir(mode=0o700)
    for name in ("wolo.db", "wolo.db-wal"):
        shutil.copyfile(live / name, data / name)
    assert (data / "wolo.db-wal").stat().st_size
    closed(data)
    return look(data)


@pytest.mark.parametrize("name", ["data", "immutable"])
def test_log_content_is_read_too(folder: Path, name: str) -> None:
    found = unprivileged.call(look_with_log, folder / name)
    assert found["texts"] == ["find the postern", "Looking at file 1."]


def test_a_directory_without_a_database_is_refused(folder: Path) -> None:
    def nothing(data: Path) -> str:
        data.mkdir()
        closed(data)
        with pytest.raises(SessionError) as caught:
            Store.open_to_read(data)
        return caught.value.message

    assert "Cannot save" in unprivileged.call(nothing, folder / "data")


@pytest.mark.parametrize("change", ["", "ALTER TABLE sessions ADD COLUMN mood TEXT", "ALTER TABLE entries ADD COLUMN mood TEXT"])
def test_a_newer_database_is_read_and_not_touched(tmp_path: Path, change: str) -> None:
    data = tmp_path / "data"
    fill(data)
    with sqlite3.connect(data / "wolo.db") as connection:
        connection.execute(f"PRAGMA user_version = {len(migrations.STEPS) + 2}")
        if change:
            connection.execute(change)
    connection.close()
    before = digests(data)
    found = look(data)
    assert digests(data) == before
    assert "newer wolo" in str(found["warnings"])
    assert (found["texts"], found["found"], found["refused"]) == (["find the postern", "Looking at file 1."], [1], True)


def test_newer_database_with_other_tables_is_one_sentence(tmp_path: Path) -> None:
    data = tmp_path / "data"
    fill(data)
    with sqlite3.connect(data / "wolo.db") as connection:
        connection.execute(f"PRAGMA user_version = {len(migrations.STEPS) + 2}")
        connection.execute("ALTER TABLE sessions RENAME COLUMN title TO heading")
    connection.close()
    with Store.open_to_read(data) as store, pytest.raises(SessionError, match="cannot be read by this wolo") as caught:
        store.list()
    assert caught.value.hint == "Upgrade wolo."


def test_commands_that_read_work_with_a_newer_database() -> None:
    data = find_places().data
    fill(data)
    with sqlite3.connect(data / "wolo.db") as connection:
        connection.execute(f"PRAGMA user_version = {len(migrations.STEPS) + 2}")
    connection.close()
    commands = (("list", "--all"), ("show", "session_a"), ("export", "session_a"), ("search", "postern"), ("verify", "session_a"))
    for command in commands:
        done = run_wolo("sessions", *command)
        assert done.exit_code == 0, (command, done)
        assert "newer wolo" in done.stderr
    for command in (("rename", "session_a", "x"), ("delete", "session_a")):
        assert run_wolo("sessions", *command).exit_code == 3
    assert os.listdir(data)  # noqa: PTH208
