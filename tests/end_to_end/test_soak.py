"""The long ones, run by `make soak`: every byte of a stream cut once, hundreds of kills, thousands of turns."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest

from tests.fakes.command import run_wolo, start_wolo
from tests.fakes.provider_server import Asked, ProviderServer
from tests.fakes.replies import Reply, call, text

pytestmark = [pytest.mark.soak, pytest.mark.timeout(3600)]

CALL = call("write", {"path": "made.txt", "content": "é🙂\n"}, id="call_1", content="Writing it — now.", reasoning="hm")
QUICK = ("--set", "retry.tries=2")


@pytest.mark.parametrize("ending", ["cut", "reset"])
def test_stream_cut_anywhere_runs_and_shows_nothing_twice(provider: ProviderServer, ending: str) -> None:
    whole = len(CALL.body)
    for size_bytes in range(whole):
        made = Path("made.txt")
        made.unlink(missing_ok=True)
        provider.forget_prefix()
        provider.script(CALL.cut_at(size_bytes, ending), text("Instead."))  # type: ignore[arg-type]  # one of two literals
        before = len(provider.requests)
        done = run_wolo("--json", "--no-session", *QUICK, *provider.flags, "go")
        asked = provider.requests[before:]
        assert done.exit_code == 0, (size_bytes, done.stderr)
        assert len(asked) == 2, size_bytes
        complete = any(message["role"] == "tool" for message in asked[1].messages)
        assert made.exists() == complete, size_bytes
        assert done.json["result"] == "Instead.", size_bytes


def test_two_thousand_turns_stay_valid_and_resume(provider: ProviderServer) -> None:
    Path("notes.txt").write_text("".join(f"line {n}\n" for n in range(3000)))

    def next_call(asked: Asked) -> Reply:
        done = len(asked.results)
        return call("read", {"path": "notes.txt", "offset": done + 1, "limit": 1}) if done < 2000 else text("All read.")

    provider.otherwise = next_call
    done = run_wolo("--json", *provider.flags, "-s", "long", "read it all", timeout=900)
    assert (done.exit_code, done.json["num_turns"]) == (0, 2001)
    assert run_wolo("--json", *provider.flags, "-s", "long", "again", timeout=60).json["num_turns"] == 1


def test_two_hundred_kills_lose_nothing_that_was_sent(provider: ProviderServer) -> None:
    chance = random.Random(7)
    provider.otherwise = lambda asked: (
        call("shell", {"command": f"echo {len(asked.messages)} >> marks"}) if len(asked.results) % 5 < 4 else text("ok")
    )
    for number in range(200):
        with start_wolo("-p", "--yolo", *provider.flags, "-s", "storm", f"prompt {number}") as process:
            try:
                process.wait(chance.uniform(0.1, 0.6))
            except subprocess.TimeoutExpired:
                process.kill()
            process.communicate(timeout=20)
    marks = Path("marks").read_text().split()
    assert len(marks) == len(set(marks)), "a call ran twice"
    sent = {message["content"] for asked in provider.requests for message in asked.messages if message["role"] == "user"}
    provider.script(text("still here"))
    assert run_wolo("-p", *provider.flags, "-s", "storm", "and now?").stdout == "still here\n"
    kept = {message["content"] for message in provider.requests[-1].messages if message["role"] == "user"}
    assert {prompt for prompt in sent if prompt.startswith("prompt ")} <= kept
