"""Plan mode as a person and a script see it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakes.command import run_wolo
from tests.fakes.provider_server import Asked, ProviderServer
from tests.fakes.replies import Reply, call, error, text
from tests.fakes.screen import Terminal, pty_wolo
from wolo.places import find_places

PLAN = "Make it **faster**.\n\n1. Measure `a.py`\n2. Cache it"
PRESENT = call("present_plan", {"plan": PLAN})
WRITE = call("write", {"path": "new.txt", "content": "x\n"})
READY = "[k]eep planning"


def test_script_prints_the_plan_and_exits_0(provider: ProviderServer) -> None:
    provider.script(WRITE, call("shell", {"command": "touch new.txt"}), text(PLAN))
    done = run_wolo("-p", "--mode", "plan", *provider.flags, "make it faster")
    assert (done.exit_code, done.stdout, done.stderr) == (0, f"{PLAN}\n", "")
    assert not Path("new.txt").exists()
    first, last = provider.requests[0], provider.requests[-1]
    assert first.messages[-1]["content"].startswith("make it faster\n\nPlan mode: read-only.")
    assert "End with the plan as your answer." in first.messages[-1]["content"]
    assert all(result.startswith("Denied by plan mode, so it was not run.") for result in last.results)


def test_refused_writes_are_no_denials_in_json(provider: ProviderServer) -> None:
    provider.script(WRITE, text(PLAN))
    done = run_wolo("--json", "--mode", "plan", *provider.flags, "go")
    assert (done.exit_code, done.json["permission_denials"], done.json["is_error"]) == (0, [], False)


def test_writes_to_protected_files_are_no_denials_either(provider: ProviderServer) -> None:
    own = call("write", {"path": str(find_places().data / "wolo.db"), "content": "x"})
    provider.script(own, call("shell", {"command": "rm -rf /"}), text(PLAN))
    done = run_wolo("--json", "--mode", "plan", *provider.flags, "go")
    assert (done.exit_code, done.json["permission_denials"]) == (0, [])
    assert all("Plan mode is read-only" in each for each in provider.requests[-1].results)


def test_denial_by_a_rule_still_counts(provider: ProviderServer) -> None:
    provider.script(WRITE, text(PLAN))
    done = run_wolo("--json", "--mode", "plan", "--deny", "write:new.txt", *provider.flags, "go")
    assert (done.exit_code, len(done.json["permission_denials"])) == (4, 1)


def test_continued_session_is_told_that_planning_ended(provider: ProviderServer) -> None:
    provider.script(text(PLAN), text("More."), text("Done."))
    run_wolo("-p", "--mode", "plan", *provider.flags, "go")
    run_wolo("-p", "-c", "--mode", "plan", *provider.flags, "more")
    assert provider.requests[1].messages[-1]["content"] == "more"
    run_wolo("-p", "-c", "--mode", "edit", *provider.flags, "do it")
    assert provider.requests[2].messages[-1]["content"].startswith("do it\n\nThe mode is now `edit`")
    assert provider.requests[2].json["tools"] == provider.requests[0].json["tools"]


@pytest.mark.sweep(every=2)
@pytest.mark.parametrize(
    ("typed", "result"),
    [
        ("a", "Plan mode has ended"),
        ("e", "the mode is now `edit`"),
        ("k", "does not say why"),
        ("", "does not say why"),
        ("with fewer steps", "says:\nwith fewer steps"),
    ],
)
def test_line_decides_about_the_plan(provider: ProviderServer, typed: str, result: str) -> None:
    provider.script(PRESENT, text("Fine."))
    with pty_wolo("--mode", "plan", *provider.flags, "go") as terminal:
        terminal.wait_for(READY)
        terminal.wait_for("2. Cache it")
        terminal.enter(typed)
        assert terminal.wait_for_exit() == 0
        terminal.wait_for("Fine.")
    assert result in provider.requests[1].results[0]


def test_escape_leaves_the_plan_undecided(provider: ProviderServer) -> None:
    provider.script(PRESENT, text("I wait."))
    with pty_wolo("--mode", "plan", *provider.flags, "go") as terminal:
        terminal.wait_for(READY)
        terminal.press("escape")
        assert terminal.wait_for_exit() == 0
    assert "without a decision" in provider.requests[1].results[0]


def editor(script: str) -> dict[str, str]:
    path = Path("editor.sh").absolute()
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return {"EDITOR": str(path), "VISUAL": ""}


def test_edited_plan_is_shown_again_and_sent(provider: ProviderServer) -> None:
    provider.script(PRESENT, text("Fine."))
    with pty_wolo("--mode", "plan", *provider.flags, "go", env=editor("echo '3. Ship it' >> $1")) as terminal:
        terminal.wait_for(READY)
        terminal.enter("r")
        terminal.wait_for("3. Ship it")
        terminal.wait_until(lambda: terminal.times(READY) == 2)
        terminal.enter("e")
        assert terminal.wait_for_exit() == 0
        terminal.wait_for("☐ Ship it")
    assert provider.requests[1].results[0].endswith("2. Cache it\n3. Ship it")


@pytest.mark.sweep(every=2)
@pytest.mark.parametrize(
    ("script", "sentence"),
    [("exit 3", "failed with exit code 3"), (": > $1", "The plan is unchanged: the plan is empty."), ("exit 0", "")],
)
def test_failed_edit_leaves_the_plan(provider: ProviderServer, script: str, sentence: str) -> None:
    provider.script(PRESENT, text("Fine."))
    with pty_wolo("--mode", "plan", *provider.flags, "go", env=editor(script)) as terminal:
        terminal.wait_for(READY)
        terminal.enter("r")
        terminal.wait_until(lambda: terminal.times(READY) == 2)
        terminal.wait_for(sentence)
        terminal.enter("k")
        assert terminal.wait_for_exit() == 0
    assert "does not say why" in provider.requests[1].results[0]


def panel(terminal: Terminal) -> None:
    terminal.wait_for("Start with this plan?")
    terminal.wait_for("Keep planning, with words")


def test_panel_starts_in_another_mode(provider: ProviderServer) -> None:
    provider.script(PRESENT, WRITE, text("Fine."), text("Next."))
    with pty_wolo("--mode", "plan", "-i", *provider.flags) as terminal:
        terminal.wait_for_prompt()
        terminal.enter("go")
        panel(terminal)
        terminal.type("e")
        terminal.wait_for("Mode edit: edits inside the workspace run")
        terminal.wait_for("The plan is saved in")
        terminal.wait_for("Fine.")
        terminal.wait_for("☐ Cache it")
        terminal.wait_for_prompt()
        terminal.enter("next")
        terminal.wait_for("Next.")
    assert Path("new.txt").exists()
    assert provider.requests[-1].messages[-1]["content"] == "next"


def test_panel_takes_words_and_edits(provider: ProviderServer) -> None:
    provider.script(PRESENT, PRESENT, text("Fine."))
    with pty_wolo("--mode", "plan", "-i", *provider.flags, env=editor("echo '3. Ship it' >> $1")) as terminal:
        terminal.wait_for_prompt()
        terminal.enter("go")
        panel(terminal)
        terminal.type("k")
        terminal.wait_for("what to change ›")
        terminal.enter("ship it")
        provider.wait_for_requests(2)
        assert provider.requests[1].results[0].partition("says:\n")[2].startswith("ship it\n")
        terminal.wait_until(lambda: terminal.times("1. Measure") == 2)
        panel(terminal)
        terminal.type("r")
        terminal.wait_for("3. Ship it")
        panel(terminal)
        terminal.press("escape")
        terminal.wait_for("not decided; plan mode continues")
        terminal.wait_for("Fine.")
    assert "without a decision" in provider.requests[2].results[-1]


HUGE = "1. " + " ".join(map(str, range(160_000)))


@pytest.mark.parametrize("knows_window", [True, False])
def test_plan_of_a_megabyte_ends_no_turn(provider: ProviderServer, knows_window: bool) -> None:
    left = [call("present_plan", {"plan": HUGE}, size=100_000), PRESENT, text("Fine.")]

    def reply(asked: Asked) -> Reply:
        if len(asked.body) > 500_000:
            provider.forget_prefix()
            return error(400, {"error": {"code": "context_length_exceeded", "message": "too long"}})
        return left.pop(0)

    provider.otherwise = reply
    window = ("--set", "context.window=100000") if knows_window else ()
    with pty_wolo("--mode", "plan", "-s", "mine", *window, *provider.flags, "go") as terminal:
        provider.wait_for_requests(1)
        provider.forget_prefix()
        terminal.wait_for(READY)
        terminal.enter("e")
        assert terminal.wait_for_exit() == 0
        terminal.wait_for("Fine.")
    refused, accepted = provider.requests[-1].results
    assert f"{len(HUGE):,} characters; 50,000 is the most" in refused
    assert "Plan mode has ended" in accepted
    assert len(provider.requests) == (3 if knows_window else 4)
    assert HUGE in run_wolo("sessions", "export", "mine").stdout


def test_planning_replays(provider: ProviderServer) -> None:
    provider.script(PRESENT, WRITE, text("Fine."))
    with pty_wolo("--mode", "plan", "-s", "mine", *provider.flags, "go") as terminal:
        terminal.wait_for(READY)
        terminal.enter("e")
        assert terminal.wait_for_exit() == 0
    done = run_wolo("replay", "mine", "--json")
    assert done.exit_code == 0, done.stdout + done.stderr
