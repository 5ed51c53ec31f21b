"""Finding the session a person means."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sessions.samples import said, tool_turn
from wolo.errors import SessionError
from wolo.sessions.store import Store


def kept(store: Store, cwd: Path | str, prompt: str, name: str | None = None, id: str | None = None) -> str:
    session = store.create(cwd, name=name, id=id)
    store.append(session.id, [said(prompt)])
    return session.id


def test_session_is_found_by_id_name_or_title(store: Store, tmp_path: Path) -> None:
    one = kept(store, tmp_path, "Fix the login page", name="login", id="session_20260101T101010_aaaa111111")
    two = kept(store, tmp_path, "Write a calculator", id="session_20260101T101010_bbbb222222")
    for spec in (one, one[:25], "aaaa", "login", " login ", "fix page", "LOGIN fix"):
        assert store.find(spec).id == one
    for spec in ("bbbb222222", "calculator", "20260101T101010_b"):
        assert store.find(spec).id == two


def test_name_outranks_the_beginning_of_an_id(store: Store) -> None:
    kept(store, "/", "one", id="session_123456")
    alias = kept(store, "/", "two", name="session_123")
    assert store.find("session_123").id == alias
    assert store.find("session_1234").id == "session_123456"


def test_several_matches_are_listed_and_none_is_taken(store: Store) -> None:
    ids = [kept(store, "/", f"fix bug {number}") for number in range(12)]
    with pytest.raises(SessionError) as caught:
        store.find("fix bug")
    assert "12 sessions" in caught.value.message
    assert ids[-1] in caught.value.message
    assert "4 more" in caught.value.message
    assert caught.value.exit_code == 3
    with pytest.raises(SessionError):
        store.find("session_")


def test_title_of_this_directory_wins_among_equals(store: Store, tmp_path: Path) -> None:
    here = kept(store, tmp_path, "fix the bug")
    kept(store, "/", "fix the bug")
    assert store.find("the bug", tmp_path).id == here
    with pytest.raises(SessionError):
        store.find("the bug")


def test_an_unknown_session_names_the_nearest(store: Store) -> None:
    with pytest.raises(SessionError, match="none has been saved yet"):
        store.find("anything")
    kept(store, "/", "Write a calculator", name="calculator", id="session_1")
    with pytest.raises(SessionError) as caught:
        store.find("calculater")
    assert "session_1" in caught.value.hint
    with pytest.raises(SessionError) as caught:
        store.find("%_*'\"; DROP TABLE sessions; \ud800")
    assert "no session" in caught.value.message
    with pytest.raises(SessionError):
        store.find("  ")


def test_latest_session_belongs_to_this_very_directory(store: Store, tmp_path: Path) -> None:
    tree, sibling, link = tmp_path / "tree", tmp_path / "tree-2", tmp_path / "link"
    tree.mkdir()
    sibling.mkdir()
    link.symlink_to(tree)
    first, _ = kept(store, tree, "one"), kept(store, sibling, "two")
    kept(store, tree / "below", "three")
    store.create(tree)
    for cwd in (tree, link, f"{tree}/../tree/"):
        latest = store.latest(cwd)
        assert latest is not None
        assert latest.id == first
    assert store.latest(tmp_path) is None
    store.append(first, [said("again")])
    assert [info.title for info in store.list(link)] == ["one", ""]
    assert len(store.list()) == 4


def test_non_utf8_directory_can_have_sessions(store: Store) -> None:
    odd = "/tmp/\udcff\udcfe"
    session = kept(store, odd, "one")
    assert [info.id for info in store.list(odd)] == [session]
    assert store.list("/tmp") == []


def test_a_title_is_one_plain_line(store: Store) -> None:
    session = kept(store, "/", "\n\n  first \x1b[31mline\u202e\t" + "word " * 100)
    title = store.load(session).info.title
    assert title.startswith("first [31mline word")
    assert len(title) <= 80
    assert title.isprintable()


def test_a_listing_shows_what_is_live(store: Store) -> None:
    one, two = kept(store, "/", "one"), kept(store, "/", "two")
    with store.lock(one):
        assert {info.id: info.live for info in store.list()} == {one: True, two: False}
    assert not any(info.live for info in store.list())


def test_a_listing_does_not_read_entries(store: Store) -> None:
    kept(store, "/", "one")
    with store._database.writing() as connection:
        connection.execute("DROP TABLE entries")
    assert [info.title for info in store.list("/")] == ["one"]


def test_session_of_answers_only_can_be_latest(tmp_path: Path) -> None:
    with Store.open(tmp_path / "data") as store:
        session = store.create(tmp_path)
        assert store.latest(tmp_path) is None
        store.append(session.id, list(tool_turn(1)))
        latest = store.latest(tmp_path)
        assert latest is not None
        assert latest.id == session.id
