"""A damaged schema page, of any SQLite file of wolo, locks nobody out."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.command import run_wolo
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import call, text
from tests.sessions.samples import said
from tests.sessions.test_salvage import ENTRIES, PAGE, fill
from wolo.cli import crash_log
from wolo.errors import SessionError
from wolo.places import find_places
from wolo.sessions.database_file import APPLICATION_ID
from wolo.sessions.store import Store
from wolo.workspace.files.sqlite_connection import SQLITE_ERRORS, is_damage, open_sqlite, reason_of

DAMAGES = {
    "a message that is not UTF-8": (b"CREATE TABLE entries", b"CREATE T\xd4BLE entries"),
    "a column that is not UTF-8": (b"time_utc", b"tim\xd4_utc"),
    "a column of another name": (b"    head ", b"    heat "),
    "a table of another name": (b"CREATE TABLE blobs", b"CREATE TABLE blobz"),
}


def damage(path: Path, old: bytes, new: bytes, *, silently: bool = False) -> None:
    before, content = path.stat(), path.read_bytes()
    assert content.count(old)
    path.write_bytes(content.replace(old, new, 1))
    if silently:
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize("silently", [False, True], ids=["seen", "silent"])
@pytest.mark.parametrize("what", DAMAGES)
def test_damaged_schema_costs_no_entry(tmp_path: Path, what: str, silently: bool) -> None:
    path = fill(tmp_path / "data")
    damage(path, *DAMAGES[what], silently=silently)
    expect_all_entries(path)


def expect_all_entries(path: Path) -> None:
    with Store.open(path.parent) as store:
        assert [len(store.load(f"session_{number}").entries) for number in range(3)] == [ENTRIES] * 3
        for info in store.list():
            store.append(info.id, [said("goes on")])
        assert "was damaged" in "".join([*store.warnings, *store.rescues()])
        assert store.check() == "ok"


@pytest.mark.parametrize(("offset", "value"), [(18, b"\x07"), (60, b"\x7f\xff"), (47, b"\x09")])
def test_damaged_header_costs_no_entry(tmp_path: Path, offset: int, value: bytes) -> None:
    """The write format, the version of the schema and the format of the schema."""
    path = fill(tmp_path / "data")
    content = bytearray(path.read_bytes())
    content[offset : offset + len(value)] = value
    path.write_bytes(content)
    expect_all_entries(path)


@pytest.mark.sweep(every=2)
@pytest.mark.parametrize("argv", [("sessions", "list", "--all"), ("sessions", "show", "session_1"), ("doctor",), ("stats",)])
def test_commands_heal_a_damaged_schema(isolated: Path, argv: tuple[str, ...]) -> None:
    damage(fill(find_places().data), *DAMAGES["a message that is not UTF-8"])
    first, second = run_wolo(*argv), run_wolo(*argv)
    assert "crashed" not in first.stderr + second.stderr
    assert "was damaged" in first.stdout + first.stderr
    assert "was damaged" not in second.stderr
    assert second.exit_code == (1 if argv == ("doctor",) else 0)  # no model is set up, which is a problem


def test_search_rebuilds_an_index_with_a_damaged_schema(isolated: Path) -> None:
    data = fill(find_places().data).parent
    assert run_wolo("sessions", "search", "prompt", "--all").exit_code == 0
    for old, new in ((b"CREATE TABLE passages", b"CREATE TABL\xd4 passages"), (b"role TEXT", b"rolx TEXT")):
        damage(data / "index.db", old, new)
        runs = [run_wolo("sessions", "search", "prompt", "--all") for _ in range(2)]
        assert runs[1].exit_code == 0
        assert "crashed" not in "".join(each.stderr for each in runs)


@pytest.mark.parametrize(
    ("old", "new"), [(b"CREATE TABLE running", b"CREATE TABL\xd4 running"), (b"listing BLOB", b"listinx BLOB")]
)
def test_undo_works_again_after_a_damaged_schema(provider: ProviderServer, isolated: Path, old: bytes, new: bytes) -> None:
    def write_file() -> str:
        provider.script(
            call("write", {"path": "a.txt", "content": "x"}), call("shell", {"command": "echo y > b.txt"}), text("Done.")
        )
        done = run_wolo("-p", "--yolo", *provider.flags, "go")
        assert done.exit_code == 0, done.stderr
        Path("a.txt").unlink()
        return done.stderr

    write_file()
    (store,) = (find_places().data / "checkpoints").glob("*.db")
    damage(store, old, new)
    assert "damaged and was moved aside" in write_file()
    assert "Undo is not available" not in write_file()


@given(noise=st.lists(st.tuples(st.integers(0, PAGE - 1), st.integers(0, 255)), min_size=1, max_size=40))
def test_noise_in_the_schema_page_locks_nobody_out(
    tmp_path_factory: pytest.TempPathFactory, noise: list[tuple[int, int]]
) -> None:
    folder = tmp_path_factory.getbasetemp() / "schema-noise"
    if not folder.exists():
        fill(folder / "whole")
    shutil.rmtree(folder / "data", ignore_errors=True)
    shutil.copytree(folder / "whole", folder / "data")
    path = folder / "data" / "wolo.db"
    content = bytearray(path.read_bytes())
    for at, byte in noise:
        content[at if at < 100 else PAGE - 1 - at % 3000] = byte
    path.write_bytes(content)
    try:
        with Store.open(path.parent) as store:
            for info in store.list():
                store.load(info.id)
            store.append(store.create("/").id, [said("new")])
    except SessionError as refusal:
        if "newer wolo" not in refusal.message and "not a session database" not in refusal.message:
            raise


def test_message_that_is_not_utf_8_is_damage(tmp_path: Path) -> None:
    path = fill(tmp_path / "data")
    damage(path, *DAMAGES["a message that is not UTF-8"])
    connection = open_sqlite(path)
    assert connection.execute("PRAGMA application_id").fetchall() == [(APPLICATION_ID,)]
    for use in (connection.execute, connection.executescript):
        with pytest.raises(SQLITE_ERRORS) as caught:
            use("SELECT count(*) FROM entries")
        assert isinstance(caught.value, SQLITE_ERRORS)
        assert is_damage(caught.value)
        assert "malformed" in reason_of(caught.value)
    connection.close()


def test_crash_promises_a_saved_session_only_with_one(isolated: Path) -> None:
    assert crash_log.report(KeyError(), 0.0) == "wolo crashed (KeyError)."
    with Store.open(find_places().data, clock=lambda: 100.0) as store:
        store.append(store.create(Path.cwd()).id, [said("one")])
    assert crash_log.report(KeyError(), 99.0) == "wolo crashed (KeyError); your session is saved."
    assert crash_log.report(KeyError(), 101.0) == "wolo crashed (KeyError)."
