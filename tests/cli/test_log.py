"""WOLO_LOG chooses what is logged, to stderr and to a private file."""

from __future__ import annotations

from pathlib import Path

from tests.fakes.command import run_wolo
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import call, text
from tests.fakes.screen import pty_wolo
from wolo.places import find_places

SECRET = "plain-words-of-mine"


def log_file() -> Path:
    return find_places().state / "wolo.log"


def test_debug_goes_to_stderr_and_file(provider: ProviderServer) -> None:
    provider.script(call("read", {"path": f"{SECRET}.txt"}), text("done"))
    done = run_wolo("-p", *provider.flags, "hi", env={"WOLO_LOG": "debug", "DEPLOY_TOKEN": SECRET})
    assert done.exit_code == 0, done.stderr
    for log in (done.stderr, log_file().read_text()):
        assert "wolo.models.client DEBUG request 1 to" in log
        assert "wolo.agent.tool_calls DEBUG read: allow" in log
        assert SECRET not in log
    assert done.stdout == "done\n"
    assert log_file().stat().st_mode & 0o777 == 0o600


def test_without_a_level_nothing_is_logged(provider: ProviderServer) -> None:
    provider.script(text("done"))
    done = run_wolo("-p", *provider.flags, "hi")
    assert "wolo.models" not in done.stderr
    assert not log_file().exists()


def test_error_level_leaves_out_requests(provider: ProviderServer) -> None:
    provider.script(text("done"))
    done = run_wolo("-p", *provider.flags, "hi", env={"WOLO_LOG": "ERROR"})
    assert done.exit_code == 0
    assert "wolo.models" not in done.stderr


def test_unknown_level_is_refused() -> None:
    done = run_wolo("-p", "hi", env={"WOLO_LOG": "loud"})
    assert done.exit_code == 2
    assert "WOLO_LOG=loud is no level" in done.stderr
    assert "Levels: debug, info, warning, error." in done.stderr


def test_log_stays_off_the_screen(provider: ProviderServer) -> None:
    provider.script(text("done"))
    with pty_wolo(*provider.flags, "hi", env={"WOLO_LOG": "debug"}) as terminal:
        assert terminal.wait_for_exit() == 0
        assert "DEBUG" not in terminal.text
    assert "DEBUG" in log_file().read_text()
