"""Hooks: commands of the person's own that hear what happens and may say no, as real programs around a real run."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.command import run_wolo
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import call, calls, text
from wolo.places import find_places

WRITE = {"path": "a.txt", "content": "one"}


def write_settings(*lines: str) -> None:
    config = find_places().config
    config.mkdir(parents=True, exist_ok=True)
    (config / "config.toml").write_text("\n".join(lines) + "\n")


def script(name: str, body: str) -> str:
    """A hook of the person's own, outside of the project; the command that runs it."""
    path = Path.home() / f"{name}.py"
    path.write_text("import json, os, sys\ntold = json.load(sys.stdin)\n" + body)
    return f"{shlex.quote(sys.executable)} {shlex.quote(str(path))}"


def hook(event: str, command: str, matcher: str = "", **more: object) -> list[str]:
    rows = {"matcher": matcher, "command": command, **more}
    return [f"[[hooks.{event}]]", *(f"{name} = {json.dumps(value)}" for name, value in rows.items())]


def noting(event: str, matcher: str = "") -> list[str]:
    """A hook that writes down what it was told."""
    body = f"open({str(Path.home() / 'told.jsonl')!r}, 'a').write(json.dumps(told) + chr(10))"
    return hook(event, script(f"note_{event}", body), matcher)


def told() -> list[dict[str, Any]]:
    path = Path.home() / "told.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def saying(**output: object) -> str:
    return f"print(json.dumps({output!r}))"


def specific(event: str, **output: object) -> str:
    return saying(hookSpecificOutput={"hookEventName": event, **output})


def test_a_hook_stops_a_call_and_the_model_reads_why(provider: ProviderServer) -> None:
    write_settings(*hook("PreToolUse", script("no", "sys.stderr.write('Use the store.'); sys.exit(2)"), "Write|Edit"))
    provider.script(call("write", WRITE), text("I see."))
    ran = run_wolo("--json", *provider.flags, "write it")
    assert ran.exit_code == 4, ran.stderr
    assert not Path("a.txt").exists()
    assert "Use the store." in provider.requests[-1].results[0]
    assert ran.json["permission_denials"][0]["reason"] == "Use the store."


def test_without_that_hook_the_same_call_runs(provider: ProviderServer) -> None:
    write_settings(*hook("PreToolUse", script("no", "sys.exit(2)"), "Bash"))
    provider.script(call("write", WRITE), text("Done."))
    assert run_wolo("-p", *provider.flags, "write it").exit_code == 0
    assert Path("a.txt").read_text() == "one"


def test_every_event_of_a_run_is_told_in_its_order(provider: ProviderServer) -> None:
    events = ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure", "Stop", "SessionEnd")
    write_settings(*(line for event in events for line in noting(event)))
    provider.script(calls(("write", WRITE), ("read", {"path": "none.txt"})), text("Done."))
    ran = run_wolo("--json", *provider.flags, "--mode", "edit", "write it")
    assert ran.exit_code == 0, ran.stderr
    heard = told()
    assert [each["hook_event_name"] for each in heard] == [
        *("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PreToolUse", "PostToolUseFailure"),
        *("Stop", "SessionEnd"),
    ]
    assert {each["session_id"] for each in heard} == {ran.json["session_id"]}
    assert {(each["cwd"], each["permission_mode"]) for each in heard} == {(str(Path.cwd()), "edit")}
    start, prompt, before, after, _, failed, stop, _ = heard
    assert start["source"] == "startup"
    assert prompt["prompt"] == "write it"
    assert (before["tool_name"], before["tool_input"]["path"], before["tool_input"]["file_path"]) == ("write", "a.txt", "a.txt")
    assert before["tool_use_id"] == after["tool_use_id"]
    assert after["tool_response"]["files_changed"] == [str(Path("a.txt").absolute())]
    assert failed["tool_response"]["is_error"]
    assert (stop["stop_hook_active"], stop["last_assistant_message"]) == (False, "Done.")
