"""`wolo --verify "…"`: the check runs before and after the work, and only what the work broke goes back to the model."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from tests.fakes.command import run_wolo
from tests.fakes.provider_server import KEY, MODEL, ProviderServer
from tests.fakes.replies import call, text

CHECK = f"{shlex.quote(sys.executable)} check.py"
"""Fails for every line of `state.txt` that begins with `bad`."""
PROGRAM = """
import pathlib
pathlib.Path("runs.txt").open("a").write("x")
bad = [line for line in pathlib.Path("state.txt").read_text().split() if line.startswith("bad")]
for line in bad:
    print(f"FAILED tests/test_{line}.py::test_it - took 0.{len(line)} s")
raise SystemExit(1 if bad else 0)
"""


def lay_out(state: str) -> None:
    Path("check.py").write_text(PROGRAM)
    Path("state.txt").write_text(state)


def options(provider: ProviderServer, *more: str) -> list[str]:
    return ["--base-url", provider.base_url, "--api-key", KEY, "-m", MODEL, "--mode", "edit", "--verify", CHECK, *more]


def edit(old: str, new: str) -> object:
    return call("edit", {"path": "state.txt", "old": old, "new": new})


def test_broken_work_returns_until_it_is_mended(provider: ProviderServer) -> None:
    lay_out("bad_before fine\n")
    provider.script(edit("fine", "bad_new"), text("Done."), edit("bad_new", "good"), text("Now it works."))
    ran = run_wolo("--json", *options(provider), "improve the state")
    assert ran.exit_code == 0, ran.stderr
    told = provider.requests[2].messages[-1]
    assert told["role"] == "user"
    assert "tests/test_bad_new.py::test_it" in told["content"]
    assert "- tests/test_bad_before.py" not in told["content"]
    found = ran.json["verification"]
    assert (found["passed"], found["runs"], found["new_failures"]) == (True, 2, [])
    assert found["before"]["failures"] == found["after"]["failures"] == ["tests/test_bad_before.py::test_it"]
    assert Path("runs.txt").read_text() == "xxx"
    assert ran.json["result"] == "Now it works."


def test_unmended_work_ends_in_a_failed_run(provider: ProviderServer) -> None:
    lay_out("fine\n")
    provider.script(edit("fine", "bad_new"), text("Done."), text("Still done."), text("I say done."))
    ran = run_wolo("--json", *options(provider, "--set", "verify.rounds=2"), "improve the state")
    assert (ran.exit_code, ran.json["subtype"], ran.json["is_error"]) == (1, "error_verification", True)
    assert ran.json["verification"]["new_failures"] == ["tests/test_bad_new.py::test_it"]
    assert ran.json["verification"]["passed"] is False
    assert ran.json["error"]["kind"] == "unverified"
    assert "tests/test_bad_new.py::test_it" in ran.json["error"]["message"]


def test_earlier_failure_does_not_count(provider: ProviderServer) -> None:
    lay_out("bad_before fine\n")
    provider.script(edit("fine", "good"), text("Done."))
    ran = run_wolo("--json", *options(provider), "improve the state")
    assert (ran.exit_code, ran.json["verification"]["passed"]) == (0, True)
    assert ran.json["verification"]["after"]["exit_code"] == 1


def test_a_budget_ends_the_mending(provider: ProviderServer) -> None:
    lay_out("fine\n")
    provider.script(edit("fine", "bad_new"), text("Done."))
    ran = run_wolo("--json", *options(provider, "--max-turns", "2"), "improve the state")
    assert (ran.exit_code, ran.json["subtype"]) == (5, "error_max_turns")
    assert ran.json["verification"]["new_failures"] == ["tests/test_bad_new.py::test_it"]


def test_without_changes_nothing_is_verified(provider: ProviderServer) -> None:
    lay_out("bad_before\n")
    provider.script(call("read", {"path": "state.txt"}), text("It says bad_before."))
    ran = run_wolo("--json", *options(provider), "what does it say?")
    assert (ran.exit_code, ran.json["verification"]["before"], ran.json["verification"]["passed"]) == (0, None, None)
    assert not Path("runs.txt").exists()


def test_hanging_check_is_a_failure_of_work(provider: ProviderServer) -> None:
    lay_out("fine\n")
    Path("check.sh").write_text("if grep -q bad state.txt; then sleep 60; fi\n")
    provider.script(edit("fine", "bad"), text("Done."), edit("bad", "good"), text("Mended."))
    more = ("--verify", "bash check.sh", "--set", "verify.timeout_s=1")
    ran = run_wolo("--json", *options(provider, *more), "improve the state")
    assert ran.exit_code == 0, ran.stderr
    assert "it timed out" in provider.requests[2].messages[-1]["content"]


def test_a_check_that_cannot_be_run_is_said(provider: ProviderServer) -> None:
    lay_out("fine\n")
    provider.script(edit("fine", "good"), text("Done."))
    ran = run_wolo("--json", *options(provider, "--verify", "no-such-checker"), "improve the state")
    assert (ran.exit_code, ran.json["verification"]["passed"]) == (0, None)
    assert "`no-such-checker` cannot be run here, so nothing is verified." in ran.stderr


def test_json_lines_tell_of_each_run(provider: ProviderServer) -> None:
    lay_out("fine\n")
    provider.script(edit("fine", "good"), text("Done."))
    ran = run_wolo("--output-format", "stream-json", *options(provider), "improve the state")
    told = [line for line in ran.lines if line.get("subtype") == "verification"]
    assert [(line["when"], line["exit_code"]) for line in told] == [("before", 0), ("after", 0)]


def test_verified_run_can_be_replayed(provider: ProviderServer) -> None:
    lay_out("bad_before fine\n")
    provider.script(edit("fine", "bad_new"), text("Done."), edit("bad_new", "good"), text("Now it works."))
    assert run_wolo("--json", *options(provider), "improve the state").exit_code == 0
    played = run_wolo("replay", "--json")
    assert played.exit_code == 0, played.stdout + played.stderr
