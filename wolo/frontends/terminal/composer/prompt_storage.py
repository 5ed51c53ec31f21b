"""Saves sent prompts and the unsent draft, per directory."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import msgspec
from prompt_toolkit.history import FileHistory, History

from wolo.frontends.terminal.composer.pastes import MOST_KEPT_CHARS, Pastes, SavedText
from wolo.operating_system import LOCK_EX, LOCK_NB, flock, os
from wolo.places import make_private
from wolo.workspace.files.unfinished import write_whole

MOST_READ_BYTES = 4_000_000
MOST_KEPT_BYTES = 3 * MOST_READ_BYTES
"""A larger file is cut to its newest MOST_READ_BYTES."""
ANYWHERE = "anywhere"
"""History of versions that had one file for all directories."""


class DirectoryHistory(History):
    """History of one directory, shared by all processes.

    Each line is written with one call: lines of other processes are never torn, and a killed process leaves complete lines.
    Prompts that cannot be written are remembered until the process ends.
    """

    def __init__(self, folder: Path, directory: Path, pastes: Pastes) -> None:
        super().__init__()
        self._pastes = pastes
        self._path = folder / f"{named_after(directory)}.jsonl"
        self._anywhere = folder / f"{ANYWHERE}.jsonl"
        with suppress(OSError):
            make_private(folder.parent)
            before: list[str] = []
            if folder.is_file():  # the history of an earlier version
                aside = folder.with_name(f"{folder.name}.{os.getpid()}")
                with suppress(FileNotFoundError):  # another process moves it
                    folder.rename(aside)
                    before = list(FileHistory(str(aside)).load_history_strings())
                    aside.unlink()
            folder.mkdir(mode=0o700, exist_ok=True)
            if before:
                _append(folder / f"{ANYWHERE}.jsonl", [{"text": text} for text in reversed(before)])

    def load_history_strings(self) -> Iterable[str]:
        """Newest first."""
        for path in (self._path, self._anywhere):
            lines = _lines(path)
            for line in reversed(lines):
                with suppress(msgspec.DecodeError):
                    if text := self._pastes.unpack(msgspec.json.decode(line, type=SavedText)):
                        yield text

    def store_string(self, string: str) -> None:
        written = self._pastes.pack(string)
        if sum(map(len, (written["text"], *written.get("pastes", {}).values()))) <= MOST_KEPT_CHARS:
            with suppress(OSError, UnicodeError):
                _append(self._path, [written])


def named_after(directory: Path) -> str:
    """A unique, readable file name for a directory."""
    called = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in directory.name)[:40]
    return f"{called}-{hashlib.sha256(os.fsencode(directory)).hexdigest()[:12]}"


def files_of(state: Path, directory: Path) -> list[Path]:
    name = named_after(directory)
    return [path for folder in ("history", "drafts") for path in (state / folder).glob(f"{name}.*") if path.suffix != ".lock"]


def _lines(path: Path) -> list[bytes]:
    """The newest lines, without a first one that was cut."""
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(max(0, size - MOST_READ_BYTES))
            lines = file.read(MOST_READ_BYTES).splitlines()
    except OSError:
        return []
    return lines[1:] if size > MOST_READ_BYTES else lines


def _append(path: Path, entries: Iterable[SavedText]) -> None:
    lines = b"".join(msgspec.json.encode(entry) + b"\n" for entry in entries)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        os.fchmod(descriptor, 0o600)
        flock(descriptor, LOCK_EX)
        if (size := os.fstat(descriptor).st_size) > MOST_KEPT_BYTES:
            kept = _lines(path)
            os.ftruncate(descriptor, 0)
            os.write(descriptor, b"\n".join(kept) + b"\n")
        elif size and os.pread(descriptor, 1, size - 1) != b"\n":
            lines = b"\n" + lines  # the disk was full while the line before was written
        os.write(descriptor, lines)
    finally:
        os.close(descriptor)


PLACES = 20
"""Processes of one directory that can save a draft at the same time."""


class Drafts:
    """The unsent text of each process, saved while it is typed.

    A process locks a place of its own. A place without a lock was left by a crashed process; the next one restores its draft.
    """

    def __init__(self, folder: Path, directory: Path, pastes: Pastes) -> None:
        self._pastes = pastes
        self._named = folder / named_after(directory)
        self._lock = -1
        self._path: Path | None = None
        """None: drafts cannot be saved."""
        with suppress(OSError):
            make_private(folder)
            # Locks a place that nobody holds, preferably one with a draft
            places = [self._named.with_name(f"{self._named.name}.{number}") for number in range(PLACES)]
            for place in sorted(places, key=lambda place: not Path(f"{place}.json").exists()):
                descriptor = os.open(f"{place}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
                try:
                    flock(descriptor, LOCK_EX | LOCK_NB)
                except OSError:
                    os.close(descriptor)
                    continue
                self._lock, self._path = descriptor, Path(f"{place}.json")
                return

    def left_behind(self) -> str:
        """The draft that a crashed process has left; empty if there is none."""
        if self._path is None:
            return ""
        with suppress(OSError, msgspec.DecodeError):
            return self._pastes.unpack(msgspec.json.decode(self._path.read_bytes(), type=SavedText))
        return ""

    def save(self, text: str) -> None:
        if self._path is None:
            return
        with suppress(OSError, UnicodeError):
            written = self._pastes.pack(text)
            if not text.strip() or sum(map(len, written.get("pastes", {}).values())) > MOST_KEPT_CHARS:
                self._path.unlink(missing_ok=True)
            else:
                write_whole(self._path, msgspec.json.encode(written), durable=False)

    def close(self) -> None:
        """Releases the place; what is saved stays for the next process."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1
        self._path = None
