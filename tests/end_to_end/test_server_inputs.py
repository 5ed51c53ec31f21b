"""Values that an MCP server of a project asks for: typed once, hidden, and written nowhere but among the logins."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.fakes.command import run_wolo
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import call, text
from tests.fakes.screen import pty_wolo
from wolo.config import consents
from wolo.config.mcp_logins import ServerInputs
from wolo.places import find_places

FAKE = Path(__file__).parents[1] / "fakes" / "mcp_server.py"
SECRET = "correct-horse-battery-staple"
INPUTS = [
    {"type": "promptString", "id": "token", "description": "Token of the tracker", "password": True},
    {"type": "pickString", "id": "zone", "description": "Zone", "options": ["eu", "us"], "default": "eu"},
]


@pytest.fixture
def tracker() -> Path:
    environment = {"TOKEN": "${input:token}", "ZONE": "${input:zone}-1"}
    server = {"command": sys.executable, "args": [str(FAKE)], "env": environment}
    file = Path(".vscode/mcp.json")
    file.parent.mkdir()
    file.write_text(json.dumps({"inputs": INPUTS, "servers": {"tracker": server}}))
    consents.save_trust(find_places(), Path.cwd(), "trusted")
    return file


def test_hidden_input_reaches_the_server_only(tracker: Path, provider: ProviderServer, tmp_path: Path) -> None:
    before = tracker.read_text()
    with pty_wolo("mcp", "allow", "tracker") as terminal:
        terminal.wait_for("Allow this server to run")
        terminal.enter("y")
        terminal.wait_for("tracker: Token of the tracker (input is hidden)")
        terminal.enter(SECRET)
        terminal.wait_for("tracker: Zone (eu, us)")
        terminal.enter("")
        assert terminal.wait_for_exit() == 0
        assert SECRET.encode() not in terminal.raw
    assert "needs no consent" in run_wolo("mcp", "allow", "tracker").stdout
    provider.script(call("mcp__tracker__environment", {}), text("Done."))
    done = run_wolo("-p", *provider.flags, "--yolo", "go")
    assert (done.exit_code, done.stderr) == (0, "")
    result = provider.requests[1].results[0]
    assert "ZONE=eu-1" in result
    assert "TOKEN=" in result
    assert SECRET not in result
    saved = find_places().config / "mcp_logins.json"
    others = [path for path in tmp_path.rglob("*") if path.is_file() and path != saved]
    assert not [path for path in others if SECRET in path.read_text("latin-1")]
    assert (SECRET in saved.read_text(), saved.stat().st_mode & 0o777, tracker.read_text()) == (True, 0o600, before)


@pytest.mark.parametrize("is_repl", [False, True])
def test_session_asks_for_inputs_after_consent(tracker: Path, provider: ProviderServer, is_repl: bool) -> None:
    provider.script(text("Done."))
    with pty_wolo(*([] if is_repl else ["go"]), *provider.flags) as terminal:
        terminal.wait_for("This project configures an MCP server: tracker")
        terminal.wait_for("Yes, start it" if is_repl else "Start it?")
        terminal.type("y") if is_repl else terminal.enter("y")
        terminal.wait_for("tracker: Token of the tracker (input is hidden)")
        terminal.enter(SECRET)
        terminal.wait_for("tracker: Zone (eu, us)")
        terminal.enter("us")
        if is_repl:
            terminal.wait_for_prompt()
            terminal.enter("go")
        terminal.wait_for("Done.")
        assert SECRET.encode() not in terminal.raw
    saved = ServerInputs(find_places(), Path.cwd())
    assert (saved.find("token"), saved.find("zone")) == (SECRET, "us")


def test_missing_input_is_named_without_a_terminal(tracker: Path, provider: ProviderServer) -> None:
    allowed = run_wolo("mcp", "allow", "tracker")
    assert (allowed.exit_code, "tracker needs your input: token (Token of the tracker), zone (Zone)." in allowed.stderr) == (
        2,
        True,
    )
    provider.script(text("Done."))
    done = run_wolo("-p", *provider.flags, "go")
    assert (done.exit_code, done.stdout) == (0, "Done.\n")
    assert "env.TOKEN needs your input token: `wolo mcp allow NAME` asks for it" in done.stderr


def test_value_of_another_project_is_not_used(tracker: Path) -> None:
    ServerInputs(find_places(), Path("/elsewhere")).save("token", SECRET)
    assert "token (Token of the tracker)" in run_wolo("mcp", "allow", "tracker").stderr


def test_input_that_nobody_describes_is_refused(tracker: Path) -> None:
    tracker.write_text(tracker.read_text().replace('"promptString"', '"command"'))
    listed = run_wolo("mcp", "list")
    assert "it asks for input (token)" in listed.stderr
