"""Ctrl-O: the whole conversation on the alternate screen, with a search and a way out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from prompt_toolkit.layout import Window
from rich.text import Text

from tests.end_to_end.test_repl import leave, repl, wait_for_prompt
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import Hold, call, delta, finish, sse, text, usage
from tests.fakes.screen import Terminal
from wolo.frontends.terminal.dialogs.viewer import Viewer
from wolo.frontends.terminal.display.terminal_state import TerminalState

CTRL_O = "\x0f"
NUMBERS = "for i in $(seq 100); do echo number-$i; done"


def ask_for_numbers(provider: ProviderServer, terminal: Terminal) -> None:
    provider.script(call("shell", {"command": NUMBERS}), text("All are there."))
    terminal.enter("count")
    terminal.wait_for("All are there.")
    terminal.wait_until(lambda: terminal.is_idle and " s\n\n›" in terminal.text, complaint="no row is free above the prompt")


def view(terminal: Terminal) -> None:
    terminal.type(CTRL_O)
    terminal.wait_until(lambda: terminal.is_alternate and any(line.strip() for line in terminal.lines))


def visible(terminal: Terminal) -> str:
    return "\n".join(terminal.lines)


def wait_for_view(terminal: Terminal, wanted: str) -> None:
    terminal.wait_until(lambda: wanted in visible(terminal), complaint=f"{wanted!r} is not in view")


@pytest.mark.parametrize("key", ["q", "\x1b", CTRL_O, "\x03"])
def test_viewer_shows_whole_output_and_leaves_nothing(provider: ProviderServer, key: str) -> None:
    with repl(provider, "--mode", "yolo", "--sandbox", "off", rows=24, columns=80) as terminal:
        ask_for_numbers(provider, terminal)
        before = terminal.text
        view(terminal)
        wait_for_view(terminal, "● shell")
        wait_for_view(terminal, "number-1\n")
        wait_for_view(terminal, "q closes")
        terminal.press("page-down")
        wait_for_view(terminal, "number-40")
        terminal.type(key)
        terminal.wait_until(lambda: not terminal.is_alternate)
        wait_for_prompt(terminal)
        assert terminal.text == before
        leave(terminal)


def test_keys_behind_the_closing_one_are_kept(provider: ProviderServer) -> None:
    with repl(provider, "--mode", "yolo", "--sandbox", "off", rows=24, columns=80) as terminal:
        ask_for_numbers(provider, terminal)
        view(terminal)
        terminal.type("qtyped ahead")
        terminal.wait_for("› typed ahead")


def test_search_goes_from_hit_to_hit(provider: ProviderServer) -> None:
    with repl(provider, "--mode", "yolo", "--sandbox", "off", rows=24, columns=80) as terminal:
        ask_for_numbers(provider, terminal)
        view(terminal)
        terminal.enter("/NUMBER-7")
        wait_for_view(terminal, "Nothing found.")
        terminal.enter("/number-7")
        wait_for_view(terminal, "1 of 11 found")
        assert terminal.lines[0].strip() == "number-7"
        terminal.type("nn")
        wait_for_view(terminal, "3 of 11 found")
        assert "number-71" in terminal.lines[0]
        assert any(cell.reverse for cell in terminal.cells[0])
        terminal.type("N")
        wait_for_view(terminal, "2 of 11 found")
        terminal.type("gNq")
        terminal.wait_until(lambda: not terminal.is_alternate)
        leave(terminal)


def test_viewer_has_every_prompt_thought_and_call(provider: ProviderServer) -> None:
    content = "".join(f"value_{number} = {number}\n" for number in range(60))
    provider.script(
        sse(delta(reasoning_content="First this,\nthen that."), delta("Well."), finish("stop", usage())),
        call("write", {"path": "a.py", "content": content}),
        text("Written."),
    )
    with repl(provider, "--mode", "edit", rows=24, columns=80) as terminal:
        terminal.enter("think")
        terminal.wait_for("Well.")
        wait_for_prompt(terminal)
        view(terminal)
        wait_for_view(terminal, "then that.")
        terminal.type("q")
        wait_for_prompt(terminal)
        terminal.enter("write")
        terminal.wait_for("Written.")
        wait_for_prompt(terminal)
        assert not terminal.shows("value_59")
        view(terminal)
        wait_for_view(terminal, "● write a.py")
        terminal.type("G")
        wait_for_view(terminal, "60 + value_59 = 59")
        wait_for_view(terminal, "Written.")
        terminal.type("[")
        wait_for_view(terminal, "1 + value_0 = 0")
        terminal.type("g")
        wait_for_view(terminal, "› think")
        terminal.type("q")
        wait_for_prompt(terminal)
        leave(terminal)
    with repl(provider, "-c", rows=24, columns=80) as terminal:  # without what only the first process knew
        view(terminal)
        terminal.enter("/then that")
        wait_for_view(terminal, "1 of 1 found")
        terminal.type("q")
        wait_for_prompt(terminal)
        leave(terminal)


def test_viewer_has_no_key_that_the_guide_lacks() -> None:
    guide = (Path(__file__).parents[2] / "docs/guide/terminal.md").read_text(encoding="utf-8")
    table = guide.partition("## The viewer")[2].partition("## ")[0]
    viewer = Viewer([Text("a row")], TerminalState(), at=0, stops=())
    bound = {str(getattr(key, "value", key)) for binding in viewer.make_keys(Window()).bindings for key in binding.keys}
    letters = {key for key in bound if len(key) == 1}
    assert letters == {*re.findall(r"`(\S)`", table), " "}
    named = {"up", "down", "pageup", "pagedown", "home", "end", "escape", "c-m", "c-c", "c-o", "c-u", "c-d"}
    assert bound - letters == named | {"c-p", "c-n", "c-b", "c-f"}  # as in lists


def test_turn_and_its_question_wait_for_the_viewer(provider: ProviderServer) -> None:
    hold = Hold()
    make = {"index": 0, "id": "c1", "type": "function", "function": {"name": "shell", "arguments": '{"command": "touch made"}'}}
    asks = sse(delta("I make it."), hold, delta(tool_calls=[make]), finish("tool_calls", usage()))
    provider.script(text("Earlier."), asks, text("Made."))
    with repl(provider, "--mode", "ask", "--sandbox", "off", rows=24, columns=80) as terminal:
        terminal.say("first", "Earlier.")
        terminal.enter("make it")
        terminal.wait_for("I make it.")
        view(terminal)
        hold.release()
        wait_for_view(terminal, "wolo asks you something · q closes")
        terminal.type("1y")
        terminal.type("q")
        terminal.wait_for("Run this command?")
        terminal.wait_for("1 Yes")
        assert not Path("made").exists()
        terminal.type("1")
        terminal.wait_for("Made.")
        wait_for_prompt(terminal)
        leave(terminal)


def test_resized_viewer_stays_where_it_was(provider: ProviderServer) -> None:
    with repl(provider, "--mode", "yolo", "--sandbox", "off", rows=24, columns=80) as terminal:
        ask_for_numbers(provider, terminal)
        view(terminal)
        terminal.enter("/number-50")
        wait_for_view(terminal, "1 of 1 found")
        terminal.resize(5, 20)
        terminal.wait_until(lambda: "number-50" in terminal.lines[0] and "number-53" in terminal.lines[3])
        terminal.resize(24, 80)
        terminal.type("q")
        terminal.wait_until(lambda: not terminal.is_alternate)
        leave(terminal)


def test_terminated_viewer_gives_the_screen_back(provider: ProviderServer) -> None:
    with repl(provider, "--mode", "yolo", "--sandbox", "off", rows=24, columns=80) as terminal:
        ask_for_numbers(provider, terminal)
        view(terminal)
        terminal.child.kill(15)
        assert terminal.wait_for_exit() == 143
        assert not terminal.is_alternate


def test_viewer_without_a_conversation_says_so(provider: ProviderServer) -> None:
    with repl(provider) as terminal:
        terminal.type(CTRL_O)
        terminal.wait_for("Nothing to expand.")
        leave(terminal)
