"""Modes of the terminal's input, and lines from it: no echo while wolo runs, restored at the end.

`PosixKeyboard` sets the modes of a terminal. `LineKeyboard` is for consoles whose modes wolo does not know, as those of Windows:
they echo only while a line is read.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import os
import select
import sys
import threading
import time
from typing import Any, Protocol

termios: Any = None
with contextlib.suppress(ImportError):  # Windows has none
    termios = importlib.import_module("termios")
_IFLAG, _LFLAG, _CC = 0, 3, 6
"""Indexes in the result of `tcgetattr`."""
_MOST_BYTES = 65_536
_STDIN, _POLL_S = -10, 0.05
INTERRUPTED = b"\x03"
"""Ctrl-C where it is no signal."""


class Keyboard(Protocol):
    @property
    def is_hushed(self) -> bool: ...

    def hush(self) -> None:
        """Turns echo off, so that typed keys do not appear in the output; they wait to be read. Ctrl-C stays a signal."""

    def release(self) -> None:
        """Restores the modes; typed keys are not lost."""

    def pause(self) -> None:
        """Restores the modes before the process stops (Ctrl-Z)."""

    def resume(self) -> None:
        """Turns echo off again after `fg`: the shell has set its own modes."""

    def forget_typed(self) -> None:
        """Drops typed keys that were not read."""

    async def read(self, within_s: float | None = None, *, is_hidden: bool = False) -> bytes:
        """What was typed: a line, or keys while there is no echo. Empty at the end of input, and after the timeout.

        `is_hidden`: without echo.
        """


def make_keyboard() -> Keyboard:
    return LineKeyboard() if termios is None else PosixKeyboard()


class PosixKeyboard:
    def __init__(self) -> None:
        self._descriptor = sys.stdin.fileno()
        self._before: list[Any] | None = None
        """Modes before `hush`; None while echo is on."""

    @property
    def is_hushed(self) -> bool:
        return self._before is not None

    def hush(self) -> None:
        if self._before is None and self._is_ours():
            with contextlib.suppress(termios.error):
                self._before = termios.tcgetattr(self._descriptor)
                self._set_quiet()

    def release(self) -> None:
        before, self._before = self._before, None
        if before is not None:
            with contextlib.suppress(termios.error):
                termios.tcsetattr(self._descriptor, termios.TCSANOW, before)

    def pause(self) -> None:
        if self._before is not None:
            with contextlib.suppress(termios.error):
                termios.tcsetattr(self._descriptor, termios.TCSANOW, self._before)

    def resume(self) -> None:
        if self._before is not None and self._is_ours():
            with contextlib.suppress(termios.error):
                self._set_quiet()

    def forget_typed(self) -> None:
        with contextlib.suppress(termios.error):
            termios.tcflush(self._descriptor, termios.TCIFLUSH)

    async def read(self, within_s: float | None = None, *, is_hidden: bool = False) -> bytes:
        loop, is_ready = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(self._descriptor, is_ready.set)
        try:
            async with asyncio.timeout(within_s):
                await is_ready.wait()
            return os.read(self._descriptor, _MOST_BYTES)
        except (TimeoutError, OSError):
            return b""
        finally:
            loop.remove_reader(self._descriptor)

    def _set_quiet(self) -> None:
        modes = termios.tcgetattr(self._descriptor)
        modes[_IFLAG] &= ~termios.ICRNL
        modes[_LFLAG] &= ~(termios.ICANON | termios.ECHO)
        modes[_CC][termios.VMIN], modes[_CC][termios.VTIME] = 1, 0
        termios.tcsetattr(self._descriptor, termios.TCSANOW, modes)

    def _is_ours(self) -> bool:
        """Changing the modes would stop a background process."""
        try:
            return os.tcgetpgrp(self._descriptor) == os.getpgrp()
        except OSError:
            return False


class LineKeyboard:
    """Reads in a thread, since loops of Windows watch no consoles."""

    is_hushed = False

    def __init__(self) -> None:
        self._reading: asyncio.Future[bytes] | None = None
        """Of a read that nobody waits for any more; the next one gets what it reads."""

    def hush(self) -> None: ...

    def release(self) -> None: ...

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def forget_typed(self) -> None:
        if self._reading is not None and self._reading.done():
            self._reading = None
        while self._reading is None and self._has_keys():
            self._read_keys(is_hidden=True)

    async def read(self, within_s: float | None = None, *, is_hidden: bool = False) -> bytes:
        if within_s is not None and not self._has_keys():
            return b""
        if self._reading is None:
            loop = asyncio.get_running_loop()
            self._reading = loop.create_future()
            threading.Thread(target=self._read_in_thread, args=(loop, self._reading, is_hidden), daemon=True).start()
        typed = await asyncio.shield(self._reading)
        self._reading = None
        return b"" if typed in (b"\x04\n", b"\x1a\n") else typed

    def _read_in_thread(self, loop: asyncio.AbstractEventLoop, reading: asyncio.Future[bytes], is_hidden: bool) -> None:
        typed = self._read_keys(is_hidden=is_hidden)
        with contextlib.suppress(RuntimeError):  # the loop was closed
            loop.call_soon_threadsafe(reading.set_result, typed)

    def _has_keys(self) -> bool:
        if sys.platform != "win32":
            return bool(select.select([sys.stdin.fileno()], [], [], 0)[0])
        import msvcrt  # noqa: PLC0415  # Windows only

        return msvcrt.kbhit()

    def _read_keys(self, *, is_hidden: bool) -> bytes:
        if is_hidden and sys.platform == "win32":
            import msvcrt  # noqa: PLC0415  # Windows only

            return msvcrt.getwch().encode("utf-8", "surrogatepass")
        if sys.platform == "win32" and sys.stdin.isatty():
            return _read_console()
        stdin: Any = sys.stdin
        try:  # not by its buffer, whose lock a thread would hold at the exit
            return (stdin.buffer.raw.read(_MOST_BYTES) or b"").replace(b"\r\n", b"\n")
        except (OSError, ValueError):
            return b""


def _read_console() -> bytes:
    """A line of the console of Windows; empty when it is gone. Python would take a line that Ctrl-C drops for the end."""
    import ctypes  # noqa: PLC0415  # not needed elsewhere

    kernel: Any = ctypes.WinDLL("kernel32")  # type: ignore[attr-defined,unused-ignore]  # Windows only
    kernel.GetStdHandle.restype = ctypes.c_void_p
    console = ctypes.c_void_p(kernel.GetStdHandle(_STDIN))
    text, num_read = ctypes.create_unicode_buffer(_MOST_BYTES // 4), ctypes.c_ulong()
    while kernel.ReadConsoleW(console, text, len(text), ctypes.byref(num_read), None):
        if num_read.value:
            line = "".join(text[: num_read.value])
            return line.replace("\r\n", "\n").encode("utf-8", "surrogatepass")
        time.sleep(_POLL_S)
    return b""
