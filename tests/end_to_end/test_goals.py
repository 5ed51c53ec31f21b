"""Goals, seen from outside: when the work continues, when it ends, and with which exit code."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.end_to_end.test_repl import leave, repl
from tests.fakes.command import run_wolo, start_wolo
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import Hold, Reply, call, sse, text

DONE = text("Done.")
UNTIL = ("--until", "test -e made.txt")


def write(path: str) -> Reply:
    return call("write", {"path": path, "content": "1\n"})


def notes(provider: ProviderServer, at: int = -1) -> list[str]:
    """What the user's side of a request says."""
    return [str(each["content"]) for each in provider.requests[at].messages if each["role"] == "user"]


def test_command_decides_when_work_ends(provider: ProviderServer) -> None:
    provider.script(DONE, write("made.txt"), text("Now it is there."))
    done = run_wolo("-p", "--json", "--yolo", *provider.flags, "--goal", "made.txt exists", *UNTIL, "go")
    assert done.exit_code == 0, done.stderr
    assert done.json["result"] == "Now it is there."
    assert done.json["goal"] == {
        "condition": "made.txt exists",
        "status": "met",
        "reason": "`test -e made.txt` ended with exit 0.",
        "num_rounds": 2,
    }
    assert "`test -e made.txt` is run" in notes(provider, 0)[-1]
    assert "`test -e made.txt` ended with exit 1." in notes(provider)[-1]


@pytest.mark.parametrize("verdict", ["MET: it says so.", '{"verdict": "met", "reason": "it says so."}', "**MET** - it says so."])
def test_model_judges_without_command(provider: ProviderServer, verdict: str) -> None:
    provider.script(DONE, text("NOT MET: the tests were not run."), DONE, text(verdict))
    done = run_wolo("-p", "--yolo", *provider.flags, "--goal", "the tests pass", "go")
    assert (done.exit_code, done.stdout) == (0, "Done.\n")
    assert "Goal reached (after round 2): it says so." in done.stderr
    assert "the tests were not run." in notes(provider, 2)[-1]
    assert b"tools" not in provider.requests[1].body


def test_blocked_goal_exits_1(provider: ProviderServer) -> None:
    provider.script(DONE, text("BLOCKED: the password is missing."))
    done = run_wolo("--json", "--yolo", *provider.flags, "--goal", "deployed", "go")
    assert (done.exit_code, done.json["subtype"], done.json["goal"]["status"]) == (1, "error_goal", "blocked")
    assert done.json["error"]["message"] == "Goal blocked (after round 1): the password is missing."


def test_unchanged_goal_ends_after_three_rounds(provider: ProviderServer) -> None:
    provider.script(*[DONE] * 9)
    done = run_wolo("--json", "--yolo", *provider.flags, "--goal", "made.txt exists", *UNTIL, "go")
    assert (done.exit_code, done.json["goal"]["status"], len(provider.requests)) == (1, "no_progress", 3)


def test_changes_keep_goal_going(provider: ProviderServer) -> None:
    provider.script(*(each for n in range(4) for each in (write(f"{n}.txt"), DONE)), *[DONE] * 9)
    done = run_wolo("--json", "--yolo", *provider.flags, "--goal", "made.txt exists", *UNTIL, "go")
    assert (done.exit_code, done.json["goal"]["num_rounds"]) == (1, 7)


@pytest.mark.parametrize(
    ("limit", "until"),
    [
        (("--budget", "2turns"), "false"),
        (("--budget", "100tokens"), "false"),
        (("--budget", "2s"), "sleep 60"),
        (("--max-turns", "2"), "false"),
    ],
)
def test_spent_budget_exits_5(provider: ProviderServer, limit: tuple[str, str], until: str) -> None:
    provider.script(*[DONE] * 3)
    done = run_wolo("--json", "--yolo", *provider.flags, "--goal", "never", "--until", until, *limit, "go")
    assert done.exit_code == 5, done.stdout
    assert done.json["subtype"].startswith("error_max_")
    assert done.json["goal"]["status"] == ("budget" if limit[0] == "--budget" else "active")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--until", "true"), "A goal needs a condition."),
        (("--goal", "x", "--budget", "lots"), "--budget lots: this is no amount."),
        (("--goal", "x", "--budget", "2usd"), "--budget in USD cannot be enforced"),
        (("--goal", " "), "A goal needs a condition."),
        (("--goal", "x", "--until", ""), "--until needs a value."),
        (("--goal", "x", "--budget", "9" * 400 + "turns"), "this is no amount."),
    ],
)
def test_bad_goal_sends_nothing(provider: ProviderServer, flags: tuple[str, ...], message: str) -> None:
    done = run_wolo("-p", *provider.flags, *flags, "go")
    assert (done.exit_code, provider.requests) == (2, []), done.stderr
    assert message in done.stderr


def test_goal_survives_kill(provider: ProviderServer, tmp_path: Path) -> None:
    provider.script(DONE, DONE, write("made.txt"), DONE)
    asked = tmp_path / "asked"
    os.mkfifo(asked)
    until = f"if test -e {tmp_path}/second; then test -e made.txt; else echo > {asked}; sleep 60; fi"
    flags = ("--yolo", "--sandbox", "off", *provider.flags)
    with start_wolo("-p", *flags, "--goal", "made.txt exists", "--until", until, "go") as run:
        asked.read_text()
        os.kill(run.pid, signal.SIGKILL)
        run.wait()
    (tmp_path / "second").touch()
    done = run_wolo("--json", *flags, "-c", "continue")
    assert (done.exit_code, done.json["goal"]["status"]) == (0, "met"), done.stdout
    assert sum("The goal of this session" in each for each in notes(provider)) == 1


def test_slash_goal_sets_shows_and_clears(provider: ProviderServer) -> None:
    provider.script(DONE, write("made.txt"), DONE, text("Hello."))
    line = '/goal made.txt exists --until "test -e made.txt" --budget 1h,9turns'
    assert run_wolo("-p", "--yolo", *provider.flags, line).exit_code == 0
    shown = run_wolo("-p", *provider.flags, "-c", "/goal")
    assert "Status: met · 2 rounds · 3 answers" in shown.stderr
    assert "Budget: 60 min, 9 answers" in shown.stderr
    assert "The goal is cleared." in run_wolo("-p", *provider.flags, "-c", "/goal clear").stderr
    assert "There is no goal to resume." in run_wolo("-p", *provider.flags, "-c", "/goal resume").stderr
    assert "goal" not in run_wolo("--json", *provider.flags, "-c", "hello").json


def test_goal_at_the_keyboard_shows_rounds(provider: ProviderServer) -> None:
    provider.script(DONE, write("made.txt"), text("Now it is there."))
    with repl(provider, "--mode", "edit") as terminal:
        terminal.enter("/goal made.txt exists --until 'test -e made.txt'")
        terminal.wait_for("Goal reached (after round 2)")
        terminal.enter("/goal")
        terminal.wait_for("2 rounds · 3 answers")
        terminal.enter("/goal pause")
        terminal.wait_for("The goal is not active: met.")
        assert leave(terminal) == 0


def test_second_goal_shows_its_verdict_too(provider: ProviderServer) -> None:
    provider.script(DONE, DONE)
    with repl(provider) as terminal:
        for count in (1, 2):
            terminal.enter("/goal nothing fails --until true")
            terminal.wait_until(lambda count=count: terminal.text.count("Goal reached (after round 1)") == count)
        assert leave(terminal) == 0


def test_running_check_is_named(provider: ProviderServer) -> None:
    provider.script(DONE)
    with repl(provider) as terminal:
        terminal.enter("/goal it ends --until 'sleep 600'")
        terminal.wait_for("verifying with sleep 600")
        terminal.press("escape")
        terminal.wait_for("Interrupted")
        assert leave(terminal) == 0


def test_blocked_goal_fails_no_later_turn(provider: ProviderServer) -> None:
    provider.script(DONE, text("BLOCKED: the password is missing."), text("Hello."))
    assert run_wolo("-p", "--yolo", *provider.flags, "--goal", "deployed", "go").exit_code == 1
    later = run_wolo("-p", *provider.flags, "-c", "hello")
    assert (later.exit_code, later.stdout) == (0, "Hello.\n")
    assert "Goal" not in later.stderr


def test_retry_reverts_and_sends_other_words(provider: ProviderServer) -> None:
    provider.script(write("bad.txt"), text("First answer."), text("Second answer."), text("Third answer."))
    provider.expect_problem("differs from the request before")
    with repl(provider, "--mode", "edit") as terminal:
        terminal.enter("make it")
        terminal.wait_for("First answer.")
        terminal.enter("/retry make it well")
        terminal.wait_for("Second answer.")
        assert not Path("bad.txt").exists()
        terminal.enter("/retry --model custom/other")
        terminal.wait_for("Third answer.")
        assert leave(terminal) == 0
    assert "make it well" in notes(provider)[-1]
    assert b'"other"' in provider.requests[-1].body
    assert "First answer." not in str(provider.requests[-1].messages)


def test_loop_sends_until_escape(provider: ProviderServer) -> None:
    provider.script(*(text(f"Answer {n}.") for n in range(50)))
    with repl(provider) as terminal:
        terminal.enter("/loop soon hello")
        terminal.wait_for("soon is no interval.")
        terminal.enter("/loop 1s hello")
        terminal.wait_for("Answer 2.")
        terminal.press("escape")
        terminal.wait_for("The loop is stopped.")
        terminal.enter("/loop")
        terminal.wait_for("No loop is running")
        assert leave(terminal) == 0
    assert all(notes(provider, at)[-1].endswith("hello") for at in range(1, 3))


def test_compacted_goal_is_named_again(provider: ProviderServer) -> None:
    provider.script(text("One " * 4000), text("Two " * 4000), text("A summary."), DONE, *[DONE] * 4)
    with repl(provider) as terminal:
        terminal.enter("/goal made.txt exists --until false")
        terminal.wait_for("(round 2)")
        terminal.wait_for("nothing changed in 3 rounds")
        terminal.enter("/compact")
        terminal.wait_for("summed up")
        terminal.enter("/goal resume")
        terminal.wait_until(lambda: terminal.times("nothing changed in 3 rounds") == 2)
        assert leave(terminal) == 0
    named = [sum("The goal of this session" in each for each in notes(provider, at)) for at in range(len(provider.requests))]
    assert set(named) - {0} == {1}


def test_escape_pauses_goal_until_resumed(provider: ProviderServer) -> None:
    hold = Hold()
    provider.script(DONE, sse(hold), write("made.txt"), text("Now it is there."))
    with repl(provider, "--mode", "edit") as terminal:
        terminal.enter("/goal made.txt exists --until 'test -e made.txt'")
        terminal.wait_for("(round 1)")
        hold.wait_until_reached()
        terminal.press("escape")
        terminal.wait_for("nterrupted")
        terminal.enter("/goal")
        terminal.wait_for("Status: paused")
        terminal.enter("/goal resume")
        terminal.wait_for("Goal reached (after round 2)")
        assert leave(terminal) == 0


def test_unsaved_goal_survives_other_model(provider: ProviderServer) -> None:
    provider.script(DONE, DONE, DONE)
    with repl(provider, "--no-session") as terminal:
        terminal.enter("/goal made.txt exists --until false")
        terminal.wait_for("nothing changed in 3 rounds")
        terminal.enter("/model custom/other")
        terminal.wait_for("wolo · custom/other")
        terminal.enter("/goal")
        terminal.wait_for("Status: no progress")
        assert leave(terminal) == 0


def test_small_model_judges(provider: ProviderServer) -> None:
    provider.script(DONE, text("MET: it is there."))
    done = run_wolo("--json", *provider.flags, "--set", "small_model=custom/tiny", "--goal", "made", "go")
    assert (done.exit_code, done.json["goal"]["status"]) == (0, "met"), done.stdout
    assert b'"tiny"' in provider.requests[1].body
    assert done.json["usage"]["output_tokens"] == 20
