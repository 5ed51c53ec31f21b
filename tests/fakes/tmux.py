"""A terminal that wraps rows anew when it is resized and keeps what scrolls away: tmux, without anybody's settings."""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from tests.components import require


class Tmux:
    def __init__(self, program: str, socket: Path) -> None:
        self._command = [program, "-S", str(socket), "-f", os.devnull]

    def run(self, *words: str) -> str:
        done = subprocess.run([*self._command, *words], capture_output=True, text=True, check=True, encoding="utf-8")
        return done.stdout

    @property
    def text(self) -> str:
        """All that was ever shown, rows that were wrapped joined to lines."""
        return self.run("capture-pane", "-p", "-J", "-S", "-")

    @property
    def rows(self) -> list[str]:
        return self.run("capture-pane", "-p").split("\n")

    def type(self, written: str) -> None:
        self.run("send-keys", "-l", written)

    def press(self, *keys: str) -> None:
        """By tmux's own names: `Enter`, `Escape`, `C-c`."""
        self.run("send-keys", *keys)

    def resize(self, rows: int, columns: int) -> None:
        self.run("resize-window", "-x", str(columns), "-y", str(rows))

    def wait_for(self, wanted: str, timeout_s: float = 30.0) -> None:
        self.wait_until(lambda: wanted in self.text, f"{wanted!r} did not appear", timeout_s)

    def wait_until(self, holds: Callable[[], bool], complaint: str = "it did not happen", timeout_s: float = 30.0) -> None:
        deadline = time.monotonic() + timeout_s
        while not holds():
            assert time.monotonic() < deadline, f"{complaint} within {timeout_s} s; tmux shows:\n{self.text}"
            time.sleep(0.02)


def tmux_wolo(
    *args: str, socket: Path, rows: int = 24, columns: int = 80, env: Mapping[str, str] | None = None
) -> contextlib.AbstractContextManager[Tmux]:
    """`wolo` in a window of its own tmux; both are gone at the end."""
    given = [f"{name}={value}" for name, value in (env or {}).items()]
    return _tmux([*given, sys.executable, "-m", "wolo", *args], socket, rows, columns)


def tmux_shell(*, socket: Path, rows: int = 24, columns: int = 100) -> contextlib.AbstractContextManager[Tmux]:
    """A shell that knows jobs, to start `wolo` from; Ctrl-Z leads back to it."""
    return _tmux(["PS1=$ ", "bash", "--norc", "-i"], socket, rows, columns)


@contextlib.contextmanager
def _tmux(words: Sequence[str], socket: Path, rows: int, columns: int) -> Iterator[Tmux]:
    tmux = Tmux(require("tmux"), socket)
    command = shlex.join(["env", "-u", "COLUMNS", "-u", "LINES", *words])
    tmux.run("new-session", "-d", "-x", str(columns), "-y", str(rows), command, ";", "set", "-g", "history-limit", "10000")
    try:
        yield tmux
    finally:
        with contextlib.suppress(subprocess.CalledProcessError):
            tmux.run("kill-server")
