"""Input line by line, on terminals whose cursor cannot move."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from wolo.frontends.terminal.composer.composer import CONTINUES, Composer
from wolo.frontends.terminal.display.line_prompt import read_typed
from wolo.frontends.terminal.display.terminal import Terminal

PROMPT = "> "
_LEAVING = """\
Ctrl-D  quits, when nothing is typed
Ctrl-Z  back to the shell; fg comes back"""
if sys.platform == "win32":
    _LEAVING = "Ctrl-Z  and Enter quit, when nothing is typed"
KEYS = f"""\
Enter   sends
\\       at the end of a line: the text continues on the next line
Ctrl-C  drops the line, or stops what runs; twice within two seconds quits
{_LEAVING}

All other keys are your terminal's own."""


class LineMode:
    """Reads a line while nothing runs. The terminal holds what is typed meanwhile."""

    echoes_input = True
    keys_in_short = "Enter sends, a line that ends with \\ continues on the next"

    def __init__(self, composer: Composer, terminal: Terminal) -> None:
        self._composer, self._terminal = composer, terminal
        terminal.keyboard.release()  # before anything invites to type
        self._painted = asyncio.Event()
        self._reading: asyncio.Task[None] | None = None

    def appear(self) -> None:
        self._reading = asyncio.ensure_future(self._read())

    async def vanish(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            with suppress(asyncio.CancelledError):
                await self._reading
        self._terminal.keyboard.hush()

    @asynccontextmanager
    async def aside(self) -> AsyncIterator[None]:
        yield

    def paint(self) -> None:
        """Looks again whether something runs."""
        self._painted.set()

    async def _read(self) -> None:
        while True:
            with self._terminal.signals.during(self._ctrl_c):
                # The next lines, behind the text that was given back unsent
                screen, buffer = self._terminal.screen, self._composer.buffer
                if buffer.text:
                    screen.show_text(f"Not sent yet; Enter sends it, Ctrl-C drops it: {buffer.text}")
                lines = [await self._line()]
                while lines[-1].endswith(CONTINUES):
                    lines[-1] = lines[-1].removesuffix(CONTINUES)
                    lines.append(await self._line())
                screen.fresh()
                text = "\n".join(filter(None, [buffer.text, *lines]))
            if text.strip():
                self._painted.clear()
                self._composer.replace(text)
                self._composer.enter()
                await self._painted.wait()
            while self._terminal.state.is_working:
                self._painted.clear()
                await self._painted.wait()

    async def _line(self) -> str:
        try:
            return await read_typed(PROMPT, self._terminal.keyboard, self._terminal.screen.stdout)
        except EOFError:
            self._composer.quit()
            nothing_more: asyncio.Future[str] = asyncio.get_running_loop().create_future()
            return await nothing_more

    def _ctrl_c(self) -> None:
        """Drops the typed line, as the terminal has done; any other signal quits."""
        if self._terminal.signals.forgive():
            self._composer.cancel()
            hint = self._terminal.state.hint
            self._terminal.screen.stdout.write(f"\n{hint}\n{PROMPT}" if hint else f"\n{PROMPT}")
            self._terminal.screen.stdout.flush()
        else:
            self._composer.quit()
