"""The one line that moves: what is going on, for how long, how much has come."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Protocol

from wolo.frontends.terminal.display.activity import UnderWay, Words
from wolo.frontends.terminal.display.terminal_state import TerminalState
from wolo.frontends.terminal.io.terminal_output import Stdout
from wolo.messages.terminal_text import escaped_line

_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_PLAIN_FRAMES = "-\\|/"
_TICK_S = 0.1
_REPAINT_S = 0.5
"""How often the whole line is painted while only the spinner moves in between: little is written however long it takes."""
SLOW_S = 1.0
_HINT = " · Ctrl-C stops"
_ROOM_FOR_HINT = 60


class Status(Protocol):
    """Where a front end says what is under way."""

    is_alive: bool

    def start(self, words: Words) -> None:
        """Something new has begun; its seconds count from now."""

    def say(self, words: Words) -> None:
        """Other words for the same thing."""

    def heard(self) -> None:
        """More of an answer has come."""

    def begin_call(self, id: str, words: str) -> None: ...
    def hear_call(self, id: str, printed: str) -> None: ...
    def end_call(self, id: str) -> None: ...
    def unfinished(self, line: str) -> None:
        """The beginning of a line that is still being written and not printed."""

    def hold(self, held: bool) -> None:
        """Held while the cursor stands in the middle of a line that is still being written."""

    def hide(self) -> None:
        """Before anything else is printed."""

    def pause(self) -> None:
        """Before the process is stopped for a while: the shell gets its cursor back."""

    def stop(self) -> None:
        """Nothing is under way."""


class StatusLines:
    """Where nothing can move: what takes longer than a second is a line of its own, once. What is quick its outcome tells."""

    is_alive = False

    def __init__(self, print_line: Callable[[str], None]) -> None:
        self._print = print_line
        self._due: dict[str, asyncio.TimerHandle] = {}
        """By the id of a call; empty for all else."""

    def start(self, words: Words) -> None:
        self.stop()
        self._tell_once_slow("", words)

    def begin_call(self, id: str, words: str) -> None:
        self.hide()
        self._tell_once_slow(id, words)

    def end_call(self, id: str) -> None:
        self._cancel(id)

    def stop(self) -> None:
        for id in list(self._due):
            self._cancel(id)

    def hide(self) -> None:
        """Something is printed: one hears that it goes on."""
        self._cancel("")

    def _tell_once_slow(self, id: str, words: Words) -> None:
        def tell() -> None:
            del self._due[id]
            self._print(f"… {escaped_line(words if isinstance(words, str) else words())}")

        self._cancel(id)
        self._due[id] = asyncio.get_running_loop().call_later(SLOW_S, tell)

    def _cancel(self, id: str) -> None:
        if due := self._due.pop(id, None):
            due.cancel()

    def say(self, words: Words) -> None: ...
    def heard(self) -> None: ...
    def hear_call(self, id: str, printed: str) -> None: ...
    def unfinished(self, line: str) -> None: ...
    def hold(self, held: bool) -> None: ...
    def pause(self) -> None: ...


class StatusLine:
    """Painted on the bottom line, and taken away before anything else is printed."""

    is_alive = True

    def __init__(self, stdout: Stdout, state: TerminalState) -> None:
        self._stdout, self._state = stdout, state
        self._dim, self._normal = ("\x1b[2m", "\x1b[0m") if stdout.has_colours else ("", "")
        self._frames = _FRAMES if "utf" in stdout.encoding.lower() else _PLAIN_FRAMES
        self._under_way = UnderWay()
        self._painted = 0.0
        self._shown = False
        self._held = False
        self._task: asyncio.Task[None] | None = None

    def start(self, words: Words) -> None:
        self._under_way.begin(words)
        self._live()

    def say(self, words: Words) -> None:
        self._under_way.say(words)

    def heard(self) -> None:
        self._under_way.heard()

    def begin_call(self, id: str, words: str) -> None:
        self._under_way.begin_call(id, words)
        self._live()

    def hear_call(self, id: str, printed: str) -> None:
        self._under_way.hear_call(id, printed)

    def end_call(self, id: str) -> None:
        self._under_way.end_call(id)
        if self._under_way.is_over:
            self.stop()

    def unfinished(self, line: str) -> None:
        """It is printed once it is finished."""

    def hold(self, held: bool) -> None:
        self._held = held

    def hide(self) -> None:
        if self._shown:
            self._stdout.write("\r\x1b[J")
            self._shown = False

    def pause(self) -> None:
        self.hide()
        self._stdout.write("\x1b[?25h" if self._task else "")
        self._stdout.flush()

    def stop(self) -> None:
        self.hide()
        self._under_way.end()
        if self._task is not None:
            self._task.cancel()
            self._task = None
            self._stdout.write("\x1b[?25h")
        self._stdout.flush()

    def _live(self) -> None:
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._tick())

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
        columns = max(self._stdout.columns - 3, 2)
        hint = _HINT if columns >= _ROOM_FOR_HINT else ""
        return " ".join([frame, *self._under_way.lines(columns, aside=self._state.alongside, hint=hint)])

    def _write(self, painted: str) -> None:
        self._stdout.write(painted)
        self._stdout.flush()
