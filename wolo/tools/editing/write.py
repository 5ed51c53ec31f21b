"""The `write` tool: writes a whole file."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from msgspec import Struct

from wolo.errors import ToolError
from wolo.guard.intents import Intent, WriteIntent
from wolo.messages.parts import ToolKind
from wolo.tools.editing.matching import with_line_endings_of
from wolo.tools.tool import CallContext, ToolServices
from wolo.tools.tool_arguments import FILE_ALIASES
from wolo.tools.tool_values import CallResult, Diff, TextChange
from wolo.workspace.files.atomic_write import WrittenFile, content_hash, write_atomic
from wolo.workspace.files.encodings import UTF8, printable, split_lines
from wolo.workspace.files.file_reading import TextFile, read_file
from wolo.workspace.files.line_diff import diff_lines
from wolo.workspace.files.safe_open import explain
from wolo.workspace.root import Resolved

MOST_OF_CHANGE = 100_000
"""Characters of a text in a TextChange."""
CONTEXT = 3
"""Lines around the changed passage of a large file."""


class WriteArgs(Struct, frozen=True):
    path: str
    content: str


class Write:
    """Create a file, or replace a whole file that you have read. Folders are created as needed. To change parts of a file, use
    edit."""

    name: ClassVar[str] = "write"
    Args: ClassVar[type[Struct]] = WriteArgs
    aliases: ClassVar[Mapping[str, str]] = {
        **FILE_ALIASES,
        "contents": "content",
        "file_content": "content",
        "file_contents": "content",
        "file_text": "content",
        "text": "content",
    }
    reads_only: ClassVar[bool] = False
    kind: ClassVar[ToolKind] = "edit"

    def intents(self, args: WriteArgs, services: ToolServices) -> Sequence[Intent]:
        resolved = services.workspace.resolve(args.path)
        return (intends_to_write(resolved),)

    def preview(self, args: WriteArgs, services: ToolServices) -> Diff:
        """Raises ToolError and OSError."""
        path = services.workspace.resolve(args.path).path
        shown = services.workspace.relative(path)
        try:
            old = read_file(path)
        except FileNotFoundError:
            return view_diff(path, shown, None, args.content)
        return view_diff(path, shown, old.text, with_line_endings_of(old.text, args.content.removeprefix("\ufeff")))

    async def run(self, args: WriteArgs, call: CallContext) -> CallResult:
        return await finish(lambda: _write(args, call))


def _write(args: WriteArgs, call: CallContext) -> CallResult:
    resolved = call.resolve(args.path)
    shown = call.services.workspace.relative(resolved.path)
    if args.path.endswith("/"):
        raise ToolError(f"`{args.path}` ends with a slash, so it names a folder. Give the name of a file.")
    if args.path.lower().endswith(".ipynb"):
        from wolo.tools.editing.notebook import check_notebook  # noqa: PLC0415  # notebooks only

        check_notebook(args.path, args.content, shown)
    try:
        try:
            old = read_file(resolved.path)
        except FileNotFoundError:
            if call.services.ledger.last_hash(resolved.path) is not None:  # someone else deleted it: the model is warned once
                call.services.ledger.forget(resolved.path)
                again = f"`{shown}` was deleted since you last saw it; nothing was written. Write it again to recreate it."
                raise ToolError(again) from None
            written = write_atomic(
                resolved.path, UTF8.encode(args.content), locks=call.services.ledger.locks, expected=None, note=call.note_change
            )
            call.services.ledger.record(resolved.path, written.hash)
            diff = view_diff(resolved.path, shown, None, args.content)
            lines = f"{diff.added} line{'' if diff.added == 1 else 's'}"
            return CallResult(f"Created {shown} ({lines}).", view=diff, files_changed=(str(resolved.path),))
        return _replace(args.content, old, resolved, shown, call)
    except OSError as error:
        raise explain(error, shown) from error


def _replace(content: str, old: TextFile, resolved: Resolved, shown: str, call: CallContext) -> CallResult:
    text = with_line_endings_of(old.text, content.removeprefix("\ufeff"))
    data = old.encoding.bom + old.encoding.encode(text)
    if data == old.data:
        call.services.ledger.record(resolved.path, old.hash)
        return CallResult(f"{shown} has exactly this content already; nothing was written.")
    seen = call.services.ledger.last_hash(resolved.path)
    # Replacing an empty file loses nothing.
    if seen != old.hash and old.data:
        state = "exists, and you have not read it" if seen is None else "has changed since you last read it"
        raise ToolError(f"`{shown}` {state}; nothing was written. Read it first, or change parts of it only.")
    written = write_atomic(resolved.path, data, locks=call.services.ledger.locks, expected=old.hash, note=call.note_change)
    call.services.ledger.record(resolved.path, content_hash(data))
    diff = view_diff(resolved.path, shown, old.text, text)
    return CallResult(
        f"Replaced {shown} (+{diff.added} -{diff.removed}).{links_note(written)}", view=diff, files_changed=(str(resolved.path),)
    )


def intends_to_write(resolved: Resolved) -> WriteIntent:
    try:
        status = resolved.path.lstat()
        is_file = stat.S_ISREG(status.st_mode)  # the link count of a folder counts its subfolders
    except OSError:
        is_file = False
    if not is_file:
        return WriteIntent(resolved.path, resolved.spelling, resolved.inside)
    in_place = not os.access(resolved.path.parent, os.W_OK) and os.access(resolved.path, os.W_OK)
    return WriteIntent(resolved.path, resolved.spelling, resolved.inside, links=status.st_nlink, in_place=in_place)


async def finish(work: Callable[[], CallResult]) -> CallResult:
    """Runs a short write in a thread; a cancellation takes effect after it."""
    task = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise


def view_diff(path: Path, shown: str, before: str | None, after: str | None) -> Diff:
    """None: there is no file before, or after."""
    old, new = printable(before or ""), printable(after or "")
    diff = diff_lines(old, new)
    change = text_change(path, None if before is None else old, None if after is None else new)
    return Diff(path=shown, text=diff.text, added=diff.added, removed=diff.removed, created=before is None, changes=(change,))


def text_change(path: Path, before: str | None, after: str | None) -> TextChange:
    old, new = split_lines(before or ""), split_lines(after or "")
    shorter = min(len(old), len(new))
    same = next((at for at in range(shorter) if old[at] != new[at]), shorter)
    if max(len(before or ""), len(after or "")) <= MOST_OF_CHANGE:
        return TextChange(str(path), before, after, same + 1)
    end = next((at for at in range(shorter - same) if old[-1 - at] != new[-1 - at]), shorter - same)
    start, left = max(0, same - CONTEXT), max(0, end - CONTEXT)
    texts = ["".join(lines[start : len(lines) - left])[:MOST_OF_CHANGE] for lines in (old, new)]
    return TextChange(
        str(path), None if before is None else texts[0], None if after is None else texts[1], same + 1, is_excerpt=True
    )


def links_note(written: WrittenFile) -> str:
    if written.num_links < 2:
        return ""
    return f" The file had {written.num_links} names (hard links); the others keep the old content."
