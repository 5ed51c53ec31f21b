"""The store, used as a conversation uses it."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sessions.samples import environment, python_argv, said, texts, tool_turn
from wolo.errors import SessionError
from wolo.messages.message import Message, user
from wolo.messages.parts import ImagePart, TextPart
from wolo.sessions import replay_entries
from wolo.sessions.entries import CustomEntry, MessageEntry, PartialEntry, SettingEntry
from wolo.sessions.session_rows import ROW_LIMIT_BYTES
from wolo.sessions.store import Store


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "wolo" / "data"


@pytest.fixture
def store(data: Path) -> Iterator[Store]:
    with Store.open(data) as opened:
        yield opened


def test_stored_messages_survive_reopening(data: Path, tmp_path: Path) -> None:
    with Store.open(data) as store:
        session = store.create(tmp_path, model="zai/glm-5.2", mode="auto", name="calc")
        with store.lock(session.id):
            store.append(session.id, [said("create a calculator")])
            answer, results = tool_turn(1)
            store.append(session.id, [answer])
            store.append(session.id, [results])
            store.checkpoint()

    with Store.open(data) as store:
        assert store.latest(tmp_path) == store.find("calc", tmp_path)
        loaded = store.load(session.id)
        assert loaded.warning == ""
        assert loaded.entries[1:] == (answer, results)
        first, second = replay_entries.messages(loaded.entries)
        assert first.text == "create a calculator"
        assert second.calls[0].output == "y" * 2000
        assert (loaded.info.title, loaded.info.model, loaded.info.mode) == ("create a calculator", "zai/glm-5.2", "auto")
        assert (loaded.info.turns, loaded.info.tokens, loaded.info.cost_usd) == (1, 120, 0.001)


def test_every_entry_kind_returns_unchanged(store: Store) -> None:
    session = store.create("/")
    image = Message(role="user", parts=(ImagePart(media_type="image/png", data=bytes(range(256))),), finished=True)
    entries = (
        MessageEntry(message=image),
        *tool_turn(1),
        PartialEntry(message_id="msg_9", text="half a th"),
        SettingEntry(name="model", value="openai/gpt-5"),
        CustomEntry(custom_type="notes", data={"a": [1, {"b": None}]}),
        said("\x00 \u2028 \U0001f600 \r\n\t ünïcödé"),
    )
    store.append(session.id, entries)
    assert store.load(session.id).entries == entries
    assert store.load(session.id).info.model == "openai/gpt-5"


def test_non_utf8_text_is_kept_with_a_mark(store: Store) -> None:
    session = store.create("/")
    store.append(session.id, [said("before \ud83d after"), CustomEntry(custom_type="x", data={"\udcff": Path("/a")})])
    loaded = store.load(session.id)
    assert texts(loaded.entries) == ["before \ufffd after"]
    assert loaded.entries[1] == CustomEntry(custom_type="x", data={"\ufffd": "/a"})
    assert loaded.skipped == 0


def test_appended_entries_are_all_or_nothing(store: Store) -> None:
    taken = store.create("/", name="taken")
    session = store.create("/")
    with pytest.raises(SessionError, match="already named taken"):
        store.append(session.id, [said("one"), SettingEntry(name="name", value="taken")])
    assert store.load(session.id).entries == ()
    assert store.find("taken") == taken


def test_large_entries_lie_in_files_and_come_back(store: Store, data: Path) -> None:
    session = store.create("/")
    answer, results = tool_turn(1, output="z" * (ROW_LIMIT_BYTES * 3))
    store.append(session.id, [answer, results])
    (blob,) = (data / "blobs").iterdir()
    assert blob.stat().st_size > ROW_LIMIT_BYTES * 3
    assert store.load(session.id).entries == (answer, results)
    assert (data / "wolo.db-wal").stat().st_size < ROW_LIMIT_BYTES * 3


def test_answer_without_price_makes_the_sum_unknown(store: Store) -> None:
    session = store.create("/")
    assert store.load(session.id).info.cost_usd == 0
    store.append(session.id, [tool_turn(1, cost=None)[0]])
    store.append(session.id, [tool_turn(2, cost=0.5)[0]])
    assert store.load(session.id).info.cost_usd is None


def test_a_turn_is_a_prompt_of_a_person(store: Store) -> None:
    session = store.create("/")
    nudge = Message(role="user", parts=(TextPart(text="go on"),), finished=True, metadata={"nudge": "empty"})
    store.append(session.id, [said("one"), *tool_turn(1), MessageEntry(message=nudge), said("two")])
    assert store.load(session.id).info.turns == 2


def test_a_fork_goes_its_own_way(store: Store, data: Path) -> None:
    session = store.create("/", name="original", model="m")
    store.append(session.id, [said("one"), *tool_turn(1, output="big" * ROW_LIMIT_BYTES)])
    fork = store.fork(session.id)
    assert (fork.parent, fork.name, fork.title, fork.model, fork.turns) == (session.id, None, "one", "m", 1)
    assert store.load(fork.id).entries == store.load(session.id).entries
    store.append(fork.id, [said("two")])
    store.append(session.id, [said("three")])
    assert texts(store.load(fork.id).entries)[-1] == "two"
    assert texts(store.load(session.id).entries)[-1] == "three"
    store.delete(session.id)
    assert store.load(fork.id).skipped == 0
    assert len(list((data / "blobs").iterdir())) == 1
    store.delete(fork.id)
    assert list((data / "blobs").iterdir()) == []


def test_kept_output_lives_until_its_session_is_deleted(store: Store) -> None:
    session, other = store.create("/"), store.create("/")
    path = store.store_blob(session.id, "../../pytest -q: output.txt", b"line\n" * 1000)
    assert path.read_bytes() == b"line\n" * 1000
    assert path.name.endswith("-pytest_-q_output.txt")
    assert store.store_blob(other.id, "../../pytest -q: output.txt", b"line\n" * 1000) == path
    store.delete(session.id)
    assert path.exists()
    store.delete(other.id)
    assert not path.exists()


def test_a_deleted_session_is_gone_and_says_so(store: Store) -> None:
    session = store.create("/", name="gone")
    store.append(session.id, [said("secret")])
    store.delete(session.id)
    assert store.list() == []
    with pytest.raises(SessionError):
        store.find("gone")
    with pytest.raises(SessionError, match="is gone"):
        store.append(session.id, [said("more")])
    for use in (store.load, store.fork, store.delete):
        with pytest.raises(SessionError, match="no session"):
            use(session.id)


def test_order_is_kept_when_the_clock_goes_backwards(data: Path) -> None:
    times = iter(range(2_000_000_000, 0, -86_400))
    with Store.open(data, clock=lambda: float(next(times))) as store:
        first, second = store.create("/"), store.create("/")
        for number in range(5):
            store.append(first.id, [said(str(number))])
        assert texts(store.load(first.id).entries) == ["0", "1", "2", "3", "4"]
        assert [info.id for info in store.list()] == [first.id, second.id]
        store.append(second.id, [said("later")])
        latest = store.latest("/")
        assert latest is not None
        assert latest.id == second.id


def test_a_new_name_must_be_free_and_plain(store: Store) -> None:
    session = store.create("/", name="one")
    store.create("/", name="two")
    store.rename(session.id, " three ")
    assert store.find("three").id == session.id
    for bad in ("two", "", "a/b", "..", "-x", "a\nb", "\u202eabc", "x" * 101, "a\\b", "\ud800"):
        with pytest.raises(SessionError):
            store.rename(session.id, bad)
        if bad:
            with pytest.raises(SessionError):
                store.create("/", name=bad)
    assert store.find("three").id == session.id


def test_given_id_is_unique_and_stays_inside(store: Store) -> None:
    assert store.create("/", id="session_123").id == "session_123"
    for bad in ("session_123", "../x", "a b", "a/b", "x" * 200, ".hidden"):
        with pytest.raises(SessionError):
            store.create("/", id=bad)
        if bad != "session_123":
            with pytest.raises(SessionError):
                store.lock(bad)


def test_threads_take_turns(store: Store) -> None:
    session = store.create("/")

    def work(label: int) -> None:
        for number in range(20):
            store.append(session.id, [said(f"{label} {number}")])

    threads = [threading.Thread(target=work, args=(label,)) for label in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    kept = texts(store.load(session.id).entries)
    assert len(kept) == 80
    assert [text for text in kept if text.startswith("2 ")] == [f"2 {number}" for number in range(20)]


def test_long_session_appends_as_quickly_as_short(store: Store) -> None:
    """Counted in steps of SQLite's machine, which no busy neighbour changes."""
    session = store.create("/")

    def steps() -> int:
        count = 0

        def tick() -> int:
            nonlocal count
            count += 1
            return 0

        with store._database.reading() as connection:
            connection.set_progress_handler(tick, 1)
        store.append(session.id, [said("one more")])
        with store._database.reading() as connection:
            connection.set_progress_handler(None, 1)
        return count

    few = steps()
    store.append(session.id, [MessageEntry(message=user(f"message {number}")) for number in range(5000)])
    assert steps() <= few * 1.1


def test_session_begins_with_its_first_entries_together(store: Store, data: Path) -> None:
    session = store.create("/", id="session_1", entries=[said("one"), said("two")])
    assert [message.text for message in replay_entries.messages(store.load(session.id).entries)] == ["one", "two"]
    with pytest.raises(SessionError, match="already a session"):
        store.create("/", id="session_1", entries=[said("three")])
    assert len(store.load(session.id).entries) == 2


def test_shared_store_is_closed_by_its_last_user(data: Path) -> None:
    first, second = Store.share(data), Store.share(data)
    assert first is second
    first.close()
    session = second.create("/")
    second.close()
    again = Store.share(data)
    assert again is not second
    assert again.find(session.id).id == session.id
    again.close()


def test_replaced_database_is_opened_anew(data: Path) -> None:
    old = Store.share(data)
    old.create("/")
    old.checkpoint()
    for path in data.glob("wolo.db*"):
        path.unlink()
    new = Store.share(data)
    assert new is not old
    assert new.list() == []
    with pytest.raises(SessionError, match="replaced"):
        old.create("/")
    new.close()
    old.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_forked_process_opens_its_own_store(data: Path) -> None:
    with Store.share(data) as ours:
        child = os.fork()
        if not child:
            try:
                other = Store.share(data)
                other.create("/")
                other.close()
                os._exit(0 if other is not ours else 1)
            finally:
                os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert len(ours.list()) == 1


FORKS = """
import os, sys
from pathlib import Path
from wolo.sessions.locks import is_held
from wolo.sessions.store import Store
data = Path(sys.argv[1])
store = Store.share(data)
store.create("/")
"""
CHILD_ENDS = """
child = os.fork()
if not child:
    sys.exit()
os.waitpid(child, 0)
print((data / "wolo.use").read_text().strip())
"""
CHILD_STAYS = """
reading, writing = os.pipe()
child = os.fork()
if not child:
    os.close(writing)
    os.read(reading, 1)
    os._exit(0)
store.close()
print("held" if is_held(data / "wolo.use") or is_held(data / "wolo.lock") else "open")
os.close(writing)
os.waitpid(child, 0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
@pytest.mark.parametrize("body", [CHILD_ENDS, CHILD_STAYS], ids=["ends", "stays"])
def test_forked_child_keeps_no_lock_of_its_parent(data: Path, body: str) -> None:
    argv = python_argv("-c", FORKS + body, data)
    ended = subprocess.run(argv, capture_output=True, text=True, env=environment(), timeout=60, check=False)
    assert (ended.stdout, ended.stderr) == ("open\n", "")
