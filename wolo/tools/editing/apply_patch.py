"""The `apply_patch` tool: changes several files at once, in the patch format that some models were trained on."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, ClassVar

from msgspec import Meta, Struct
from msgspec.structs import replace

from wolo.errors import ToolError
from wolo.guard.intents import Intent, ReadIntent
from wolo.messages.parts import ToolKind
from wolo.tools.editing.matching import EditPassage, Replacement, line_number, with_line_endings_of
from wolo.tools.editing.patch_hunks import PlacedHunks, place_hunks
from wolo.tools.editing.patch_parser import AddFile, DeleteFile, Hunk, Section, UpdateFile, read_patch
from wolo.tools.editing.write import finish, intends_to_write, links_note, text_change, view_diff
from wolo.tools.tool import CallContext, ToolServices
from wolo.tools.tool_arguments import missing
from wolo.tools.tool_values import CallResult, Diff
from wolo.workspace.files.atomic_write import FileChanged, WrittenFile, content_hash
from wolo.workspace.files.encodings import UTF8, find_encoding, splice
from wolo.workspace.files.file_reading import FileLedger, read_file, read_whole
from wolo.workspace.files.multi_file_write import MultiFileError, Put, Removal, Step, apply_changes
from wolo.workspace.files.safe_open import explain
from wolo.workspace.root import Resolved

_MAX_FILES = 200
_TRIES = 20
"""Attempts while other programs keep writing the same files."""


class ApplyPatchArgs(Struct, frozen=True):
    patch: Annotated[str, Meta(description="from `*** Begin Patch` to `*** End Patch`")]


class ApplyPatch:
    """Change files by a patch, all or none. Between `*** Begin Patch` and `*** End Patch`: `*** Add File: PATH` (each line with
    `+`), `*** Delete File: PATH`, `*** Update File: PATH` (then perhaps `*** Move to: PATH`) with hunks: ` ` before lines that
    stay, `-` before lines to remove, `+` before lines to add. Show 3 lines around a change; when these occur more than once, put
    `@@ ` and the line that opens the class or function above."""

    name: ClassVar[str] = "apply_patch"
    Args: ClassVar[type[Struct]] = ApplyPatchArgs
    aliases: ClassVar[Mapping[str, str]] = dict.fromkeys(("input", "patch_text", "patchText", "diff", "content"), "patch")
    reads_only: ClassVar[bool] = False
    kind: ClassVar[ToolKind] = "edit"

    def intents(self, args: ApplyPatchArgs, services: ToolServices) -> Sequence[Intent]:
        """Includes reading, because an error shows lines of the file."""
        intents: list[Intent] = []
        for section in _sections(args.patch, services):
            resolved = services.workspace.resolve(section.path)
            if isinstance(section, UpdateFile):
                intents.append(ReadIntent(resolved.path, section.path, resolved.inside))
            intents.append(intends_to_write(resolved))
            if isinstance(section, UpdateFile) and section.move_to:
                intents.append(intends_to_write(services.workspace.resolve(section.move_to)))
        return intents

    def kind_of_call(self, args: ApplyPatchArgs) -> ToolKind:
        try:
            sections = read_patch(args.patch)
        except ToolError:
            return self.kind
        if all(isinstance(each, DeleteFile) for each in sections):
            return "delete"
        return "move" if all(isinstance(each, UpdateFile) and each.move_to for each in sections) else self.kind

    def preview(self, args: ApplyPatchArgs, services: ToolServices) -> Diff:
        """Raises ToolError and OSError."""
        planned = _plan(_sections(args.patch, services), services.for_call("", lambda text: None))
        return _together([each.diff() for each in planned])

    async def run(self, args: ApplyPatchArgs, call: CallContext) -> CallResult:
        return await finish(lambda: _apply(args, call))


def _sections(patch: str, services: ToolServices) -> list[Section]:
    """Joins the sections of each file where they are unambiguous. Raises ToolError."""
    sections: dict[Path, Section] = {}
    for section in read_patch(patch):
        path = services.workspace.resolve(section.path).path
        sections[path] = _join(sections.get(path), section)
    if len(sections) > _MAX_FILES:
        raise ToolError(f"The patch names {len(sections)} files, and at most {_MAX_FILES} are changed at once; split it.")
    moves = [section.move_to for section in sections.values() if isinstance(section, UpdateFile) and section.move_to]
    targets = [services.workspace.resolve(move).path for move in moves]
    for move, target in zip(moves, targets, strict=True):
        if target in sections or targets.count(target) > 1:
            raise _twice(move)
    return list(sections.values())


def _join(before: Section | None, section: Section) -> Section:
    match before, section:
        case None, _:
            return section
        case UpdateFile(), UpdateFile() if not (before.move_to and section.move_to):
            return UpdateFile(before.path, before.move_to or section.move_to, before.hunks + section.hunks)
        case DeleteFile(), AddFile():
            return AddFile(section.path, section.content, replaces=True)
        case _:
            raise _twice(section.path)


def _twice(path: str) -> ToolError:
    return ToolError(f"`{path}` occurs twice in the patch; nothing was changed.")


def _apply(args: ApplyPatchArgs, call: CallContext) -> CallResult:
    sections = _sections(args.patch, call.services)
    for _ in range(_TRIES):
        planned = _plan(sections, call)
        steps = [step for each in planned for step in each.steps]
        try:
            written = apply_changes(steps, locks=call.services.ledger.locks, note=call.note_change)
        except FileChanged:
            continue  # changed concurrently: locate the passages again
        except MultiFileError as failed:
            raise ToolError(_report(failed, call.services)) from failed
        return _result(planned, written, call.services)
    raise FileChanged("Another program keeps changing the files; nothing was written.")


def _plan(sections: Sequence[Section], call: CallContext) -> list[PatchedFile]:
    """Raises ToolError that reports every file."""
    planned: list[PatchedFile] = []
    wrong: list[str] = []
    for section in sections:
        try:
            resolved = call.resolve(section.path)
            shown = call.services.workspace.relative(resolved.path)
            match section:
                case AddFile():
                    planned.append(_check_notebook(_add(section, resolved, shown, call.services), resolved))
                case DeleteFile():
                    _refuse_link(resolved, shown, call.services)
                    data = _whole(resolved, call.services)
                    was, knew = content_hash(data), call.services.ledger.last_hash(resolved.path)
                    if knew not in (None, was):
                        raise ToolError(f"`{shown}` has changed since you last read it; it was not deleted. Read it first.")
                    before = _decode(data)
                    planned.append(
                        PatchedFile(
                            verb="Deleted", shown=shown, steps=(Removal(resolved.path, was),), before=before, knew=knew, was=was
                        )
                    )
                case UpdateFile():
                    planned.append(_check_notebook(_update(section, resolved, shown, call), resolved))
        except ToolError as error:
            is_named = len(sections) == 1 or f"`{section.path}`" in error.message
            wrong.append(error.message if is_named else f"`{section.path}`: {error.message}")
        except OSError as error:
            wrong.append(explain(error, section.path).message)
    if not wrong:
        return planned
    if len(sections) == 1:
        raise ToolError(wrong[0])
    head = f"Nothing was changed: the patch does not fit {len(wrong)} of {len(sections)} files."
    fine = ", ".join(f"`{each.shown}`" for each in planned)
    rest = [f"The patch fits {fine}; nothing was changed there either."] if fine else []
    raise ToolError("\n\n".join((head, *wrong, *rest)))


def _report(failed: MultiFileError, services: ToolServices) -> str:
    """Reports for each file how far the patch was applied."""
    name = services.workspace.relative
    lines = [f"`{name(failed.failed)}`: {_reason(failed.cause, name(failed.failed))}"]
    if failed.put_back:
        lines.append(f"Written before it and restored: {', '.join(f'`{name(path)}`' for path in failed.put_back)}.")
    if not failed.not_reverted:
        return "\n".join(("Nothing was changed: one of the files could not be written.", *lines))
    lines += [
        f"`{name(path)}` was changed and could not be restored: {_reason(error, name(path))}"
        for path, error in failed.not_reverted
    ]
    return "\n".join(("The patch was applied in part.", *lines))


def _reason(error: Exception, shown: str) -> str:
    if isinstance(error, OSError):
        return explain(error, shown).message
    return error.message if isinstance(error, ToolError) else f"{type(error).__name__}: {error}"


def _result(planned: Sequence[PatchedFile], written: Mapping[Path, WrittenFile | None], services: ToolServices) -> CallResult:
    lines: list[str] = []
    diffs: list[Diff] = []
    for each in planned:
        each.remember(services.ledger, written)
        diff = each.diff()
        diffs.append(diff)
        links = "".join(links_note(done) for step in each.steps if (done := written[step.path]) is not None)
        lines.append(f"{each.report_line(diff.added, diff.removed)}{links}")
    rules = sorted({rule for each in planned for rule in each.rules})
    return CallResult(
        "\n".join(lines),
        view=_together(diffs),
        files_changed=tuple(str(step.path) for each in planned for step in each.steps),
        metadata={"matched_by": rules or ["exact"]},
    )


def _together(diffs: Sequence[Diff]) -> Diff:
    if len(diffs) == 1:
        return diffs[0]
    text = "\n".join(f"@ {diff.path}\n{diff.text}" for diff in diffs)
    added, removed = sum(diff.added for diff in diffs), sum(diff.removed for diff in diffs)
    changes = tuple(change for diff in diffs for change in diff.changes)
    return Diff(path=", ".join(diff.path for diff in diffs), text=text, added=added, removed=removed, changes=changes)


class PatchedFile(Struct, frozen=True, kw_only=True):
    """A planned change of one file."""

    verb: str
    """Added, Updated, Deleted or Moved."""
    shown: str
    steps: tuple[Step, ...]
    before: str = ""
    after: str = ""
    """Old and new text for the diff; empty if there is none."""
    lines: tuple[int, ...] = ()
    """Positions of the changes."""
    rules: tuple[str, ...] = ()
    knew: str | None = None
    """Content hash known to this session."""
    was: str | None = None
    """Content hash on disk."""
    moved_to: str = ""

    def diff(self) -> Diff:
        """The view of this change."""
        path = self.steps[-1].path
        if self.verb == "Added":
            return view_diff(path, self.shown, None, self.after)
        if self.verb == "Deleted":
            return view_diff(path, self.shown, self.before, None)
        diff = view_diff(path, self.shown, self.before, self.after)
        if not self.moved_to:
            return diff
        moved = text_change(path, self.before, None), text_change(self.steps[0].path, None, self.after)
        return replace(diff, changes=moved)

    def report_line(self, added: int, removed: int) -> str:
        """Returns a line of the report."""
        if self.verb == "Added":
            return f"Added {self.shown} ({added} line{'' if added == 1 else 's'})."
        if self.verb == "Deleted":
            return f"Deleted {self.shown}."
        name = f"Moved {self.shown} to {self.moved_to}" if self.moved_to else f"Updated {self.shown}"
        if not self.lines:
            return f"{name} (+{added} -{removed})." if added or removed else f"{name}."
        lines = ", ".join(map(str, self.lines[:10])) + (", …" if len(self.lines) > 10 else "")
        forgiven = f" Matched despite different {' and '.join(self.rules)}." if self.rules else ""
        stale = " The file had changed since you last read it; those changes are kept." if self.is_stale else ""
        return f"{name} at line{'s' if len(self.lines) > 1 else ''} {lines} (+{added} -{removed}).{forgiven}{stale}"

    @property
    def is_stale(self) -> bool:
        return self.knew is not None and self.knew != self.was

    def remember(self, ledger: FileLedger, written: Mapping[Path, WrittenFile | None]) -> None:
        """Records the new content of a file that the session knew or created."""
        for step in self.steps:
            ledger.reset_misses(step.path)
            if (done := written[step.path]) is None:
                ledger.forget(step.path)
            elif self.verb == "Added" or (self.knew is not None and not self.is_stale):
                ledger.record(step.path, done.hash)


def _check_notebook(changed: PatchedFile, resolved: Resolved) -> PatchedFile:
    """Raises ToolError for a change after which a notebook would be none."""
    if resolved.path.suffix.lower() == ".ipynb":
        from wolo.tools.editing.notebook import check_notebook  # noqa: PLC0415  # notebooks only

        check_notebook(resolved.path.name, changed.after, changed.shown)
    return changed


def _add(section: AddFile, resolved: Resolved, shown: str, services: ToolServices) -> PatchedFile:
    _refuse_folder_name(section.path)
    knew = services.ledger.last_hash(resolved.path)
    try:
        old = read_file(resolved.path)
    except FileNotFoundError:
        put = Put(resolved.path, UTF8.encode(section.content), None)
        return PatchedFile(verb="Added", shown=shown, steps=(put,), after=section.content)
    if old.data and knew != old.hash and not (section.replaces and knew is None):
        state = "exists, and you have not read it" if knew is None else "has changed since you last read it"
        raise ToolError(f"`{shown}` {state}; nothing was written. Read it first, or change parts of it with `*** Update File`.")
    text = with_line_endings_of(old.text, section.content.removeprefix("\ufeff"))
    put = Put(resolved.path, old.encoding.bom + old.encoding.encode(text), old.hash)
    return PatchedFile(verb="Updated", shown=shown, steps=(put,), before=old.text, after=text, knew=old.hash, was=old.hash)


def _decode(data: bytes) -> str:
    """Empty if it is not text."""
    encoding = find_encoding(data)
    return encoding.decode(data) if encoding else ""


def _update(section: UpdateFile, resolved: Resolved, shown: str, call: CallContext) -> PatchedFile:
    knew = call.services.ledger.last_hash(resolved.path)
    if not section.hunks:
        data = _whole(resolved, call.services)
        was, text = content_hash(data), _decode(data)
        steps, moved_to = _steps(section, resolved, shown, was, data, call)
        return PatchedFile(verb="Moved", shown=shown, steps=steps, before=text, after=text, knew=knew, was=was, moved_to=moved_to)
    try:
        file = read_file(resolved.path)
    except FileNotFoundError:
        raise missing(resolved, call.services) from None
    placed = _in_notebook(file.text, section.hunks, resolved, shown) or place_hunks(
        file.text, section.hunks, shown, call.services.ledger, resolved.path
    )
    data = splice(file.data, file.encoding, file.text, placed.pieces)
    if data == file.data and not section.move_to:
        raise ToolError(f"The patch would leave `{shown}` as it is.")
    steps, moved_to = _steps(section, resolved, shown, file.hash, data, call)
    return PatchedFile(
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


def _in_notebook(text: str, hunks: Sequence[Hunk], resolved: Resolved, shown: str) -> PlacedHunks | None:
    """Applies the hunks to the source of cells; None: not a notebook, or they are meant for its JSON."""
    if resolved.path.suffix.lower() != ".ipynb":
        return None
    from wolo.tools.editing.notebook import edit_cells  # noqa: PLC0415  # notebooks only

    edits = [Replacement(each.old.removesuffix("\n"), each.new.removesuffix("\n")) for each in hunks]
    edited = edit_cells(text, edits, shown) if all(each.old for each in edits) else None
    return None if edited is None else PlacedHunks([EditPassage(0, len(text), edited.text)], list(edited.rules))


def _steps(
    section: UpdateFile, resolved: Resolved, shown: str, was: str, data: bytes, call: CallContext
) -> tuple[tuple[Step, ...], str]:
    """Returns the writes, and the new path of a moved file."""
    if not section.move_to:
        return (Put(resolved.path, data, was),), ""
    _refuse_folder_name(section.move_to)
    _refuse_link(resolved, shown, call.services)
    target = call.resolve(section.move_to)
    moved_to = call.services.workspace.relative(target.path)
    if os.path.lexists(target.path):
        raise ToolError(f"`{shown}` cannot be moved to `{moved_to}`: that exists already. Nothing was changed.")
    return (Put(target.path, data, None, like=resolved.path), Removal(resolved.path, was)), moved_to


def _whole(resolved: Resolved, services: ToolServices) -> bytes:
    try:
        return read_whole(resolved.path)
    except FileNotFoundError:
        raise missing(resolved, services) from None


def _refuse_folder_name(path: str) -> None:
    if path.endswith("/"):
        raise ToolError(f"`{path}` ends with a slash, so it names a folder. Give the name of a file.")


def _refuse_link(resolved: Resolved, shown: str, services: ToolServices) -> None:
    """Refuses to delete or move the target of a link, which would leave the link dangling."""
    if (services.workspace.start / resolved.spelling).is_symlink():
        raise ToolError(f"`{resolved.spelling}` is a link to `{shown}`; name that file itself, or remove the link with `shell`.")
