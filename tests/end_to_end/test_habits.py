"""Keys and commands that fingers know from other agents: each does the same here or says what does, and none is a paid prompt."""

from __future__ import annotations

import re
from functools import partial

import pytest

from tests.end_to_end.test_repl import leave, repl, wait_for_prompt
from tests.fakes.provider_server import ProviderServer
from tests.fakes.screen import Terminal

KEYS = {
    "?": "send; while wolo works",
    "\x1bp": "type to filter",
    "\x1bOQ": "type to filter",
    "\x18m": "type to filter",
    "\x18t": "high-contrast",
    "\x18s": "session  ",
    "\x18y": "There is no answer to copy yet.",
    "\x18l": "There is no other session yet.",
    "\x18n": "› /new",
    "\x18u": "No turn to undo.",
    "\x14": "No tasks.",
    "\x1bt": "thinking",
    "\x12": "search history",
    "\x0f": "Nothing to expand.",
    "\x1b[Z": "custom/test-model · edit",
    "\x11\x1b[Z": "custom/test-model · edit",
    "\x1bm": "custom/test-model · edit",
    "\x16": "lipboard",
    "\x1b\x1b": "There is no prompt yet.",
    "/": "ask a side question",
    "a\\\rb": "  b",
    "a\nb": "  b",
    "a\x1b\rb": "  b",
    "a\x1b[13;2ub": "  b",
    "a\x1b[27;2;13~b": "  b",
    "!echo shel''led\r": "shelled",
    "help\r": "/help NAME explains a command.",
    "clear\r": "› /clear",
}
COMMANDS = """
    help model models new clear compact resume continue cost usage stats status config settings permissions approvals memory mcp
    agents diff undo rewind copy vim theme keys keybindings statusline terminal-setup rename todos tasks jobs bashes hooks context
    add-dir plan output-style share voice ide
"""


def is_answered(terminal: Terminal) -> bool:
    """Something was printed below the command, or a list is open."""
    if "Esc cancel" in "\n".join(terminal.lines):
        return True
    printed = terminal.text.partition("/help shows the rest.")[2].partition("›")[2].partition("\n")[2]
    return terminal.is_idle and bool(printed.rpartition("›")[0].strip())


@pytest.mark.sweep(every=4)
@pytest.mark.parametrize("keys", KEYS)
def test_key_of_other_agents_has_its_effect(provider: ProviderServer, keys: str) -> None:
    with repl(provider, "--sandbox", "off", "--mode", "ask", rows=40, columns=100) as terminal:
        terminal.type(keys)
        terminal.wait_for(KEYS[keys])
        assert not provider.requests
        terminal.child.kill(15)
        terminal.wait_for_exit()


@pytest.mark.sweep(every=4)
@pytest.mark.parametrize("name", COMMANDS.split())
def test_command_of_other_agents_is_answered(provider: ProviderServer, name: str) -> None:
    with repl(provider, "--sandbox", "off", "--mode", "ask", rows=60, columns=100) as terminal:
        terminal.enter(f"/{name}")
        terminal.wait_until(partial(is_answered, terminal))
        assert not terminal.shows("Unknown command")
        assert not provider.requests
        terminal.child.kill(15)
        terminal.wait_for_exit()


@pytest.mark.parametrize("word", ["quit", "exit", ":q"])
def test_word_alone_quits(provider: ProviderServer, word: str) -> None:
    with repl(provider) as terminal:
        terminal.enter(word)
        assert terminal.wait_for_exit() == 0
    assert not provider.requests


def test_text_is_kept_aside_and_comes_back(provider: ProviderServer) -> None:
    with repl(provider, rows=24, columns=80) as terminal:
        terminal.type("my draft\x13")
        wait_for_prompt(terminal)
        terminal.type("\x13")
        terminal.wait_until(lambda: "› my draft" in terminal.lines)
        terminal.type("\x03")
        wait_for_prompt(terminal)
        leave(terminal)


def test_doctor_keeps_its_columns_in_a_narrow_window(provider: ProviderServer) -> None:
    with repl(provider, rows=60, columns=40) as terminal:
        terminal.enter("/doctor")
        terminal.wait_for("ok    model     custom/test-model")
        wait_for_prompt(terminal)
        lines = terminal.lines
        at = next(at for at, line in enumerate(lines) if line.startswith("ok    wolo      "))
        assert re.match(r" {16}\S", lines[at + 1])
        leave(terminal)
