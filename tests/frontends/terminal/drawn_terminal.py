"""The terminal's components in this process: they draw on an emulated screen and read the keys of the test."""

from __future__ import annotations

import asyncio
import os
import sys
import termios
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.key_binding import KeyBindings

from tests.fakes.screen import CUTS_ROWS, KEYS, PATIENCE_S, View
from wolo.frontends.terminal.display.terminal import Terminal
from wolo.frontends.terminal.live.live_region import LiveRegion
from wolo.frontends.terminal.panels import key_guard


class DrawnTerminal(View):
    def __init__(self, descriptor: int, rows: int, columns: int) -> None:
        super().__init__(rows, columns)
        self.terminal = Terminal()
        self.screen = self.terminal.screen
        self._descriptor = descriptor
        self._has_drawn = asyncio.Event()

    @property
    def visible(self) -> str:
        return "\n".join(self.lines)

    def type(self, written: str) -> None:
        os.write(self._descriptor, written.encode())

    def press(self, *keys: str) -> None:
        for key in keys:
            self.type(KEYS[key])

    async def wait_until(self, holds: Callable[[], bool]) -> None:
        try:
            async with asyncio.timeout(PATIENCE_S):
                while not holds():
                    self._has_drawn.clear()
                    await self._has_drawn.wait()
        except TimeoutError:
            raise AssertionError(f"it did not happen within {PATIENCE_S} s; the screen shows:\n{self.text}") from None

    async def wait_for(self, wanted: str) -> None:
        await self.wait_until(lambda: self.shows(wanted))

    def read(self) -> None:
        self.feed(os.read(self._descriptor, 65_536))
        self._has_drawn.set()


@asynccontextmanager
async def drawn_terminal(
    monkeypatch: pytest.MonkeyPatch, *, rows: int = 24, columns: int = 100, has_region: bool = True
) -> AsyncIterator[DrawnTerminal]:
    """No fixture: pytest replaces stdout again before the test. Without a region, lines are printed as for one task."""
    ours, theirs = os.openpty()
    termios.tcsetwinsize(theirs, (rows, columns))
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("XTERM_VERSION", CUTS_ROWS)
    with os.fdopen(theirs) as stdin, os.fdopen(os.dup(theirs), "w", buffering=1) as stdout, monkeypatch.context() as patch:
        patch.setattr(sys, "stdin", stdin)
        patch.setattr(sys, "stdout", stdout)
        patch.setattr(key_guard, "READING_S", 0.05)  # nobody has to read the question
        drawn = DrawnTerminal(ours, rows, columns)
        asyncio.get_running_loop().add_reader(ours, drawn.read)
        region = LiveRegion(drawn.terminal, Buffer(), KeyBindings()) if has_region else None
        try:
            if region is not None:
                drawn.screen.attach(region)
                region.appear()
                await drawn.wait_until(lambda: drawn.lines[drawn.cursor[0]] == "›")
            yield drawn
        finally:
            drawn.screen.status.stop()
            if region is not None:
                await region.vanish()
            asyncio.get_running_loop().remove_reader(ours)
    os.close(ours)
