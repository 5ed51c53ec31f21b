"""However a conversation ends, what was sent and not heard yet is neither lost nor sent any more."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.end_to_end.test_repl import prompts, repl
from tests.end_to_end.test_stopping import hang_up
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import Hold, delta, finish, sse, usage
from tests.fakes.screen import Terminal, pty_wolo


def terminated(terminal: Terminal, hold: Hold) -> int:
    os.kill(terminal.child.pid, signal.SIGTERM)
    return terminal.wait_for_exit()


def hung_up_twice(terminal: Terminal, hold: Hold) -> int:
    """A shell tells its children, and the kernel everybody in front."""
    for _ in range(2):
        os.kill(terminal.child.pid, signal.SIGHUP)
    return terminal.wait_for_exit()


def window_closed(terminal: Terminal, hold: Hold) -> int:
    return os.waitstatus_to_exitcode(hang_up(terminal))


@pytest.mark.sweep(every=3)
@pytest.mark.parametrize(("ends", "status"), [(terminated, 143), (hung_up_twice, 129), (window_closed, 129)])
def test_queued_text_is_kept_for_next_time(
    provider: ProviderServer, ends: Callable[[Terminal, Hold], int], status: int, isolated: Path
) -> None:
    hold = Hold()
    provider.script(sse(delta("Some words.\n"), hold, finish("stop", usage())))
    with repl(provider) as terminal:
        terminal.enter("talk")
        terminal.wait_for("Some words.")
        terminal.type("for later")
        terminal.press("alt-enter")
        terminal.wait_for("⧗ for later")
        terminal.type("half a thought")
        terminal.wait_for("› half a thought")
        assert ends(terminal, hold) == status
    assert prompts(provider) == ["talk"]
    assert not list(isolated.rglob("crash-*"))
    with pty_wolo(*provider.flags) as terminal:
        terminal.wait_for("› for later")
        terminal.wait_for("half a thought")


def test_queued_text_survives_exit_command(provider: ProviderServer) -> None:
    provider.script(sse(delta("Some words.\n"), Hold(), finish("stop", usage())))
    with repl(provider) as terminal:
        terminal.enter("talk")
        terminal.wait_for("Some words.")
        terminal.type("for later")
        terminal.press("alt-enter")
        terminal.wait_for("⧗ for later")
        terminal.enter("/exit")
        assert terminal.wait_for_exit() == 0
    with pty_wolo(*provider.flags) as terminal:
        terminal.wait_for("› for later")
    assert prompts(provider) == ["talk"]


def test_window_closed_at_the_prompt_is_no_failure(provider: ProviderServer, isolated: Path) -> None:
    with repl(provider) as terminal:
        assert window_closed(terminal, Hold()) == 129
    assert not list(isolated.rglob("crash-*"))


def test_window_closed_without_signal_ends_wolo(provider: ProviderServer) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as under nohup: children inherit it
    try:
        with repl(provider) as terminal:
            assert window_closed(terminal, Hold()) == 129
    finally:
        signal.signal(signal.SIGHUP, before)
