"""Without a cursor that moves: one reads and writes in turns, and every change is a line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.end_to_end.test_repl import prompts
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import Hold, call, delta, finish, sse, text, usage
from tests.fakes.screen import Terminal, pty_wolo
from wolo.places import find_places


@contextmanager
def plain(
    provider: ProviderServer, *args: str, env: Mapping[str, str] | None = None, rows: int = 24, columns: int = 80
) -> Iterator[Terminal]:
    with pty_wolo(*provider.flags, *args, env=env, rows=rows, columns=columns) as terminal:
        wait_for_turn(terminal)
        yield terminal


def wait_for_turn(terminal: Terminal) -> None:
    terminal.wait_until(lambda: terminal.text.rstrip().endswith("\n>"), complaint="it was not the person's turn")


@pytest.fixture(params=["--plain", "ui.plain", "TERM=dumb"])
def way(request: pytest.FixtureRequest) -> tuple[tuple[str, ...], dict[str, str]]:
    match request.param:
        case "--plain":
            return ("--plain",), {}
        case "ui.plain":
            settings = find_places().config / "config.toml"
            settings.parent.mkdir(parents=True)
            settings.write_text("[ui]\nplain = true\n")
            return (), {}
        case _:
            return (), {"TERM": "dumb"}


def test_one_reads_and_writes_in_turns(provider: ProviderServer, way: tuple[tuple[str, ...], dict[str, str]]) -> None:
    provider.script(
        call("shell", {"command": "echo made"}), text("**Done** it.\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"), text("Again.")
    )
    flags, env = way
    with plain(provider, "--allow", "shell:echo *", *flags, env=env) as terminal:
        terminal.enter("do it")
        terminal.wait_for("**Done** it.")
        wait_for_turn(terminal)
        terminal.enter("again")
        terminal.wait_for("Again.")
        wait_for_turn(terminal)
        terminal.press("ctrl-d")
        assert terminal.wait_for_exit() == 0
    assert re.findall(rb"\x1b[^=>]", bytes(terminal.raw)) == []
    shown = terminal.text
    for change in ("shell echo made", "| 1 | 2 |", "wolo --resume"):
        assert change in shown
    assert shown.count("shell echo made") == 1
    assert prompts(provider)[-1] == "again"


def test_paste_and_continued_line_are_one_message_each(provider: ProviderServer) -> None:
    provider.script(text("One."), text("Two."))
    with plain(provider, "--plain") as terminal:
        terminal.type("pasted\r漢字\rlines\r")
        terminal.wait_for("One.")
        wait_for_turn(terminal)
        terminal.enter("it goes on\\")
        terminal.wait_until(lambda: terminal.text.rstrip().endswith("it goes on\\\n>"))
        terminal.enter("here")
        terminal.wait_for("Two.")
        wait_for_turn(terminal)
    assert prompts(provider) == ["pasted\n漢字\nlines", "it goes on\nhere"]


def test_ctrl_c_drops_stops_and_leaves_on_repeat(provider: ProviderServer) -> None:
    provider.script(sse(delta("Some words.\n"), Hold()))
    with plain(provider, "--plain") as terminal:
        terminal.enter("talk")
        terminal.wait_for("Some words.")
        terminal.press("ctrl-c")
        terminal.wait_for("Interrupted.")
        wait_for_turn(terminal)
        terminal.type("half a th")
        terminal.press("ctrl-c")
        terminal.wait_for("Ctrl-C again quits")
        terminal.press("ctrl-c")
        terminal.wait_for_exit()
    assert len(provider.requests) == 1


def test_an_approval_is_a_line_that_is_answered(provider: ProviderServer) -> None:
    provider.script(call("shell", {"command": "echo made > file"}), text("Done."))
    with plain(provider, "--plain", "--mode", "ask") as terminal:
        terminal.enter("do it")
        terminal.wait_for("or type why not")
        terminal.wait_for("$ echo made > file")
        terminal.enter("not now")
        terminal.wait_for("Done.")
        wait_for_turn(terminal)
    assert "not now" in provider.requests[1].results[0]
    assert not Path("file").exists()


def test_commands_work_as_anywhere(provider: ProviderServer) -> None:
    with plain(provider, "--plain") as terminal:
        terminal.enter("/help")
        terminal.wait_for("/model")
        wait_for_turn(terminal)
        terminal.enter("/nonsense")
        terminal.wait_for("nonsense")
        wait_for_turn(terminal)
        terminal.enter("/exit")
        assert terminal.wait_for_exit() == 0


def test_slow_command_is_reported_once_quick_never(provider: ProviderServer) -> None:
    hold = Hold()
    provider.script(sse(delta("Seventeen."), hold, finish("stop")))
    with plain(provider, "--plain") as terminal:
        terminal.enter("/help exit")
        terminal.wait_for("the session is saved")
        wait_for_turn(terminal)
        terminal.enter("/btw how many?")
        terminal.wait_for("… asking a side question")
        hold.release()
        terminal.wait_for("Seventeen.")
        wait_for_turn(terminal)
        assert [line for line in terminal.text.split("\n") if line.startswith("…")] == ["… asking a side question"]
        terminal.enter("/exit")
        assert terminal.wait_for_exit() == 0


def test_one_task_is_plain_too(provider: ProviderServer) -> None:
    provider.script(call("shell", {"command": "echo made"}), text("Done."))
    with pty_wolo(*provider.flags, "--plain", "--allow", "shell:echo *", "do it") as terminal:
        assert terminal.wait_for_exit() == 0
    assert b"\x1b" not in terminal.raw
    assert terminal.shows("done: shell echo made, exit 0")


SIGNS = set("●✗⊘☐▶☑☒›·−✓│╭╰⧗↪")


def test_plain_output_has_no_signs(provider: ProviderServer) -> None:
    todo = [{"text": "look", "status": "completed"}, {"text": "mend it", "status": "in_progress"}]
    provider.script(
        call("shell", {"command": "echo made"}),
        call("shell", {"command": "exit 3"}),
        call("write", {"path": "a.txt", "content": "one\n"}),
        call("todo", {"items": todo}),
        text("Done.", reasoning="Hm."),
    )
    with plain(provider, "--plain", "--mode", "ask", "--allow", "shell:*", "--sandbox", "off") as terminal:
        terminal.enter("do it")
        terminal.wait_for("or type why not")
        terminal.enter("y")
        terminal.wait_for("Done.")
        wait_for_turn(terminal)
        for line, wanted in {"/status": "settings ", "/theme": "Change it with", "/help": "/help NAME explains"}.items():
            terminal.enter(line)
            terminal.wait_for(wanted)
            wait_for_turn(terminal)
        terminal.enter("/exit")
        assert terminal.wait_for_exit() == 0
    assert terminal.shows("failed: shell exit 3")
    assert terminal.shows("doing: mend it")
    with plain(provider, "--plain", "-c") as terminal:  # with what was said before
        terminal.enter("/exit")
        assert terminal.wait_for_exit() == 0
        assert not set(terminal.text) & SIGNS
    assert not SIGNS & set(terminal.text)


def test_slow_step_is_announced_once(provider: ProviderServer) -> None:
    hold = Hold()
    slow = call("shell", {"command": "while [ ! -e on ]; do sleep 0.05; done"})
    provider.script(sse(hold, delta("Some words.\n"), finish("stop", usage())), slow, text("Done."))
    with plain(provider, "--plain", "--mode", "yolo", "--sandbox", "off") as terminal:
        terminal.enter("talk")
        terminal.wait_for("… waiting for the model")
        hold.release()
        terminal.wait_for("Some words.")
        wait_for_turn(terminal)
        terminal.enter("work")
        terminal.wait_for("… shell while")
        Path("on").touch()
        terminal.wait_for("Done.")
        wait_for_turn(terminal)
        assert sum(line.startswith("… shell") for line in terminal.text.split("\n")) == 1


def test_early_typing_is_read_at_its_turn(provider: ProviderServer) -> None:
    hold = Hold()
    provider.script(sse(delta("Some words.\n"), hold, finish("stop", usage())), text("Two."))
    with plain(provider, "--plain") as terminal:
        terminal.enter("one")
        terminal.wait_for("Some words.")
        terminal.type("tw")
        hold.release()
        wait_for_turn(terminal)
        terminal.enter("o")
        terminal.wait_for("Two.")
    assert prompts(provider) == ["one", "two"]
