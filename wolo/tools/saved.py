"""What the tools that write share: what they intend, finishing in spite of an interrupt, and the diff to show."""

from __future__ import annotations

import asyncio
import stat
from collections.abc import Callable

from wolo.guard.intents import WriteIntent
from wolo.tools.tool import Diff, Result
from wolo.workspace.diff import diff_lines
from wolo.workspace.root import Resolved
from wolo.workspace.saving import Written
from wolo.workspace.text import printable


def intends_to_write(resolved: Resolved) -> WriteIntent:
    return WriteIntent(resolved.path, resolved.given, resolved.inside, links=_links(resolved))


def _links(resolved: Resolved) -> int:
    """How many names the file has; a folder counts its sub-folders, which is no matter here."""
    try:
        status = resolved.path.lstat()
    except OSError:
        return 1
    return status.st_nlink if stat.S_ISREG(status.st_mode) else 1


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
