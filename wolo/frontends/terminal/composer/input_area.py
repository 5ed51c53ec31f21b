"""Where a person writes: at the foot of the screen at any time, or, without one, line by line in turns."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Protocol

from prompt_toolkit.document import Document
from prompt_toolkit.key_binding import KeyBindingsBase

from wolo.config.schema import Ui
from wolo.frontends.terminal.composer.composer import CONTINUES, Composer
from wolo.frontends.terminal.composer.paste_chips import Chips
from wolo.frontends.terminal.display.line_input import read_typed
from wolo.frontends.terminal.display.terminal import Terminal
from wolo.frontends.terminal.live.live_region import Foot

PROMPT = "> "
KEYS_IN_TURNS = """\
Enter   sends
\\       at the end of a line: it goes on in the next one
Ctrl-C  drops the line, or stops what runs; twice within two seconds leaves
Ctrl-D  leaves, when nothing is written
Ctrl-Z  back to the shell; fg comes back

All other keys are your terminal's own."""


class Writing(Protocol):
    """What the REPL needs to know of it; what is written comes out of the composer."""

    waiting: Callable[[], tuple[str, ...]]
    hint: str

    @property
    def leaves_what_was_typed(self) -> bool:
        """What was sent can be read where it was typed."""
        ...

    @property
    def keys_in_short(self) -> str: ...

    @property
    def is_asking(self) -> bool: ...
    def appear(self) -> None: ...
    async def vanish(self) -> None: ...
    def drop(self) -> None:
        """The process ends on the spot."""
        ...

    def aside(self) -> AbstractAsyncContextManager[None]: ...
    def paint(self) -> None:
        """Something that it shows has changed, perhaps whose turn it is."""
        ...


class Turns:
    """Reads a line while nothing runs. What is typed meanwhile is the terminal's to keep: it is read when its turn comes."""

    is_asking = False
    leaves_what_was_typed = True
    keys_in_short = "Enter sends, a line that ends with \\ goes on in the next"

    def __init__(self, composer: Composer, terminal: Terminal) -> None:
        self.waiting: Callable[[], tuple[str, ...]] = tuple
        self.hint = ""
        self._composer, self._terminal = composer, terminal
        terminal.keyboard.release()  # before anything invites to type
        self._heard = asyncio.Event()
        self._reading: asyncio.Task[None] | None = None

    def appear(self) -> None:
        self._reading = asyncio.ensure_future(self._read())

    async def vanish(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            with suppress(asyncio.CancelledError):
                await self._reading
        self._terminal.keyboard.hush()

    def drop(self) -> None:
        """The terminal has its own modes all the time."""

    @asynccontextmanager
    async def aside(self) -> AsyncIterator[None]:
        yield

    def paint(self) -> None:
        self._heard.set()

    async def _read(self) -> None:
        while True:
            with self._terminal.signals.during(self._ctrl_c):
                text = await self._text()
            if text.strip():
                self._heard.clear()
                self._composer.buffer.set_document(Document(text))
                self._composer.enter()
                await self._heard.wait()
            while self._composer.is_working:
                self._heard.clear()
                await self._heard.wait()

    async def _text(self) -> str:
        """What was given back and not sent yet is said, and sent with the line that follows."""
        screen, buffer = self._terminal.screen, self._composer.buffer
        if buffer.text:
            screen.say(f"Not sent yet; Enter sends it, Ctrl-C drops it: {buffer.text}")
        lines = [await self._line()]
        while lines[-1].endswith(CONTINUES):
            lines[-1] = lines[-1].removesuffix(CONTINUES)
            lines.append(await self._line())
        screen.fresh()
        return "\n".join(filter(None, [buffer.text, *lines]))

    async def _line(self) -> str:
        try:
            return await read_typed(PROMPT, self._terminal.keyboard, self._terminal.screen.stdout)
        except EOFError:
            self._composer.end()
            nothing_more: asyncio.Future[str] = asyncio.get_running_loop().create_future()
            return await nothing_more

    def _ctrl_c(self) -> None:
        """The terminal has thrown away the line that was typed; any other signal leaves."""
        if self._terminal.signals.forgive():
            self._composer.cancel()
            self._terminal.screen.stdout.write(f"\n{self.hint}\n{PROMPT}" if self.hint else f"\n{PROMPT}")
            self._terminal.screen.stdout.flush()
        else:
            self._composer.leave()


def place_to_write(
    composer: Composer, keys: KeyBindingsBase, facts: Callable[[int], str], ui: Ui, terminal: Terminal
) -> Foot | Turns:
    """What this terminal can do."""
    if not terminal.screen.stdout.can_move:
        return Turns(composer, terminal)
    return Foot(
        composer.buffer,
        keys,
        facts=facts,
        processors=[Chips(composer.pastes)],
        uses_vi=ui.keys == "vi",
        is_light=lambda: terminal.screen.is_light,
    )
