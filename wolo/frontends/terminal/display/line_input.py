"""A line as the terminal itself lets one type it: for screen readers and for terminals whose cursor cannot move."""

from __future__ import annotations

import asyncio
import os
import sys

from wolo.frontends.terminal.io.keyboard import Keyboard
from wolo.frontends.terminal.io.terminal_output import Stdout

_MOST_BYTES = 65_536
_BURST_S = 0.02
"""The lines of a paste follow each other faster than this; nobody types so fast."""


async def read_typed(question: str, keyboard: Keyboard, stdout: Stdout) -> str:
    """What was typed up to Enter, or all lines of a paste. Raises EOFError for Ctrl-D on an empty line.

    Ctrl-C stays a signal: whoever asks says what it means.
    """
    was_hushed = keyboard.is_hushed
    keyboard.release()
    stdout.write(question)
    stdout.flush()
    try:
        data = await _readable()
        while data.endswith(b"\n") and (more := await _readable(_BURST_S)):
            data += more
    finally:
        if was_hushed:
            keyboard.hush()
    if not data:
        raise EOFError
    return data.decode("utf-8", "replace").removesuffix("\n")


async def _readable(within_s: float | None = None) -> bytes:
    """Empty at the end of all input, and when nothing came in time."""
    loop, descriptor = asyncio.get_running_loop(), sys.stdin.fileno()
    is_ready = asyncio.Event()
    loop.add_reader(descriptor, is_ready.set)
    try:
        async with asyncio.timeout(within_s):
            await is_ready.wait()
        return os.read(descriptor, _MOST_BYTES)
    except (TimeoutError, OSError):
        return b""
    finally:
        loop.remove_reader(descriptor)
