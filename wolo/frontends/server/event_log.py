"""Numbers the lines of a session and lets any number of listeners read them at their own pace."""

from __future__ import annotations

import asyncio
import time
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

KEPT_DELTAS = 500
"""Newest lines that are kept whole; older deltas are dropped once the complete message has been logged."""
BATCH_BYTES = 256 * 1024


class EventLog:
    """Lines in order. A listener has a position and no queue, so a slow one costs nothing and blocks nobody."""

    def __init__(self) -> None:
        self._ids: list[int] = []
        self._lines: list[bytes] = []
        self._passing: list[bool] = []
        """Superseded once a later line is complete."""
        self._next = self._first = 0
        self._complete_to = 0
        """Passing lines below this id are superseded."""
        self._superseded = 0
        self._open = 0
        self._waiting: set[asyncio.Future[None]] = set()
        self.is_closed = False
        self.listeners = 0
        self.reset(())

    @property
    def last_id(self) -> int:
        return self._next - 1

    def reset(self, lines: Iterable[Mapping[str, Any]]) -> None:
        """Begins anew with these lines; every listener gets them. Ids continue to grow, also after a restart of the process."""
        self._first = self._next = max(self._next + 1, time.time_ns() // 1000)
        self._ids, self._lines, self._passing = [], [], []
        self._superseded = self._open = 0
        for line in lines:
            self.add(line)

    def add(self, line: Mapping[str, Any], *, passing: bool = False, completes: bool = False) -> None:
        """`passing`: a delta, superseded by the next line that `completes`."""
        self._ids.append(self._next)
        self._lines.append(b"id: %d\ndata: %s\n\n" % (self._next, msgspec.json.encode(line, enc_hook=str)))
        self._passing.append(passing)
        self._next += 1
        self._open += passing
        if completes:
            self._superseded, self._open, self._complete_to = self._superseded + self._open, 0, self._next
            if self._superseded > 2 * KEPT_DELTAS:
                limit = min(self._complete_to, self._next - KEPT_DELTAS)
                kept = [at for at, id in enumerate(self._ids) if id >= limit or not self._passing[at]]
                self._superseded -= len(self._ids) - len(kept)
                self._ids = [self._ids[at] for at in kept]
                self._lines = [self._lines[at] for at in kept]
                self._passing = [self._passing[at] for at in kept]
        self._wake()

    def after(self, position: int) -> tuple[int, bytes]:
        """The lines after an id, at most about 256 kB, and the id of the last; an unknown id begins from the start."""
        at = bisect_right(self._ids, position) if self._first <= position < self._next else 0
        size, end = 0, at
        while end < len(self._lines) and size < BATCH_BYTES:
            size += len(self._lines[end])
            end += 1
        return (self._ids[end - 1] if end > at else position), b"".join(self._lines[at:end])

    async def wait(self) -> None:
        """Returns after the next line, or when the log is closed."""
        if self.is_closed:
            return
        future = asyncio.get_running_loop().create_future()
        self._waiting.add(future)
        try:
            await future
        finally:
            self._waiting.discard(future)

    def close(self) -> None:
        self.is_closed = True
        self._wake()

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, set()
        for future in waiting:
            if not future.done():
                future.set_result(None)
