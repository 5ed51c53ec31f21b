"""What a command prints while it runs, on its way to the screen: the newest of it, a few times a second."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from wolo.tools.background.clipping import clean

_EVERY_S = 0.1
_BYTES = 4096


class LiveOutput:
    """What comes faster than it is passed on is skipped."""

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show = show
        self._newest = b""
        self._timer: asyncio.TimerHandle | None = None

    def add(self, chunk: bytes) -> None:
        self._newest = (self._newest + chunk)[-_BYTES:]
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_EVERY_S, self._pass_on)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._pass_on()

    def _pass_on(self) -> None:
        self._timer = None
        newest, self._newest = self._newest, b""
        # A bar that is drawn anew is told as another line: nobody could take back the one that has been shown.
        self._show(b"".join(clean(newest.replace(b"\r\n", b"\n").replace(b"\r", b"\n"))).decode())
