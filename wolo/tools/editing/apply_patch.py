"""The tool that changes several files at once, by a patch in the form that some models were trained on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, ClassVar

from msgspec import Meta, Struct

from wolo.errors import ToolError
from wolo.guard.intents import Intent, ReadIntent
from wolo.messages.parts import ToolKind
from wolo.tools.editing.patch_apply import Changed, Plan, plan_one
from wolo.tools.editing.patch_parser import AddFile, DeleteFile, Section, UpdateFile, read_patch
from wolo.tools.editing.write_result import finish, intends_to_write, links_note, view_diff
from wolo.tools.tool import CallContext, Diff, Result, ToolServices
from wolo.workspace.files.atomic_write import FileChanged, Written
from wolo.workspace.files.multi_file_write import NotTogether, change_together
from wolo.workspace.files.safe_open import explain

_MAX_FILES = 200
_TRIES = 20
"""When others keep writing the same files."""


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
        """Reading is among them: a hunk that is not found shows lines of the file."""
        intents: list[Intent] = []
        for section in _sections(args.patch, services):
            resolved = services.workspace.resolve(section.path)
            if isinstance(section, UpdateFile):
                intents.append(ReadIntent(resolved.path, section.path, resolved.inside))
            intents.append(intends_to_write(resolved))
            if isinstance(section, UpdateFile) and section.move_to:
                intents.append(intends_to_write(services.workspace.resolve(section.move_to)))
        return intents

    async def run(self, args: ApplyPatchArgs, call: CallContext) -> Result:
        return await finish(lambda: _apply(args, call))


def _sections(patch: str, services: ToolServices) -> list[Section]:
    """One a file: what a patch says of a file in two places is joined where that leaves no doubt. Raises ToolError."""
    sections: dict[Path, Section] = {}
    for section in read_patch(patch):
        path = services.workspace.resolve(section.path).path
        sections[path] = _joined(sections.get(path), section)
    if len(sections) > _MAX_FILES:
        raise ToolError(f"The patch names {len(sections)} files, and at most {_MAX_FILES} are changed at once; split it.")
    moves = [section.move_to for section in sections.values() if isinstance(section, UpdateFile) and section.move_to]
    targets = [services.workspace.resolve(move).path for move in moves]
    for move, target in zip(moves, targets, strict=True):
        if target in sections or targets.count(target) > 1:
            raise _twice(move)
    return list(sections.values())


def _joined(before: Section | None, section: Section) -> Section:
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
    return ToolError(f"`{path}` is meant twice in the patch; nothing was changed.")


def _apply(args: ApplyPatchArgs, call: CallContext) -> Result:
    sections = _sections(args.patch, call.services)
    for _ in range(_TRIES):
        plan = _plan(sections, call)
        try:
            written = change_together(plan.steps, locks=call.services.ledger.locks, note=call.note_change)
        except FileChanged:
            continue  # somebody was faster: look again whether the passages are still there
        except NotTogether as failed:
            raise ToolError(_report(failed, plan, call.services)) from failed
        return _result(plan, written, call.services)
    raise FileChanged("The files are being changed by another program all the time; nothing was written.")


def _plan(sections: Sequence[Section], call: CallContext) -> Plan:
    """Raises ToolError that says of each file whether it could be changed."""
    planned: list[Changed] = []
    wrong: list[str] = []
    for section in sections:
        try:
            planned.append(plan_one(section, call))
        except ToolError as error:
            is_named = len(sections) == 1 or f"`{section.path}`" in error.message
            wrong.append(error.message if is_named else f"`{section.path}`: {error.message}")
        except OSError as error:
            wrong.append(explain(error, section.path).message)
    if not wrong:
        return Plan(planned)
    if len(sections) == 1:
        raise ToolError(wrong[0])
    head = f"Nothing was changed: the patch does not fit {len(wrong)} of {len(sections)} files."
    fine = ", ".join(f"`{each.shown}`" for each in planned)
    rest = [f"The patch fits {fine}; nothing was changed there either."] if fine else []
    raise ToolError("\n\n".join((head, *wrong, *rest)))


def _report(failed: NotTogether, plan: Plan, services: ToolServices) -> str:
    """Exactly how far it came, file by file."""
    name = services.workspace.relative
    said = [f"`{name(failed.failed)}`: {_reason(failed.cause, name(failed.failed))}"]
    if failed.put_back:
        said.append(f"Written before it and put back: {', '.join(f'`{name(path)}`' for path in failed.put_back)}.")
    if not failed.left:
        return "\n".join(("Nothing was changed: one of the files could not be written.", *said))
    said += [f"`{name(path)}` was changed and could not be put back: {_reason(error, name(path))}" for path, error in failed.left]
    return "\n".join(("The patch was applied in part.", *said))


def _reason(error: Exception, shown: str) -> str:
    if isinstance(error, OSError):
        return explain(error, shown).message
    return error.message if isinstance(error, ToolError) else f"{type(error).__name__}: {error}"


def _result(plan: Plan, written: Mapping[Path, Written | None], services: ToolServices) -> Result:
    lines: list[str] = []
    diffs: list[Diff] = []
    for each in plan.files:
        each.remember(services.ledger, written)
        diff = view_diff(each.shown, each.before, each.after, created=each.verb == "Added")
        diffs.append(diff)
        links = "".join(links_note(done) for step in each.steps if (done := written[step.path]) is not None)
        lines.append(f"{each.told(diff.added, diff.removed)}{links}")
    rules = sorted({rule for each in plan.files for rule in each.rules})
    return Result(
        "\n".join(lines),
        view=_together(diffs),
        files_changed=tuple(str(step.path) for step in plan.steps),
        metadata={"matched_by": rules or ["exact"]},
    )


def _together(diffs: Sequence[Diff]) -> Diff:
    if len(diffs) == 1:
        return diffs[0]
    text = "\n".join(f"@ {diff.path}\n{diff.text}" for diff in diffs)
    added, removed = sum(diff.added for diff in diffs), sum(diff.removed for diff in diffs)
    return Diff(path=", ".join(diff.path for diff in diffs), text=text, added=added, removed=removed)
