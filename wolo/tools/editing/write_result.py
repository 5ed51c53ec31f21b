"""What the tools that write share: what they intend, finishing in spite of an interrupt, and the diff to show."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Callable

from wolo.guard.intents import WriteIntent
from wolo.tools.tool import Diff, Result
from wolo.workspace.files.atomic_write import Written
from wolo.workspace.files.diff import diff_lines
from wolo.workspace.files.encodings import printable
from wolo.workspace.root import Resolved


def intends_to_write(resolved: Resolved) -> WriteIntent:
    try:
        status = resolved.path.lstat()
        is_file = stat.S_ISREG(status.st_mode)  # of a folder the links are its sub-folders
    except OSError:
        is_file = False
    if not is_file:
        return WriteIntent(resolved.path, resolved.given, resolved.inside)
    in_place = not os.access(resolved.path.parent, os.W_OK) and os.access(resolved.path, os.W_OK)
    return WriteIntent(resolved.path, resolved.given, resolved.inside, links=status.st_nlink, in_place=in_place)


async def finish(work: Callable[[], Result]) -> Result:
    """Runs a short piece of work in a thread; an interrupt is passed on only once the file is whole again."""
    task = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise


def view_diff(shown: str, before: str, after: str, *, created: bool = False) -> Diff:
    diff = diff_lines(printable(before), printable(after))
    return Diff(path=shown, text=diff.text, added=diff.added, removed=diff.removed, created=created)


def links_note(written: Written) -> str:
    if written.links < 2:
        return ""
    return f" The file had {written.links} names (hard links); the others keep the old content."
