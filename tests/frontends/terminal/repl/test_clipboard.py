"""/copy: what is taken of an answer, and the ways it can go."""

from __future__ import annotations

import base64
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.end_to_end.test_repl import leave, repl, wait_for_prompt
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import text
from tests.fakes.tmux import tmux_wolo
from wolo.frontends.terminal.repl.terminal_commands import MOST_BYTES, blocks, copy
from wolo.workspace.root import Workspace

ANSWER = "Take this:\n\n```python\nprint('ä')\n\n```\n\nor\n\n~~~\n```\nnot a fence\n~~~\n"


def program(folder: Path, name: str, script: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


@pytest.fixture
def bin(isolated: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Comes first on the PATH, and no clipboard of the machine is asked."""
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "TMUX", "SSH_CONNECTION", "SSH_TTY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", f"{isolated / 'bin'}{os.pathsep}{os.environ['PATH']}")
    return isolated / "bin"


class Written:
    """Remembers what is sent to the terminal."""

    def __init__(self) -> None:
        self.sequences: list[str] = []

    def send(self, sequence: str) -> None:
        self.sequences.append(sequence)


def here() -> Workspace:
    return Workspace(Path.cwd(), (), Path.cwd())


def test_blocks_are_those_between_fences() -> None:
    assert blocks(ANSWER) == ["print('ä')\n", "```\nnot a fence"]
    assert blocks("no code") == []
    assert blocks("```\ncut off") == ["cut off"]


@given(st.lists(st.text(alphabet="ab `~\n", max_size=20), max_size=4))
def test_block_is_the_text_between_its_fences(codes: list[str]) -> None:
    answer = "\n".join(f"words\n`````\n{code}\n`````\n" for code in codes if "`````" not in code)
    assert blocks(answer) == [code for code in codes if "`````" not in code]


async def test_the_terminal_is_told_the_whole_text(bin: Path) -> None:
    written = Written()
    assert await copy("grüße\x1b", written, here()) == ["the terminal"]
    (sequence,) = written.sequences
    assert sequence.startswith("\x1b]52;c;")
    assert sequence.endswith("\x07")
    assert base64.b64decode(sequence[7:-1]).decode() == "grüße\x1b"


async def test_terminal_gets_no_more_than_it_takes(bin: Path) -> None:
    written = Written()
    assert await copy("x" * (MOST_BYTES + 1), written, here()) == []
    assert written.sequences == []


async def test_a_program_of_the_machine_takes_it_too(bin: Path, isolated: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISPLAY", ":9")
    program(bin, "xclip", f'echo "$@" > {isolated}/options; cat > {isolated}/taken')
    written = Written()
    assert await copy("hello", written, here()) == ["xclip", "the terminal"]
    assert (isolated / "taken").read_text() == "hello"
    assert (isolated / "options").read_text() == "-selection clipboard\n"
    monkeypatch.setenv("SSH_CONNECTION", "1.2.3.4 5 6.7.8.9 22")
    assert await copy("hello", written, here()) == ["the terminal"]


async def test_a_program_that_fails_is_not_named(bin: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAYLAND_DISPLAY", "wayland-0")
    program(bin, "wl-copy", "exit 1")
    assert await copy("hello", None, here()) == []


async def test_program_from_the_checkout_is_not_run(bin: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISPLAY", ":9")
    program(Path("tools"), "xsel", "touch ran")
    monkeypatch.setenv("PATH", str(Path("tools").absolute()))
    assert await copy("hello", None, here()) == []
    assert not Path("ran").exists()


async def test_tmux_passes_it_on(bin: Path, isolated: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMUX", "/tmp/tmux-0/default,1,0")
    program(bin, "tmux", f'echo "$@" > {isolated}/options; cat > {isolated}/taken')
    written = Written()
    assert await copy("hello", written, here()) == ["tmux"]
    assert (isolated / "options").read_text() == "load-buffer -w -\n"
    assert written.sequences == []


def test_copy_takes_the_answer_or_a_block(provider: ProviderServer, bin: Path) -> None:
    provider.script(text(ANSWER))
    with repl(provider) as terminal:
        terminal.enter("/copy")
        terminal.wait_for("There is no answer to copy yet.")
        wait_for_prompt(terminal)
        terminal.enter("how?")
        terminal.wait_for("not a fence")
        wait_for_prompt(terminal)
        terminal.enter("/copy 1")
        terminal.wait_for("Copied block 1")
        wait_for_prompt(terminal)
        terminal.enter("/copy")
        terminal.wait_for("Copied the last answer")
        wait_for_prompt(terminal)
        terminal.enter("/copy 3")
        terminal.wait_for("The last answer has 2 code blocks.")
        wait_for_prompt(terminal)
        leave(terminal)
    sent = [base64.b64decode(piece.partition(b"\x07")[0]).decode() for piece in terminal.raw.split(b"\x1b]52;c;")[1:]]
    assert sent == ["print('ä')\n", ANSWER.strip("\n")]


def test_in_tmux_the_text_is_in_its_buffer(provider: ProviderServer, isolated: Path) -> None:
    provider.script(text("Take `this`: grüße.\n"))
    with tmux_wolo(*provider.flags, socket=isolated / "tmux.sock", env={"LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}) as tmux:
        tmux.wait_for("›")
        tmux.type("hello")
        tmux.press("Enter")
        tmux.wait_for("grüße.")
        tmux.wait_for("out ·")
        tmux.type("/copy")
        tmux.press("Enter")
        tmux.wait_for("using tmux.")
        assert tmux.run("show-buffer") == "Take `this`: grüße."
