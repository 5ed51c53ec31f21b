"""What was sent before, a file for each directory: read once, added to line by line, by as many processes as there are."""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import msgspec
from prompt_toolkit.history import FileHistory, History

from wolo.frontends.terminal.io.pastes import MOST_KEPT_CHARS, Pastes, Written
from wolo.places import make_private

MOST_READ_BYTES = 4_000_000
MOST_KEPT_BYTES = 3 * MOST_READ_BYTES
"""A file that has grown beyond this is cut to what is read of it."""
ANYWHERE = "anywhere"
"""What was typed before there was a file for each directory."""


class DirectoryHistory(History):
    """A directory's own prompts, behind those of the time when there was one history for all of them.

    A line is written with one call, so what another process writes is never torn, and a process that is killed leaves whole
    lines. What cannot be written is still remembered until the end.
    """

    def __init__(self, folder: Path, directory: Path, pastes: Pastes) -> None:
        super().__init__()
        self._pastes = pastes
        self._path = folder / f"{named_after(directory)}.jsonl"
        self._anywhere = folder / f"{ANYWHERE}.jsonl"
        with suppress(OSError):
            _make(folder)

    def load_history_strings(self) -> Iterable[str]:
        """Newest first."""
        for path in (self._path, self._anywhere):
            lines = _lines(path)
            for line in reversed(lines):
                with suppress(msgspec.DecodeError):
                    if text := self._pastes.unpack(msgspec.json.decode(line, type=Written)):
                        yield text

    def store_string(self, string: str) -> None:
        written = self._pastes.pack(string)
        if sum(map(len, (written["text"], *written.get("pastes", {}).values()))) <= MOST_KEPT_CHARS:
            with suppress(OSError, UnicodeError):
                _append(self._path, [written])


def named_after(directory: Path) -> str:
    """A file's name for a directory: different for each, and its own name can be read in it."""
    called = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in directory.name)[:40]
    return f"{called}-{hashlib.sha256(os.fsencode(directory)).hexdigest()[:12]}"


def _make(folder: Path) -> None:
    """The one file of earlier versions lies where the folder belongs: what is in it goes along."""
    make_private(folder.parent)
    before: list[str] = []
    if folder.is_file():
        aside = folder.with_name(f"{folder.name}.{os.getpid()}")
        with suppress(FileNotFoundError):  # another process is taking it over
            folder.rename(aside)
            before = list(FileHistory(str(aside)).load_history_strings())
            aside.unlink()
    folder.mkdir(mode=0o700, exist_ok=True)
    if before:
        _append(folder / f"{ANYWHERE}.jsonl", [{"text": text} for text in reversed(before)])


def _lines(path: Path) -> list[bytes]:
    """The newest lines; a first one that was cut is left out."""
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(max(0, size - MOST_READ_BYTES))
            lines = file.read(MOST_READ_BYTES).splitlines()
    except OSError:
        return []
    return lines[1:] if size > MOST_READ_BYTES else lines


def _append(path: Path, entries: Iterable[Written]) -> None:
    lines = b"".join(msgspec.json.encode(entry) + b"\n" for entry in entries)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        os.fchmod(descriptor, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        size = os.fstat(descriptor).st_size
        if size > MOST_KEPT_BYTES:
            _cut(descriptor, path)
        elif size and os.pread(descriptor, 1, size - 1) != b"\n":
            lines = b"\n" + lines  # the disk was full in the middle of the line before
        os.write(descriptor, lines)
    finally:
        os.close(descriptor)


def _cut(descriptor: int, path: Path) -> None:
    kept = _lines(path)
    os.ftruncate(descriptor, 0)
    os.write(descriptor, b"\n".join(kept) + b"\n")
