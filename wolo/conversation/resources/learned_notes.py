"""Notes that the model proposes: they wait in an inbox until the user accepts them, then they are instructions."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from wolo.config.files import lock_folder, read_own, replace_file
from wolo.conversation.resources.request_prefix import notes_files
from wolo.errors import ConfigError, ToolError, UsageError
from wolo.messages.terminal_text import escape_hidden
from wolo.places import Notices, Places

MAX_CHARS = 600
"""Per note."""
MAX_WAITING = 50
"""Per project."""
MAX_BYTES = 8 * 1024
"""Of all accepted notes of a project, or of those for all projects."""


class Note(Struct, frozen=True):
    text: str
    """One line."""
    root: str = ""
    """The project; empty: for all projects."""
    session: str = ""
    at: float = 0.0


class LearnedNotes:
    """Inbox and accepted notes of one project."""

    def __init__(self, places: Places, root: Path) -> None:
        self._folder = places.data / "memory"
        self._inbox = self._folder / "inbox.json"
        self._root = str(root)
        self.everywhere, self.here = notes_files(places, root)

    def waiting(self) -> tuple[Note, ...]:
        """In order of proposal. Raises ConfigError for a damaged inbox."""
        return tuple(note for note in self._load() if note.root in ("", self._root))

    def propose(self, text: str, session: str, *, everywhere: bool) -> str:
        """Adds a note to the inbox; returns the result for the model. Raises ToolError."""
        text = one_line(text)
        if not text:
            raise ToolError("remember: the note is empty.")
        if len(text) > MAX_CHARS:
            raise ToolError(f"remember: the note has {len(text)} characters; {MAX_CHARS} is the most.")
        note = Note(text, "" if everywhere else self._root, session, time.time())
        if f"- {text}\n" in self._read_accepted(self._file(note)):
            return "This note is already among the user's notes."

        try:
            with self._edit_inbox() as notes:
                mine = [each for each in notes if each.root in ("", self._root)]
                if any(each.text == text for each in mine):
                    return "This note already waits for the user's approval."
                if len(mine) >= MAX_WAITING:
                    raise ToolError(f"remember: {MAX_WAITING} notes wait for the user's approval already; propose no more.")
                notes.append(note)
        except ConfigError as error:
            raise ToolError(error.message) from error
        return "Proposed. The note is used in later conversations if the user approves it."

    def accept(self, numbers: Sequence[int]) -> tuple[Note, ...]:
        """Moves notes to the instructions. Raises UsageError for a wrong number or when there is no room."""

        with self._edit_inbox() as notes:
            chosen = self._take(notes, numbers)
            for path in {self._file(note): None for note in chosen}:
                lines = "".join(f"- {note.text}\n" for note in chosen if self._file(note) == path)
                with lock_folder(path.parent):
                    text = self._read_accepted(path) + lines
                    if len(text.encode()) > MAX_BYTES:
                        hint = "Remove old notes first: /memory edit"
                        raise UsageError(f"{path} would be longer than {MAX_BYTES // 1024} KiB.", hint=hint)
                    replace_file(path, text)
        return chosen

    def reject(self, numbers: Sequence[int]) -> tuple[Note, ...]:
        """Raises UsageError for a wrong number."""
        with self._edit_inbox() as notes:
            return self._take(notes, numbers)

    def rewrite(self, number: int, text: str) -> None:
        """Changes a waiting note. Raises UsageError."""
        text = one_line(text)
        if not text or len(text) > MAX_CHARS:
            raise UsageError(f"A note has 1 to {MAX_CHARS} characters.")

        with self._edit_inbox() as notes:
            (chosen,) = self._take(list(notes), [number])
            notes[notes.index(chosen)] = replace(chosen, text=text)

    def _take(self, notes: list[Note], numbers: Sequence[int]) -> tuple[Note, ...]:
        mine = [each for each in notes if each.root in ("", self._root)]
        if wrong := next((number for number in numbers if not 1 <= number <= len(mine)), None):
            raise UsageError(f"No note {wrong}; {len(mine)} wait." if mine else "No note waits.", hint="/memory inbox")
        chosen = tuple(mine[number - 1] for number in dict.fromkeys(numbers))
        for note in chosen:
            notes.remove(note)
        return chosen

    def _file(self, note: Note) -> Path:
        return self.here if note.root else self.everywhere

    def _read_accepted(self, path: Path) -> str:
        text = (read_own(path, Notices()) or b"").decode("utf-8", "replace")
        return text if not text or text.endswith("\n") else f"{text}\n"

    def _load(self) -> list[Note]:
        data = read_own(self._inbox, Notices(), is_secret=True)
        try:
            return msgspec.json.decode(data, type=list[Note]) if data else []
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ConfigError(f"{self._inbox} is damaged: {error}.", hint="Remove the file; it holds only proposals.") from error

    @contextmanager
    def _edit_inbox(self) -> Iterator[list[Note]]:
        """Saves the list unless an error leaves the block."""
        with lock_folder(self._folder):
            notes = self._load()
            yield notes
            replace_file(self._inbox, msgspec.json.encode(notes).decode())


def one_line(text: str) -> str:
    return escape_hidden(" ".join(text.split()))
