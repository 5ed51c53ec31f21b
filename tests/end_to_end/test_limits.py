"""Limits with a known end: shown with a countdown, waited for, or named."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.end_to_end.test_fallback import to
from tests.end_to_end.test_repl import leave, wait_for_prompt
from tests.fakes.command import run_wolo
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import Reply, error, text
from tests.fakes.screen import pty_wolo


@pytest.fixture
def second() -> Iterator[ProviderServer]:
    with ProviderServer() as server:
        yield server
    server.check()


def limit(after_s: float) -> Reply:
    """The window of a subscription, which ends so many seconds from now."""
    end = datetime.fromtimestamp(time.time() + after_s, UTC)
    return error(
        429, {"error": {"code": "1308", "message": f"Usage limit reached. Your limit will reset at {end:%Y-%m-%d %H:%M:%S}Z"}}
    )


def test_limit_counts_down_then_goes_on(provider: ProviderServer) -> None:
    provider.script(lambda _: limit(3), text("Here again."))
    with pty_wolo(*provider.flags) as terminal:
        wait_for_prompt(terminal)
        terminal.enter("hello")
        terminal.wait_for("limit until")
        terminal.wait_for("Enter now · m other model · Esc stop")
        assert "(0:0" in "\n".join(terminal.lines)
        terminal.wait_for("Here again.")
        wait_for_prompt(terminal)
        assert not terminal.shows("m other model")
        leave(terminal)
    assert [each.messages[-1]["content"] for each in provider.requests] == ["hello"] * 2


def test_enter_asks_again_before_the_end(provider: ProviderServer) -> None:
    provider.script(lambda _: limit(7180), text("Here again."))
    with pty_wolo(*provider.flags) as terminal:
        wait_for_prompt(terminal)
        terminal.enter("hello")
        terminal.wait_for("(1:59:")
        terminal.wait_for("m other model · Esc stop")
        terminal.enter("")
        terminal.wait_for("Here again.")
        wait_for_prompt(terminal)
        leave(terminal)


def test_escape_at_a_limit_keeps_the_prompt(provider: ProviderServer) -> None:
    provider.script(lambda _: limit(7180), text("Second time."))
    with pty_wolo(*provider.flags) as terminal:
        wait_for_prompt(terminal)
        terminal.enter("hello")
        terminal.wait_for("m other model · Esc stop")
        terminal.press("escape")
        wait_for_prompt(terminal)
        terminal.enter("again")
        terminal.wait_for("Second time.")
        wait_for_prompt(terminal)
        leave(terminal)
    assert [each["content"] for each in provider.requests[-1].messages if each["role"] == "user"] == ["hello", "again"]


def test_m_lets_another_model_answer_meanwhile(provider: ProviderServer, second: ProviderServer) -> None:
    provider.script(lambda _: limit(7180))
    second.script(text("I am the other."), text("Still the other."))
    sets = [word for word in to(second) if word not in ("--fallback-model", "second/other-model")]
    with pty_wolo(*provider.flags, *sets) as terminal:
        wait_for_prompt(terminal)
        terminal.enter("hello")
        terminal.wait_for("m other model · Esc stop")
        terminal.type("m")
        terminal.wait_for("Which model?")
        terminal.enter("second/other-model")
        terminal.wait_for("I am the other.")
        wait_for_prompt(terminal)
        terminal.enter("and now?")
        terminal.wait_for("Still the other.")
        wait_for_prompt(terminal)
        leave(terminal)
    assert len(provider.requests) == 1


def test_zero_windows_end_the_turn(provider: ProviderServer) -> None:
    provider.script(lambda _: limit(7180))
    with pty_wolo(*provider.flags, "--set", "retry.resume_windows=0") as terminal:
        wait_for_prompt(terminal)
        terminal.enter("hello")
        terminal.wait_for("Usage limit reached")
        wait_for_prompt(terminal)
        assert not terminal.shows("m other model")
        leave(terminal)


def test_limit_without_a_screen_is_one_line(provider: ProviderServer) -> None:
    provider.script(lambda _: limit(7180), text("Here again."))
    with pty_wolo("--plain", *provider.flags, "hello") as terminal:
        terminal.wait_for("Enter now, [m]odel, [s]top")
        terminal.enter("")
        terminal.wait_for("Here again.")


def test_headless_limit_exit_names_the_option(provider: ProviderServer) -> None:
    provider.script(lambda _: limit(3600))
    ran = run_wolo("-p", *provider.flags, "go")
    assert (ran.exit_code, len(provider.requests)) == (75, 1)
    assert "--wait-for-reset waits until" in ran.stderr


@pytest.mark.parametrize("option", ["--wait-for-reset", "--wait-for-reset=60"])
def test_headless_waits_for_every_reset(provider: ProviderServer, option: str) -> None:
    provider.script(lambda _: limit(2), lambda _: limit(2), text("Here again."))
    ran = run_wolo("-p", option, *provider.flags, "go")
    assert (ran.exit_code, ran.stdout) == (0, "Here again.\n")
    assert "then it goes on by itself" in ran.stderr


@pytest.mark.parametrize(
    ("after_s", "sentence"),
    [(-3600, "is past: send the prompt again"), (400 * 86400, "later than wolo waits (8 days)"), (7200, "wolo waits (8 days)")],
)
def test_unusable_reset_time_is_one_sentence(provider: ProviderServer, after_s: float, sentence: str) -> None:
    more = ("--wait-for-reset",) if after_s != 7200 else ("--wait-for-reset=60",)
    sentence = sentence if after_s != 7200 else "later than wolo waits (1:00)"
    provider.script(lambda _: limit(after_s), text("Nothing was lost."))
    ran = run_wolo("-p", "-s", "work", *more, *provider.flags, "go")
    assert (ran.exit_code, ran.stderr.count(sentence)) == (75, 1)
    assert "Traceback" not in ran.stderr
    again = run_wolo("-p", "-s", "work", *provider.flags, "again")
    assert again.stdout == "Nothing was lost.\n"
    assert [each["content"] for each in provider.requests[-1].messages if each["role"] == "user"] == ["go", "again"]


@pytest.mark.parametrize("stated", ["0001-01-01 00:00:00Z", "9999-12-31 23:59:59-12:00", "2027-01-01 00:00:00+99:99"])
def test_impossible_reset_time_is_no_end(provider: ProviderServer, stated: str) -> None:
    provider.script(error(429, {"error": {"code": "1308", "message": f"Usage limit reached. It will reset at {stated}"}}))
    ran = run_wolo("-p", "--wait-for-reset", *provider.flags, "go")
    assert (ran.exit_code, "crashed" in ran.stderr) == (75, False)


@pytest.mark.parametrize("value", ["soon", "-1", "nan"])
def test_wrong_wait_for_reset_is_a_usage_error(value: str) -> None:
    ran = run_wolo("-p", f"--wait-for-reset={value}", "go")
    assert ran.exit_code == 2
    assert "--wait-for-reset" in ran.stderr
    assert not Path("wolo").exists()


def test_option_takes_no_word_of_the_prompt(provider: ProviderServer) -> None:
    provider.script(text("Fine."))
    assert run_wolo("-p", *provider.flags, "--wait-for-reset", "go").stdout == "Fine.\n"
    assert provider.requests[0].messages[-1]["content"] == "go"
