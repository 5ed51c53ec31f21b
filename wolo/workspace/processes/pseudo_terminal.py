"""A pseudo terminal, on which a program sees a keyboard and a screen."""

from __future__ import annotations

import asyncio
import os
import struct
from contextlib import suppress

from wolo.operating_system import terminal_control

COLUMNS, ROWS = 80, 24
"""Of a new terminal; a program may change them (`stty cols 120`)."""
MOST_COLUMNS, MOST_ROWS = 500, 200
"""Larger sizes are treated as these."""


def open_terminal() -> tuple[int, int]:
    """Returns the descriptors of wolo's side and of the program's side. Raises OSError."""
    fcntl, termios = terminal_control()
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    return ours, theirs


def read_size(fd: int) -> tuple[int, int]:
    """Columns and rows that the program set last. Raises OSError."""
    fcntl, termios = terminal_control()
    rows, columns = struct.unpack("HHHH", fcntl.ioctl(fd, termios.TIOCGWINSZ, b"\0" * 8))[:2]
    return min(max(columns, 1), MOST_COLUMNS), min(max(rows, 1), MOST_ROWS)


async def type_into(fd: int, data: bytes, timeout_s: float) -> int:
    """Types on wolo's side, which does not block; returns the number of bytes that the terminal took in time.

    Raises OSError when the program's side is closed.
    """
    loop, num_typed = asyncio.get_running_loop(), 0
    with suppress(TimeoutError):
        async with asyncio.timeout(timeout_s):
            while num_typed < len(data):
                try:
                    num_typed += os.write(fd, data[num_typed:])
                except BlockingIOError:
                    has_room = asyncio.Event()
                    loop.add_writer(fd, has_room.set)
                    try:
                        await has_room.wait()
                    finally:
                        loop.remove_writer(fd)
    return num_typed
