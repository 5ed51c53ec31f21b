"""The live region paints in frames: what arrives between two of them is drawn once."""

from __future__ import annotations

import asyncio
import os
import random
import sys
import termios
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType, FrameType

import pytest
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.layout import BufferControl
from pyte.screens import Char

from tests.fakes.screen import View
from wolo.agent.events import RequestStarted, TextStreamed
from wolo.frontends.terminal.display.event_view import Screen
from wolo.frontends.terminal.display.terminal import Terminal
from wolo.frontends.terminal.live.live_region import LiveRegion
from wolo.frontends.terminal.render.markdown import MarkdownStream

END = "\x1b]0;the end\x07"
"""Sets the title."""


@contextmanager
def in_terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Makes a terminal stdin and stdout, and returns its other end. No fixture: pytest replaces stdout again before the test."""
    ours, theirs = os.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    monkeypatch.setenv("TERM", "xterm-256color")
    with os.fdopen(theirs) as stdin, os.fdopen(os.dup(theirs), "w") as stdout:
        monkeypatch.setattr(sys, "stdin", stdin)
        monkeypatch.setattr(sys, "stdout", stdout)
        yield ours
    os.close(ours)


def calls_of(code: CodeType, during: Callable[[], None]) -> int:
    """Counts how often the code is run."""
    count = 0

    def called(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event == "call" and frame.f_code is code

    sys.setprofile(called)
    try:
        during()
    finally:
        sys.setprofile(None)
    return count


def new_region() -> tuple[Screen, LiveRegion]:
    terminal = Terminal()
    region = LiveRegion(terminal, Buffer(), KeyBindings())
    terminal.screen.attach(region)
    terminal.screen.show(RequestStarted(model="m", attempt=1, context_tokens=1))
    return terminal.screen, region


async def test_streamed_text_is_drawn_once_a_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ["```python\n", *(f"value = {number}\n" for number in range(50)), "```\n"]
    with in_terminal(monkeypatch) as screen_fd:
        screen, region = new_region()

        def stream() -> None:
            for line in lines:
                screen.show(TextStreamed(text=line))

        assert calls_of(MarkdownStream.feed.__code__, stream) == 0
        assert calls_of(MarkdownStream.feed.__code__, region.flush) == 1
        screen.status.stop()
        assert os.read(screen_fd, 65_536).decode().count("value") == 50


async def test_other_output_follows_earlier_streamed_text(monkeypatch: pytest.MonkeyPatch) -> None:
    with in_terminal(monkeypatch) as screen_fd:
        screen, region = new_region()
        screen.show(TextStreamed(text="first\n"))
        screen.show_text("second")
        region.flush()
        screen.status.stop()
        shown = os.read(screen_fd, 65_536).decode()
    assert shown.index("first") < shown.index("second")


async def test_growing_text_alone_lays_nothing_out(monkeypatch: pytest.MonkeyPatch) -> None:
    with in_terminal(monkeypatch):
        screen, region = new_region()
        await shown(region)
        screen.show(TextStreamed(text="The first words "))
        region.flush()
        screen.show(TextStreamed(text="of an answer"))
        assert calls_of(BufferControl.preferred_height.__code__, region.flush) == 0
        screen.state.hint = "a hint"
        screen.show(TextStreamed(text=" and more"))
        assert calls_of(BufferControl.preferred_height.__code__, region.flush) == 2, "once for the layout and once to draw it"
        screen.status.stop()
        await region.vanish()


@pytest.mark.sweep(every=2)
@pytest.mark.parametrize("seed", range(4))
async def test_growing_text_looks_like_a_whole_repaint(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    chance = random.Random(seed)
    pieces = chance.choices(["word ", "a" * 40, "x" * 95, "`code` ", "\n", "\n\n", "- item ", "wörter ", "**", "# "], k=60)
    with in_terminal(monkeypatch) as screen_fd:
        screen, region = new_region()
        await shown(region)
        view = View(24, 80)
        for piece in pieces:
            screen.show(TextStreamed(text=piece))
            region.flush()
            view.feed(written(region, screen_fd))
            grown, cursor = view.cells, view.cursor
            with region.app.renderer.output.frame():
                region.app.renderer.erase(leave_alternate_screen=False)
                region.app.redraw()
            view.feed(written(region, screen_fd))
            assert [looks(row) for row in grown] == [looks(row) for row in view.cells]
            assert cursor == view.cursor
        screen.status.stop()
        await region.vanish()


async def test_a_region_whose_input_has_just_ended_vanishes(monkeypatch: pytest.MonkeyPatch) -> None:
    with in_terminal(monkeypatch):
        _, region = new_region()
        await shown(region)
        region.app.exit(exception=EOFError)
        await region.vanish()


async def shown(region: LiveRegion) -> None:
    region.appear()
    async with asyncio.timeout(60):
        while not region.app.is_running:
            await asyncio.sleep(0)
    region.flush()


def written(region: LiveRegion, fd: int) -> bytes:
    """All that was written so far: a terminal passes it on a little later."""
    region.send(END)
    shown = b""
    while not shown.endswith(END.encode()):
        shown += os.read(fd, 65_536)
    return shown


def looks(row: list[Char]) -> list[tuple[str, str]]:
    return [(cell.data, cell.fg) for cell in row]
