"""Reads lines of stdin, a terminal, pipe or file, beside a running event loop."""

from __future__ import annotations

import asyncio
import codecs
import os
import threading
from collections.abc import AsyncIterator
from contextlib import suppress


async def typed_lines(descriptor: int) -> AsyncIterator[str]:
    """Ends with the input. The thread takes no lock that the end of the process would wait for."""
    loop, queue = asyncio.get_running_loop(), asyncio.Queue[str | None]()

    def put(line: str | None) -> None:
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(queue.put_nowait, line)

    def read() -> None:
        decoder, rest = codecs.getincrementaldecoder("utf-8")("replace"), ""
        with suppress(OSError):  # the terminal has gone
            while data := os.read(descriptor, 65536):
                *lines, rest = (rest + decoder.decode(data)).split("\n")
                for line in lines:
                    put(line.rstrip("\r"))
        if rest:
            put(rest)
        put(None)

    threading.Thread(target=read, daemon=True, name="typed lines").start()
    while (line := await queue.get()) is not None:
        yield line
