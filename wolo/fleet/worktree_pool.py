"""Worktrees of ended attempts, used again where they are again what git made.

A file is unchanged when it is the same inode and has the same time of change (ctime): the kernel sets that time at each change,
and no program can. Everything else is removed, git writes what is missing, and a second look at every entry decides. What was
seen is in memory only, so that nothing of a killed worker is trusted.
"""

from __future__ import annotations

import asyncio
import os
import stat
import struct
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from wolo.fleet.run_folder import RunFolder
from wolo.sessions.database_file import is_remote
from wolo.workspace.directory_copy import remove_tree
from wolo.workspace.git import Git, GitFailed
from wolo.workspace.git_objects import LentCommit, lend_objects, make_git_dir

_MOST_IDLE = 4
_GIT = ".git"
_IDENTITY = struct.Struct("=QQ")
_REST = struct.Struct("=IQII")
_TICKS, _TICK_S = 100, 0.002
"""Longest wait until the clock of the file system has moved on."""
Shape = Mapping[str, bytes]
"""Every entry but the top's `.git`, by its path: its identity, then what a copy of it would have too."""


class _Base(Struct, frozen=True):
    source: LentCommit
    folder: Path
    shape: Shape
    index: bytes


class WorktreePool:
    """Of one process. A call raises GitFailed or OSError only where a new worktree cannot be made either."""

    def __init__(self, folder: RunFolder, git: Git) -> None:
        self._folder, self._git = folder, git
        self._in_use: dict[Path, _Base] = {}
        self._idle: list[_Base] = []
        self._held: tuple[Path, int] | None = None
        """Where the idle ones are, and its lock."""
        self._count = 0

    async def check_out(self, source: LentCommit, folder: Path) -> None:
        """Makes the worktree `folder`, from one of the pool if it can."""
        base = next((each for each in self._idle if (each.source, each.folder.name) == (source, folder.name)), None)
        if base is not None:
            self._idle.remove(base)
            if await self._restore(base, folder):
                return
            await asyncio.to_thread(remove_tree, folder)
        await check_out(source, folder, self._git)
        with suppress(OSError):  # of a file system that cannot say all
            if sys.platform == "linux" and not is_remote(folder):
                await self._remember(source, folder, await asyncio.to_thread(look, folder))

    async def _restore(self, base: _Base, folder: Path) -> bool:
        """False: it is not what git made, and is of no use."""
        try:
            base.folder.rename(folder)
            same = await asyncio.to_thread(look, folder, base.shape)
            await check_out(base.source, folder, self._git, base.index)
            shape = await asyncio.to_thread(look, folder)
        except (OSError, GitFailed):
            return False
        if not is_same(base.shape, same, shape):
            return False
        await self._remember(base.source, folder, shape)
        return True

    async def _remember(self, source: LentCommit, folder: Path, shape: Shape) -> None:
        """Before anything runs in it."""
        if await asyncio.to_thread(_await_clock, folder, shape):
            self._in_use[folder] = _Base(source, folder, shape, (folder / _GIT / "index").read_bytes())

    async def give_back(self, folder: Path, *, is_clean: bool) -> None:
        """`is_clean`: nothing that the attempt started is left, anywhere. What is not kept stays in its place."""
        base = self._in_use.pop(folder, None)
        if base is None or not is_clean:
            return
        try:
            place = await asyncio.to_thread(self._take_in, folder)
        except OSError:
            return
        self._idle.append(_Base(base.source, place, base.shape, base.index))
        if len(self._idle) > _MOST_IDLE:
            await asyncio.to_thread(remove_tree, self._idle.pop(0).folder.parent)

    def _take_in(self, folder: Path) -> Path:
        self._held = self._held or self._folder.make_pool()
        self._count += 1
        place = self._held[0] / str(self._count) / folder.name
        place.parent.mkdir()
        return folder.rename(place)

    def close(self) -> None:
        if self._held is not None:
            remove_tree(self._held[0])
            os.close(self._held[1])
        self._idle, self._held = [], None


async def check_out(source: LentCommit, folder: Path, git: Git, index: bytes = b"") -> None:
    """With `index`, of the same commit, git writes only what is missing. Raises GitFailed, OSError."""
    make_git_dir(folder / _GIT, source)
    lend_objects(source.lender, folder)
    if index:
        (folder / _GIT / "index").write_bytes(index)
    await git.run("reset", "-q", "--hard", cwd=folder)


def look(folder: Path, known: Shape | None = None) -> Shape:
    """With `known`, removes what is not the same as there. Raises OSError."""
    shape = {"": _entry(str(folder), folder.lstat())}
    waiting = [""]
    while waiting:
        above = waiting.pop()
        with os.scandir(folder / above) as entries:
            for entry in entries:
                name = above + entry.name
                there = entry.stat(follow_symlinks=False)
                is_folder = stat.S_ISDIR(there.st_mode)
                if known is None and name == _GIT:
                    continue
                seen = _entry(entry.path, there)
                if known is not None and known.get(name) != seen:
                    remove_tree(Path(entry.path)) if is_folder else os.unlink(entry.path)  # noqa: PTH108  # text all along
                    continue
                shape[name] = seen
                if is_folder:
                    waiting.append(f"{name}/")
    return shape


def _entry(path: str, there: os.stat_result) -> bytes:
    """A folder's own times say nothing of what changed in it; its attributes are for what is made in it."""
    is_folder = stat.S_ISDIR(there.st_mode)
    identity = _IDENTITY.pack(there.st_ino, 0 if is_folder else there.st_ctime_ns)
    rest = _REST.pack(there.st_mode, 0 if is_folder else there.st_size, there.st_uid, there.st_gid)
    attributes = [(name, os.getxattr(path, name)) for name in os.listxattr(path)] if is_folder and sys.platform == "linux" else ()
    return identity + rest + (repr(attributes).encode() if attributes else b"")


def is_same(base: Shape, same: Shape, now: Shape) -> bool:
    """`same`: what was left of `base` before git wrote the rest."""
    at = _IDENTITY.size
    return (
        base.keys() == now.keys()
        and base[""] == now[""]
        and all(seen == now[name] if name in same else seen[at:] == now[name][at:] for name, seen in base.items())
    )


def _await_clock(folder: Path, shape: Shape) -> bool:
    """True when a change from now on has a later time than every file."""
    newest = max((_IDENTITY.unpack_from(seen)[1] for seen in shape.values()), default=0)
    probe = folder / _GIT / "probe"
    for _ in range(_TICKS):
        probe.touch()
        if probe.stat().st_ctime_ns > newest:
            probe.unlink()
            return True
        time.sleep(_TICK_S)
    return False
