"""The keyboard's modes: quiet from the beginning to the end, and then as they were before."""

from __future__ import annotations

import contextlib
import os
import sys
import termios
from typing import Any

_IFLAG, _LFLAG, _CC = 0, 3, 6
"""Places in what `tcgetattr` returns."""


class Keyboard:
    """What is typed while a turn runs is not echoed into its output; it waits for whoever reads next. Ctrl-C stays a signal."""

    def __init__(self) -> None:
        self._descriptor = sys.stdin.fileno()
        self._before: list[Any] | None = None
        """The modes found when it was hushed; None while it is not."""

    @property
    def is_hushed(self) -> bool:
        return self._before is not None

    def hush(self) -> None:
        if self._before is None and self._is_ours():
            with contextlib.suppress(termios.error):
                self._before = termios.tcgetattr(self._descriptor)
                self._set_quiet()

    def release(self) -> None:
        """Back to how it was; what was typed is kept."""
        before, self._before = self._before, None
        if before is not None:
            with contextlib.suppress(termios.error):
                termios.tcsetattr(self._descriptor, termios.TCSANOW, before)

    def pause(self) -> None:
        """Before the process is stopped for a while."""
        if self._before is not None:
            with contextlib.suppress(termios.error):
                termios.tcsetattr(self._descriptor, termios.TCSANOW, self._before)

    def resume(self) -> None:
        """After the process was stopped and goes on: the shell has set modes of its own in between."""
        if self._before is not None and self._is_ours():
            with contextlib.suppress(termios.error):
                self._set_quiet()

    def forget_typed(self) -> None:
        """Drops what was typed and not read yet."""
        with contextlib.suppress(termios.error):
            termios.tcflush(self._descriptor, termios.TCIFLUSH)

    def _set_quiet(self) -> None:
        modes = termios.tcgetattr(self._descriptor)
        modes[_IFLAG] &= ~termios.ICRNL
        modes[_LFLAG] &= ~(termios.ICANON | termios.ECHO)
        modes[_CC][termios.VMIN], modes[_CC][termios.VTIME] = 1, 0
        termios.tcsetattr(self._descriptor, termios.TCSANOW, modes)

    def _is_ours(self) -> bool:
        """A process in the background would be stopped for changing the modes."""
        try:
            return os.tcgetpgrp(self._descriptor) == os.getpgrp()
        except OSError:
            return False
