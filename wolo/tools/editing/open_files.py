"""Calls on files that are open in the user's editor: reads see unsaved changes, edits begin with them and reach the editor."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

from msgspec.structs import replace

from wolo.errors import ToolError
from wolo.guard.intents import ReadIntent, WriteIntent
from wolo.tools.editing.matching import with_line_endings_of
from wolo.tools.tool import CallContext, Editor
from wolo.tools.tool_values import CallResult
from wolo.workspace.files.atomic_write import write_atomic
from wolo.workspace.files.file_reading import TextFile, read_file

MOST_FILES = 20
"""Files of a call that the editor is asked about, all at once: a slow editor costs its time limit once."""
_NOT_ANSWERED = "\n[The editor did not answer in time: this is the file on disk, without changes that are not saved there.]"


async def run_in_editor(
    editor: Editor, context: CallContext, call: Callable[[CallContext], Awaitable[CallResult]], *, is_edit: bool
) -> CallResult:
    """Runs a call that reads or edits files. An editor that does not answer changes nothing."""
    # Content of files whose text in the editor differs from the disk, in the encoding of the file
    intents = [each for each in context.judged or () if isinstance(each, ReadIntent | WriteIntent)]
    paths = list(dict.fromkeys(each.path for each in intents))[:MOST_FILES]
    changed = await asyncio.gather(*(_unsaved_data(editor, path) for path in paths))
    unsaved = {path: data for path, data in zip(paths, changed, strict=True) if data is not None}
    if not is_edit:
        is_late = editor.is_late
        result = await call(replace(context, unsaved=unsaved))
        return replace(result, text=f"{result.text}{_NOT_ANSWERED}") if is_late and not result.is_error else result
    saved = [path for path in unsaved if await asyncio.to_thread(_save, path, unsaved[path], context)]
    result = await call(context)
    await asyncio.gather(*(_show(editor, path) for path in dict.fromkeys((*map(Path, result.files_changed), *saved))))
    return result


async def _show(editor: Editor, path: Path) -> None:
    if (file := await asyncio.to_thread(_read, path)) is not None:
        await editor.write(path, file.text)


async def _unsaved_data(editor: Editor, path: Path) -> bytes | None:
    """None: it is the same, apart from line ends."""
    file = await asyncio.to_thread(_read, path)
    text = await editor.text(path) if file is not None else None
    if file is None or text is None or _plain(text) == _plain(file.text):
        return None
    try:
        return file.encoding.bom + file.encoding.encode(with_line_endings_of(file.text, text))
    except (ToolError, UnicodeError):
        return None


def _plain(text: str) -> str:
    return text.replace("\r\n", "\n").rstrip("\n")


def _save(path: Path, data: bytes, context: CallContext) -> bool:
    """Saves the user's changes, so that the edit is made on top of them. The session then knows the file as well as before."""
    ledger = context.services.ledger
    try:
        file = read_file(path)
        written = write_atomic(path, data, locks=ledger.locks, expected=file.hash, note=context.note_change)
    except (ToolError, OSError):
        return False
    if ledger.last_hash(path) == file.hash:
        ledger.record(path, written.hash)
    return True


def _read(path: Path) -> TextFile | None:
    try:
        return read_file(path)
    except (ToolError, OSError):
        return None


def open_text(data: bytes) -> int:
    """Returns the descriptor of a nameless file with this content."""
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.seek(0)
        return os.dup(file.fileno())
