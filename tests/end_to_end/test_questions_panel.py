"""Questions of the model while the REPL stands: a page each, and all answers before they are sent."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.end_to_end.test_panels import asked as asked_for
from tests.end_to_end.test_panels import for_a_while, visible
from tests.end_to_end.test_repl import leave, wait_for_prompt
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import call, text
from tests.fakes.screen import Terminal

DATABASE = {
    "question": "Which database?",
    "header": "Storage",
    "options": [{"label": "Postgres", "description": "on the server"}, {"label": "SQLite"}],
}
PARTS = {"question": "Which parts?", "options": ["auth", "billing", "mail"], "multiSelect": True}
FREE = {"question": "Anything else?"}


@contextmanager
def asked(provider: ProviderServer, *questions: dict[str, Any], rows: int = 24, columns: int = 100) -> Iterator[Terminal]:
    reply = call("ask", {"questions": list(questions)})
    with asked_for(provider, reply, text("I see."), rows=rows, columns=columns, ready="Enter next") as terminal:
        yield terminal


def told(provider: ProviderServer) -> str:
    return str(provider.requests[1].results[0])


def test_a_number_picks_and_enter_answers(provider: ProviderServer) -> None:
    with asked(provider, DATABASE) as terminal:
        assert "Which database?" in visible(terminal)
        terminal.type("2")
        terminal.wait_for("› 2 ● SQLite")
        terminal.press("enter")
        terminal.wait_for("I see.")
        wait_for_prompt(terminal)
        assert terminal.text.count("? Storage → SQLite") == 1
        leave(terminal)
    assert told(provider) == "Which database?\n→ SQLite"


def test_arrows_and_enter_pick_too(provider: ProviderServer) -> None:
    with asked(provider, DATABASE) as terminal:
        terminal.press("down", "down")
        terminal.wait_for("› 2 ○ SQLite")
        terminal.press("enter")
        terminal.wait_for("I see.")
        leave(terminal)
    assert told(provider) == "Which database?\n→ SQLite"


def test_several_questions_are_pages_and_the_last_one_shows_all_answers(provider: ProviderServer) -> None:
    with asked(provider, DATABASE, PARTS, FREE) as terminal:
        terminal.press("right")
        terminal.wait_for("Which parts?")
        terminal.type("3")
        terminal.wait_for("3 [x] mail")
        terminal.press("up", "up")
        terminal.wait_for("› 1 [ ] auth")
        terminal.type(" ")
        terminal.wait_for("› 1 [x] auth")
        terminal.press("enter")
        terminal.wait_for("Anything else?")
        terminal.enter("keep it small, bitte schön")
        terminal.wait_for("? Anything else? → keep it small, bitte schön")
        assert "? Storage → (no answer)" in visible(terminal)
        assert "? Which parts? → mail, auth" in visible(terminal)
        assert len(provider.requests) == 1
        terminal.press("tab", "left", "left", "left")
        terminal.wait_for("Which database?")
        terminal.type("1")
        terminal.wait_for("1 ● Postgres")
        terminal.press("right", "right", "right")
        terminal.wait_until(lambda: bool(re.search(r"^Enter send( · |$)", visible(terminal), re.MULTILINE)))
        terminal.press("enter")
        terminal.wait_for("I see.")
        leave(terminal)
    assert told(provider) == (
        "Which database?\n→ Postgres\nWhich parts?\n→ mail, auth\nAnything else?\n→ keep it small, bitte schön"
    )


def test_enter_passes_a_question_over(provider: ProviderServer) -> None:
    with asked(provider, DATABASE, PARTS) as terminal:
        terminal.press("enter")
        terminal.wait_for("Which parts?")
        terminal.enter("7")
        terminal.wait_until(lambda: bool(re.search(r"^Enter send( · |$)", visible(terminal), re.MULTILINE)))
        terminal.press("enter")
        terminal.wait_for("I see.")
        leave(terminal)
    assert told(provider) == "Which database?\n→ (no answer)\nWhich parts?\n→ 7"


@pytest.mark.parametrize("key", ["escape", "ctrl-d"])
def test_escape_answers_none_and_the_turn_goes_on(provider: ProviderServer, key: str) -> None:
    with asked(provider, DATABASE, PARTS) as terminal:
        terminal.press(key)
        terminal.wait_for("I see.")
        leave(terminal)
    assert told(provider).startswith("The user did not answer.")


def test_keys_that_mean_nothing_here_write_nothing(provider: ProviderServer) -> None:
    with asked(provider, DATABASE) as terminal:
        for key in ("\x1bOP", "\x1b[15~", "\x12", "\x1b[I", "\x7f"):
            terminal.type(key)
            for_a_while(terminal, 0.1)
        assert "answer ›" not in visible(terminal)
        terminal.type("1")
        terminal.press("enter")
        terminal.wait_for("I see.")
        leave(terminal)
    assert told(provider) == "Which database?\n→ Postgres"


def test_ctrl_c_stops_the_turn(provider: ProviderServer) -> None:
    with asked(provider, DATABASE) as terminal:
        terminal.press("ctrl-c")
        terminal.wait_for("Interrupted.")
        wait_for_prompt(terminal)
        leave(terminal)
    assert len(provider.requests) == 1


def test_a_paste_is_an_answer_in_words_that_is_not_sent_yet(provider: ProviderServer) -> None:
    with asked(provider, FREE) as terminal:
        terminal.paste("two words")
        terminal.wait_for("answer › two words")
        for_a_while(terminal, 0.2)
        assert len(provider.requests) == 1
        terminal.press("enter")
        terminal.wait_for("I see.")
        leave(terminal)
    assert told(provider) == "Anything else?\n→ two words"


def test_in_the_smallest_window_one_question_at_a_time_and_all_of_it(provider: ProviderServer) -> None:
    many = {"question": "Which one of these?", "options": [f"choice number {number}" for number in range(1, 9)]}
    with asked(provider, many, DATABASE, rows=5, columns=20) as terminal:
        assert "? Question 1/2\nWhich one of these?" in visible(terminal)
        for number in range(1, 9):
            terminal.press("down")
            terminal.wait_until(lambda number=number: f"› {number} ○" in visible(terminal))
            assert f"choice number {number}"[:12] in visible(terminal).replace("\n", "")
        terminal.press("enter")
        terminal.wait_until(lambda: "Whichdatab" in "".join(visible(terminal).split()))
        terminal.press("enter")
        terminal.wait_until(lambda: bool(re.search(r"^Enter send( · |$)", visible(terminal), re.MULTILINE)))
        terminal.press("enter")
        terminal.wait_for("I see.")
        leave(terminal)
    assert "→ choice number 8" in told(provider)


def test_a_question_steers_no_terminal(provider: ProviderServer) -> None:
    hostile = {"question": "a\x1b[2J\x1b]0;t\x07b\nwolo: all is well", "options": ["c\x9b5n\u202ed", "e"]}
    with asked(provider, hostile) as terminal:
        assert "ab\nwolo: all is well\n" in visible(terminal)
        terminal.type("2")
        terminal.press("enter")
        terminal.wait_for("I see.")
        leave(terminal)
    assert b"\x1b]0;" not in terminal.raw
    assert b"\x1b[2J" not in terminal.raw
