"""Sessions in the background: started, listed, followed, stopped, and after a server that was killed."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.command import run_wolo, start_wolo
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import Hold, call, text
from tests.fakes.screen import pty_wolo
from tests.frontends.server.running_server import running
from wolo.frontends import background_sessions
from wolo.frontends.background_sessions import BackgroundSession, find_background, list_sessions, write_session
from wolo.frontends.running_servers import running_servers
from wolo.places import find_places

WATCHED_COMMAND = "while [ ! -e go ]; do sleep 0.1; done; echo ERROR one; sleep 60"
WATCHED = call("shell", {"command": WATCHED_COMMAND, "background": True})
WATCH = call("jobs", {"action": "watch", "id": 1, "pattern": "ERROR"})
ASK = call("write", {"path": "made.txt", "content": "made\n"})


@pytest.fixture(autouse=True)
def ended() -> Iterator[None]:
    """No server outlives its test."""
    yield
    for each in running_servers(find_places().data):
        with suppress(ProcessLookupError):
            os.kill(each.pid, signal.SIGKILL)


def rows() -> list[dict[str, Any]]:
    done = run_wolo("ps", "--json")
    assert done.exit_code == 0, done.stderr
    return list(json.loads(done.stdout))


def wait_for(state: str) -> dict[str, Any]:
    return until(lambda: next((each for each in rows() if each["state"] == state), None))


def until(look: Callable[[], Any]) -> Any:
    end = time.monotonic() + 30
    while not (value := look()):
        assert time.monotonic() < end, rows()
        time.sleep(0.1)
    return value


def begin(provider: ProviderServer, *args: str) -> str:
    done = run_wolo("--bg", "create it", *provider.flags, *args)
    assert done.exit_code == 0, done.stderr
    return done.stdout.strip()


def test_session_runs_waits_and_is_answered(provider: ProviderServer) -> None:
    provider.script(ASK, text("Done."), text("Again."))
    id = begin(provider, "--mode", "ask")
    row = wait_for("waiting")
    assert (row["id"], row["title"], row["cwd"]) == (id, "create it", str(Path.cwd()))
    assert "made.txt" in row["waits_for"]
    assert not Path("made.txt").exists()
    attached = run_wolo("attach", id[-8:], stdin="y\nonce more\n")
    assert attached.exit_code == 0, attached.stderr
    assert "Again." in attached.stdout
    assert Path("made.txt").read_text() == "made\n"
    assert wait_for("idle")["id"] == id
    assert "Done." in run_wolo("logs", id).stdout
    assert len(running_servers(find_places().data)) == 1


def test_yolo_passes_by_a_server_without_it(provider: ProviderServer) -> None:
    with running(provider, "--end-idle", "60"):
        provider.script(ASK, text("Done."))
        begin(provider, "--yolo")
        wait_for("idle")
    assert Path("made.txt").read_text() == "made\n"


def test_stop_interrupts_the_turn(provider: ProviderServer) -> None:
    hold = Hold()
    provider.script(text("Slow.").then(hold))
    id = begin(provider)
    hold.wait_until_reached()
    assert run_wolo("stop", id).stdout == f"Stopped {id}.\n"
    hold.release()
    wait_for("idle")
    assert run_wolo("stop", id).stdout == f"{id} is not working.\n"


def test_session_goes_on_after_killed_server(provider: ProviderServer) -> None:
    hold = Hold()
    provider.script(text("Slow.").then(hold), text("Here again."))
    id = begin(provider)
    hold.wait_until_reached()
    [server] = running_servers(find_places().data)
    os.kill(server.pid, signal.SIGKILL)
    hold.release()
    until(lambda: not running_servers(find_places().data))
    assert wait_for("interrupted")["id"] == id
    attached = run_wolo("attach", id, "--", stdin="go on\n", env={"WOLO_API_KEY": "sk-test"})
    assert "ended during a turn" in attached.stderr
    assert "Here again." in attached.stdout, attached.stderr


def test_idle_server_ends_by_itself(provider: ProviderServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background_sessions, "END_IDLE_S", 1)
    server = background_sessions.background_server()
    assert background_sessions.background_server() == server
    until(lambda: not running_servers(find_places().data))


@pytest.mark.parametrize(
    ("args", "complaint"),
    [
        (("--bg",), "No prompt was given"),
        (("--bg", "--json", "go"), "--bg does not go with --output-format"),
        (("attach", "nobody"), "There is no session 'nobody' in the background"),
        (("stop", "nobody"), "There is no session 'nobody' in the background"),
        (("logs", "nobody", "-f"), "There is no session 'nobody' in the background"),
    ],
)
def test_bad_command_starts_nothing(args: tuple[str, ...], complaint: str) -> None:
    done = run_wolo(*args)
    assert done.exit_code in (2, 3)
    assert complaint in done.stderr + done.stdout
    assert not running_servers(find_places().data)


def test_two_hundred_sessions_are_listed_quickly() -> None:
    data = find_places().data
    for number in range(200):
        write_session(data, BackgroundSession(id=f"session_{number:04}", title="t", cwd="/", port=1, state="idle"))
    began = time.process_time()
    assert len(list_sessions(data)) == 200
    assert time.process_time() - began < 0.05
    assert find_background(data, "0042").id == "session_0042"


def test_one_screen_lists_and_answers_all_sessions(provider: ProviderServer) -> None:
    provider.script(text("First done."))
    begin(provider)
    wait_for("idle")
    provider.forget_prefix()
    provider.script(ASK, text("Second done."))
    run_wolo("--bg", "write it", "--mode", "ask", *provider.flags)
    wait_for("waiting")
    with pty_wolo("attach") as terminal:
        terminal.wait_for("Number to follow and answer one")
        assert terminal.text.index("1. waiting") < terminal.text.index("2. idle")
        assert "waits for: write" in terminal.text
        terminal.enter("7")
        terminal.wait_for("There is no 7 in this list.")
        terminal.enter("1")
        terminal.wait_for("Approve?")
        terminal.enter("y")
        terminal.wait_for("Second done.")
        until(lambda: all(each["state"] == "idle" for each in rows()))
        terminal.enter("/quit")
        terminal.wait_for("1. idle")
        terminal.press("ctrl-c")
        terminal.wait_for_exit()
    assert Path("made.txt").read_text() == "made\n"


def test_kills_while_handing_over_repeat_nothing(provider: ProviderServer) -> None:
    """Each prompt was either never taken, or is in exactly one session; its answer comes at most once."""
    provider.otherwise = text("Done.")
    for number in range(6):
        provider.forget_prefix()
        with start_wolo("--bg", f"task {number}", *provider.flags) as started:
            with suppress(AssertionError):
                provider.wait_for_requests(number + 1, timeout_s=0.15 * number)
            started.kill()
    until(lambda: all(each["state"] == "idle" for each in rows()))
    prompts = [each.messages[-1]["content"] for each in provider.requests]
    asked = [next(text for text in (str(prompt),) if "task" in text) for prompt in prompts]
    assert len(asked) == len({*asked})
    assert len(rows()) >= len(asked)


def test_session_without_a_turn_is_not_listed(provider: ProviderServer) -> None:
    """As one whose starter was killed before it sent the prompt."""
    refused = run_wolo("--bg", "/cost", *provider.flags)
    assert refused.exit_code == 2
    assert "/cost works in an interactive session only" in refused.stderr
    assert rows() == []


def test_watched_line_wakes_background_session(provider: ProviderServer) -> None:
    provider.script(WATCHED, WATCH, text("I watch."), text("I look at it."))
    session = begin(provider, "--mode", "auto")
    wait_for("idle")
    Path("go").touch()
    provider.wait_for_requests(4)
    wait_for("idle")
    assert "I look at it." in run_wolo("logs", session).stdout


def test_line_wakes_once_before_two_terminals(provider: ProviderServer) -> None:
    provider.script(WATCHED, WATCH, text("I watch."))
    session = begin(provider, "--mode", "auto")
    wait_for("idle")
    with pty_wolo("attach", session) as one, pty_wolo("attach", session) as other:
        for terminal in (one, other):
            terminal.wait_for("I watch.")
            assert "job 1 (while" in terminal.text.split("* jobs")[0]
            assert "exit code" not in terminal.text
        provider.script(text("I look at it."))
        Path("go").touch()
        for terminal in (one, other):
            terminal.wait_for("I look at it.")
            terminal.enter("/quit")
            terminal.wait_for_exit()
    wait_for("idle")
    assert len(provider.requests) == 4


def test_line_during_an_approval_waits_for_its_turn(provider: ProviderServer) -> None:
    Path("wait.sh").write_text(WATCHED_COMMAND)
    script = call("shell", {"command": "sh wait.sh", "background": True})
    provider.script(script, WATCH, ASK, text("Written."))
    session = begin(provider, "--mode", "ask", "--allow", "shell:sh wait.sh")
    wait_for("waiting")
    Path("go").touch()
    time.sleep(1.0)
    assert len(provider.requests) == 3
    attached = run_wolo("attach", session, stdin="y\n")
    assert attached.exit_code == 0, attached.stderr
    wait_for("idle")
    said = [json.dumps(each.json["messages"]) for each in provider.requests]
    assert len(said) == 4
    assert "ERROR one" not in said[2]
    assert "ERROR one" in said[3]
    assert Path("made.txt").exists()
