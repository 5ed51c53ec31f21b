"""A huge session is read from its end, as far as it takes to go on with it."""

from __future__ import annotations

from pathlib import Path

from tests.sessions.samples import said, texts, tool_turn
from wolo.messages.message import Message
from wolo.messages.parts import TextPart
from wolo.sessions.entries import CompactionEntry, MessageEntry
from wolo.sessions.loading import LOAD_LIMIT_BYTES, SHOWN_BYTES, opening
from wolo.sessions.replay_entries import messages
from wolo.sessions.store import Store


def long_session(store: Store, turns: int = 30) -> str:
    session = store.create("/").id
    for number in range(turns):
        store.append(session, [said(f"prompt {number}"), *tool_turn(number)])
    return session


def test_reading_ends_at_a_turn_once_enough(store: Store) -> None:
    session = long_session(store)
    loaded = store.load(session, most_bytes=10_000)
    first = loaded.entries[0]
    assert isinstance(first, MessageEntry)
    assert first.message.is_prompt
    assert texts(loaded.entries)[-1] == "Looking at file 29."
    assert loaded.seqs[0] == loaded.unread + 1 > 1
    assert loaded.seqs[-1] == loaded.head == 90
    assert loaded.skipped == 0
    whole = store.load(session)
    assert whole.entries[loaded.unread :] == loaded.entries
    assert whole.unread == 0


def test_session_below_the_limit_is_read_whole(store: Store) -> None:
    session = long_session(store, 3)
    assert store.load(session, most_bytes=1_000_000) == store.load(session)


def test_last_compaction_is_read_from_any_distance(store: Store) -> None:
    session = long_session(store, 10)
    store.append(session, [CompactionEntry(shortened=("msg_2", "msg_3"), left_out=("msg_0", "msg_1"))])
    store.append(session, [said("prompt 10"), *tool_turn(10)])
    loaded = store.load(session, most_bytes=5_000)
    assert texts(loaded.entries)[:2] == ["prompt 2", "Looking at file 2."]
    assert loaded.seqs[0] == 7


def compacted_session(store: Store, turns: int, *, sent: int = 10, names_first: bool = True) -> str:
    """Its last compaction sends the last turns only; each has 10 kB."""
    session = store.create("/").id
    prompts = [said(f"prompt {number}") for number in range(turns)]
    for number, prompt in enumerate(prompts):
        store.append(session, [prompt, *tool_turn(number, output="y" * 10_000)])
    gone = range(turns - sent)
    left_out = (*(prompts[number].message.id for number in gone), *(f"msg_{number}" for number in gone))
    first = prompts[turns - sent].message.id if names_first else ""
    store.append(session, [CompactionEntry(left_out=left_out, sent_from=first)])
    return session


def test_compaction_bounds_reading_for_any_session_length(store: Store) -> None:
    loaded = [store.load(compacted_session(store, turns), most_bytes=LOAD_LIMIT_BYTES) for turns in (60, 200)]
    assert [len(each.entries) for each in loaded] == [3 * 24 + 1] * 2
    assert SHOWN_BYTES < 24 * 11_000
    assert texts(loaded[1].entries)[0] == "prompt 176"


def test_compaction_content_is_read_beyond_the_shown(store: Store) -> None:
    loaded = store.load(compacted_session(store, 200, sent=100), most_bytes=LOAD_LIMIT_BYTES)
    assert texts(loaded.entries)[0] == "prompt 100"


def test_compaction_without_first_message_reads_on(store: Store) -> None:
    loaded = store.load(compacted_session(store, 60, names_first=False), most_bytes=LOAD_LIMIT_BYTES)
    assert loaded.unread == 0


def test_overlong_turn_is_torn_keeping_its_prompt(store: Store) -> None:
    session = store.create("/").id
    store.append(session, [said("an earlier prompt"), said("the task")])
    for number in range(40):
        store.append(session, tool_turn(number))
    loaded = store.load(session, most_bytes=10_000)
    assert texts(loaded.entries)[0] == "the task"
    assert texts(loaded.entries)[-1] == "Looking at file 39."
    assert len(loaded.entries) < 20
    assert loaded.seqs[0] == 2
    assert [message.text for message in messages(loaded.entries)][:1] == ["the task"]


def test_entries_in_own_files_count_fully(store: Store) -> None:
    session = store.create("/").id
    for number in range(20):
        store.append(session, [said(f"prompt {number}"), *tool_turn(number, output="y" * 200_000)])
    loaded = store.load(session, most_bytes=500_000)
    assert len(loaded.entries) == 9


def test_a_damaged_entry_on_the_way_is_counted(store: Store, tmp_path: Path) -> None:
    import sqlite3

    session = long_session(store)
    with sqlite3.connect(tmp_path / "data" / "wolo.db") as raw:
        raw.execute("UPDATE entries SET body = 'noise' WHERE session = ? AND seq = 89", (session,))
    assert store.load(session, most_bytes=10_000).skipped == 1


def test_placeholder_for_unread_entries_says_so() -> None:
    entry = opening(12_345)
    assert entry.left_out
    assert isinstance(entry.summary, Message)
    assert "12,345" in entry.summary.text
    assert isinstance(entry.summary.parts[0], TextPart)


def test_reading_on_gives_bounded_parts_without_gaps(store: Store) -> None:
    session = long_session(store, 10)
    pages: list[list[int]] = []
    after = 0
    while True:
        placed, mark = store.read_after(session, after, 5_000)
        if mark is None:
            break
        pages.append([seq for seq, _, _ in placed])
        after = mark.seq
    assert [seq for page in pages for seq in page] == list(range(1, 31))
    assert 5 <= len(pages) <= 15
    assert [len(store.read_after(session, 0, most_bytes)[0]) for most_bytes in (1, 1_000_000)] == [1, 30]
