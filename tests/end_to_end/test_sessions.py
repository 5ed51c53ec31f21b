"""Sessions survive kills, interrupts, other processes and a later resume."""

from __future__ import annotations

import json
import os
import re
import signal
import stat
import subprocess
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.waiting import wait_for
from tests.fakes.command import run_wolo, start_wolo
from tests.fakes.provider_server import Asked, ProviderServer
from tests.fakes.replies import Hold, Reply, call, calls, error, text
from wolo.places import find_places


def end(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    """Ends wolo, and waits until it is gone."""
    process.send_signal(number)
    process.communicate(timeout=60)


def shell_with(*commands: str) -> Any:
    return calls(*(("shell", {"command": command}, f"call_{number}") for number, command in enumerate(commands)))


def test_killed_stream_leaves_prompt_and_valid_session(provider: ProviderServer) -> None:
    hold = Hold()
    provider.script(text("a beginning").then(hold), text("on we go"))
    with start_wolo("-p", *provider.flags, "-s", "mine", "remember the number 42") as process:
        hold.wait_until_reached()
        end(process, signal.SIGKILL)
    hold.release()
    assert run_wolo("-p", *provider.flags, "-s", "mine", "go on").stdout == "on we go\n"
    said = json.dumps(provider.requests[1].messages)
    assert "remember the number 42" in said


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=["interrupted", "killed"])
def test_running_call_is_interrupted_and_never_rerun(provider: ProviderServer, number: signal.Signals) -> None:
    provider.script(shell_with("echo x >> quick", "echo x >> slow; sleep 30", "echo x >> last"), text("ok"))
    with start_wolo("-p", "--yolo", *provider.flags, "-s", "mine", "go") as process:
        wait_for(lambda: Path("slow").exists())
        end(process, number)
    assert run_wolo("-p", *provider.flags, "-s", "mine", "go on").exit_code == 0
    quick, slow, last = provider.requests[1].results
    assert "exit" in quick or "no output" in quick.lower()
    assert "interrupted" in slow.lower()
    assert "never started" in last.lower() or "not started" in last.lower() or "not run" in last.lower()
    assert (Path("quick").read_text(), Path("slow").read_text(), Path("last").exists()) == ("x\n", "x\n", False)


def test_every_continuation_sends_the_same_beginning(provider: ProviderServer) -> None:
    Path("a.txt").write_text("hello\n")
    provider.script(call("read", {"path": "a.txt"}), text("first"), text("second"), text("third"), text("fourth"))
    session = run_wolo("--json", *provider.flags, "-s", "mine", "one").json["session_id"]
    assert run_wolo("-p", *provider.flags, "-c", "two").stdout == "second\n"
    assert run_wolo("-p", *provider.flags, "--resume", session[:-3], "three").stdout == "third\n"
    assert run_wolo("-p", *provider.flags, "-r", "mine", "four").stdout == "fourth\n"
    bodies = [request.json for request in provider.requests]
    for before, after in pairwise(bodies):
        assert after["messages"][: len(before["messages"])] == before["messages"]
        assert after["tools"] == before["tools"]
    assert [message["content"] for message in bodies[-1]["messages"] if message["role"] == "user"] == [
        "one",
        "two",
        "three",
        "four",
    ]


def test_a_fork_goes_its_own_way(provider: ProviderServer) -> None:
    provider.otherwise = text("ok")
    first = run_wolo("--json", *provider.flags, "-s", "trunk", "one").json["session_id"]
    provider.forget_prefix()
    branch = run_wolo("--json", *provider.flags, "-c", "--fork", "two").json["session_id"]
    provider.forget_prefix()
    run_wolo("-p", *provider.flags, "-s", "trunk", "three")
    assert branch != first
    users = [message["content"] for message in provider.requests[-1].messages if message["role"] == "user"]
    assert users == ["one", "three"]


def test_session_in_use_is_refused_with_its_holder(provider: ProviderServer) -> None:
    hold = Hold()
    provider.script(text("slow").then(hold))
    with start_wolo("-p", *provider.flags, "-s", "mine", "go") as process:
        hold.wait_until_reached()
        second = run_wolo("-p", *provider.flags, "-s", "mine", "me too")
        assert second.exit_code == 3
        assert str(process.pid) in second.stderr
        assert "--fork" in second.stderr
        hold.release()
        process.communicate(timeout=60)


def test_kept_data_is_private_under_any_umask(provider: ProviderServer, isolated: Path) -> None:
    provider.script(call("write", {"path": "out.txt", "content": "x"}), text("ok"))
    before = os.umask(0)
    try:
        assert run_wolo("-p", *provider.flags, "go").exit_code == 0
    finally:
        os.umask(before)
    for path in (isolated / "wolo").rglob("*"):
        mode = stat.S_IMODE(path.stat().st_mode)
        assert mode == (0o700 if path.is_dir() else 0o600), f"{path} is {mode:o}"
    assert stat.S_IMODE(Path("out.txt").stat().st_mode) == 0o666


def test_no_session_keeps_nothing(provider: ProviderServer, isolated: Path) -> None:
    provider.script(text("ok"))
    assert run_wolo("-p", "--no-session", *provider.flags, "a secret plan").exit_code == 0
    for path in (isolated / "wolo").rglob("*"):
        assert path.is_dir() or b"secret plan" not in path.read_bytes()


@pytest.mark.parametrize("options", [(), ("--no-session",)])
def test_overlong_output_can_be_paged(provider: ProviderServer, options: tuple[str, ...]) -> None:
    def read_the_rest(asked: Asked) -> Reply:
        (path,) = re.findall(r"lines: (/\S+) — page it", asked.results[-1])
        return call("read", {"path": path, "offset": 2500, "limit": 1})

    provider.script(call("shell", {"command": "seq 5000"}), read_the_rest, text("done"))
    done = run_wolo("--json", "--allow", "shell:seq *", *options, *provider.flags, "count")
    assert done.json["permission_denials"] == []
    assert "2500→2500" in provider.requests[2].results[-1]


def test_failed_turn_is_kept_and_continued(provider: ProviderServer) -> None:
    provider.script(error(401, {"error": {"message": "bad key"}}), text("better"))
    assert run_wolo("-p", *provider.flags, "-s", "mine", "first try").exit_code == 1
    provider.forget_prefix()
    assert run_wolo("-p", *provider.flags, "-s", "mine", "second try").exit_code == 0
    assert "first try" in json.dumps(provider.requests[1].messages)


def test_listing_showing_and_deleting(provider: ProviderServer) -> None:
    provider.script(call("write", {"path": "out.txt", "content": "x"}), text("All done."))
    session = run_wolo("--json", *provider.flags, "-s", "mine", "make a file").json["session_id"]
    (row,) = run_wolo("sessions", "list", "--json").json
    assert {name: row[name] for name in ("id", "name", "title", "model", "turns", "live")} == {
        "id": session,
        "name": "mine",
        "title": "make a file",
        "model": "custom/test-model",
        "turns": 1,
        "live": False,
    }
    shown = run_wolo("sessions", "show", "mine").stdout
    assert "make a file" in shown
    assert "All done." in shown
    assert run_wolo("sessions", "delete", "mine").exit_code == 2
    assert run_wolo("sessions", "delete", "mine", "--yes").exit_code == 0
    assert run_wolo("sessions", "list", "--json").json == []
    assert run_wolo("sessions", "show", "mine").exit_code == 3


def test_session_continues_with_its_last_answering_model(provider: ProviderServer) -> None:
    folder = find_places().config
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.toml").write_text(f'[providers.mine]\nbase_url = "{provider.base_url}"\n')
    (folder / "config.toml").chmod(0o600)
    provider.linted = False
    provider.script(*(text("fine") for _ in range(4)))

    def model_after(*words: str) -> str:
        assert run_wolo("-p", "-s", "s", *words, "go").exit_code == 0
        return str(run_wolo("sessions", "list", "--json").json[0]["model"])

    assert model_after("-m", "mine/first") == "mine/first"
    assert model_after("-m", "mine/second") == "mine/second"
    assert model_after() == "mine/second"
    assert model_after(*provider.flags) == "mine/second", "an address given for one run is gone after it"
    assert [asked.json["model"] for asked in provider.requests] == ["first", "second", "second", "test-model"]


def test_missing_model_names_who_answers(provider: ProviderServer) -> None:
    folder = find_places().config
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.toml").write_text(f'model = "mine/m"\n[providers.mine]\nbase_url = "{provider.base_url}"\n')
    (folder / "config.toml").chmod(0o600)
    provider.linted = False
    provider.script(*(text("fine") for _ in range(3)))
    assert run_wolo("-p", "-s", "s", *provider.flags, "go").exit_code == 0
    done = run_wolo("-p", "-s", "s", "go on")
    assert "custom/test-model, the last model of this session, is not available any more; using mine/m." in done.stderr
    assert "any more" not in run_wolo("-p", "-s", "s", "go on").stderr
