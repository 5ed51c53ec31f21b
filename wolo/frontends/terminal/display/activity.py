"""Running work: what is being done, for how long, and its newest output.

One `Activity` follows the work; a `Surface` shows it as far as the terminal allows: in the live region, on the bottom line, or as
lines of their own for screen readers.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from rich.cells import cell_len, set_cell_size

from wolo.frontends.terminal.display.terminal_state import TerminalState
from wolo.frontends.terminal.io.terminal_output import Stdout
from wolo.messages.terminal_text import clean, escaped_line

Words = str | Callable[[], str]
"""A function is called again once a second."""

QUIET_S = 5.0
"""A stream without data for longer is reported."""
SLOW_S = 1.0
TAIL_CHARS = 2000
"""Output of a call that is stored to show its newest lines."""
TAIL_LINES = 3
MOST_CALLS = 4
LEAST_WORDS = 4
"""Cells; with less room, only the words are shown."""
BAR_CELLS = 12
FRAMES_PER_S = 4
FRAMES, PLAIN_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏", "-\\|/"
_REPAINT_S = 0.5
"""The bottom line is painted so often; between two paints only the spinner moves, to send few bytes."""
_HINT = " · Ctrl-C stops"
_ROOM_FOR_HINT = 60


class ActivityLine(NamedTuple):
    mark: Literal["spinner", "rail", ""]
    text: str


class Surface:
    """Shows running work."""

    tick_s: float
    is_alive: bool
    """Text may change after it was shown."""

    def on_change(self, activity: Activity) -> None:
        """Called when something begins, ends or is described anew."""

    def tick(self, activity: Activity) -> None:
        """Called every `tick_s` while something runs."""

    def clear(self, activity: Activity) -> None:
        """Called before anything else is printed."""

    def rest(self) -> None:
        """Called when nothing runs any more, and before the process is suspended."""


@dataclass(slots=True)
class _Work:
    words: Words
    began_at: float
    output: str = ""
    is_announced: bool = False


class Activity:
    def __init__(self, surface: Surface, clock: Callable[[], float] = time.monotonic) -> None:
        self._surface, self._clock = surface, clock
        self._main: _Work | None = None
        self._calls: dict[str, _Work] = {}
        self._shown, self._shown_at = "", -1
        """The words as they were last computed, and the second in which they were."""
        self._data_at: float | None = None
        """Time of the last data of the stream; None while nothing streams."""
        self._ticker: asyncio.TimerHandle | None = None
        self.is_thinking = False
        self.is_held = False
        """The cursor is within a line that is still being written."""

    @property
    def is_over(self) -> bool:
        return self._main is None and not self._calls

    @property
    def is_alive(self) -> bool:
        return self._surface.is_alive

    def show_on(self, surface: Surface) -> None:
        self.stop()
        self._surface = surface

    def start(self, words: Words) -> None:
        """Begins something new; its seconds count from now."""
        self._main, self._data_at, self.is_thinking, self._shown_at = _Work(words, self._clock()), None, False, -1
        self._note_change()

    def describe(self, words: Words, *, is_thinking: bool = False) -> None:
        if self._main is not None and words != self._main.words:
            self._main.words, self._shown_at = words, -1
        self.is_thinking = is_thinking
        self._surface.on_change(self)

    def note_data(self) -> None:
        self._data_at = self._clock()

    def start_call(self, id: str, text: str) -> None:
        self._main = self._data_at = None
        self._calls[id] = _Work(escaped_line(text), self._clock())
        self._note_change()

    def add_output(self, id: str, output: str) -> None:
        if call := self._calls.get(id):
            call.output = (call.output + output)[-TAIL_CHARS:]
            self._surface.on_change(self)

    def end_call(self, id: str) -> None:
        self._calls.pop(id, None)
        if self.is_over:
            self.stop()
        else:
            self._surface.on_change(self)

    def clear(self) -> None:
        """Called before anything else is printed."""
        self._surface.clear(self)

    def pause(self) -> None:
        """Called before the process is suspended."""
        self._surface.clear(self)
        self._surface.rest()

    def stop(self) -> None:
        self._surface.clear(self)
        self._main = self._data_at = None
        self._calls.clear()
        if self._ticker is not None:
            self._ticker.cancel()
            self._ticker = None
        self._surface.rest()
        self._surface.on_change(self)

    def _note_change(self) -> None:
        self._surface.on_change(self)
        if self._ticker is None:
            self._ticker = asyncio.get_running_loop().call_later(self._surface.tick_s, self._tick)

    def _tick(self) -> None:
        self._ticker = asyncio.get_running_loop().call_later(self._surface.tick_s, self._tick)
        self._surface.tick(self)

    # Text

    def slow_words(self) -> list[str]:
        """Work that has taken longer than a second and was not announced yet."""
        works = [*([self._main] if self._main else []), *self._calls.values()]
        slow = [work for work in works if not work.is_announced and self._clock() - work.began_at >= SLOW_S]
        for work in slow:
            work.is_announced = True
        return [escaped_line(_text(work.words)) for work in slow]

    def skip_announcement(self) -> None:
        """Other output shows that the work continues."""
        if self._main is not None:
            self._main.is_announced = True

    def lines(self, columns: int, *, rows: int = 1, alongside: str = "", hint: str = "") -> list[ActivityLine]:
        """Lines that fit the width; `alongside` and `hint` are at the end of the first one."""
        end = f"{f' · {alongside}' if alongside else ''}{{}}{hint}"
        if self._calls:
            calls, now = list(self._calls.values()), self._clock()
            if rows == 1:
                words = (newest_lines(calls[-1].output, 1) or [_text(calls[-1].words)])[0]
                count = f"{len(calls)} calls · " if len(calls) > 1 else ""
                return [ActivityLine("spinner", _with_end(count + words, end, _seconds(now - calls[0].began_at), columns))]
            if len(calls) == 1:
                first = _with_end(_text(calls[0].words), end, _seconds(now - calls[0].began_at), columns)
                newest = newest_lines(calls[0].output, min(TAIL_LINES, rows - 1))
                return [
                    ActivityLine("spinner", first),
                    *(ActivityLine("rail", fit_row(line, "", max(columns - 2, 1))) for line in newest),
                ]
            lines: list[ActivityLine] = []
            most = min(MOST_CALLS, rows - (len(calls) > rows))
            for call in calls[:most]:
                words = _text(call.words) + "".join(f" · {line}" for line in newest_lines(call.output, 1))
                lines.append(
                    ActivityLine("spinner", _with_end(words, end if not lines else "{}", _seconds(now - call.began_at), columns))
                )
            return [*lines, *([ActivityLine("", f"and {len(calls) - most} more")] if len(calls) > most else [])]
        if self._main is None:
            return []
        now = self._clock()
        second = int(now - self._main.began_at)
        second -= second % 2 if self.is_streaming else 0  # text that streams in moves enough: every frame costs bytes
        if second != self._shown_at:
            self._shown, self._shown_at = escaped_line(_text(self._main.words)), second
        words, seconds = self._shown, _seconds(second)
        if self._data_at is None or now - self._data_at <= QUIET_S:
            return [ActivityLine("spinner", _with_end(words, end, seconds, columns))]
        silent = f"no data for {now - self._data_at:.0f} s"
        candidates = (f"{words} · {silent}{end.format(seconds)}", f"{silent}{end.format(seconds)}")
        return [
            ActivityLine(
                "spinner", next((text for text in candidates if cell_len(text) <= columns), fit_row(silent, "", columns))
            )
        ]

    @property
    def is_streaming(self) -> bool:
        return self._data_at is not None and self._clock() - self._data_at < 1

    def frame(self, frames: str) -> str:
        """The spinner, which rests while text streams in."""
        return frames[0 if self.is_streaming else int(self._clock() * FRAMES_PER_S) % len(frames)]


class BottomLine(Surface):
    """Paints one line below the output, where there is no live region, and erases it before anything else is printed."""

    tick_s = 0.1
    is_alive = True

    def __init__(self, stdout: Stdout, state: TerminalState) -> None:
        self._stdout, self._state = stdout, state
        self._dim, self._normal = ("\x1b[2m", "\x1b[0m") if stdout.has_colours else ("", "")
        self._frames = FRAMES if "utf" in stdout.encoding.lower() else PLAIN_FRAMES
        self._frame = 0
        self._painted_at = 0.0
        self._is_shown = self._is_cursor_hidden = False

    def tick(self, activity: Activity) -> None:
        self._frame = (self._frame + 1) % len(self._frames)
        if activity.is_held:
            return
        if time.monotonic() - self._painted_at >= _REPAINT_S:
            self._painted_at, self._is_shown, self._is_cursor_hidden = time.monotonic(), True, True
            # the cursor returns to the start, so that a resize cannot strand the line
            self._write(f"\r\x1b[?25l\x1b[J{self._dim}{self.line(activity)}{self._normal}\r")
        elif self._is_shown:
            self._write(f"{self._dim}{self._frames[self._frame]}{self._normal}\r")

    def clear(self, activity: Activity) -> None:
        if self._is_shown:
            self._stdout.write("\r\x1b[J")
            self._is_shown = False

    def rest(self) -> None:
        self._stdout.write("\x1b[?25h" if self._is_cursor_hidden else "")
        self._is_cursor_hidden = False
        self._stdout.flush()

    def line(self, activity: Activity) -> str:
        columns = max(self._stdout.columns - 3, 2)
        hint = _HINT if columns >= _ROOM_FOR_HINT else ""
        lines = activity.lines(columns, alongside=self._state.alongside, hint=hint)
        return " ".join([self._frames[self._frame], *(line.text for line in lines)])

    def _write(self, painted: str) -> None:
        self._stdout.write(painted)
        self._stdout.flush()


class Announcements(Surface):
    """Prints a line once for work that takes longer than a second, where nothing on the screen may change."""

    tick_s = 0.1
    is_alive = False

    def __init__(self, print_line: Callable[[str], None]) -> None:
        self._print = print_line

    def tick(self, activity: Activity) -> None:
        for words in activity.slow_words():
            self._print(f"… {words}")

    def clear(self, activity: Activity) -> None:
        activity.skip_announcement()


def newest_lines(output: str, most: int) -> list[str]:
    """Lines with text; a carriage return, which progress bars write, begins a new one."""
    lines = [line.strip().replace("\t", " ") for line in clean(output.replace("\r", "\n")).split("\n")]
    return [line for line in lines if line][-most:]


def fit_row(text: str, end: str, columns: int) -> str:
    """Returns one row: the text is cut first, then the end is omitted."""
    room = columns - cell_len(end)
    if room < LEAST_WORDS:
        return set_cell_size(text, columns).rstrip()
    if cell_len(text) > room:
        text = set_cell_size(text, room - 1).rstrip() + "…"
    return text + end


def progress_bar(done_bytes: int, total_bytes: int) -> str:
    """A bar, the share and the size in megabytes."""
    share = done_bytes / max(total_bytes, 1)
    bar = "━" * round(share * BAR_CELLS) + "─" * (BAR_CELLS - round(share * BAR_CELLS))
    return f"{bar} {share:.0%} · {done_bytes / 1e6:,.0f} of {total_bytes / 1e6:,.0f} MB"


def _text(words: Words) -> str:
    return words if isinstance(words, str) else words()


def _with_end(text: str, end: str, seconds: str, columns: int) -> str:
    """Leaves out all but the seconds where there is little room."""
    whole = end.format(seconds)
    return fit_row(text, whole if columns - cell_len(whole) >= LEAST_WORDS else seconds, columns)


def _seconds(elapsed_s: float) -> str:
    return f" · {int(elapsed_s)} s"
