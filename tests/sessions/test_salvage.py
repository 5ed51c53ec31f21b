"""Damaged databases: set aside whole, and what can be read of them is in a new one; never an empty list in silence."""

from __future__ import annotations

import contextlib
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sessions.samples import digest, environment, python_argv, said, texts, tool_turn
from wolo.errors import SessionError
from wolo.sessions import migrations
from wolo.sessions.salvage import Pages
from wolo.sessions.session_rows import ROW_LIMIT_BYTES
from wolo.sessions.store import Store

PAGE = 4096
ENTRIES = 81
"""Of each session."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with three sessions of some length, closed. Must not be changed."""
    return fill(tmp_path_factory.mktemp("whole") / "data")


@pytest.fixture
def filled(whole: Path, data: Path) -> Path:
    """A copy of it, times included."""
    shutil.copytree(whole.parent, data)
    return data / "wolo.db"


def fill(data: Path) -> Path:
    with Store.open(data) as store:
        for number in range(3):
            session = store.create("/", id=f"session_{number}", name=f"name {number}", model="a/b")
            store.append(session.id, [said(f"prompt {number}")])
            for turn in range(40):
                store.append(session.id, tool_turn(turn))
    return data / "wolo.db"


def only_folder(data: Path) -> Path:
    (folder,) = (data / "quarantine").iterdir()
    return folder


def kept(data: Path) -> tuple[dict[str, int], dict[str, int], tuple[str, ...]]:
    """How many entries of each session are there, how many are said to be missing, and what was said."""
    with Store.open(data) as store:
        loaded = {info.id: store.load(info.id) for info in store.list()}
        assert store.check() == "ok"
        for each in loaded.values():
            assert bool(each.warning) == bool(each.skipped)
        counts = {session_id: len(each.entries) for session_id, each in loaded.items()}
        return counts, {session_id: each.skipped for session_id, each in loaded.items()}, store.warnings


def test_readable_rows_are_saved_and_counted(filled: Path) -> None:
    whole = filled.read_bytes()
    chance = random.Random(1)
    noisy = bytearray(whole)
    for number in chance.sample(range(5, len(whole) // PAGE), 3):
        noisy[number * PAGE : (number + 1) * PAGE] = chance.randbytes(PAGE)
    filled.write_bytes(noisy)
    there, missing, warnings = kept(filled.parent)
    (warning,) = warnings
    folder = only_folder(filled.parent)
    assert (folder / "wolo.db").read_bytes() == bytes(noisy)
    assert str(folder) in warning
    assert set(there) == {"session_0", "session_1", "session_2"}
    assert all(there[name] + missing[name] == ENTRIES for name in there)
    assert 0 < sum(missing.values()) < 12
    assert f"{sum(there.values())} entries of 3 sessions could be saved" in warning
    assert f"at least {sum(missing.values())} could not be read" in warning
    assert (folder / "report.txt").read_text() in warning
    assert kept(filled.parent)[2] == (), "once is enough"


def test_a_session_that_was_saved_goes_on(filled: Path) -> None:
    content = bytearray(filled.read_bytes())
    content[4096 * 9 : 4096 * 10] = b"\xff" * 4096
    filled.write_bytes(content)
    with Store.open(filled.parent) as store:
        assert store.warnings
        for info in store.list():
            store.append(info.id, [said("more")])
            assert texts(store.load(info.id).entries)[-1] == "more"
            assert (info.name, info.model, info.turns) == (f"name {info.id[-1]}", "a/b", 1)
        store.delete("session_0")
        assert len(store.list()) == 2


@pytest.mark.parametrize(
    "content",
    [b"", b"\x00" * 8192, b"not a database at all, just text\n" * 300, b"SQLite format 3\x00" + b"\xff" * 5000],
    ids=["empty", "NUL", "text", "noise"],
)
def test_unreadable_file_is_set_aside_with_notice(filled: Path, content: bytes) -> None:
    filled.write_bytes(content)
    there, _, (warning,) = kept(filled.parent)
    assert there == {}
    assert "Nothing could be read from it and there is no backup, so a new one was created" in warning
    assert (only_folder(filled.parent) / "wolo.db").read_bytes() == content


def test_newest_sound_backup_replaces_an_unreadable_file(filled: Path) -> None:
    backups = filled.parent / "backups"
    backups.mkdir(0o700)
    (backups / "wolo-20260101T000000-v1.db").write_bytes(filled.read_bytes())
    (backups / "wolo-20260102T000000-v1.db").write_bytes(filled.read_bytes())
    (backups / "wolo-20260103T000000-v1.db").write_bytes(b"torn")
    filled.write_bytes(b"")
    there, _, warnings = kept(filled.parent)
    assert set(there.values()) == {ENTRIES}
    assert "the backup wolo-20260102T000000-v1.db replaced it" in warnings[0]
    assert len(list(backups.iterdir())) == 3


@pytest.mark.parametrize("page", range(12))
def test_database_missing_one_page_loses_that_page(filled: Path, page: int) -> None:
    """Also the first, which says what tables there are, and the roots of the trees."""
    content = bytearray(filled.read_bytes())
    content[page * PAGE : (page + 1) * PAGE] = b"\xa5" * PAGE
    filled.write_bytes(content)
    there, _, warnings = kept(filled.parent)
    assert warnings
    assert sum(there.values()) >= 3 * ENTRIES - 8


def test_half_a_database_is_half_saved(filled: Path) -> None:
    whole = filled.read_bytes()
    filled.write_bytes(whole[: len(whole) // 2])
    there, missing, (warning,) = kept(filled.parent)
    assert 80 < sum(there.values()) < 200
    assert sum(missing.values()) > 0
    assert "could not be read" in warning


def test_log_only_content_is_saved_too(data: Path) -> None:
    code = (
        "import os, sys; from pathlib import Path; from tests.sessions.test_salvage import fill; "
        "from wolo.sessions.store import Store; from tests.sessions.samples import said\n"
        "fill(Path(sys.argv[1]))\n"
        "store = Store.open(Path(sys.argv[1]))\n"
        "store.append('session_1', [said(f'late {n}') for n in range(50)])\n"
        "os._exit(0)"
    )
    subprocess.run(python_argv("-c", code, data), env=environment(), check=True)
    database = data / "wolo.db"
    content = bytearray(database.read_bytes())
    content[PAGE * 2 : PAGE * 3] = b"\x07" * PAGE
    content[PAGE * 20 : PAGE * 22] = b"\x07" * PAGE * 2
    database.write_bytes(content)
    there, missing, _ = kept(data)
    with Store.open(data) as store:
        assert texts(store.load("session_1").entries)[-50:] == [f"late {number}" for number in range(50)]
    assert sum(there.values()) + sum(missing.values()) == 3 * ENTRIES + 50


def leave_fifty_in_the_log(data: Path) -> list[str]:
    code = (
        "import os, sys; from pathlib import Path; from wolo.sessions.store import Store; "
        "from tests.sessions.samples import said\n"
        "store = Store.open(Path(sys.argv[1]))\n"
        "for n in range(50): store.append('session_1', [said(f'late {n}')])\n"
        "os._exit(0)"
    )
    subprocess.run(python_argv("-c", code, data), env=environment(), check=True)
    return [f"late {number}" for number in range(50)]


@pytest.mark.parametrize("at", [0, 8, 17, 24, 40, 60, 5000, 40_000])
def test_noisy_log_loses_only_the_hit_part(filled: Path, at: int) -> None:
    """SQLite reads it up to the noise and takes the rest for what was never committed."""
    late = leave_fifty_in_the_log(filled.parent)
    log = filled.with_name("wolo.db-wal")
    content = bytearray(log.read_bytes())
    content[at : at + 3] = b"\xff\x00\xff"
    log.write_bytes(content)
    with Store.open(filled.parent) as store:
        assert "log wolo.db-wal is torn" in " ".join(store.warnings)
        there = texts(store.load("session_1").entries)
        assert len(set(late) - set(there)) <= 1
    assert (only_folder(filled.parent) / "wolo.db-wal").read_bytes() == bytes(content)


def test_commit_cut_by_power_loss_is_no_damage(filled: Path) -> None:
    late = leave_fifty_in_the_log(filled.parent)
    log = filled.with_name("wolo.db-wal")
    content = bytearray(log.read_bytes())
    content[-100:-50] = b"\0" * 50
    log.write_bytes(content)
    with Store.open(filled.parent) as store:
        assert store.warnings == ()
        assert texts(store.load("session_1").entries)[-49:] == late[:-1]


@pytest.mark.parametrize("rubbish", [b"", b"\xff" * 32768, b"x" * 100])
def test_rubbish_in_the_shared_memory_file_harms_nothing(data: Path, rubbish: bytes) -> None:
    code = "import os, sys; from pathlib import Path; from tests.sessions.test_salvage import fill; "
    code += "from wolo.sessions.store import Store; fill(Path(sys.argv[1])); s = Store.open(Path(sys.argv[1])); "
    code += "s.create('/', id='late'); os._exit(0)"
    subprocess.run(python_argv("-c", code, data), env=environment(), check=True)
    (data / "wolo.db-shm").write_bytes(rubbish)
    there, _, warnings = kept(data)
    assert there == {"late": 0, "session_0": ENTRIES, "session_1": ENTRIES, "session_2": ENTRIES}
    assert warnings == ()


def test_lost_list_row_is_rebuilt_from_entries(filled: Path) -> None:
    with sqlite3.connect(filled) as connection:
        (root,) = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'sessions'").fetchone()
    connection.close()
    content = bytearray(filled.read_bytes())
    content[(root - 1) * PAGE : root * PAGE] = b"\xff" * PAGE
    filled.write_bytes(content)
    there, missing, _ = kept(filled.parent)
    assert there == {f"session_{number}": ENTRIES for number in range(3)}
    assert set(missing.values()) == {0}
    with Store.open(filled.parent) as store:
        info = store.find("prompt 1")
        assert (info.id, info.turns, info.cost_usd) == ("session_1", 1, pytest.approx(0.04))


def test_large_entries_and_outputs_are_saved_with_files(data: Path) -> None:
    with Store.open(data) as store:
        session = store.create("/", id="session_1")
        store.append(session.id, [said("small"), said("x" * ROW_LIMIT_BYTES * 2), said("y" * 60_000)])
        output = store.store_blob(session.id, "out.txt", b"out")
    database = data / "wolo.db"
    content = bytearray(database.read_bytes())
    content[0:PAGE] = b"\0" * PAGE
    database.write_bytes(content)
    with Store.open(data) as store:
        assert [len(text) for text in texts(store.load("session_1").entries)] == [5, ROW_LIMIT_BYTES * 2, 60_000]
        store.delete("session_1")
    assert not output.exists()
    assert list((data / "blobs").iterdir()) == []


def test_deleted_content_does_not_return(filled: Path) -> None:
    with Store.open(filled.parent) as store:
        store.delete("session_1")
    content = bytearray(filled.read_bytes())
    with sqlite3.connect(filled) as connection:
        (root,) = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'entries'").fetchone()
    connection.close()
    content[(root - 1) * PAGE : root * PAGE] = b"\xff" * PAGE
    filled.write_bytes(content)
    assert set(kept(filled.parent)[0]) == {"session_0", "session_2"}


def test_damaged_database_open_elsewhere_is_left_alone(filled: Path) -> None:
    with Store.open(filled.parent) as store:
        store.list()
        before = digest(filled)
        filled.write_bytes(b"\xff" * filled.stat().st_size)
        with pytest.raises(SessionError, match="damaged") as caught:
            Store.open(filled.parent)
        assert "Quit all running wolo processes" in caught.value.hint
        assert caught.value.exit_code == 3
        assert not (filled.parent / "quarantine").exists()
        assert digest(filled) != before


def test_row_lost_by_its_index_is_found(filled: Path) -> None:
    with sqlite3.connect(filled) as connection:
        (root,) = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name LIKE 'sqlite_autoindex_entries%'").fetchone()
    connection.close()
    content = bytearray(filled.read_bytes())
    at = content.index(b"session_1", (root - 1) * PAGE)
    content[at : at + 9] = b"session_9"
    filled.write_bytes(content)
    there, missing, warnings = kept(filled.parent)
    assert warnings
    assert set(there.values()) == {ENTRIES}
    assert set(missing.values()) == {0}


def rot(path: Path, table: str = "entries") -> None:
    """The root page of a table becomes noise, without a trace elsewhere."""
    with sqlite3.connect(path) as connection:
        (root,) = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (table,)).fetchone()
    connection.close()
    before = path.stat()
    with path.open("r+b") as file:
        file.seek((root - 1) * PAGE)
        file.write(b"\xff" * PAGE)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize("what", ["load", "append", "create", "list", "find", "rename", "fork", "nodes", "rows"])
def test_damage_found_underway_costs_nothing(filled: Path, what: str) -> None:
    rot(filled)
    work = {
        "load": lambda store: store.load("session_2"),
        "append": lambda store: store.append("session_2", [said("more")]),
        "create": lambda store: store.append(store.create("/", id="session_3").id, [said("new")]),
        "list": lambda store: store.ends() and store.list(),
        "find": lambda store: store.load(store.find("session_2").id),
        "rename": lambda store: store.rename("session_2", title="x"),
        "fork": lambda store: store.fork("session_2"),
        "nodes": lambda store: store.nodes("session_2"),
        "rows": lambda store: list(store.raw.rows("session_2")),
    }
    with Store.open(filled.parent) as store:
        assert store.warnings == ()
        work[what](store)
        assert "was damaged" in "".join(store.rescues())
        assert store.rescues() == []
        assert len(store.load("session_0").entries) == ENTRIES
        store.append("session_0", [said("goes on")])
    there, missing, warnings = kept(filled.parent)
    assert warnings == ()
    assert there["session_0"] == ENTRIES + 1
    assert set(missing.values()) == {0}
    assert (only_folder(filled.parent) / "report.txt").exists()


def test_damage_found_while_shared_is_mended_next_start(filled: Path) -> None:
    rot(filled)
    with Store.open(filled.parent) as store, Store.open(filled.parent) as other:
        for each in (store, other, store):
            with pytest.raises(SessionError, match="damaged"):
                each.load("session_2")
    there, missing, warnings = kept(filled.parent)
    assert any("was damaged" in warning for warning in warnings)
    assert set(there.values()) == {ENTRIES}
    assert set(missing.values()) == {0}


def test_properly_closed_database_is_not_checked(filled: Path, strace: list[str], tmp_path: Path) -> None:
    log = tmp_path / "reads"
    code = "import sys; from pathlib import Path; from wolo.sessions.store import Store; Store.open(Path(sys.argv[1])).close()"
    trace = [*strace, "-o", str(log), "-y", "-e", "trace=pread64"]
    subprocess.run([*trace, *python_argv("-c", code, filled.parent)], env=environment(), check=True)
    closed = log.read_text().count("wolo.db>")
    os.utime(filled)
    subprocess.run([*trace, *python_argv("-c", code, filled.parent)], env=environment(), check=True)
    changed = log.read_text().count("wolo.db>")
    assert closed < 20 < filled.stat().st_size // PAGE < changed


@pytest.mark.parametrize("call", ["rename", "fsync", "pwrite64", "unlink"])
def test_interrupted_rescue_is_resumed(tmp_path: Path, strace: list[str], call: str) -> None:
    happened = 0
    code = "import sys; from pathlib import Path; from wolo.sessions.store import Store; Store.open(Path(sys.argv[1])).close()"
    for nth in (1, 2, 3, 5):
        database = fill(tmp_path / f"{call}-{nth}")
        content = bytearray(database.read_bytes())
        content[PAGE * 8 : PAGE * 9] = b"\xff" * PAGE
        database.write_bytes(content)
        inject = ["-o", "/dev/null", "-e", f"trace={call}", "-e", f"inject={call}:signal=KILL:when={nth}"]
        ended = subprocess.run([*strace, *inject, *python_argv("-c", code, database.parent)], env=environment(), check=False)
        happened += ended.returncode == -signal.SIGKILL
        there, missing, warnings = kept(database.parent)
        assert sum(there.values()) + sum(missing.values()) == 3 * ENTRIES
        assert sum(missing.values()) < 5
        if ended.returncode:
            assert re.search(r"\d+ entries of 3 sessions could be saved", " ".join(warnings)) or call == "rename"
        assert (only_folder(database.parent) / "wolo.db").read_bytes() == bytes(content)
        assert not list(database.parent.glob("*.new*"))
    assert happened


@settings(derandomize=True)  # also where others are random: no hash tells noise from what a listing shows of a session
@given(
    holes=st.lists(st.tuples(st.floats(0, 1), st.binary(min_size=1, max_size=5000)), min_size=1, max_size=6),
    is_killed=st.booleans(),
)
def test_noise_anywhere_is_no_crash_and_no_silence(
    whole: Path, tmp_path_factory: pytest.TempPathFactory, holes: list[tuple[float, bytes]], is_killed: bool
) -> None:
    data = tmp_path_factory.mktemp("noise") / "data"
    subprocess.run(["cp", "-a", str(whole.parent), str(data)], check=True)
    if is_killed:
        (data / "wolo.use").write_text("open\n")
    database = data / "wolo.db"
    content = bytearray(database.read_bytes())
    for at, noise in holes:
        start = int(at * (len(content) - 1))
        content[start : start + len(noise)] = noise[: len(content) - start]
    database.write_bytes(content)
    with contextlib.suppress(Untouched):
        check_counts(data, bytes(content))


class Untouched(Exception):
    """The header says that the file is somebody else's, or of a later wolo."""


def check_counts(data: Path, before: bytes) -> None:
    try:
        there, missing, warnings = kept(data)
    except SessionError as refusal:
        if "not a session database" not in refusal.message and "newer wolo" not in refusal.message:
            raise
        assert (data / "wolo.db").read_bytes() == before
        raise Untouched from refusal
    found = sum(there.values())
    told = re.search(r"([\d,]+) entr(?:y|ies) of \d+ sessions? could be saved", " ".join(warnings))
    if told:
        assert int(told[1].replace(",", "")) >= found
    else:
        assert found + sum(missing.values()) == 3 * ENTRIES or any("Nothing could be read" in warning for warning in warnings)


@given(st.binary(max_size=3 * PAGE), st.booleans())
def test_any_bytes_have_searchable_pages(tmp_path_factory: pytest.TempPathFactory, noise: bytes, is_log: bool) -> None:
    path = tmp_path_factory.mktemp("pages") / "wolo.db"
    path.write_bytes(b"SQLite format 3\0" + noise)
    if is_log:
        path.with_name("wolo.db-wal").write_bytes(noise)
    with Pages(path) as pages:
        assert all(isinstance(record, list) for record in pages.records())


def test_older_format_backup_is_migrated(filled: Path) -> None:
    def add_column(connection: sqlite3.Connection) -> None:
        connection.execute("ALTER TABLE sessions ADD COLUMN mood TEXT")

    steps = (*migrations.STEPS, add_column)
    Store.open(filled.parent, steps=steps).close()
    filled.write_bytes(b"")
    with Store.open(filled.parent, steps=steps) as store:
        assert len(store.list()) == 3
        assert any("replaced it" in warning for warning in store.warnings)
