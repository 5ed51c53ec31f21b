"""The one line that moves: what is going on, for how long, how much has come."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Protocol

from rich.cells import cell_len, set_cell_size

from wolo.frontends.terminal.stdout import Stdout
from wolo.messages.terminal_text import clean_line

_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_PLAIN_FRAMES = "-\\|/"
_TICK_S = 0.1
_REPAINT_S = 0.5
"""How often the whole line is painted while only the spinner moves in between: little is written however long it takes."""
_HINT = " · Ctrl-C stops"
_ROOM_FOR_HINT = 60

Words = str | Callable[[], str]


class Status(Protocol):
    """Where a front end says what is under way."""

    is_alive: bool
    aside: Callable[[], str]

    def start(self, words: Words) -> None: ...
    def say(self, words: Words) -> None: ...
    def hold(self, held: bool) -> None: ...
    def hide(self) -> None: ...
    def pause(self) -> None: ...
    def stop(self) -> None: ...


class StatusLines:
    """Where nothing can move: whatever begins is a line of its own, once."""

    is_alive = False

    def __init__(self, print_line: Callable[[str], None]) -> None:
        self.aside: Callable[[], str] = str
        self._print = print_line
        self._told = ""

    def start(self, words: Words) -> None:
        told = clean_line(words if isinstance(words, str) else words())
        if told != self._told:
            self._told = told
            self._print(f"… {told}")

    def say(self, words: Words) -> None:
        """It goes on."""

    def hold(self, held: bool) -> None:
        """It never moves anyway."""

    def hide(self) -> None:
        """It stays where it was printed."""

    def pause(self) -> None:
        """The cursor is where it belongs."""

    def stop(self) -> None:
        self._told = ""


class StatusLine:
    """Painted on the bottom line, and taken away before anything else is printed. Silent where the cursor cannot move."""

    def __init__(self, stdout: Stdout) -> None:
        self.is_alive = stdout.can_move
        self._stdout = stdout
        self._dim, self._normal = ("\x1b[2m", "\x1b[0m") if stdout.has_colours else ("", "")
        self._frames = _FRAMES if "utf" in stdout.encoding.lower() else _PLAIN_FRAMES
        self.aside: Callable[[], str] = str
        """Stands beside whatever is said: what else goes on."""
        self._words: Words = ""
        self._started = self._painted = 0.0
        self._shown = False
        self._held = False
        self._task: asyncio.Task[None] | None = None

    def start(self, words: Words) -> None:
        """Something new has begun; its seconds count from now."""
        self._started = time.monotonic()
        self.say(words)
        if self.is_alive and self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._tick())

    def say(self, words: Words) -> None:
        """Other words for the same thing. A function is asked again whenever the line is painted."""
        self._words = words

    def hold(self, held: bool) -> None:
        """Held while the cursor stands in the middle of a line that is still being written."""
        self._held = held

    def hide(self) -> None:
        """Before anything else is printed."""
        if self._shown:
            self._stdout.write("\r\x1b[J")
            self._shown = False

    def pause(self) -> None:
        """Before the process is stopped for a while: the shell gets its cursor back."""
        self.hide()
        self._stdout.write("\x1b[?25h" if self._task else "")
        self._stdout.flush()

    def stop(self) -> None:
        self.hide()
        if self._task is not None:
            self._task.cancel()
            self._task = None
            self._stdout.write("\x1b[?25h")
        self._stdout.flush()

    async def _tick(self) -> None:
        frame = 0
        while True:
            await asyncio.sleep(_TICK_S)
            frame = (frame + 1) % len(self._frames)
            if self._held:
                continue
            if time.monotonic() - self._painted >= _REPAINT_S:
                self._paint(self._frames[frame])
            elif self._shown:
                self._write(f"{self._dim}{self._frames[frame]}{self._normal}\r")

    def _paint(self, frame: str) -> None:
        self._painted = time.monotonic()
        self._shown = True
        self._write(
            f"\r\x1b[?25l\x1b[J{self._dim}{self._line(frame)}{self._normal}\r"
        )  # back at its start, a resize cannot strand it

    def _line(self, frame: str) -> str:
        width = max(self._stdout.columns - 1, 4)
        words = clean_line(self._words if isinstance(self._words, str) else self._words())
        hint = _HINT if width >= _ROOM_FOR_HINT else ""
        aside = f" · {aside}" if (aside := self.aside()) else ""
        end = f"{aside} · {int(time.monotonic() - self._started)} s{hint}"
        room = width - cell_len(end) - 2
        if room < 4:
            return set_cell_size(f"{frame} {words}", width).rstrip()
        if cell_len(words) > room:
            words = set_cell_size(words, room - 1).rstrip() + "…"
        return f"{frame} {words}{end}"

    def _write(self, painted: str) -> None:
        self._stdout.write(painted)
        self._stdout.flush()
