"""What one section of a patch does to its file, worked out without touching anything."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from wolo.errors import ToolError
from wolo.tools.editing.matching import line_number, with_line_endings_of
from wolo.tools.editing.patch_hunks import place_hunks
from wolo.tools.editing.patch_parser import AddFile, DeleteFile, Section, UpdateFile
from wolo.tools.path_suggestions import missing
from wolo.tools.tool import CallContext, ToolServices
from wolo.workspace.files.atomic_write import Written, content_hash
from wolo.workspace.files.encodings import UTF8, find_encoding, splice
from wolo.workspace.files.file_reading import FileLedger, TextFile, read_file, read_whole
from wolo.workspace.files.multi_file_write import Put, Removal, Step
from wolo.workspace.root import Resolved


class Changed(Struct, frozen=True, kw_only=True):
    """A file of the patch, before anything was written."""

    verb: str
    """Added, Updated, Deleted or Moved."""
    shown: str
    steps: tuple[Step, ...]
    before: str = ""
    after: str = ""
    """Texts, for the diff; empty where there is none."""
    lines: tuple[int, ...] = ()
    """Where it changes."""
    rules: tuple[str, ...] = ()
    knew: str | None = None
    """What this session knew of the file: the hash of its content."""
    was: str | None = None
    """And what its content really was."""
    moved_to: str = ""

    def told(self, added: int, removed: int) -> str:
        """A line of the report."""
        if self.verb == "Added":
            return f"Added {self.shown} ({added} line{'' if added == 1 else 's'})."
        if self.verb == "Deleted":
            return f"Deleted {self.shown}."
        name = f"Moved {self.shown} to {self.moved_to}" if self.moved_to else f"Updated {self.shown}"
        if not self.lines:
            return f"{name} (+{added} -{removed})." if added or removed else f"{name}."
        lines = ", ".join(map(str, self.lines[:10])) + (", …" if len(self.lines) > 10 else "")
        forgiven = f" Matched in spite of different {' and '.join(self.rules)}." if self.rules else ""
        stale = " The file had changed since you last read it; those changes are kept." if self.is_stale else ""
        return f"{name} at line{'s' if len(self.lines) > 1 else ''} {lines} (+{added} -{removed}).{forgiven}{stale}"

    @property
    def is_stale(self) -> bool:
        return self.knew is not None and self.knew != self.was

    def remember(self, ledger: FileLedger, written: Mapping[Path, Written | None]) -> None:
        """What the session knows now: of a file it knew, or made, the new content."""
        for step in self.steps:
            ledger.found(step.path)
            done = written[step.path]
            if done is None:
                ledger.forget(step.path)
            elif self.verb == "Added" or (self.knew is not None and not self.is_stale):
                ledger.record(step.path, done.hash)


class Plan(Struct, frozen=True):
    files: Sequence[Changed]

    @property
    def steps(self) -> tuple[Step, ...]:
        return tuple(step for each in self.files for step in each.steps)


def plan_one(section: Section, call: CallContext) -> Changed:
    """Raises ToolError or OSError."""
    resolved = call.resolve(section.path)
    shown = call.services.workspace.relative(resolved.path)
    match section:
        case AddFile():
            return _add(section, resolved, shown, call.services)
        case DeleteFile():
            return _delete(resolved, shown, call.services)
        case UpdateFile():
            return _update(section, resolved, shown, call)


def _add(section: AddFile, resolved: Resolved, shown: str, services: ToolServices) -> Changed:
    _refuse_folder_name(section.path)
    knew = services.ledger.seen(resolved.path)
    try:
        old = read_file(resolved.path)
    except FileNotFoundError:
        put = Put(resolved.path, UTF8.encode(section.content), None)
        return Changed(verb="Added", shown=shown, steps=(put,), after=section.content)
    if old.data and knew != old.hash and not (section.replaces and knew is None):
        state = "exists, and you have not read it" if knew is None else "has changed since you last read it"
        raise ToolError(f"`{shown}` {state}; nothing was written. Read it first, or change parts of it with `*** Update File`.")
    text = with_line_endings_of(old.text, section.content.removeprefix("\ufeff"))
    put = Put(resolved.path, old.encoding.bom + old.encoding.encode(text), old.hash)
    return Changed(verb="Updated", shown=shown, steps=(put,), before=old.text, after=text, knew=old.hash, was=old.hash)


def _delete(resolved: Resolved, shown: str, services: ToolServices) -> Changed:
    _refuse_link(resolved, shown, services)
    data = _whole(resolved, services)
    was, knew = content_hash(data), services.ledger.seen(resolved.path)
    if knew not in (None, was):
        raise ToolError(f"`{shown}` has changed since you last read it; it was not deleted. Read it first.")
    encoding = find_encoding(data)
    before = encoding.decode(data) if encoding else ""
    return Changed(verb="Deleted", shown=shown, steps=(Removal(resolved.path, was),), before=before, knew=knew, was=was)


def _update(section: UpdateFile, resolved: Resolved, shown: str, call: CallContext) -> Changed:
    knew = call.services.ledger.seen(resolved.path)
    if not section.hunks:
        data = _whole(resolved, call.services)
        was = content_hash(data)
        steps, moved_to = _steps(section, resolved, shown, was, data, call)
        return Changed(verb="Moved", shown=shown, steps=steps, knew=knew, was=was, moved_to=moved_to)
    file = _text(resolved, call.services)
    placed = place_hunks(file.text, section.hunks, shown, lambda: call.services.ledger.count_miss(resolved.path))
    data = splice(file.data, file.encoding, file.text, placed.pieces)
    if data == file.data and not section.move_to:
        raise ToolError(f"The patch would leave `{shown}` as it is.")
    steps, moved_to = _steps(section, resolved, shown, file.hash, data, call)
    return Changed(
        verb="Moved" if moved_to else "Updated",
        shown=shown,
        steps=steps,
        before=file.text,
        after=file.encoding.decode(data),
        lines=tuple(line_number(file.text, piece.start) for piece in placed.pieces),
        rules=tuple(placed.rules),
        knew=knew,
        was=file.hash,
        moved_to=moved_to,
    )


def _steps(
    section: UpdateFile, resolved: Resolved, shown: str, was: str, data: bytes, call: CallContext
) -> tuple[tuple[Step, ...], str]:
    """What is done on disk, and under which name the file is found then when that is another one."""
    if not section.move_to:
        return (Put(resolved.path, data, was),), ""
    _refuse_folder_name(section.move_to)
    _refuse_link(resolved, shown, call.services)
    target = call.resolve(section.move_to)
    moved_to = call.services.workspace.relative(target.path)
    if os.path.lexists(target.path):
        raise ToolError(f"`{shown}` cannot be moved to `{moved_to}`: that exists already. Nothing was changed.")
    return (Put(target.path, data, None, like=resolved.path), Removal(resolved.path, was)), moved_to


def _text(resolved: Resolved, services: ToolServices) -> TextFile:
    try:
        return read_file(resolved.path)
    except FileNotFoundError:
        raise missing(resolved, services) from None


def _whole(resolved: Resolved, services: ToolServices) -> bytes:
    try:
        return read_whole(resolved.path)
    except FileNotFoundError:
        raise missing(resolved, services) from None


def _refuse_folder_name(given: str) -> None:
    if given.endswith("/"):
        raise ToolError(f"`{given}` ends with a slash, so it names a folder. Give the name of a file.")


def _refuse_link(resolved: Resolved, shown: str, services: ToolServices) -> None:
    """What a link leads to would go, and the link would stay and lead nowhere."""
    if (services.workspace.start / resolved.given).is_symlink():
        raise ToolError(f"`{resolved.given}` is a link to `{shown}`; name that file itself, or remove the link with `shell`.")
