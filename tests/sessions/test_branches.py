"""A session is a tree: what was left behind stays, and the way to the head is what counts."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sessions.samples import said, texts
from wolo.messages.message import Message
from wolo.messages.parts import TextPart
from wolo.sessions import replay_entries
from wolo.sessions.entries import BranchEntry, CompactionEntry, LabelEntry
from wolo.sessions.store import Store


@pytest.fixture
def session(store: Store) -> str:
    session_id = store.create("/").id
    store.append(session_id, [said("one"), said("two"), said("three")])
    return session_id


def test_branch_continues_behind_an_earlier_entry_losslessly(store: Store, session: str) -> None:
    store.append(session, [BranchEntry(left=3), said("other two")], behind=1)
    store.append(session, [said("other three")])
    loaded = store.load(session)
    assert texts(loaded.entries) == ["one", "other two", "other three"]
    assert (loaded.skipped, loaded.head, loaded.seqs) == (0, 6, (1, 4, 5, 6))
    assert [(node.seq, node.parent) for node in store.nodes(session)] == [(1, 0), (2, 1), (3, 2), (4, 1), (5, 4), (6, 5)]


def test_abandoned_branch_can_be_entered_again(store: Store, session: str) -> None:
    store.append(session, [BranchEntry(left=3)], behind=1)
    store.append(session, [BranchEntry(left=4)], behind=3)
    assert texts(store.load(session).entries) == ["one", "two", "three"]


def test_a_branch_may_begin_before_everything(store: Store, session: str) -> None:
    store.append(session, [BranchEntry(left=3), said("anew")], behind=0)
    assert texts(store.load(session).entries) == ["anew"]


def test_summary_of_abandoned_branch_stands_at_next_start(store: Store, session: str) -> None:
    summary = Message(role="branch_summary", parts=(TextPart(text="It did not work."),), finished=True)
    store.append(session, [BranchEntry(left=3, summary=summary), said("again")], behind=1)
    assert [message.text for message in replay_entries.messages(store.load(session).entries)] == [
        "one",
        "It did not work.",
        "again",
    ]


def test_a_copy_has_all_branches(store: Store, session: str) -> None:
    store.append(session, [BranchEntry(left=3), said("other")], behind=1)
    copy = store.fork(session).id
    store.append(copy, [said("more")])
    assert texts(store.load(copy).entries) == ["one", "other", "more"]
    assert len(store.nodes(copy)) == len(store.nodes(session)) + 1


def test_the_last_label_of_a_message_counts(store: Store, session: str) -> None:
    labels = [LabelEntry(message_id="a", label="x"), LabelEntry(message_id="b", label="y"), LabelEntry(message_id="b", label="")]
    store.append(session, [*labels, LabelEntry(message_id="a", label="z")])
    assert replay_entries.labels(store.load(session).entries) == {"a": "z"}


def test_last_compaction_holds_and_an_empty_reverts_it(store: Store, session: str) -> None:
    first, second = CompactionEntry(shortened=("a",)), CompactionEntry(left_out=("a", "b"))
    store.append(session, [first])
    assert replay_entries.compaction(store.load(session).entries) == first
    store.append(session, [second])
    assert replay_entries.compaction(store.load(session).entries) == second
    store.append(session, [CompactionEntry()])
    assert replay_entries.compaction(store.load(session).entries) is None


def test_a_row_that_is_gone_costs_itself_alone(store: Store, session: str, tmp_path: Path) -> None:
    store.append(session, [BranchEntry(left=3), said("four"), said("five")], behind=2)
    with sqlite3.connect(tmp_path / "data" / "wolo.db") as raw:
        raw.execute("DELETE FROM entries WHERE seq = 5")
    raw.close()
    loaded = store.load(session)
    assert texts(loaded.entries) == ["one", "two", "five"]
    assert loaded.skipped == 1


@settings(max_examples=25)
@given(steps=st.lists(st.tuples(st.integers(0, 30), st.integers(0, 3)), max_size=12))
def test_path_to_the_head_is_its_conversation(tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, int]]) -> None:
    ways: dict[int, list[str]] = {0: []}
    with Store.open(tmp_path_factory.mktemp("tree") / "data") as store:
        session = store.create("/").id
        last, head = 0, 0
        for target, count in steps:
            behind = target % (last + 1)
            said_here = [f"{last + number + 2}" for number in range(count)]
            store.append(session, [BranchEntry(left=head), *map(said, said_here)], behind=behind)
            ways[last + 1] = ways[behind]
            for number in range(count):
                ways[last + number + 2] = [*ways[last + number + 1], said_here[number]]
            last += count + 1
            head = last
            assert texts(store.load(session).entries) == ways[head]
        assert store.load(session).skipped == 0
