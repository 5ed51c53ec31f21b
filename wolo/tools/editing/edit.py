"""The `edit` tool: replaces passages of a file."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Annotated, ClassVar, NamedTuple

from msgspec import Meta, Struct

from wolo.errors import ToolError
from wolo.guard.intents import Intent, ReadIntent
from wolo.messages.parts import ToolKind
from wolo.tools.editing import matching
from wolo.tools.editing.write import finish, intends_to_write, links_note, view_diff
from wolo.tools.tool import UNOFFERED, CallContext, ToolServices
from wolo.tools.tool_arguments import FILE_ALIASES, missing
from wolo.tools.tool_values import CallResult, Diff
from wolo.workspace.files.atomic_write import FileChanged, WrittenFile, write_atomic
from wolo.workspace.files.encodings import splice
from wolo.workspace.files.file_reading import TextFile, read_file
from wolo.workspace.files.safe_open import explain

_TRIES = 20
"""Attempts while other programs keep writing the same file."""
_MORE_LINES = "Add lines around it until it occurs once, or set `replace_all`."


class EditArgs(Struct, frozen=True):
    path: str
    old: str | None = None
    new: str | None = None
    replace_all: bool = False
    edits: tuple[matching.Replacement, ...] = ()
    insert_line: Annotated[int | None, Meta(extra_json_schema={UNOFFERED: True})] = None
    """`new` is inserted behind this line, 0: before the first. For calls of other agents' editors."""


class Edit:
    """Replace `old` by `new` in a file. Copy `old` exactly, without line numbers, and long enough to occur only once, or
    set `replace_all`. For several changes in one file give `edits` instead: all are made, or none."""

    name: ClassVar[str] = "edit"
    Args: ClassVar[type[Struct]] = EditArgs
    aliases: ClassVar[Mapping[str, str]] = {
        **FILE_ALIASES,
        "old_string": "old",
        "old_str": "old",
        "old_text": "old",
        "oldText": "old",
        "search": "old",
        "new_string": "new",
        "new_str": "new",
        "new_text": "new",
        "newText": "new",
        "replace": "new",
        "replaceAll": "replace_all",
        "edit": "edits",
        "replacements": "edits",
    }
    reads_only: ClassVar[bool] = False
    kind: ClassVar[ToolKind] = "edit"

    def intents(self, args: EditArgs, services: ToolServices) -> Sequence[Intent]:
        """Includes reading, because an error shows lines of the file."""
        _check(args)
        resolved = services.workspace.resolve(args.path)
        return (ReadIntent(resolved.path, args.path, resolved.inside), intends_to_write(resolved))

    def preview(self, args: EditArgs, services: ToolServices) -> Diff:
        """Raises ToolError and OSError."""
        _check(args)
        path = services.workspace.resolve(args.path).path
        file, shown = read_file(path), services.workspace.relative(path)
        plan = _plan_any(file, args, path, shown, services)
        return view_diff(path, shown, file.text, matching.join_passages(file.text, plan.passages))

    async def run(self, args: EditArgs, call: CallContext) -> CallResult:
        return await finish(lambda: _edit(args, call))


class _Plan(NamedTuple):
    passages: list[matching.EditPassage]
    """In file order, without overlaps."""
    rules: list[str]
    cells: tuple[int, ...] = ()
    """Changed cells of a notebook."""


def _check(args: EditArgs) -> None:
    """Raises ToolError."""
    if args.insert_line is None:
        _replacements(args)
    elif not args.new or args.old is not None or args.edits:
        raise ToolError("`insert_line` goes with a text `new`, and with neither `old` nor `edits`.")


def _replacements(args: EditArgs) -> tuple[matching.Replacement, ...]:
    single = args.old is not None or args.new is not None
    if single and args.edits:
        raise ToolError("Give either `old` and `new`, or `edits`.")
    if not single and not args.edits:
        raise ToolError("`old` and `new` are missing (or a list `edits` of them).")
    if single and (args.old is None or args.new is None):
        raise ToolError(f"`{'old' if args.old is None else 'new'}` is missing.")
    edits = args.edits or (matching.Replacement(args.old or "", args.new or "", args.replace_all),)
    for number, edit in enumerate(edits, start=1):
        name = f"edits[{number}]: " if len(edits) > 1 else ""
        if not edit.old:
            raise ToolError(
                f"{name}`old` is empty. Use `write` to create a file; to insert, give a line as `old` and keep it in `new`."
            )
        if edit.old == edit.new:
            raise ToolError(f"{name}`old` and `new` are the same; there is nothing to change.")
    return edits


def _edit(args: EditArgs, call: CallContext) -> CallResult:
    _check(args)
    resolved = call.resolve(args.path)
    path, shown = resolved.path, call.services.workspace.relative(resolved.path)
    try:
        for _ in range(_TRIES):
            file = read_file(path)
            plan = _plan_any(file, args, path, shown, call.services)
            data = splice(file.data, file.encoding, file.text, plan.passages)
            if path.suffix.lower() == ".ipynb":
                from wolo.tools.editing.notebook import check_notebook  # noqa: PLC0415  # notebooks only

                check_notebook(path.name, file.encoding.decode(data), shown)
            if data == file.data:
                raise ToolError(f"The edit would leave `{shown}` as it is.")
            try:
                written = write_atomic(path, data, locks=call.services.ledger.locks, expected=file.hash, note=call.note_change)
            except FileChanged:
                continue  # changed concurrently: locate the passage again
            return _result(file, plan, written, path, shown, call.services)
    except FileNotFoundError:
        raise missing(resolved, call.services) from None
    except OSError as error:
        raise explain(error, shown) from error
    raise FileChanged(f"Another program keeps changing `{shown}`; nothing was written.")


def _plan_any(file: TextFile, args: EditArgs, path: Path, shown: str, services: ToolServices) -> _Plan:
    if args.insert_line is not None:
        # Whole lines behind line `line`.
        text = file.text
        line = args.insert_line
        starts = [0, *(ending.end() for ending in re.finditer(r"\r\n|\n|\r", text))]
        num_lines = len(starts) - (starts[-1] == len(text))
        if path.suffix.lower() == ".ipynb":
            raise ToolError("`insert_line` does not count lines of notebooks: give a line as `old` and keep it in `new`.")
        if not 0 <= line <= num_lines:
            raise ToolError(f"`insert_line` must be from 0 to {num_lines}: so many lines has `{shown}`.")
        is_behind_open_line = line == len(starts)
        at = len(text) if is_behind_open_line else starts[line]
        lines = (args.new or "").removesuffix("\n")
        neighbour = text[starts[max(line - 1, 0)] : at] if line else text[: starts[min(1, len(starts) - 1)]]
        default = next(iter(re.findall(r"\r\n|\n|\r", text)), "\n")
        lines = f"\n{lines}" if is_behind_open_line else f"{lines}\n"
        return _Plan([matching.EditPassage(at, at, matching.with_line_endings_of(neighbour, lines, default))], [])
    edits = _replacements(args)
    return _plan_notebook(file, edits, path, shown) or _plan(file, edits, path, shown, services)


def _plan_notebook(file: TextFile, edits: tuple[matching.Replacement, ...], path: Path, shown: str) -> _Plan | None:
    """None: not a notebook, or the edit is meant for its JSON."""
    if path.suffix.lower() != ".ipynb":
        return None
    from wolo.tools.editing.notebook import edit_cells  # noqa: PLC0415  # notebooks only

    if (edited := edit_cells(file.text, edits, shown)) is None:
        return None
    return _Plan([matching.EditPassage(0, len(file.text), edited.text)], list(edited.rules), edited.cells)


def _plan(file: TextFile, edits: tuple[matching.Replacement, ...], path: Path, shown: str, services: ToolServices) -> _Plan:
    """Finds all passages in the current text, so that edits do not depend on each other."""
    passages: list[matching.EditPassage] = []
    rules: list[str] = []
    for number, edit in enumerate(edits, start=1):
        name = f"edits[{number}]: " if len(edits) > 1 else ""
        matches = matching.find(file.text, edit.old, edit.new)
        if not matches.passages:
            misses = services.ledger.count_miss(path)
            raise ToolError(name + matching.describe_miss("`old`", file.text, edit.old, edit.new, misses, shown))
        if len(matches.passages) > 1 and not edit.replace_all:
            raise ToolError(name + matching.describe_ambiguity("`old`", file.text, matches, shown, _MORE_LINES))
        end = 0
        for passage in matches.passages:
            if passage.start >= end:  # an occurrence that overlaps an earlier one is dropped: `aa` in `aaa`
                passages.append(passage)
                end = passage.end
        if matches.rule and matches.rule not in rules:
            rules.append(matches.rule)
    passages.sort()
    for one, next_one in pairwise(passages):
        if next_one.start < one.end:
            line = matching.line_number(file.text, next_one.start)
            raise ToolError(f"Two of the edits overlap at line {line} of `{shown}`; nothing was changed. Join them into one.")
    return _Plan(passages, rules)


def _result(file: TextFile, plan: _Plan, written: WrittenFile, path: Path, shown: str, services: ToolServices) -> CallResult:
    seen = services.ledger.last_hash(path)
    services.ledger.reset_misses(path)
    stale = ""
    if seen == file.hash:
        services.ledger.record(path, written.hash)
    elif seen is not None:
        stale = " The file had changed since you last read it; those changes are kept."
    after = matching.join_passages(file.text, plan.passages)
    diff = view_diff(path, shown, file.text, after)
    lines = [str(matching.line_number(file.text, passage.start)) for passage in plan.passages[:10]]
    more = ", …" if len(plan.passages) > 10 else ""
    where = f"line{'s' if len(plan.passages) > 1 else ''} {', '.join(lines)}{more}"
    if plan.cells:
        where = f"cell{'s' if len(plan.cells) > 1 else ''} {', '.join(map(str, plan.cells[:10]))}"
    forgiven = f" Matched despite different {' and '.join(plan.rules)}." if plan.rules else ""
    text = f"Edited {shown} at {where} (+{diff.added} -{diff.removed}).{forgiven}{stale}{links_note(written)}"
    return CallResult(text, view=diff, files_changed=(str(path),), metadata={"matched_by": plan.rules or ["exact"]})
