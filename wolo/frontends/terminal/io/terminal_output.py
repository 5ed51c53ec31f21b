"""Writes to the terminal: to stdout while somebody holds the other end, or without waiting for a slow terminal."""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol


class Stdout:
    """Stdout of the screen. Writing to a closed terminal does nothing."""

    def __init__(self) -> None:
        self.is_plain = False
        """Prints complete lines only, as for a screen reader."""
        self._stream = sys.stdout
        with contextlib.suppress(AttributeError):
            sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]  # the locale may lack characters

    @property
    def encoding(self) -> str:
        return self._stream.encoding

    @property
    def can_move(self) -> bool:
        """The cursor can move, so lines can be repainted; consoles of Windows are not asked."""
        return (
            not self.is_plain
            and hasattr(os, "ttyname")
            and os.environ.get("TERM", "dumb") not in ("dumb", "unknown", "")
            and self.isatty()
        )

    @property
    def has_colours(self) -> bool:
        return self.can_move and not os.environ.get("NO_COLOR")

    @property
    def columns(self) -> int:
        try:
            return os.get_terminal_size(self.fileno()).columns or 80
        except (OSError, ValueError):
            return 80

    @property
    def rows(self) -> int:
        try:
            return os.get_terminal_size(self.fileno()).lines or 24
        except (OSError, ValueError):
            return 24

    def isatty(self) -> bool:
        return self._stream.isatty()

    def fileno(self) -> int:
        return self._stream.fileno()

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except (OSError, ValueError):
            self.let_go()
            return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except (OSError, ValueError):
            self.let_go()

    def let_go(self) -> None:
        """Redirects stdout and stderr to the null device: the terminal is closed."""
        with contextlib.suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.fileno())
            os.dup2(nowhere, 2)
            os.close(nowhere)


PATIENCE_S = 2.0
"""Time to wait at exit for a terminal that takes nothing."""
_PIECE_BYTES = 65_536


class Sender(Protocol):
    def send(self, sequence: str) -> None:
        """Writes a control sequence to the terminal."""


class AsyncOutput:
    """Writes without blocking, through its own descriptor: modes of the given one are shared with other processes."""

    def __init__(self, descriptor: int, on_room: Callable[[], None]) -> None:
        """`on_room` is called when the terminal has taken everything that waited."""
        self._given, self._on_room = descriptor, on_room
        self._own: int | None = None
        self._waiting = bytearray()
        self._loop: asyncio.AbstractEventLoop | None = None
        """Set while bytes wait for the terminal."""

    def open(self) -> None:
        with suppress(OSError):
            self._own = os.open(os.ttyname(self._given), os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)

    def close(self) -> None:
        """Gives waiting bytes a last chance."""
        self._stop_waiting()
        if self._own is None:
            return
        due = time.monotonic() + PATIENCE_S
        while self._push() and (left_s := due - time.monotonic()) > 0:
            select.select([], [self._own], [], left_s)
        self._waiting.clear()
        os.close(self._own)
        self._own = None

    @property
    def is_behind(self) -> bool:
        """Bytes wait: painting now would only add to them."""
        return bool(self._waiting)

    def write(self, data: bytes) -> None:
        self._waiting += data
        if self._own is None:
            # Blocks: used where the terminal cannot be opened a second time
            with suppress(OSError):
                while self._waiting:
                    del self._waiting[: os.write(self._given, self._waiting)]
            self._waiting.clear()
        elif self._loop is None and self._push():
            self._loop = asyncio.get_running_loop()
            self._loop.add_writer(self._own, self._continue)

    def _continue(self) -> None:
        if not self._push():
            self._stop_waiting()
            self._on_room()

    def _stop_waiting(self) -> None:
        if self._loop is not None and self._own is not None:
            self._loop.remove_writer(self._own)
        self._loop = None

    def _push(self) -> bool:
        """True if bytes are left. A closed terminal drops them all."""
        assert self._own is not None
        try:
            while self._waiting:
                del self._waiting[: os.write(self._own, self._waiting[:_PIECE_BYTES])]
        except BlockingIOError:
            return True
        except OSError:
            self._waiting.clear()
        return False
