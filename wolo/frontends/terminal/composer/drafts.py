"""What is being written is kept while it is written, so that a crash takes none of it.

Each process of a directory has a place of its own, which is its as long as it holds the lock. What lies in a place that
nobody holds was left by a process that did not come to its end: whoever starts next is given it.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path

import msgspec

from wolo.frontends.terminal.composer.history import named_after
from wolo.frontends.terminal.io.pastes import MOST_KEPT_CHARS, Pastes, Written
from wolo.places import make_private

PLACES = 20
"""So many processes of one directory can keep a draft at a time."""


class Drafts:
    def __init__(self, folder: Path, directory: Path, pastes: Pastes) -> None:
        self._pastes = pastes
        self._named = folder / named_after(directory)
        self._lock = -1
        self._path: Path | None = None
        """None: what is written is not kept, because nothing can be kept there."""
        with suppress(OSError):
            make_private(folder)
            self._take_place()

    def left_behind(self) -> str:
        """What a process that ended too early had not sent; empty when there is nothing."""
        if self._path is None:
            return ""
        with suppress(OSError, msgspec.DecodeError):
            return self._pastes.unpack(msgspec.json.decode(self._path.read_bytes(), type=Written))
        return ""

    def save(self, text: str) -> None:
        if self._path is not None:
            with suppress(OSError, UnicodeError):
                self._write(self._path, text)

    def close(self) -> None:
        """Releases the place; what is saved stays for the next process."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1
        self._path = None

    def _write(self, path: Path, text: str) -> None:
        written = self._pastes.pack(text)
        if not text.strip() or sum(map(len, written.get("pastes", {}).values())) > MOST_KEPT_CHARS:
            path.unlink(missing_ok=True)
            return
        new = path.with_suffix(".new")
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        with open(descriptor, "wb") as file:
            file.write(msgspec.json.encode(written))
        new.replace(path)

    def _take_place(self) -> None:
        """One with something in it, if nobody holds it; else the first that is free."""
        places = [self._named.with_name(f"{self._named.name}.{number}") for number in range(PLACES)]
        for place in sorted(places, key=lambda place: not Path(f"{place}.json").exists()):
            descriptor = os.open(f"{place}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(descriptor)
                continue
            self._lock, self._path = descriptor, Path(f"{place}.json")
            return
