"""Placeholders: a name that is missing can be kept from coming into being only where something stands to be covered.

Each is an empty directory of wolo's own making, for a file's name, too (git does not see those), and there only while commands
run. What was made is written down first, under a lock that all wolos at the same directories share, so that the last one to
leave, or the next one to come after a crash, takes it away again. Should wolo be killed, a janitor does it: a small program that
outlives it.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
from collections.abc import Iterable, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from wolo.guard.sandbox.cleanup import sweep
from wolo.guard.sandbox.python_launcher import bare_python, text_of
from wolo.places import make_private


class Placeholders:
    """Of one writable directory. `hold` and `take_away` may be called by several commands at once, from one thread."""

    def __init__(self, state: Path, root: str) -> None:
        self.record = state / "placeholders" / sha256(os.fsencode(root)).hexdigest()[:24]
        self._fd = -1
        self._users = 0

    def hold(self) -> None:
        """From now on nobody takes away what stands here. Raises OSError."""
        if self._fd < 0:
            make_private(self.record.parent)
            self._fd = os.open(self.record, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            fcntl.flock(self._fd, fcntl.LOCK_SH)
        self._users += 1

    def put(self, paths: Iterable[str]) -> None:
        """Raises OSError where one cannot be made; what was made by then goes with `take_away`."""
        for path in paths:
            os.write(self._fd, os.fsencode(path) + b"\0")
            with suppress(FileExistsError):
                os.mkdir(path, 0o755)  # noqa: PTH102  # a string is what the kernel wants, and this is done for every command

    def take_away(self) -> None:
        """Call it once for every `hold`. Where another wolo has commands, that one will do it. Must not raise."""
        self._users -= 1
        if self._users > 0 or self._fd < 0:
            return
        with suppress(OSError):
            sweep(self._fd)
        os.close(self._fd)
        self._fd = -1


class Janitor:
    """Sweeps when wolo has gone, and with it whatever was given its `fd`: it waits for the end of a pipe."""

    def __init__(self, records: Sequence[Path]) -> None:
        self._records = list(map(str, records))
        self._text = text_of("cleanup")
        self._process: subprocess.Popen[bytes] | None = None
        self.fd = -1

    def begin(self) -> None:
        """Does nothing when it has begun. Raises OSError."""
        python = bare_python()
        if self._process is not None or not python:
            return
        reading, self.fd = os.pipe()
        try:
            self._process = subprocess.Popen(
                [python, "-I", "-S", "-c", self._text, *self._records],
                stdin=reading,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={},
                cwd="/",
                start_new_session=True,
            )
        finally:
            os.close(reading)

    def close(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        os.close(self.fd)
        self.fd = -1
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=2)
