"""Reads a program's output to the end, storing a bounded part of it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import threading
from collections import deque
from collections.abc import Callable

OnOutput = Callable[[bytes], None]
"""Called with each chunk; must not raise."""
KEPT_BYTES = 4 * 1024 * 1024
"""Stored of each end of the output; the middle is dropped."""
_CHUNK_BYTES = 256 * 1024
_BURST_BYTES = 1024 * 1024
_PAUSE_S = 0.05
"""Pause after each burst of a flood, for other work."""


class CapturedOutput:
    """Both ends of a program's output. Readable at any time, also after a cancellation."""

    def __init__(self, kept_bytes: int = KEPT_BYTES) -> None:
        self.size_bytes = 0
        self.omitted_bytes = 0
        """Dropped in the middle."""
        self._kept_bytes = kept_bytes
        self._head = bytearray()
        self._tail: deque[bytearray] = deque()
        self._tail_bytes = 0

    def add(self, chunk: bytes) -> None:
        self.size_bytes += len(chunk)
        room = self._kept_bytes - len(self._head)
        if room > 0:
            self._head += chunk[:room]
            chunk = chunk[room:]
        if chunk:
            if self._tail and len(self._tail[-1]) < _CHUNK_BYTES:
                self._tail[-1] += chunk
            else:
                self._tail.append(bytearray(chunk))
            self._tail_bytes += len(chunk)
            while self._tail_bytes - len(self._tail[0]) >= self._kept_bytes:
                dropped = len(self._tail.popleft())
                self._tail_bytes -= dropped
                self.omitted_bytes += dropped

    def peek(self) -> tuple[bytes, bytes]:
        """Returns the beginning and the end, and releases nothing."""
        return bytes(self._head), b"".join(self._tail)

    def take(self) -> tuple[bytes, bytes]:
        """Returns and releases the beginning and the end; the end is empty when nothing was dropped."""
        head = bytes(self._head)
        self._head.clear()  # each end is released before the next is copied: they are large
        tail = b"".join(self._tail)
        self._tail.clear()
        return head, tail


class OutputReader:
    """Reads a program's output continuously, so that the program never blocks."""

    def __init__(self, fd: int, take: OnOutput, *, in_background: bool = False) -> None:
        """In the background a flood is read slowly, which leaves time for other work."""
        self._fd, self._on_output, self._in_background = fd, take, in_background
        self._burst_bytes = 0
        self._ended = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        if sys.platform == "win32":  # whose loops watch no pipes
            threading.Thread(target=self._read_in_thread, daemon=True).start()
        else:
            os.set_blocking(fd, False)
            self._loop.add_reader(fd, self._read)

    @property
    def descriptor(self) -> int | None:
        """None after the end."""
        return None if self._ended.is_set() else self._fd

    async def drain(self, wait_s: float) -> None:
        """Waits for the end of the output, or a while when another process keeps it open."""
        self.read_what_is_there()
        if not self._ended.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._ended.wait(), wait_s)

    def read_what_is_there(self) -> None:
        """Reads at most what a pipe can hold."""
        for _ in range(8 if sys.platform != "win32" else 0):
            if not self._read():
                return

    def discard(self) -> None:
        self._on_output = lambda chunk: None
        self._in_background = True

    def close(self) -> None:
        if not self._ended.is_set():
            descriptor = self.release_descriptor()
            if sys.platform != "win32":  # where the thread that reads it closes it
                os.close(descriptor)

    def release_descriptor(self) -> int:
        """Stops reading and returns the descriptor, which the caller closes."""
        self._ended.set()
        self._stop_reading()
        return self._fd

    def _read(self) -> bool:
        if self._ended.is_set():
            return False
        try:
            chunk = os.read(self._fd, _CHUNK_BYTES)
        except BlockingIOError:
            return False
        except OSError:  # a terminal that no program holds
            chunk = b""
        if not chunk:
            self.close()
            return False
        self._on_output(chunk)
        if self._in_background:
            self._burst_bytes += len(chunk)
            if self._burst_bytes >= _BURST_BYTES:
                self._burst_bytes = 0
                self._stop_reading()
                self._loop.call_later(_PAUSE_S, self._resume)
        return True

    def _read_in_thread(self) -> None:
        """Reads no more before the loop has taken what was read. Ends with the last program that holds the pipe."""
        chunk = b"."
        while chunk and not self._loop.is_closed():
            try:
                chunk = os.read(self._fd, _CHUNK_BYTES)
            except OSError:
                chunk = b""
            is_taken = threading.Event()
            with contextlib.suppress(RuntimeError):  # the loop was closed
                self._loop.call_soon_threadsafe(self._on_chunk, chunk, is_taken)
            while not is_taken.wait(1) and not self._loop.is_closed():
                pass
        os.close(self._fd)

    def _on_chunk(self, chunk: bytes, is_taken: threading.Event) -> None:
        if not chunk:
            self.close()
        elif not self._ended.is_set():
            self._on_output(chunk)
        is_taken.set()

    def _resume(self) -> None:
        if not self._ended.is_set():
            self._loop.add_reader(self._fd, self._read)

    def _stop_reading(self) -> None:
        if not self._loop.is_closed() and sys.platform != "win32":
            self._loop.remove_reader(self._fd)
