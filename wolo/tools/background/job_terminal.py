"""The terminal of a background job: shows its screen as text, and types on its keyboard."""

from __future__ import annotations

import asyncio
import codecs
import logging
import os
import re
import time
import unicodedata
from collections.abc import Callable
from contextlib import suppress
from itertools import accumulate
from typing import TYPE_CHECKING

from wolo.errors import ToolError
from wolo.guard.secrets.redactor import Secrets
from wolo.guard.shell.nested_commands import reads_lines
from wolo.guard.shell.parser import TooComplex
from wolo.workspace.processes.pseudo_terminal import COLUMNS, ROWS, read_size, type_into

if TYPE_CHECKING:
    import pyte

log = logging.getLogger(__name__)

MOST_TYPED_CHARS = 10_000
MOST_LINE_BYTES = 1000
"""A terminal drops the end of longer lines, and says nothing."""
_TYPING_S = 2.0
_QUIET_S = 0.15
"""Without output for so long, the program is taken to have answered."""
_PENDING_BYTES = 64 * 1024
_HELD_CHARS = 256
"""An escape sequence that is longer is no sequence."""
_HISTORY_ROWS = 100
"""Above the screen, for secrets that began there."""
_FEED_EVERY_S = 1.0
_ASKS = rb"\x1b\[0?(?:5n|6n|c)"
"""The program asks the terminal about itself, and may wait for the answer."""
_SIGNALS = ("", "\x03", "\x04", "\x1a", "\x1c")
_EDITS = r"[^\r\n\x20-\x7e\x80-\U0010ffff]|![^\s=]|^\^"
"""Keys with which a shell completes or changes a line, and its references to earlier lines."""
_STATE = r"\b(?:cd|pushd|popd)\b[^;&|\r]*|(?:^|(?<=[\s;&|]))\w+=[^\s;&|]*"
_HALF_LINE = "A shell runs whole lines, and with these keys it is not known which."
_UNKNOWN = (
    r"\x1b[PX^_][^\x1b\x07]*(?:\x1b\\|\x07)?"  # strings to the terminal
    r"|\x1b\[[<=>][0-?]*[ -/]*[@-~]|\x1b\[[0-?]*[ -/]+[@-~]"  # private sequences, and those with an intermediate byte
    r"|\x1b\[\?[0-9;]*[cn]|\x1b\[[0-9;]*:[0-9;:]*m"
)
"""Sequences that the emulator would show as text, or fails at."""
_UNFINISHED = r"\x1b(?:\[[0-?]*[ -/]*|[PX^_][^\x1b\x07]*)?$"


class JobTerminal:
    """The emulator is loaded and fed when the screen is looked at; of a flood it gets the end."""

    def __init__(self, secrets: Secrets) -> None:
        self.find_descriptor: Callable[[], int | None] = lambda: None
        """Returns wolo's side of the terminal; None before the start and after the end of the program."""
        self.is_mid_line = False
        """Something was typed since the last Enter."""
        self.state_typed: dict[str, None] = {}
        """What was typed to change the directory and variables of a shell."""
        self._secrets = secrets
        self._pending = bytearray()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._unfinished = ""
        self._emulator: tuple[pyte.HistoryScreen, pyte.Stream] | None = None
        self._fed_at = 0.0
        self._printed = asyncio.Event()

    def pass_on(self, take: Callable[[bytes], None]) -> Callable[[bytes], None]:
        """Returns what takes output for this terminal and `take`."""

        def take_both(chunk: bytes) -> None:
            take(chunk)
            self._add(chunk)

        return take_both

    def _add(self, chunk: bytes) -> None:
        self._printed.set()
        self._pending += chunk
        asks = len(chunk) <= _HELD_CHARS and re.search(_ASKS, self._pending[-2 * _HELD_CHARS :]) is not None
        if asks or (len(self._pending) > _PENDING_BYTES and time.monotonic() - self._fed_at >= _FEED_EVERY_S):
            self._feed()
        elif len(self._pending) > _PENDING_BYTES:
            start = len(self._pending) - _PENDING_BYTES // 2
            del self._pending[: self._pending.find(b"\n", start) + 1 or start]

    def show(self) -> str:
        """The screen as text, with the position of the cursor; secrets are redacted."""
        self._feed()
        screen = self._screen()[0]
        history = ["".join(row[at].data for at in range(screen.columns)) for row in screen.history.top]
        rows = [*history, *screen.display]
        flat = "".join(rows)
        masked = self._secrets.exact.mask(flat.encode()).decode()
        text = self._secrets.hide("\n".join(row.rstrip() for row in rows))
        if masked != flat and text.count("\n") == len(rows) - 1:  # no placeholder for a value that the terminal has wrapped
            ends = accumulate(map(len, rows))
            text = "\n".join(masked[end - len(row) : end].rstrip() for end, row in zip(ends, rows, strict=True))
        lines = text.split("\n")[-screen.lines :]
        text = "\n".join(lines).rstrip("\n")
        row, column = screen.cursor.y + 1, min(screen.cursor.x + 1, screen.columns)
        return f"{text}\n[screen of {screen.columns}×{screen.lines}; the cursor is in row {row}, column {column}]\n"

    async def type(self, text: str) -> int:
        """Types, Enter for each line end; returns the number of characters that were taken. Raises ToolError."""
        if (fd := self.find_descriptor()) is None:
            raise ToolError("The program has closed its terminal; nothing was typed.")
        data = text.replace("\r\n", "\r").replace("\n", "\r").encode()
        self._printed.clear()
        try:
            num_bytes = await type_into(fd, data, _TYPING_S)
        except OSError as error:
            raise ToolError(f"Nothing more can be typed: {error.strerror}.") from error
        typed = data[:num_bytes].decode(errors="ignore")
        self.is_mid_line = not typed.endswith("\r") and (self.is_mid_line or typed not in _SIGNALS)
        self.state_typed |= dict.fromkeys(each.strip() for each in re.findall(_STATE, typed))
        return len(typed)

    async def wait(self, timeout_s: float) -> None:
        """Returns when the program has printed something and pauses, or the timeout has passed."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._printed.wait()
                while self._printed.is_set():
                    self._printed.clear()
                    with suppress(TimeoutError):
                        await asyncio.wait_for(self._printed.wait(), _QUIET_S)

    def _screen(self) -> tuple[pyte.HistoryScreen, pyte.Stream]:
        if self._emulator is None:
            self._emulator = _make_emulator(self._answer)
        return self._emulator

    def _feed(self) -> None:
        screen, stream = self._screen()
        with suppress(OSError):
            if (fd := self.find_descriptor()) is not None and (size := read_size(fd)) != (screen.columns, screen.lines):
                screen.resize(lines=size[1], columns=size[0])
        text = self._unfinished + self._decoder.decode(bytes(self._pending))
        self._pending.clear()
        self._fed_at = time.monotonic()
        held = re.search(_UNFINISHED, text[-_HELD_CHARS:])
        self._unfinished = held[0] if held else ""
        text = re.sub(_UNKNOWN, "", text[: len(text) - len(self._unfinished)])
        text = re.sub(r"[^\x00-\x9f]", _visible, text)
        try:
            stream.feed(text)
        except Exception:  # a sequence that the emulator does not know; its parser has ended
            log.debug("The emulator failed", exc_info=True)
            self._emulator = (screen, type(stream)(screen))

    def _answer(self, data: str) -> None:
        """Answers a question of the program to its terminal."""
        if (fd := self.find_descriptor()) is not None:
            with suppress(OSError):
                os.write(fd, data.encode())


def _visible(character: re.Match[str]) -> str:
    """Empty for what takes no place on a screen: at such a character the emulator would drop the rest of the text."""
    from wcwidth import wcwidth  # noqa: PLC0415  # the emulator needs it, too

    return character[0] if wcwidth(character[0]) > 0 or unicodedata.combining(character[0]) else ""


def _make_emulator(answer: Callable[[str], None]) -> tuple[pyte.HistoryScreen, pyte.Stream]:
    import pyte  # noqa: PLC0415  # few jobs have a terminal

    screen = pyte.HistoryScreen(COLUMNS, ROWS, history=_HISTORY_ROWS)
    screen.write_process_input = answer  # type: ignore[assignment, method-assign]  # the emulator's way to ask for it
    return screen, pyte.Stream(screen)


def explain_keys(terminal: JobTerminal, command: str, text: str) -> tuple[str, str]:
    """Returns earlier lines that decide what the text does in a shell, and the reason to ask whatever it is (empty: none)."""
    try:
        if not reads_lines(command):
            return "", ""
    except TooComplex as error:
        return "", str(error)
    earlier = "".join(f"{each}\n" for each in terminal.state_typed)
    if text == "\x03" or (text in _SIGNALS and not terminal.is_mid_line):
        return earlier, ""
    is_whole = text.endswith(("\n", "\r")) and not terminal.is_mid_line
    return earlier, "" if is_whole and not re.search(_EDITS, text, re.MULTILINE) else _HALF_LINE


def read_keys(text: str, secrets: Secrets) -> str:
    """The text as `%b` prints it, with escapes for keys but Enter: a command on a line of its own is found.

    Raises ToolError for what is not typed.
    """
    if not text or len(text) > MOST_TYPED_CHARS:
        raise ToolError(f"`text` has 1 to {MOST_TYPED_CHARS:,} characters.")
    if secrets.hide(text) != text:
        raise ToolError("`text` has the value of a secret, and secrets are never typed. Ask the user to run this command.")
    try:
        lines = text.encode().splitlines()
    except UnicodeEncodeError as error:
        raise ToolError("`text` contains half of a surrogate pair.") from error
    if any(len(line) > MOST_LINE_BYTES for line in lines):
        raise ToolError(f"A line of `text` has more than {MOST_LINE_BYTES:,} bytes, which terminals cut; put it into a file.")
    text = text.replace("\r\n", "\n").replace("\r", "\n")  # both are Enter
    return "".join(
        each if each == "\n" or (each.isprintable() and each != "\\") else each.encode("unicode_escape").decode() for each in text
    )
