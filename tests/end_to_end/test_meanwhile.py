"""A run whose answer goes into a pipe, while a person watches the other end: what it does is told, and gone afterwards."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest

from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import call, text
from tests.fakes.tmux import Tmux, tmux_shell

WAITS = {"command": "while [ ! -e on ]; do sleep 0.05; done"}


def start(tmux: Tmux, provider: ProviderServer, behind: str, *flags: str) -> None:
    given = shlex.join([*provider.flags, "--mode", "yolo", "--sandbox", "off", *flags])
    tmux.type(f"clear; {sys.executable} -m wolo {given} 'do it' {behind}")
    tmux.press("Enter")


def test_notice_shows_in_terminal_and_leaves_with_answer(provider: ProviderServer, tmp_path: Path) -> None:
    provider.script(call("shell", WAITS), text("Done.\n"))
    with tmux_shell(socket=tmp_path / "tmux") as tmux:
        start(tmux, provider, "| tee answer")
        told = re.compile(r"shell while \[ ! -e on \]; do sleep 0.05; done · [0-9]+ s")
        tmux.wait_until(lambda: any(map(told.fullmatch, tmux.rows)), "nothing is told")
        Path("on").touch()
        tmux.wait_for("Done.")
        tmux.wait_until(lambda: "shell while" not in "\n".join(tmux.rows), "it stayed")
    assert Path("answer").read_text() == "Done.\n"


@pytest.mark.sweep(every=2)
@pytest.mark.parametrize(
    ("behind", "flags", "before"),
    [("2>errors | cat", (), ""), ("| cat", ("--output-format", "stream-json"), ""), ("| cat", (), "export TERM=dumb")],
)
def test_nothing_moves_where_it_would_disturb(
    provider: ProviderServer, tmp_path: Path, behind: str, flags: tuple[str, ...], before: str
) -> None:
    provider.script(call("shell", {"command": "touch begun; sleep 2.5"}), text("Done at last.\n"))
    with tmux_shell(socket=tmp_path / "tmux") as tmux:
        tmux.run("pipe-pane", f"cat > {tmp_path / 'raw'}")
        if before:
            tmux.type(before)
            tmux.press("Enter")
        start(tmux, provider, behind, *flags)
        tmux.wait_for("Done at last.")
        assert " s\x1b[K" not in (tmp_path / "raw").read_text()
    assert not Path("errors").exists() or Path("errors").read_text() == ""
