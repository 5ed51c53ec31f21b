"""Shows the progress of a headless run in one line on stderr, which is erased afterwards."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import time
import unicodedata
from collections.abc import Iterator

from wolo.agent.events import AttemptFailed, CallStarted, Event, RequestStarted
from wolo.conversation.phrasing import describe_work
from wolo.messages.call_arguments import call_line
from wolo.messages.terminal_text import escaped_line

TICK_S = 1.0
"""Shorter work is not shown."""
MOST_CHARS = 200


class ProgressLine:
    def __init__(self) -> None:
        self._words, self._began = "", time.monotonic()
        self.is_enabled = False
        self._is_shown = False
        self._due: asyncio.TimerHandle | None = None

    @contextlib.contextmanager
    def shown(self, is_enabled: bool = True) -> Iterator[None]:
        """Shows progress while the block runs, if stderr is a terminal with a movable cursor and stdout is not."""
        self.is_enabled = is_enabled and _is_watched()
        if self.is_enabled:
            self._tick_later()
        try:
            yield
        finally:
            self.hide()
            if self._due is not None:
                self._due.cancel()

    def on_event(self, event: Event) -> None:
        match event:
            case RequestStarted():
                self._begin(f"waiting for {event.model}")
            case AttemptFailed():
                self._begin(describe_work(event))
            case CallStarted():
                self._begin(call_line(event.part, most_chars=MOST_CHARS, most_of_change=0))
            case _:
                pass

    def _begin(self, words: str) -> None:
        self._words, self._began = escaped_line(words)[:MOST_CHARS], time.monotonic()

    def hide(self) -> None:
        """Called before anything else is printed."""
        if self._is_shown:
            self._is_shown = False
            _write("\r\x1b[K")

    def _tick_later(self) -> None:
        self._due = asyncio.get_running_loop().call_later(TICK_S, self._tick)

    def _tick(self) -> None:
        self._tick_later()
        seconds = time.monotonic() - self._began
        if self._words and seconds >= TICK_S and _is_in_front():
            self._is_shown = True
            _write(f"\r{_fitted(self._words, f' · {seconds:.0f} s')}\x1b[K")


def _is_in_front() -> bool:
    """False for a background job of the shell, whose line would disturb the user."""
    try:
        return os.tcgetpgrp(sys.stderr.fileno()) == os.getpgrp()
    except (OSError, ValueError):
        return False


def _is_watched() -> bool:
    can_move = os.environ.get("TERM", "dumb") not in ("dumb", "unknown", "")
    return can_move and sys.stderr.isatty() and not sys.stdout.isatty()


def _fitted(words: str, end: str) -> str:
    """Cut to one row."""
    try:
        room = (os.get_terminal_size(sys.stderr.fileno()).columns or 80) - 2 - len(end)
    except (OSError, ValueError):
        return ""
    for at, letter in enumerate(words):
        room -= 2 if unicodedata.east_asian_width(letter) in "WF" else 1
        if room < 0:
            return f"{words[:at]}…{end}"
    return words + end


def _write(text: str) -> None:
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(text)
        sys.stderr.flush()
