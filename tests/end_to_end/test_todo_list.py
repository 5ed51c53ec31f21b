"""The todo list from outside: on the screen, in a script's JSON, in a session that goes on."""

from __future__ import annotations

from typing import Any

from tests.fakes.command import run_wolo
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import call, calls, text
from tests.fakes.screen import pty_wolo

ITEMS = [{"text": "write it", "status": "completed"}, {"text": "try it", "status": "in_progress"}, {"text": "ship it"}]
SHOWN = "[x] write it\n[>] try it\n[ ] ship it"


def test_person_sees_the_list_and_requests_it(provider: ProviderServer) -> None:
    provider.script(call("todo", {"items": ITEMS}), text("Planned."), call("todo", {"todos": []}), text("Done."))
    with pty_wolo(*provider.flags, "-i", "go on") as terminal:
        terminal.wait_for("Planned.")
        terminal.wait_for("● todo 1 of 3 done\n  │ ☑ write it\n  │ ▶ try it\n  │ ☐ ship it")
        terminal.wait_for_prompt()
        terminal.enter("/todo")
        terminal.wait_for(SHOWN)
        terminal.enter("clear it")
        terminal.wait_for("● todo cleared")
        terminal.wait_for("Done.")
        terminal.enter("/todo")
        terminal.wait_for("No tasks.")


def test_continued_session_keeps_its_list(provider: ProviderServer) -> None:
    provider.script(call("todo", {"items": ITEMS}), text("Planned."))
    done = run_wolo("--output-format", "stream-json", *provider.flags, "go on")
    results = [line["message"]["content"][0] for line in _lines(done.stdout) if line["type"] == "user"]
    assert [(result["content"], result["is_error"]) for result in results] == [(SHOWN, False)]
    with pty_wolo(*provider.flags, "-c") as terminal:
        terminal.wait_for_prompt()
        terminal.enter("/todos")
        terminal.wait_for(SHOWN)


def test_repeated_equal_list_is_a_loop(provider: ProviderServer) -> None:
    provider.otherwise = call("todo", {"items": ITEMS})
    done = run_wolo("--json", *provider.flags, "go on")
    assert (done.exit_code, done.json["subtype"]) == (1, "error_model")
    assert len(provider.requests) == 5


def test_lists_that_move_on_are_no_circle(provider: ProviderServer) -> None:
    steps = [[{"text": f"step {n}", "status": "completed" if n < at else "pending"} for n in range(6)] for at in range(7)]
    provider.script(*(calls(("todo", {"items": items}), ("glob", {"pattern": "*"})) for items in steps), text("Done."))
    assert run_wolo("-p", *provider.flags, "go on").stdout == "Done.\n"


def _lines(stdout: str) -> list[dict[str, Any]]:
    import json

    return [json.loads(line) for line in stdout.splitlines()]
