"""Esc ends what is under way, whatever that is, and what was not heard comes back."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pexpect
import pytest

from tests.end_to_end.test_compaction import fill
from tests.end_to_end.test_repl import leave, prompts, repl, shown, wait_for_prompt
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import Hold, call, delta, error, finish, sse, text, usage
from tests.fakes.screen import Terminal

SLEEP, CHECK = (f"sleep 753{digit}.{os.getpid()}" for digit in (1, 2))
"""Nobody else on this machine runs these."""
QUESTION = {"questions": [{"question": "Which one?", "options": ["red", "blue"]}]}


def silence(provider: ProviderServer) -> None:
    provider.script(sse(Hold()))


def stream(provider: ProviderServer) -> None:
    provider.script(sse(delta("Some words.\n"), Hold()))


def thought(provider: ProviderServer) -> None:
    provider.script(sse(delta(reasoning_content="Let me see"), Hold()))


def tool(provider: ProviderServer) -> None:
    provider.script(call("shell", {"command": SLEEP}))


def refused(provider: ProviderServer) -> None:
    provider.script(error(503, {"error": {"message": "too many"}}, {"retry-after": "55"}))


def approval(provider: ProviderServer) -> None:
    provider.script(call("shell", {"command": "git push"}))


def question(provider: ProviderServer) -> None:
    provider.script(call("ask", QUESTION))


STATES: dict[str, tuple[Callable[[ProviderServer], None], str, tuple[str, ...]]] = {
    "before the first byte": (silence, "waiting", ()),
    "stream": (stream, "writing", ()),
    "thinking": (thought, "thinking ·", ()),
    "tool": (tool, "shell slee", ("--mode", "auto")),
    "retry countdown": (refused, "Retrying in", ()),
    "verify": (silence, "verif", ("--verify", CHECK)),
}


def is_running(command: str) -> bool:
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    return command in listed.splitlines()


@pytest.mark.sweep(every=3)
@pytest.mark.parametrize("key", ["escape", "ctrl-c"])
@pytest.mark.parametrize("state", STATES)
def test_running_work_ends_and_unheard_text_comes_back(provider: ProviderServer, state: str, key: str) -> None:
    begin, sign, flags = STATES[state]
    if state == "verify":
        provider.script(call("write", {"path": "a", "content": "a\n"}))
    else:
        begin(provider)
    with repl(provider, *flags) as terminal:
        terminal.enter("go")
        terminal.wait_for(sign)
        terminal.enter("said into it")
        terminal.wait_for("↪ said into it")
        terminal.type("said after it")
        terminal.press("alt-enter")
        terminal.wait_for("⧗ said after it")
        terminal.press(key)
        terminal.wait_for("Interrupted.")
        terminal.wait_for("said into it")
        terminal.wait_until(lambda: [line.strip() for line in shown(terminal)[-3:-1]] == ["› said into it", "said after it"])
        terminal.wait_until(lambda: not is_running(SLEEP) and not is_running(CHECK), complaint="a child lives on")
        provider.script(text("Here again."))
        terminal.press("enter")
        terminal.wait_for("Here again.")
        wait_for_prompt(terminal)
        assert leave(terminal) == 0
    assert prompts(provider)[-1] == "said into it\nsaid after it"


@pytest.mark.sweep(every=2)
@pytest.mark.parametrize("key", ["escape", "ctrl-c"])
@pytest.mark.parametrize("begin", [approval, question])
def test_a_question_ends_too(provider: ProviderServer, begin: Callable[[ProviderServer], None], key: str) -> None:
    begin(provider)
    with repl(provider, "--mode", "ask") as terminal:
        if begin is question and key == "escape":
            provider.script(text("As you like."))
        terminal.enter("go")
        terminal.wait_for("› 3" if begin is approval else "Enter next")
        terminal.press(key)
        terminal.wait_for("As you like." if begin is question and key == "escape" else "Interrupted.")
        wait_for_prompt(terminal)
        provider.script(text("Here again."))
        terminal.enter("hello?")
        terminal.wait_for("Here again.")
        wait_for_prompt(terminal)
        assert leave(terminal) == 0


@pytest.mark.parametrize("key", ["escape", "ctrl-c"])
def test_text_behind_a_question_comes_back(provider: ProviderServer, key: str) -> None:
    hold = Hold()
    asking = call("shell", {"command": "git push"})
    provider.script(replace(asking, pieces=(hold, *asking.pieces)))
    with repl(provider, "--mode", "ask") as terminal:
        terminal.enter("go")
        terminal.wait_for("waiting")
        terminal.type("said after it")
        terminal.press("alt-enter")
        terminal.wait_for("⧗ said after it")
        hold.release()
        terminal.wait_for("› 3")
        terminal.press(key)
        terminal.wait_until(lambda: shown(terminal)[-2] == "› said after it")
        assert prompts(provider) == ["go"]


@pytest.mark.parametrize("begin", [approval, question])
def test_ctrl_c_at_a_question_only_stops(provider: ProviderServer, begin: Callable[[ProviderServer], None]) -> None:
    begin(provider)
    with repl(provider, "--mode", "ask") as terminal:
        terminal.enter("go")
        terminal.wait_for("› 3" if begin is approval else "Enter next")
        terminal.press("ctrl-c")
        terminal.wait_for("Interrupted.")
        terminal.press("ctrl-c")
        terminal.wait_for("Ctrl-C again quits")
        terminal.type("x")
        terminal.press("backspace", "ctrl-c")  # another key came between
        terminal.wait_for("Ctrl-C again quits")
        terminal.press("left")  # one that changes nothing
        terminal.wait_until(lambda: not terminal.shows("Ctrl-C again quits"))
        terminal.press("ctrl-c")
        terminal.wait_for("Ctrl-C again quits")
        terminal.press("ctrl-c")
        assert terminal.wait_for_exit() in (0, 130)  # the latter soon after the stop
        terminal.wait_for("wolo --resume session_")


def test_key_during_a_beginning_turn_stops_it(provider: ProviderServer) -> None:
    provider.otherwise = lambda asked: sse(Hold())
    with repl(provider) as terminal:
        for number in range(15):
            terminal.enter(f"turn {number}")
            time.sleep(number * 0.006)  # anywhere between Enter and the first request
            terminal.press("escape")
            wait_for_end(terminal, f"› turn {number}")


def wait_for_end(terminal: Terminal, shown_then: str) -> None:
    for _ in range(8):
        with suppress(AssertionError):
            return terminal.wait_until(lambda: terminal.is_idle and terminal.shows(shown_then), 4.0)
        assert terminal.child.isalive()
        terminal.press("escape")  # the one before came before the turn, and was not for it
    raise AssertionError(f"nothing ends it; the screen shows:\n{terminal.text}")


def test_a_compaction_is_stopped_and_changes_nothing(provider: ProviderServer) -> None:
    fill(provider)
    provider.summary = sse(ending="stall", done=False)
    with repl(provider, "-s", "long") as terminal:
        terminal.enter("/compact")
        terminal.wait_for("summing up")
        terminal.press("escape")
        terminal.wait_for("nothing was changed")
        wait_for_prompt(terminal)
        assert leave(terminal) == 0


# However it ends, the terminal is as it was


@contextmanager
def shell(provider: ProviderServer) -> Iterator[Terminal]:
    """A shell with job control, in which wolo is started as a person starts it."""
    arguments = " ".join(map(shlex.quote, provider.flags))
    Path("wolo.sh").write_text(f"{shlex.quote(sys.executable)} -m wolo {arguments}\n")
    Path("inputrc").write_text("set enable-bracketed-paste off\n")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the provider's threads do not matter: the child execs at once
        child = pexpect.spawn(
            "/bin/bash",
            ["--norc", "--noprofile", "-i"],
            env={**os.environ, "TERM": "xterm-256color", "PS1": "shell> ", "INPUTRC": str(Path("inputrc").resolve())},
            dimensions=(30, 100),
        )
    child.delaybeforesend = None
    terminal = Terminal(child, 30, 100)
    try:
        terminal.wait_for("shell>")
        terminal.enter("stty -a > before; . ./wolo.sh")
        wait_for_prompt(terminal)
        yield terminal
    finally:
        child.close(force=True)


def pid_of_wolo() -> int:
    listed = subprocess.run(
        ["pgrep", "-f", f"wolo.*{Path.cwd().parent.name}|-m wolo"], capture_output=True, text=True, check=False
    )
    mine = [int(pid) for pid in listed.stdout.split() if os.path.realpath(f"/proc/{pid}/cwd") == str(Path.cwd())]
    return max(mine)


def assert_as_it_was(terminal: Terminal) -> None:
    terminal.wait_until(lambda: shown(terminal)[-1].startswith("shell>"))
    terminal.enter("stty -a > after; echo compared")
    terminal.wait_until(lambda: shown(terminal)[-2] == "compared")
    assert Path("after").read_text() == Path("before").read_text()
    assert terminal.raw.rfind(b"\x1b[?2004l") > terminal.raw.rfind(b"\x1b[?2004h")
    assert terminal.raw.rfind(b"\x1b[?25h") > terminal.raw.rfind(b"\x1b[?25l")


@pytest.mark.sweep(every=2)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
@pytest.mark.parametrize("busy", [False, True])
def test_terminal_is_restored_after_a_signal(provider: ProviderServer, number: signal.Signals, busy: bool) -> None:
    provider.script(sse(delta("Some words.\n"), Hold()))
    with shell(provider) as terminal:
        if busy:
            terminal.enter("talk")
            terminal.wait_for("writing ·")
        os.kill(pid_of_wolo(), number)
        if number == signal.SIGINT and busy:
            wait_for_prompt(terminal)
            terminal.press("ctrl-d")
        assert_as_it_was(terminal)
        assert not busy or terminal.shows("wolo --resume session_") or number == signal.SIGHUP


def test_ctrl_z_suspends_and_fg_resumes(provider: ProviderServer) -> None:
    hold = Hold()
    provider.script(sse(delta("Some words.\n"), hold, delta("The end."), finish("stop", usage())), text("Next."))
    with shell(provider) as terminal:
        terminal.enter("talk")
        terminal.wait_for("writing ·")
        terminal.type("half a tho")
        terminal.wait_for("half a tho")
        terminal.press("ctrl-z")
        terminal.wait_for("Stopped")
        assert_as_it_was(terminal)
        terminal.enter("fg")
        terminal.wait_for("› half a tho")
        terminal.type("ught")
        hold.release()
        terminal.wait_for("The end.")
        terminal.wait_for("› half a thought")
        terminal.press("enter")
        terminal.wait_for("Next.")
        wait_for_prompt(terminal)
        terminal.press("ctrl-d")
        assert_as_it_was(terminal)
    assert prompts(provider)[-1] == "half a thought"


def test_interrupted_turn_leaves_one_line(provider: ProviderServer) -> None:
    provider.script(call("shell", {"command": "echo hi > a; sleep 100"}))
    with repl(provider, "--mode", "yolo", "--sandbox", "off", rows=24, columns=80) as terminal:
        terminal.enter("do it")
        terminal.wait_until(Path("a").exists)
        terminal.press("escape")
        terminal.wait_for("Interrupted. 1 file · 100 tokens in · 10 out")
        wait_for_prompt(terminal)
        assert terminal.times("Interrupted") == 1
        leave(terminal)
