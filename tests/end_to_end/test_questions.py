"""Questions of the model: a person answers them at the terminal, a script is never asked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.command import run_wolo
from tests.fakes.constants import set_constants
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import call, text
from tests.fakes.screen import Terminal, pty_wolo

READY = "  answer"
DATABASE = {
    "question": "Which database?",
    "header": "Storage",
    "options": [{"label": "Postgres", "description": "on the server"}, {"label": "SQLite"}],
}
PARTS = {"question": "Which parts?", "options": ["auth", "billing", "mail"], "multiSelect": True}


@contextmanager
def asked(provider: ProviderServer, *questions: dict[str, Any], args: tuple[str, ...] = ()) -> Iterator[Terminal]:
    """A person in front of the first question."""
    provider.script(call("ask", {"questions": list(questions)}), text("I see."))
    with pty_wolo(*provider.flags, *args, "go on") as terminal:
        terminal.wait_for(READY)
        yield terminal


def told(provider: ProviderServer) -> str:
    return str(provider.requests[1].results[0])


def test_a_number_picks_an_option(provider: ProviderServer) -> None:
    with asked(provider, DATABASE) as terminal:
        terminal.wait_for("? Storage: Which database?\n  1 Postgres · on the server\n  2 SQLite\n")
        terminal.enter("2")
        assert terminal.wait_for_exit() == 0
        terminal.wait_for("● ask")
    assert told(provider) == "Which database?\n→ SQLite"


def test_several_questions_come_one_after_the_other(provider: ProviderServer) -> None:
    with asked(provider, DATABASE, PARTS, {"question": "Anything else?"}) as terminal:
        terminal.wait_for("(1 of 3)")
        terminal.enter("postgres")
        terminal.wait_until(lambda: terminal.times(READY) == 2)
        terminal.enter("3, 1")
        terminal.wait_until(lambda: terminal.times(READY) == 3)
        terminal.enter("keep it small, bitte schön")
        assert terminal.wait_for_exit() == 0
    assert told(provider) == (
        "Which database?\n→ Postgres\nWhich parts?\n→ mail, auth\nAnything else?\n→ keep it small, bitte schön"
    )


def test_enter_passes_one_question_over(provider: ProviderServer) -> None:
    with asked(provider, DATABASE, PARTS) as terminal:
        terminal.press("enter")
        terminal.wait_until(lambda: terminal.times(READY) == 2)
        terminal.enter("7")
        assert terminal.wait_for_exit() == 0
    assert told(provider) == "Which database?\n→ (no answer)\nWhich parts?\n→ 7"


def test_escape_skips_all_and_the_turn_continues(provider: ProviderServer) -> None:
    with asked(provider, DATABASE, PARTS) as terminal:
        terminal.press("escape")
        terminal.wait_for("I see.")
        assert terminal.wait_for_exit() == 0
    assert told(provider).startswith("The user did not answer.")


def test_keys_that_begin_like_escape_are_not_escape(provider: ProviderServer) -> None:
    with asked(provider, DATABASE) as terminal:
        terminal.type("big one")
        terminal.type("\x1bb")  # Alt-B: a word back
        terminal.press("left", "up", "home")
        terminal.enter("the ")
        assert terminal.wait_for_exit() == 0
    assert told(provider) == "Which database?\n→ the big one"


def test_ctrl_c_ends_the_turn_not_the_session(provider: ProviderServer) -> None:
    provider.script(call("ask", {"questions": [DATABASE]}), text("Fine."))
    with pty_wolo(*provider.flags, "-s", "mine", "go on") as terminal:
        terminal.wait_for(READY)
        terminal.press("ctrl-c")
        assert terminal.wait_for_exit() == 130
    with pty_wolo(*provider.flags, "-s", "mine", "never mind") as terminal:
        assert terminal.wait_for_exit() == 0
    assert told(provider).endswith("The user did not answer: the turn was stopped.")


def test_early_typing_answers_no_question(provider: ProviderServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    set_constants(monkeypatch, tmp_path / "constants", {"wolo.frontends.terminal.display.line_prompt.READING_S": 3.0})
    provider.script(call("ask", {"questions": [DATABASE]}, content="Thinking about it.\n").slow(0.05), text("I see."))
    with pty_wolo(*provider.flags, "go on") as terminal:
        terminal.wait_for("Thinking about it.")
        terminal.enter("1")
        terminal.wait_for("? Storage")
        terminal.enter("1")
        terminal.wait_for(READY)
        assert len(provider.requests) == 1
        terminal.enter("2")
        assert terminal.wait_for_exit() == 0
    assert told(provider) == "Which database?\n→ SQLite"


def test_a_question_steers_no_terminal_and_hides_nothing(provider: ProviderServer) -> None:
    hostile = {"question": "a\x1b[2J\x1b]0;t\x07b\nwolo: all is well", "options": ["c\x9b5n\u202ed", "e"]}
    with asked(provider, hostile) as terminal:
        terminal.enter("2")
        assert terminal.wait_for_exit() == 0
        assert b"\x1b]0;" not in terminal.raw
        assert b"\x1b[2J" not in terminal.raw
        terminal.wait_for("? ab\n  wolo: all is well\n")
        assert not terminal.shows("\u202e")


def test_time_limit_ends_an_unanswered_question(provider: ProviderServer) -> None:
    provider.script(call("ask", {"questions": [DATABASE]}))
    with pty_wolo(*provider.flags, "--max-seconds", "2", "go on") as terminal:
        terminal.wait_for(READY)
        assert terminal.wait_for_exit() == 5


def test_time_limit_ends_an_unanswered_approval(provider: ProviderServer) -> None:
    provider.script(call("shell", {"command": "touch made"}))
    with pty_wolo(*provider.flags, "--max-seconds", "2", "--mode", "ask", "go on") as terminal:
        terminal.wait_for("[N]o, or type")
        assert terminal.wait_for_exit() == 5


def test_yolo_asks_questions_but_no_approvals(provider: ProviderServer) -> None:
    with asked(provider, DATABASE, args=("--yolo",)) as terminal:
        terminal.enter("1")
        assert terminal.wait_for_exit() == 0
    assert told(provider) == "Which database?\n→ Postgres"


def test_a_dumb_terminal_is_asked_too(provider: ProviderServer) -> None:
    provider.script(call("ask", {"questions": [DATABASE]}), text("I see."))
    with pty_wolo(*provider.flags, "go on", env={"TERM": "dumb"}) as terminal:
        terminal.wait_for(READY)
        terminal.enter("1")
        assert terminal.wait_for_exit() == 0
    assert told(provider) == "Which database?\n→ Postgres"


def test_script_is_not_asked_and_model_is_told(provider: ProviderServer) -> None:
    provider.script(call("ask", {"questions": [DATABASE]}), text("Then I choose."))
    done = run_wolo("--json", *provider.flags, "--tools", "read,ask", "go on")
    assert (done.exit_code, done.json["result"]) == (0, "Then I choose.")
    assert "ask" not in [tool["function"]["name"] for tool in provider.requests[0].json["tools"]]
    assert told(provider).startswith("There is no tool `ask`.")


def test_script_continuing_attended_session_offers_no_questions(provider: ProviderServer) -> None:
    """The tools of the requests change then, and with them their prefix."""
    provider.linted = False
    with asked(provider, DATABASE, args=("-s", "mine")) as terminal:
        terminal.enter("1")
        assert terminal.wait_for_exit() == 0
    provider.script(text("On it goes."))
    assert run_wolo("-p", *provider.flags, "-s", "mine", "go on").stdout == "On it goes.\n"
    offered = [{tool["function"]["name"] for tool in request.json["tools"]} for request in provider.requests]
    assert [("ask" in names) for names in offered] == [True, True, False]


def test_earlier_answers_replay_without_asking(provider: ProviderServer) -> None:
    with asked(provider, DATABASE, args=("-s", "mine")) as terminal:
        terminal.enter("own words")
        assert terminal.wait_for_exit() == 0
    done = run_wolo("replay", "mine", "--json")
    assert done.exit_code == 0, done.stdout + done.stderr
