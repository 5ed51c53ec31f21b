"""The tree of a session, drawn for people."""

from __future__ import annotations

from tests.sessions.samples import said, tool_turn
from wolo.sessions.entries import BranchEntry, LabelEntry
from wolo.sessions.session_text import OutlineItem, draw, last_under, outline
from wolo.sessions.store import Store


def places_of(store: Store, session: str) -> list[OutlineItem]:
    return outline(store.nodes(session), store.load(session).head)


def test_a_session_without_branches_is_a_straight_line(store: Store) -> None:
    session = store.create("/").id
    store.append(session, [said("make a calculator"), *tool_turn(1), said("add tests\nplease")])
    assert draw(places_of(store, session)) == ["  1 ● make a calculator", "  2 ● add tests please  ← here"]
    assert draw(outline([], 0)) == []


def test_branches_are_set_in_where_they_leave(store: Store) -> None:
    session = store.create("/").id
    store.append(session, [said("one"), *tool_turn(1), said("two"), said("three")])
    second = places_of(store, session)[1]
    store.append(session, [BranchEntry(left=5), said("other two"), said("other three")], behind=second.before)
    other = places_of(store, session)[3]
    store.append(session, [BranchEntry(left=8), said("third two")], behind=other.before)
    store.append(session, [LabelEntry(message_id=_message_id(store, session, 1), label="start")])
    assert draw(places_of(store, session)) == [
        "  1 ● one  [start]",
        "├─   2 ○ two",
        "│    3 ○ three",
        "├─   4 ○ other two",
        "│    5 ○ other three",
        "└─   6 ● third two  ← here",
    ]


def test_branch_is_found_by_any_of_its_prompts(store: Store) -> None:
    session = store.create("/").id
    store.append(session, [said("one"), said("two"), *tool_turn(1)])
    store.append(session, [BranchEntry(left=4), said("other")], behind=1)
    places = places_of(store, session)
    assert [last_under(places, number).text for number in (1, 2, 3)] == ["other", "two", "other"]
    assert last_under(places, 2).end == 4


def _message_id(store: Store, session: str, seq: int) -> str:
    entry = store.nodes(session)[seq - 1].entry
    return entry.message.id  # type: ignore[union-attr]  # it is a message
