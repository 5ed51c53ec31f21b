"""The tool that replaces passages of a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import ClassVar, NamedTuple

from msgspec import Struct

from wolo.errors import ToolError
from wolo.guard.intents import Intent, ReadIntent, WriteIntent
from wolo.tools import spellings
from wolo.tools.matching import Passage, find, line_number, nearest_lines
from wolo.tools.missing import missing
from wolo.tools.saved import finish, links_note, view_diff
from wolo.tools.tool import Result, ToolContext
from wolo.workspace.files import TextFile, read_file
from wolo.workspace.opening import explain
from wolo.workspace.saving import FileChanged, Written, write_atomic
from wolo.workspace.text import printable, splice, split_lines

_TRIES = 5
"""When others keep writing the same file."""
_MAX_SHOWN_LINES = 12
_MAX_REGION_LINES = 60
_MAX_WIDTH = 400


class Replacement(Struct, frozen=True):
    old: str
    new: str
    replace_all: bool = False


class EditArgs(Struct, frozen=True):
    path: str
    old: str | None = None
    new: str | None = None
    replace_all: bool = False
    edits: tuple[Replacement, ...] = ()


class Edit:
    """Replace `old` by `new` in a file. Copy `old` exactly, without line numbers, and long enough to occur only once, or
    set `replace_all`. For several changes in one file give `edits` instead: all are made, or none."""

    name: ClassVar[str] = "edit"
    Args: ClassVar[type[Struct]] = EditArgs
    aliases: ClassVar[Mapping[str, str]] = {
        **spellings.FILE,
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

    def intents(self, args: EditArgs, context: ToolContext) -> Sequence[Intent]:
        """Reading is among them: a failed edit shows lines of the file."""
        _replacements(args)
        resolved = context.workspace.resolve(args.path)
        return (
            ReadIntent(resolved.path, args.path, resolved.inside),
            WriteIntent(resolved.path, args.path, resolved.inside),
        )

    async def run(self, args: EditArgs, context: ToolContext) -> Result:
        return await finish(lambda: _edit(args, context))


class _Plan(NamedTuple):
    passages: list[Passage]
    """In the order of the file, apart from each other."""
    rules: list[str]


def _replacements(args: EditArgs) -> tuple[Replacement, ...]:
    single = args.old is not None or args.new is not None
    if single and args.edits:
        raise ToolError("Give either `old` and `new`, or `edits`.")
    if not single and not args.edits:
        raise ToolError("`old` and `new` are missing (or a list `edits` of them).")
    if single and (args.old is None or args.new is None):
        raise ToolError(f"`{'old' if args.old is None else 'new'}` is missing.")
    edits = args.edits or (Replacement(args.old or "", args.new or "", args.replace_all),)
    for number, edit in enumerate(edits, start=1):
        name = f"edits[{number}]: " if len(edits) > 1 else ""
        if not edit.old:
            raise ToolError(
                f"{name}`old` is empty. Use `write` to create a file; to insert, give a line as `old` and keep it in `new`."
            )
        if edit.old == edit.new:
            raise ToolError(f"{name}`old` and `new` are the same; there is nothing to change.")
    return edits


def _edit(args: EditArgs, context: ToolContext) -> Result:
    edits = _replacements(args)
    resolved = context.resolve(args.path)
    path, shown = resolved.path, context.workspace.relative(resolved.path)
    try:
        for _ in range(_TRIES):
            file = read_file(path)
            plan = _plan(file, edits, path, shown, context)
            data = splice(file.data, file.encoding, file.text, plan.passages)
            if data == file.data:
                raise ToolError(f"The edit would leave `{shown}` as it is.")
            try:
                written = write_atomic(path, data, locks=context.ledger.locks, expected=file.hash, note=context.note_change)
            except FileChanged:
                continue  # somebody was faster: look again whether the passage is still there
            return _result(file, plan, written, path, shown, context)
    except FileNotFoundError:
        raise missing(resolved, context) from None
    except OSError as error:
        raise explain(error, shown) from error
    raise FileChanged(f"`{shown}` is being changed by another program all the time; nothing was written.")


def _plan(file: TextFile, edits: tuple[Replacement, ...], path: Path, shown: str, context: ToolContext) -> _Plan:
    """All passages are found in the text as it is now, so the edits cannot depend on each other."""
    passages: list[Passage] = []
    rules: list[str] = []
    for number, edit in enumerate(edits, start=1):
        name = f"edits[{number}]: " if len(edits) > 1 else ""
        found = find(file.text, edit.old, edit.new)
        if not found.passages:
            raise ToolError(name + _describe_miss(file.text, edit, context.ledger.count_miss(path), shown))
        if len(found.passages) > 1 and not edit.replace_all:
            raise ToolError(name + _describe_ambiguity(file.text, found.passages, found.rule, shown))
        passages += _apart(found.passages)
        if found.rule and found.rule not in rules:
            rules.append(found.rule)
    passages.sort()
    for one, next_one in pairwise(passages):
        if next_one.start < one.end:
            line = line_number(file.text, next_one.start)
            raise ToolError(f"Two of the edits overlap at line {line} of `{shown}`; nothing was changed. Join them into one.")
    return _Plan(passages, rules)


def _apart(passages: list[Passage]) -> list[Passage]:
    """Occurrences of one text that share characters (`aa` in `aaa`): every one that is free, from the front."""
    free: list[Passage] = []
    for passage in passages:
        if not free or passage.start >= free[-1].end:
            free.append(passage)
    return free


def _result(file: TextFile, plan: _Plan, written: Written, path: Path, shown: str, context: ToolContext) -> Result:
    seen = context.ledger.seen(path)
    context.ledger.found(path)
    stale = ""
    if seen == file.hash:
        context.ledger.record(path, written.hash)
    elif seen is not None:
        stale = " The file had changed since you last read it; those changes are kept."
    after = _joined(file.text, plan.passages)
    diff = view_diff(shown, file.text, after)
    lines = [str(line_number(file.text, passage.start)) for passage in plan.passages[:10]]
    more = ", …" if len(plan.passages) > 10 else ""
    where = f"line{'s' if len(plan.passages) > 1 else ''} {', '.join(lines)}{more}"
    forgiven = f" Matched in spite of different {' and '.join(plan.rules)}." if plan.rules else ""
    text = f"Edited {shown} at {where} (+{diff.added} -{diff.removed}).{forgiven}{stale}{links_note(written)}"
    return Result(text, view=diff, files_changed=(str(path),), metadata={"matched_by": plan.rules or ["exact"]})


def _joined(text: str, passages: list[Passage]) -> str:
    out, position = [], 0
    for passage in passages:
        out += [text[position : passage.start], passage.new]
        position = passage.end
    return "".join((*out, text[position:]))


def _describe_ambiguity(text: str, passages: list[Passage], rule: str, shown: str) -> str:
    lines = ", ".join(str(line_number(text, passage.start)) for passage in passages[:10])
    lines += ", …" if len(passages) > 10 else ""
    forgiven = f" (ignoring {rule})" if rule else ""
    return (
        f"`old` occurs {len(passages)} times in `{shown}`{forgiven}, at lines {lines}; nothing was changed. "
        "Add lines around it until it occurs once, or set `replace_all`."
    )


def _describe_miss(text: str, edit: Replacement, misses: int, shown: str) -> str:
    """The first miss shows what comes nearest; from the second on, the whole region as it is now."""
    head = f"`old` was not found in `{shown}`; nothing was changed."
    if misses > 1:
        head += f" This is miss {misses} in a row on this file."
    if len(edit.new.strip()) > 3 and len(done := find(text, edit.new, "").passages) == 1:
        head += f" `new` is there already, at line {line_number(text, done[0].start)}."
    near = nearest_lines(text, edit.old)
    if misses == 1 and near is None:
        return f"{head} Nothing in it is like it: read the file again."
    first, count = near or (1, 1)
    if misses == 1:
        return f"{head} Nearest lines:\n{_numbered(text, first, min(count, _MAX_SHOWN_LINES))}"
    around = max((_MAX_REGION_LINES - count) // 2, 5)
    begin = max(first - around, 1)
    region = _numbered(text, begin, min(count + 2 * around, _MAX_REGION_LINES))
    return f"{head} The file reads now:\n{region}\nCopy `old` from these lines, without the numbers."


def _numbered(text: str, first: int, count: int) -> str:
    lines = split_lines(text)[first - 1 : first - 1 + count]
    return "\n".join(f"{number}→{printable(line.rstrip()[:_MAX_WIDTH])}" for number, line in enumerate(lines, start=first))
