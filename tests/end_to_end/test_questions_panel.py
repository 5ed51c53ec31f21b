"""Questions of the model while the REPL stands: a page each, and all answers before they are sent."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.end_to_end.test_panels import asked as asked_for
from tests.end_to_end.test_panels import visible
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


def test_several_questions_are_pages_with_a_final_overview(provider: ProviderServer) -> None:
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


def test_escape_answers_none_and_the_turn_goes_on(provider: ProviderServer) -> None:
    with asked(provider, DATABASE, PARTS) as terminal:
        terminal.press("escape")
        terminal.wait_for("I see.")
        leave(terminal)
    assert told(provider).startswith("The user did not answer.")


def test_ctrl_c_stops_the_turn(provider: ProviderServer) -> None:
    with asked(provider, DATABASE) as terminal:
        terminal.press("ctrl-c")
        terminal.wait_for("Interrupted.")
        wait_for_prompt(terminal)
        leave(terminal)
    assert len(provider.requests) == 1
