"""Modes of the terminal's input: no echo while wolo runs, restored at the end."""

from __future__ import annotations

import contextlib
import os
import sys
import termios
from typing import Any

_IFLAG, _LFLAG, _CC = 0, 3, 6
"""Indexes in the result of `tcgetattr`."""


class Keyboard:
    """Turns echo off, so that typed keys do not appear in the output; they wait to be read. Ctrl-C stays a signal."""

    def __init__(self) -> None:
        self._descriptor = sys.stdin.fileno()
        self._before: list[Any] | None = None
        """Modes before `hush`; None while echo is on."""

    @property
    def is_hushed(self) -> bool:
        return self._before is not None

    def hush(self) -> None:
        if self._before is None and self._is_ours():
            with contextlib.suppress(termios.error):
                self._before = termios.tcgetattr(self._descriptor)
                self._set_quiet()

    def release(self) -> None:
        """Restores the modes; typed keys are not lost."""
        before, self._before = self._before, None
        if before is not None:
            with contextlib.suppress(termios.error):
                termios.tcsetattr(self._descriptor, termios.TCSANOW, before)

    def pause(self) -> None:
        """Restores the modes before the process stops (Ctrl-Z)."""
        if self._before is not None:
            with contextlib.suppress(termios.error):
                termios.tcsetattr(self._descriptor, termios.TCSANOW, self._before)

    def resume(self) -> None:
        """Turns echo off again after `fg`: the shell has set its own modes."""
        if self._before is not None and self._is_ours():
            with contextlib.suppress(termios.error):
                self._set_quiet()

    def forget_typed(self) -> None:
        """Drops typed keys that were not read."""
        with contextlib.suppress(termios.error):
            termios.tcflush(self._descriptor, termios.TCIFLUSH)

    def _set_quiet(self) -> None:
        modes = termios.tcgetattr(self._descriptor)
        modes[_IFLAG] &= ~termios.ICRNL
        modes[_LFLAG] &= ~(termios.ICANON | termios.ECHO)
        modes[_CC][termios.VMIN], modes[_CC][termios.VTIME] = 1, 0
        termios.tcsetattr(self._descriptor, termios.TCSANOW, modes)

    def _is_ours(self) -> bool:
        """Changing the modes would stop a background process."""
        try:
            return os.tcgetpgrp(self._descriptor) == os.getpgrp()
        except OSError:
            return False
