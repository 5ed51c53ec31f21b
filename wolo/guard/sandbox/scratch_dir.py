"""The private folder of a conversation: what its commands have for `/tmp`, and for caches. It goes when the conversation does."""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
from contextlib import suppress
from pathlib import Path

from wolo.places import make_private

_LOCK = "in-use"


class Scratch:
    """Made when it is first asked for; a kernel lock says that it is in use, so that what a killed wolo left is found."""

    def __init__(self, state: Path) -> None:
        self._above = state / "sandbox"
        self._folder: Path | None = None
        self._lock = -1

    @property
    def tmp(self) -> Path:
        """Raises OSError where there is no room for it."""
        return self.folder / "tmp"

    @property
    def folder(self) -> Path:
        if self._folder is None:
            make_private(self._above)
            remove_abandoned(self._above)
            name = os.urandom(8).hex()
            making = self._above / f".{name}"
            making.mkdir(mode=0o700)
            (making / "tmp").mkdir(mode=0o700)
            self._lock = os.open(making / _LOCK, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._lock, fcntl.LOCK_SH)
            self._folder = making.rename(self._above / name)  # found by others only now that it is locked
            atexit.register(self.close)
        return self._folder

    def close(self) -> None:
        """May be called again."""
        folder, self._folder = self._folder, None
        if folder is None:
            return
        remove(folder)
        os.close(self._lock)
        atexit.unregister(self.close)


def remove_abandoned(above: Path) -> None:
    """Private folders whose wolo has gone."""
    for folder in above.iterdir():
        with suppress(OSError):
            lock = os.open(folder / _LOCK, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                remove(folder)
            finally:
                os.close(lock)


def remove(folder: Path) -> None:
    """Whatever modes a command gave to what it left there."""
    for path, folders, _ in os.walk(folder):
        for name in folders:
            each = Path(path, name)
            if not each.is_symlink():
                with suppress(OSError):
                    each.chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)
