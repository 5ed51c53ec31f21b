"""A gap in the network does not end a turn: wolo tries again until the provider answers, or until it is stopped."""

from __future__ import annotations

import json
import socket

import pytest

from tests.end_to_end.test_repl import leave, wait_for_prompt
from tests.fakes.command import run_wolo
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import text
from tests.fakes.screen import pty_wolo


def unused_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def flags(port: int) -> tuple[str, ...]:
    return ("--base-url", f"http://127.0.0.1:{port}/v1", "--api-key", "sk-0123456789abcdef", "-m", "test-model")


def test_turn_continues_when_the_server_returns() -> None:
    port = unused_port()
    with pty_wolo(*flags(port)) as terminal:
        wait_for_prompt(terminal)
        terminal.enter("hello")
        terminal.wait_for("Retrying in")
        with ProviderServer(text("Here again."), port=port) as server:
            terminal.wait_for("Here again.")
            wait_for_prompt(terminal)
            leave(terminal)
        server.check()


def test_escape_stops_the_waiting() -> None:
    port = unused_port()
    with pty_wolo(*flags(port)) as terminal:
        wait_for_prompt(terminal)
        terminal.enter("hello")
        terminal.wait_for("Retrying in")
        terminal.press("escape")
        wait_for_prompt(terminal)
        with ProviderServer(text("Second time."), port=port) as server:
            terminal.enter("again")
            terminal.wait_for("Second time.")
            wait_for_prompt(terminal)
            leave(terminal)
        server.check()


@pytest.mark.parametrize("host", ["127.0.0.1", "no-such-host.invalid"])
def test_headless_timeout_hint_names_the_asked_host(host: str) -> None:
    address = f"http://{host}:{unused_port()}/v1"
    ran = run_wolo("--json", "--set", "retry.total_s=1", "--base-url", address, "-m", "some-model", "-p", "go")
    error = json.loads(ran.stdout)["error"]
    assert (ran.exit_code, error["kind"]) == (75, "unavailable")
    assert f"custom/some-model was contacted at {address}" in error["hint"]
    assert "--base-url" in error["hint"]
    assert ran.stderr.count("Retrying in") >= 2


def test_provider_hint_names_its_setting() -> None:
    port = unused_port()
    settings = ("--set", f"providers.mine.base_url=http://127.0.0.1:{port}/v1", "--set", "retry.total_s=0")
    ran = run_wolo(*settings, "-m", "mine/some-model", "-p", "go")
    assert ran.exit_code == 75
    assert "mine/some-model was contacted at" in ran.stderr
    assert "providers.mine.base_url" in ran.stderr
