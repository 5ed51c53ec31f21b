"""Knows when this process was killed: a small child waits for that, and marks the moment with an empty file.

What a command changed before that moment is the agent's; what changed later is somebody else's.
"""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress
from pathlib import Path

_SCRIPT = 'read -r word || : > "$1"'


class LastBreath:
    def __init__(self, folder: Path) -> None:
        """Raises OSError where no child can be started."""
        self.path = folder / f"killed-{os.urandom(8).hex()}"
        reading, self._writing = os.pipe()
        try:
            # A session of its own: who ends this process with its whole group leaves the child alone.
            self._child = subprocess.Popen(
                ["/bin/sh", "-c", _SCRIPT, "sh", self.path],
                stdin=reading,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={},
                umask=0o077,
                start_new_session=True,
            )
        except BaseException:
            os.close(self._writing)
            raise
        finally:
            os.close(reading)

    def close(self) -> None:
        """Nobody is killed any more."""
        with suppress(OSError):
            os.write(self._writing, b"well\n")
        os.close(self._writing)
        self._child.wait()


def killed_ns(path: Path) -> int:
    """When that was; 0 where it is not known."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0
