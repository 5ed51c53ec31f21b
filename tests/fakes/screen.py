"""A terminal for `wolo`: a real pty, with an emulated screen that shows what a person would see."""

from __future__ import annotations

import contextlib
import copy
import os
import re
import signal
import sys
import termios
import time
import tty
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pexpect
import ptyprocess
import pyte

from tests.fakes.fork_server import Start, can_fork, current_umask, fork
from wolo.frontends.terminal.live.live_region import PLACEHOLDERS
from wolo.frontends.terminal.panels.panel import BOTTOM, SIDE


@dataclass(frozen=True)
class Kind:
    """What the terminal of a test is like, where the test itself does not say."""

    rows: int = 24
    columns: int = 80
    pause_s: float = 0.0
    """After each piece that it takes in: a slow line, behind which the program's bytes pile up."""
    piece_bytes: int = 65_536


KINDS = {"usual": Kind(), "small": Kind(rows=5, columns=20), "slow": Kind(pause_s=0.1, piece_bytes=8_192)}


class Conditions:
    """Under which the suite runs: `pytest --terminal=…` chooses."""

    kind = KINDS["usual"]


KEY_PROTOCOLS = (b"\x1b[>1u", b"\x1b[<u", b"\x1b[>4;1m", b"\x1b[>4;0m")
CUTS_ROWS = "XTerm(390)"
"""The emulated screen does with rows that have become too long what xterm does: it does not wrap them anew."""

KEYS = {
    "enter": "\r",
    "escape": "\x1b",
    "tab": "\t",
    "backspace": "\x7f",
    "ctrl-c": "\x03",
    "ctrl-d": "\x04",
    "ctrl-j": "\n",
    "ctrl-l": "\x0c",
    "ctrl-r": "\x12",
    "ctrl-z": "\x1a",
    "up": "\x1b[A",
    "down": "\x1b[B",
    "right": "\x1b[C",
    "left": "\x1b[D",
    "home": "\x1b[H",
    "end": "\x1b[F",
    "alt-enter": "\x1b\r",
    "shift-tab": "\x1b[Z",
    "page-up": "\x1b[5~",
    "page-down": "\x1b[6~",
}


PATIENCE_S = 30.0
"""Long enough for a machine that does many other things."""
PROMPT = "›"
UNDER_WAY = re.compile(r"(?:· |no data for )\d+ s$")
LATEST_BYTES = 65_536
NARROW_COLUMNS = 40
"""In which hardly a sentence stands on one row."""
ALTERNATE = 1049
GOES_ON = -1
"""The column in which a row notes that its line goes on in the next row."""


class Screen(pyte.HistoryScreen):
    """Remembers which rows it has wrapped by itself, and keeps what scrolls away as text."""

    def __init__(self, columns: int, rows: int) -> None:
        self.gone: list[tuple[str, bool]] = []
        """Rows that have scrolled away, and whether their line goes on in the next."""
        self._is_drawing = False
        self._main: tuple[object, ...] | None = None
        """Rows, scrollback and cursor, while the alternate screen is shown."""
        super().__init__(columns, rows, history=1, ratio=0.5)

    @property
    def is_alternate(self) -> bool:
        return self._main is not None

    def set_mode(self, *modes: int, **kwargs: bool) -> None:
        if kwargs.get("private") and ALTERNATE in modes and self._main is None:
            self._main = (copy.deepcopy(self.buffer), self.gone, copy.copy(self.cursor))
            self.gone = []
            self.erase_in_display(2)
        super().set_mode(*modes, **kwargs)

    def reset_mode(self, *modes: int, **kwargs: bool) -> None:
        if kwargs.get("private") and ALTERNATE in modes and self._main is not None:
            self.buffer, self.gone, self.cursor = self._main
            self._main = None
        super().reset_mode(*modes, **kwargs)

    def draw(self, data: str) -> None:
        self._is_drawing = True
        super().draw(data)
        self._is_drawing = False

    def linefeed(self) -> None:
        if self._is_drawing:
            self.buffer[self.cursor.y][GOES_ON] = self.cursor.attrs._replace(data="goes on")
        super().linefeed()

    def index(self) -> None:
        if self.cursor.y == self.lines - 1 and self.margins is None:
            self.gone.append(self._row(0))
        super().index()

    def erase_in_line(self, how: int = 0, private: bool = False) -> None:
        super().erase_in_line(how, private)
        if how != 1:
            self.buffer[self.cursor.y].pop(GOES_ON, None)

    def _row(self, at: int) -> tuple[str, bool]:
        row = self.buffer[at]
        return "".join(row[column].data for column in range(self.columns)), row[GOES_ON].data == "goes on"

    def lines_ever(self) -> Iterator[str]:
        """What has scrolled away and what is there, rows that were wrapped joined to lines."""
        line = ""
        for row, goes_on in [*self.gone, *(self._row(at) for at in range(self.lines))]:
            line += row
            if not goes_on:
                yield line.rstrip()
                line = ""
        if line:
            yield line.rstrip()


class View:
    """What a person sees of the bytes that were written."""

    def __init__(self, rows: int, columns: int) -> None:
        self.raw = bytearray()
        """Every byte the program wrote."""
        self._screen = Screen(columns, rows)
        self._stream = pyte.ByteStream(self._screen)

    def feed(self, written: bytes) -> None:
        self.raw += written
        for asked in KEY_PROTOCOLS:  # pyte takes them for colours and text
            written = written.replace(asked, b"")
        self._stream.feed(written)

    @property
    def is_updating(self) -> bool:
        """Inside a synchronized update, which a person sees as a whole; a pty hands it on in pieces."""
        latest = self.raw[-LATEST_BYTES:]
        return latest.rfind(b"\x1b[?2026h") > latest.rfind(b"\x1b[?2026l")

    @property
    def lines(self) -> list[str]:
        """The visible rows, without trailing blanks and without decoration."""
        return [_without_decoration(line.rstrip()) for line in self._screen.display]

    @property
    def text(self) -> str:
        """The scrollback and what is visible, without the line breaks that the terminal made."""
        return "\n".join(map(_without_decoration, self._screen.lines_ever()))

    @property
    def is_idle(self) -> bool:
        """The empty prompt, and below it the line of facts."""
        if self.is_narrow:  # what is under way says so in fewer words
            above, prompt = ["", "", *self.text.rstrip().split("\n")][-3:-1]
            return prompt == PROMPT and not above.startswith(" ") and UNDER_WAY.search(above) is None
        *above, prompt, facts = ["", "", *(line for line in self.text.split("\n") if line.strip())]
        return prompt == PROMPT and " · " in facts and "Esc stops" not in "".join(above[-3:])

    @property
    def is_alternate(self) -> bool:
        """The alternate screen is shown, which leaves nothing in the scrollback."""
        return self._screen.is_alternate

    @property
    def is_narrow(self) -> bool:
        return self._screen.columns < NARROW_COLUMNS

    def shows(self, wanted: str) -> bool:
        return self.times(wanted) > 0

    def times(self, wanted: str) -> int:
        """How often it can be read, also where a line was broken at a space; in a narrow window wherever its words are broken."""
        if self.is_narrow:
            return _squeezed(self.text).count(_squeezed(wanted))
        return len(re.findall(r"(?: |\n *)".join(map(re.escape, wanted.split(" "))), self.text))

    @property
    def cells(self) -> list[list[pyte.screens.Char]]:
        """The visible rows, cell by cell."""
        return [[self._screen.buffer[row][column] for column in range(self._screen.columns)] for row in range(self._screen.lines)]

    @property
    def cursor(self) -> tuple[int, int]:
        """Row and column, from 0."""
        return self._screen.cursor.y, self._screen.cursor.x


class Terminal(View):
    def __init__(self, child: pexpect.spawn[bytes], rows: int, columns: int) -> None:
        super().__init__(rows, columns)
        self.child = child

    # What a person does

    def type(self, written: str) -> None:
        self.child.send(written.encode())

    def press(self, *keys: str) -> None:
        for key in keys:
            self.child.send(KEYS[key].encode())

    def paste(self, written: str) -> None:
        """A bracketed paste."""
        self.child.send(b"\x1b[200~" + written.encode() + b"\x1b[201~")

    def enter(self, written: str) -> None:
        self.type(written)
        self.press("enter")

    def resize(self, rows: int, columns: int) -> None:
        self._screen.resize(rows, columns)
        self.child.setwinsize(rows, columns)

    # What a person waits for

    def wait_for(self, wanted: str, timeout_s: float = PATIENCE_S) -> None:
        self.wait_until(lambda: self.shows(wanted), timeout_s, f"{wanted!r} did not appear")

    def wait_for_prompt(self) -> None:
        """Nothing is under way, and there is room to write."""
        self.wait_until(lambda: self.is_idle, complaint="there was no prompt")

    def say(self, line: str, answer: str) -> None:
        """Sends the line from an empty prompt, and waits for an answer that was not there before, and for the next prompt."""
        self.wait_for_prompt()
        before = self.times(answer)
        self.enter(line)
        self.wait_until(lambda: self.times(answer) > before, complaint=f"{answer!r} did not appear once more")
        self.wait_for_prompt()

    def wait_until(self, holds: Callable[[], bool], timeout_s: float = PATIENCE_S, complaint: str = "it did not happen") -> None:
        deadline = time.monotonic() + timeout_s
        while self.is_updating or not holds():
            if time.monotonic() > deadline:
                raise AssertionError(f"{complaint} within {timeout_s} s; the screen shows:\n{self.text}")
            if not self._read():
                if holds():
                    return
                raise AssertionError(f"{complaint}, and the program has ended; the screen shows:\n{self.text}")

    def wait_for_exit(self, timeout_s: float = PATIENCE_S) -> int:
        """The exit status; death by signal n is reported as -n."""
        deadline = time.monotonic() + timeout_s
        while self._read():
            assert time.monotonic() < deadline, f"it did not end within {timeout_s} s; the screen shows:\n{self.text}"
        self.child.wait()
        return -self.child.signalstatus if self.child.signalstatus else int(self.child.exitstatus or 0)

    def _read(self) -> bool:
        """Takes in what has been written, waiting a moment for it; False once the program has closed the terminal."""
        kind = Conditions.kind
        time.sleep(kind.pause_s)
        try:
            written = self.child.read_nonblocking(kind.piece_bytes, timeout=0.05)
        except pexpect.TIMEOUT:
            return True
        except pexpect.EOF:
            return False
        self.feed(written)
        return True


def _without_decoration(row: str) -> str:
    """Without the side of a panel's border, and without what an empty composer says."""
    if row in [f"{PROMPT} {placeholder}" for placeholder in PLACEHOLDERS]:
        return PROMPT
    return row.removeprefix(SIDE).removeprefix(BOTTOM)


def _squeezed(text: str) -> str:
    return "".join(text.split())


@contextlib.contextmanager
def pty_wolo(
    *args: str,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    rows: int | None = None,
    columns: int | None = None,
    forked: bool = True,
) -> Iterator[Terminal]:
    """`wolo` in a terminal; killed at the end if it still runs. Who names a size needs it: the other may be small.

    `forked=False` starts a new interpreter also where a fork would do.
    """
    if rows is None and columns is None:
        rows, columns = Conditions.kind.rows, Conditions.kind.columns
    rows, columns = rows or Kind.rows, columns or Kind.columns
    inherited = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    whole = {**inherited, "TERM": "xterm-256color", "XTERM_VERSION": CUTS_ROWS, **(env or {})}
    spawn = _fork_in_pty if forked and can_fork(whole) else _spawn_in_pty
    with _terminal_of(spawn(args, whole, (cwd or Path()).absolute(), (rows, columns)), rows, columns) as terminal:
        yield terminal


@contextlib.contextmanager
def pty_program(
    command: Sequence[str], env: Mapping[str, str], cwd: Path | None = None, *, is_raw: bool = False
) -> Iterator[Terminal]:
    """Another program than wolo itself, in a terminal. `is_raw`: keys reach it as they are, from the first one on."""
    before = (lambda: tty.setraw(0)) if is_raw else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # as below
        child = pexpect.spawn(
            command[0],
            [*command[1:]],
            env=dict(env),
            cwd=str(cwd or Path()),
            dimensions=(Kind.rows, Kind.columns),
            preexec_fn=before,
        )
    with _terminal_of(child, Kind.rows, Kind.columns) as terminal:
        yield terminal


@contextlib.contextmanager
def _terminal_of(child: pexpect.spawn[bytes], rows: int, columns: int) -> Iterator[Terminal]:
    child.delaybeforesend = None
    child.ptyproc.delayafterclose = 0.01  # pexpect would sleep a tenth of a second, in every test
    try:
        yield Terminal(child, rows, columns)
    finally:
        with contextlib.suppress(pexpect.ExceptionPexpect, ptyprocess.PtyProcessError):
            child.close(force=True)
        if child.isalive():  # it has had little time to end
            child.kill(signal.SIGKILL)
            child.wait()


def _spawn_in_pty(args: Sequence[str], env: Mapping[str, str], cwd: Path, size: tuple[int, int]) -> pexpect.spawn[bytes]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the provider's threads do not matter: the child execs at once
        return pexpect.spawn(sys.executable, ["-m", "wolo", *args], env=dict(env), cwd=str(cwd), dimensions=size)


def _fork_in_pty(args: Sequence[str], env: Mapping[str, str], cwd: Path, size: tuple[int, int]) -> pexpect.spawn[bytes]:
    """Does what `pexpect.spawn` does with a command, which it can only execute."""
    ours, theirs = os.openpty()
    termios.tcsetwinsize(theirs, size)
    start = Start(args, env, str(cwd.absolute()), current_umask(), leads_session=True, owns_terminal=True)
    child = pexpect.spawn(None)
    child.ptyproc = ptyprocess.PtyProcess(fork(start, theirs, theirs, theirs), ours)
    os.close(theirs)
    child.pid, child.child_fd, child.name = child.ptyproc.pid, ours, "wolo"
    child.closed = child.terminated = False
    return child
