"""Stdout, for as long as somebody holds the other end."""

from __future__ import annotations

import contextlib
import os
import sys


class Stdout:
    """What the screen writes to. A terminal that is gone takes nothing and complains about nothing."""

    def __init__(self) -> None:
        self.is_plain = False
        """Whole lines one after the other: somebody has them read aloud."""
        self._stream = sys.stdout
        with contextlib.suppress(AttributeError):
            sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]  # a locale may know few characters

    @property
    def encoding(self) -> str:
        return self._stream.encoding

    @property
    def can_move(self) -> bool:
        """The cursor can be moved and lines can be painted again."""
        return not self.is_plain and os.environ.get("TERM", "dumb") not in ("dumb", "unknown", "") and self.isatty()

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
        """The terminal has gone: whatever else is written leads nowhere, here and in any library."""
        with contextlib.suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.fileno())
            os.dup2(nowhere, 2)
            os.close(nowhere)
