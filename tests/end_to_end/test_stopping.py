"""Ctrl-C, SIGTERM and a terminal that closes: wolo ends soon, leaves nothing running and the terminal as it was."""

from __future__ import annotations

import os
import shlex
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pexpect
import pytest

from tests.end_to_end.waiting import wait_for
from tests.fakes.command import run_wolo
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import Hold, Reply, call, delta, error, finish, sse, text, usage
from tests.fakes.screen import Terminal, pty_wolo

STUBBORN = "trap '' INT TERM HUP; sleep 300 & echo $! > child; echo waiting; wait; sleep 300"


WOLO = (sys.executable, "-m", "wolo")


@contextmanager
def in_a_terminal(shell: str, *steps: str) -> Iterator[Terminal]:
    """A shell runs these steps, and ends."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the provider's threads do not matter: the child execs at once
        environment = {**os.environ, "TERM": "xterm-256color"}
        child = pexpect.spawn(shell, ["-c", "; ".join(steps)], env=environment, dimensions=(24, 80))
    child.delaybeforesend = None
    try:
        yield Terminal(child, 24, 80)
    finally:
        child.close(force=True)


@contextmanager
def in_a_shell(*args: str) -> Iterator[Terminal]:
    """wolo as the job of a shell, which writes down the terminal's modes before and after, and the exit status."""
    steps = ("trap : INT TERM HUP", "stty -a > before", shlex.join((*WOLO, *args)), "echo $? > status", "stty -a > after")
    with in_a_terminal("/bin/sh", *steps) as terminal:
        yield terminal


def waiting_reply() -> Reply:
    return sse(delta("Some words.\n"), Hold(), finish("stop", usage()))


def failing_reply() -> Reply:
    return error(429, {"error": {"message": "slow down"}}, {"retry-after": "60"})


STATES: dict[str, tuple[Callable[[], Reply], tuple[str, ...], str]] = {
    "before the answer": (lambda: sse(Hold()), (), "waiting for the model"),
    "in a stream": (waiting_reply, (), "writing ·"),
    "in a call that is written": (lambda: sse(delta("Now.\n"), Hold()), (), "Now."),
    "in a tool": (
        lambda: call("shell", {"command": "sleep 300 & echo $! > child; echo started; wait"}),
        ("--yolo",),
        "started ·",
    ),
    "in a tool that ignores signals": (lambda: call("shell", {"command": STUBBORN}), ("--yolo",), "waiting ·"),
    "between tries": (failing_reply, (), "Retrying in"),
    "in an approval": (lambda: call("shell", {"command": "touch x"}), ("--mode", "ask"), "or type why not ›"),
    "just asked for an approval": (lambda: call("shell", {"command": "touch x"}), ("--mode", "ask"), "$ touch x"),
}


def hang_up(terminal: Terminal) -> int:
    """Closes the window; the wait status of what ran in it."""
    process = terminal.child.ptyproc
    process.fileobj.close()
    _, waited = os.waitpid(terminal.child.pid, 0)
    process.closed = process.terminated = terminal.child.terminated = True
    return waited


def is_alive(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


@pytest.mark.sweep(every=3)
@pytest.mark.parametrize("state", STATES)
def test_ctrl_c_ends_a_task_wherever_it_is(provider: ProviderServer, state: str) -> None:
    reply, args, shown = STATES[state]
    provider.script(reply())
    with in_a_shell(*provider.flags, *args, "go on") as terminal:
        terminal.wait_for(shown)
        terminal.press("ctrl-c")
        terminal.wait_for_exit()
    assert Path("status").read_text() == "130\n"
    assert Path("after").read_text() == Path("before").read_text()
    assert terminal.raw.rfind(b"\x1b[?25l") <= terminal.raw.rfind(b"\x1b[?25h"), "the cursor is hidden"
    if Path("child").exists():
        wait_for(lambda: not is_alive(int(Path("child").read_text())))
    listed = run_wolo("sessions", "list", "--json").json
    assert [info["live"] for info in listed] == [False]


@pytest.mark.parametrize(
    ("state", "number", "status"),
    [
        ("in a stream", signal.SIGTERM, 143),
        ("in a tool", signal.SIGTERM, 143),
        ("in a tool", signal.SIGHUP, 129),
        ("in an approval", signal.SIGTERM, 143),
        ("in an approval", signal.SIGINT, 130),
    ],
)
def test_a_signal_from_outside_ends_a_task(provider: ProviderServer, state: str, number: signal.Signals, status: int) -> None:
    reply, args, shown = STATES[state]
    provider.script(reply())
    with pty_wolo(*provider.flags, *args, "go on") as terminal:
        terminal.wait_for(shown)
        os.kill(terminal.child.pid, number)
        assert terminal.wait_for_exit() == status
    if Path("child").exists():
        wait_for(lambda: not is_alive(int(Path("child").read_text())))
    assert not terminal.shows("Traceback")


@pytest.mark.parametrize("state", ["in a stream", "in a tool", "in an approval"])
def test_a_terminal_that_closes_ends_a_task(provider: ProviderServer, state: str) -> None:
    reply, args, shown = STATES[state]
    provider.script(reply())
    with pty_wolo(*provider.flags, *args, "go on") as terminal:
        terminal.wait_for(shown)
        waited = hang_up(terminal)
    assert os.waitstatus_to_exitcode(waited) == 129
    if Path("child").exists():
        wait_for(lambda: not is_alive(int(Path("child").read_text())))


def test_second_ctrl_c_skips_the_cleanup(provider: ProviderServer) -> None:
    provider.script(call("shell", {"command": STUBBORN}))
    with in_a_shell(*provider.flags, "--yolo", "go on") as terminal:
        terminal.wait_for("waiting ·")
        terminal.press("ctrl-c", "ctrl-c")
        terminal.wait_for_exit()
    assert Path("status").read_text() == "130\n"
    assert Path("after").read_text() == Path("before").read_text()
    wait_for(lambda: not is_alive(int(Path("child").read_text())))


def test_second_ctrl_c_during_command_cleanup_ends_wolo(provider: ProviderServer) -> None:
    """What the first one ends answers with the second one, so that it comes in the midst of it."""
    command = "trap 'kill -INT $PPID' TERM; echo $$ > child; echo waiting; while :; do sleep 0.01; done"
    provider.script(call("shell", {"command": command}))
    with pty_wolo(*provider.flags, "--yolo", "go on") as terminal:
        terminal.wait_for("waiting ·")
        terminal.press("ctrl-c")
        assert terminal.wait_for_exit() == 130
    assert not terminal.shows("interrupted")
    wait_for(lambda: not is_alive(int(Path("child").read_text())))


def test_stopped_turn_can_be_continued(provider: ProviderServer) -> None:
    provider.script(call("shell", {"command": "sleep 300"}), text("Back again."))
    with pty_wolo(*provider.flags, "--yolo", "go on") as terminal:
        terminal.wait_for("shell sle")
        terminal.press("ctrl-c")
        assert terminal.wait_for_exit() == 130
    assert terminal.shows("⊘ shell sleep 300 · interrupted")
    with pty_wolo("-c", *provider.flags, "and now?") as terminal:
        terminal.wait_for("Back again.")
        assert terminal.wait_for_exit() == 0
    assert "interrupted" in provider.requests[1].results[0]


def test_a_task_can_be_suspended_and_goes_on(provider: ProviderServer) -> None:
    hold = Hold()
    provider.script(sse(delta("Some words.\n"), hold, delta("The end."), finish("stop", usage())))
    task = shlex.join((*WOLO, *provider.flags, "go on"))
    before, after = ("set -m", "stty -a > before"), ("echo status $?", "stty -a > after")
    with in_a_terminal("/bin/bash", *before, task, "stty -a > suspended", "echo on hold", "fg", *after) as terminal:
        terminal.wait_for("writing ·")
        terminal.press("ctrl-z")
        terminal.wait_for("on hold")
        hold.release()
        terminal.wait_for("status 0")
        terminal.wait_for_exit()
    assert terminal.shows("The end.")
    assert Path("before").read_text() == Path("suspended").read_text() == Path("after").read_text()


def test_background_task_leaves_the_terminal_alone(provider: ProviderServer) -> None:
    provider.script(text("All done."))
    task = shlex.join((*WOLO, *provider.flags, "go on"))
    with in_a_terminal("/bin/bash", "set -m", f"{task} & wait", "echo status $?") as terminal:
        terminal.wait_for("status 0")
    assert terminal.shows("All done.")
