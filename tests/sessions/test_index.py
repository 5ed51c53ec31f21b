"""The index is made from the sessions, and made again whenever it has to be."""

from __future__ import annotations

import sqlite3
import stat
import subprocess
import sys

import pytest

from tests.sessions.samples import ROOT, environment, said, tool_turn
from wolo.sessions.index import FILE, Index
from wolo.sessions.search import index_update
from wolo.sessions.search.passage_search import parse, search
from wolo.sessions.store import Store


def found(store: Store, words: str) -> list[str]:
    query = parse(words, 0.0)
    return [hit.session.id for hit in index_update.ask(store, lambda index: search(index, store.list(), query))]


def rows(store: Store) -> dict[str, int]:
    with sqlite3.connect(store.data_dir / FILE) as connection:
        tables = ("words", "passages", "prompts", "answers", "calls", "progress")
        return {table: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables}


def test_it_is_the_owners_alone(store: Store) -> None:
    Index.open(store.data_dir).close()
    assert stat.S_IMODE((store.data_dir / FILE).stat().st_mode) == 0o600


def test_a_deleted_session_leaves_nothing_behind(store: Store) -> None:
    session = store.create("/").id
    store.append(session, [said("a needle"), *tool_turn(1)])
    assert found(store, "needle") == [session]
    store.delete(session)
    assert set(rows(store).values()) == {0}


def test_silently_gone_session_leaves_with_next_search(store: Store) -> None:
    session = store.create("/").id
    store.append(session, [said("a needle"), *tool_turn(1)])
    assert found(store, "needle") == [session]
    aside = (store.data_dir / FILE).rename(store.data_dir / "aside")
    store.delete(session)
    aside.rename(store.data_dir / FILE)
    assert found(store, "needle") == []
    assert set(rows(store).values()) == {0}


@pytest.mark.parametrize("damage", ["noise", "empty", "text", "gone", "outdated", "newer"])
def test_damaged_missing_or_outdated_index_is_rebuilt(store: Store, damage: str) -> None:
    session = store.create("/").id
    store.append(session, [said("a needle"), *[entry for number in range(40) for entry in tool_turn(number)]])
    assert found(store, "needle") == [session]
    path = store.data_dir / FILE
    content = path.read_bytes()
    if damage == "gone":
        path.unlink()
    elif damage in ("outdated", "newer"):
        with sqlite3.connect(path) as connection:
            connection.execute(f"PRAGMA user_version = {1 if damage == 'outdated' else 99}")
    else:
        wrong = {"noise": content[:4096] + b"\xa5" * (len(content) - 4096), "empty": b"", "text": b"no database at all" * 400}
        path.write_bytes(wrong[damage])
    assert found(store, "needle") == [session]
    assert rows(store)["progress"] == 1


def test_replaced_session_under_an_id_is_reread(store: Store) -> None:
    store.create("/", id="session_one")
    store.append("session_one", [said("a needle"), said("two"), said("three")])
    assert found(store, "needle") == ["session_one"]
    aside = (store.data_dir / FILE).rename(store.data_dir / "aside")
    store.delete("session_one")
    aside.rename(store.data_dir / FILE)
    store.create("/", id="session_one")
    store.append("session_one", [said("a thimble"), said("two"), said("three"), said("four")])
    assert found(store, "needle") == []
    assert found(store, "thimble four") == []
    assert found(store, "thimble") == ["session_one"]


def test_a_turn_is_taken_in_without_a_search(store: Store) -> None:
    session = store.create("/").id
    store.append(session, [said("a needle")])
    with Index.open(store.data_dir) as index:
        index.add_turn(store, session)
        store.append(session, [said("a second needle")])
        index.add_turn(store, session)
        index.add_turn(store, session)
    assert rows(store)["words"] == 2


def test_long_session_is_indexed_piecewise(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_update, "BATCH_BYTES", 3_000)
    session = store.create("/").id
    store.append(session, [entry for number in range(20) for entry in tool_turn(number)])
    assert found(store, "looking file 19") == [session]
    assert rows(store) == {"words": 40, "passages": 40, "prompts": 0, "answers": 20, "calls": 20, "progress": 1}


def test_fork_is_found_beside_its_original(store: Store) -> None:
    session = store.create("/").id
    store.append(session, [said("a needle")])
    fork = store.fork(session).id
    assert sorted(found(store, "needle")) == sorted([session, fork])


def test_search_during_indexing_answers_with_existing_entries(store: Store) -> None:
    session = store.create("/").id
    store.append(session, [said("a needle")])
    assert found(store, "needle") == [session]
    store.append(session, [said("a thimble")])
    holding = (
        "import sys, pathlib; from wolo.sessions.locks import acquire\n"
        "acquire(pathlib.Path(sys.argv[1]), 1.0); print('held', flush=True); sys.stdin.read()"
    )
    lock = store.data_dir / "index.lock"
    with subprocess.Popen(
        [sys.executable, "-c", holding, lock],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment(), cwd=ROOT,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        assert found(store, "needle") == [session]
        assert found(store, "thimble") == []
        process.communicate()
    assert found(store, "thimble") == [session]


def test_full_disk_is_reported_as_such(store: Store) -> None:
    store.append(store.create("/").id, [said("a needle " * 50_000)])
    searching = (
        "import pathlib, resource, sys\n"
        "from wolo.errors import SessionError\n"
        "from wolo.sessions.search import index_update as catching_up\n"
        "from wolo.sessions.store import Store\n"
        "with Store.open(pathlib.Path(sys.argv[1])) as store:\n"
        "    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY))\n"
        "    try:\n"
        "        catching_up.ask(store, lambda index: None)\n"
        "    except SessionError as error:\n"
        "        print(error, error.hint)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", searching, store.data_dir],
        capture_output=True,
        text=True,
        env=environment(),
        cwd=ROOT,
        check=False,
    )
    assert "disk" in done.stdout, done.stderr
    assert "can be deleted" not in done.stdout


def test_unwritable_index_never_breaks_a_deletion(store: Store) -> None:
    session = store.create("/").id
    store.append(session, [said("a needle")])
    (store.data_dir / FILE).mkdir()
    store.delete(session)
    assert store.list() == []
