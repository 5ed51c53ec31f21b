"""Searching, listing, renaming, cleaning up and counting, as a person does it."""

from __future__ import annotations

import os
import sqlite3
import sys
from pathlib import Path
from typing import Any

import pexpect
import pytest

from tests.fakes.command import run_wolo
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import call, text
from wolo.places import find_places
from wolo.sessions import loading
from wolo.sessions.entries import MessageEntry
from wolo.sessions.store import Store


def search(*words: str) -> Any:
    return run_wolo("sessions", "search", *words, "--json").json


def ids(*words: str) -> list[str]:
    return [row["id"] for row in run_wolo("sessions", "list", "--json", *words).json]


def backdate(days: int, *names: str) -> None:
    """As if these sessions had been used last so long ago."""
    with sqlite3.connect(find_places().data / "wolo.db") as database:
        marks = ", ".join("?" * len(names))
        database.execute(f"UPDATE sessions SET updated = updated - 86400 * {days} WHERE title IN ({marks})", names)


def test_words_and_deeds_of_a_turn_are_found(provider: ProviderServer) -> None:
    Path("notes.txt").write_text("the marmalade is in the cupboard\n")
    provider.script(call("read", {"path": "notes.txt"}), text("It stands in the cupboard."))
    asked = run_wolo("-p", *provider.flags, "--json", "Where is the marmalade?").json
    rows = search("marmalade")
    assert [set(row) for row in rows] == [{"id", "title", "entry", "snippet", "at"}] * 2
    assert {row["id"] for row in rows} == {asked["session_id"]}
    assert rows[0]["title"] == "Where is the marmalade?"
    assert len(search("tool:read path:notes.txt")) == 1
    assert [row["snippet"] for row in search("role:assistant", "cupboard")] == ["It stands in the cupboard."]
    shown = run_wolo("sessions", "search", "cupboard", "stands").stdout
    assert asked["session_id"] in shown
    assert "It stands in the cupboard." in shown


def test_nothing_found_is_no_failure(provider: ProviderServer) -> None:
    found = run_wolo("sessions", "search", "nothing", "--json")
    assert (found.exit_code, found.json) == (0, [])
    assert run_wolo("sessions", "search", "nothing").stdout == "No results.\n"


def test_phrase_quoted_in_the_shell_is_a_phrase(provider: ProviderServer) -> None:
    provider.script(text("ok"), text("ok"))
    run_wolo("-p", *provider.flags, "red green blue")
    run_wolo("-p", *provider.flags, "green red blue")
    assert len(search("red green")) == 2
    assert len(search("blue", "red green")) == 1
    assert len(search('"red green"')) == 1


@pytest.mark.parametrize("words", ['"open', "tol:shell", "since:then", "->"])
def test_unreadable_search_is_refused_in_words(words: str) -> None:
    refused = run_wolo("sessions", "search", words)
    assert refused.exit_code == 2
    assert refused.stdout == ""
    assert refused.stderr.startswith("wolo: ")
    assert "Traceback" not in refused.stderr


def test_here_and_all_directories(provider: ProviderServer, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    provider.script(text("ok"), text("ok"))
    run_wolo("-p", *provider.flags, "needle here")
    run_wolo("-p", *provider.flags, "needle there", cwd=elsewhere)
    assert len(search("needle")) == 2
    assert [row["title"] for row in search("needle", "--here")] == ["needle here"]
    assert len(search("needle", f"cwd:{elsewhere}")) == 1
    assert len(search("needle", "--limit", "1")) == 1


def test_list_shows_title_age_model_tokens_and_cost(provider: ProviderServer) -> None:
    provider.script(text("ok"))
    run_wolo("-p", *provider.flags, "Bake a cake")
    shown = run_wolo("sessions", "list").stdout
    (session,) = ids()
    assert session in shown
    assert "Bake a cake" in shown
    for heading in ("AGE", "TURNS", "TOKENS", "COST", "MODEL", "TITLE"):
        assert heading in shown.splitlines()[0]
    with Store.open(find_places().data) as store, store.lock(session):
        assert "live" in run_wolo("sessions", "list").stdout
    assert "DIRECTORY" in run_wolo("sessions", "list", "--all").stdout


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_a_list_fits_the_terminal(columns: int) -> None:
    from rich.cells import cell_len

    with Store.open(find_places().data) as store:
        for words in ("A title " * 12, "日本語の題名" * 12, "x" * 79):
            session = store.create(Path.cwd() / ("deep/" * 30), model="provider/" + "m" * 40)
            store.append(session.id, [MessageEntry(message=_prompt(words))])
    env = {**os.environ, "COLUMNS": str(columns), "TERM": "xterm"}
    child = pexpect.spawn(
        sys.executable, ["-m", "wolo", "sessions", "list", "--all"], dimensions=(40, columns), env=env, encoding="utf-8"
    )
    child.expect(pexpect.EOF)
    lines = str(child.before).splitlines()
    assert len(lines) >= 4
    assert max(map(cell_len, lines)) < columns


def _prompt(words: str) -> Any:
    from wolo.messages.message import user

    return user(words)


def test_new_title_shows_without_becoming_the_latest(provider: ProviderServer) -> None:
    provider.script(text("ok"), text("ok"))
    run_wolo("-p", *provider.flags, "the first")
    run_wolo("-p", *provider.flags, "the second")
    latest, first = ids()
    renamed = run_wolo("sessions", "rename", "the first", "A", "better", "title")
    assert renamed.stdout == f"{first}  A better title\n"
    assert ids() == [latest, first]
    assert run_wolo("sessions", "rename", first, "--name", "cake").exit_code == 0
    clash = run_wolo("sessions", "rename", latest, "--name", "cake")
    assert (clash.exit_code, "already named cake" in clash.stderr) == (3, True)
    assert "already named cake" in run_wolo("sessions", "rename", latest, "cake").stderr
    assert run_wolo("sessions", "rename", latest, " ").exit_code == 2
    assert run_wolo("sessions", "rename", "no such", "x").exit_code == 3


def test_cleaning_takes_old_sessions_and_their_own_data(provider: ProviderServer) -> None:
    with Store.open(find_places().data) as store:
        for title in ("old", "new", "named", "open"):
            session = store.create(Path.cwd(), name="keep" if title == "named" else None)
            store.append(session.id, [MessageEntry(message=_prompt(title))])
            store.store_blob(session.id, "output.txt", title.encode() * 100)
        backdate(40, "old", "named", "open")
        held = store.lock(store.find("open").id)
        assert "old" in run_wolo("sessions", "clean", "--older-than", "30d", "--dry-run").stdout
        refused = run_wolo("sessions", "clean", "--older-than", "30d")
        assert (refused.exit_code, len(store.list())) == (2, 4)
        cleaned = run_wolo("sessions", "clean", "--older-than", "30d", "--yes")
        assert cleaned.stdout.endswith("Not deleted: 2 sessions that old, named or open.\nDeleted 1 session.\n")
        assert sorted(info.title for info in store.list()) == ["named", "new", "open"]
        assert len(list(store.blobs_dir.iterdir())) == 3
        held.release()
    assert run_wolo("sessions", "clean", "--older-than", "30d", "-y", "--json").json["deleted"] != []
    assert run_wolo("sessions", "clean", "--older-than", "soon").exit_code == 2


def test_the_end_of_a_session(provider: ProviderServer) -> None:
    provider.script(text("one"), text("two"), text("three"))
    for words in ("first", "second", "third"):
        run_wolo("-p", *provider.flags, "-s", "mine", words)
    shown = run_wolo("sessions", "show", "mine", "--tail", "2").stdout
    assert "third" in shown
    assert "second" not in shown
    messages = run_wolo("sessions", "show", "mine", "--tail", "3", "--json").json["messages"]
    assert [message["role"] for message in messages] == ["assistant", "user", "assistant"]
    assert run_wolo("sessions", "show", "mine", "--tail", "0").exit_code == 2


def test_the_place_a_search_names(provider: ProviderServer) -> None:
    provider.script(*(text(f"answer {number}") for number in range(6)))
    for number in range(6):
        run_wolo("-p", *provider.flags, "-s", "mine", f"prompt {number}")
    (found,) = search('"answer 2"')
    shown = run_wolo("sessions", "show", found["id"], "--around", str(found["entry"])).stdout
    assert "answer 2" in shown
    assert ("answer 1" in shown, "prompt 3" in shown) == (True, True)
    assert ("answer 0" in shown, "answer 4" in shown) == (False, False)
    missing = run_wolo("sessions", "show", "mine", "--around", "999")
    assert (missing.exit_code, "Entry 999" in missing.stderr) == (2, True)


def test_stats_count_what_was_used(provider: ProviderServer) -> None:
    Path("notes.txt").write_text("x\n")
    provider.script(call("read", {"path": "notes.txt"}), text("ok"))
    run_wolo("-p", *provider.flags, "go")
    stats = run_wolo("stats", "--json").json
    assert (stats["sessions"], stats["turns"], stats["answers"]) == (1, 1, 2)
    assert (stats["cost_usd"], stats["unpriced_answers"]) == (None, 2)
    assert stats["tools"] == [{"name": "read", "calls": 1, "failed": 0}]
    assert set(stats) >= {"models", "tools", "projects", "days", "tokens", "cache_share"}
    shown = run_wolo("stats", "--days", "7").stdout
    assert "price unknown" in shown
    assert "$0" not in shown
    by_tool = run_wolo("stats", "--by", "tool").stdout
    assert ("Tools" in by_tool, "Models" in by_tool) == (True, False)
    assert run_wolo("stats", "--by", "moon").exit_code == 2
    assert run_wolo("stats", "--days", "0").exit_code == 2


def test_stats_of_nothing(provider: ProviderServer) -> None:
    assert run_wolo("stats").stdout == "Nothing was asked yet.\n"
    assert run_wolo("stats", "--json").json["cost_usd"] == 0


def test_huge_session_continues_without_unsendable_parts(provider: ProviderServer) -> None:
    from tests.sessions.samples import said, tool_turn

    with Store.open(find_places().data) as store:
        session = store.create(Path.cwd(), name="huge").id
        for number in range(420):
            store.append(session, [said(f"prompt {number}"), *tool_turn(number, output="y" * 48_000)])
    assert loading.LOAD_LIMIT_BYTES < 420 * 48_000
    provider.script(text("one"), text("two"))
    told = run_wolo("-p", *provider.flags, "-s", "huge", "go on").stderr
    assert "larger than any model's window" in told
    first, *_ = provider.requests
    said_then = str(first.messages)
    assert "The conversation began earlier" in said_then
    assert "prompt 419" in said_then
    assert "prompt 3'" not in said_then
    assert "larger than" not in run_wolo("-p", *provider.flags, "-s", "huge", "and on").stderr
    second = provider.requests[1]
    assert second.messages[: len(first.messages)] == first.messages
