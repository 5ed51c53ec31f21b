"""Copies of the repositories of a run: each is fetched once, and attempts borrow its objects."""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import os
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from msgspec import Struct

from wolo.fleet.git_commands import Git, GitFailed, git_environment
from wolo.places import make_private

_LOCK_POLL_S = 0.05


class Source(Struct, frozen=True):
    """A commit of a repository, in a mirror."""

    mirror: Path
    commit: str
    object_format: str
    """`sha1` or `sha256`."""


class Mirrors:
    """Mirrors in one folder, shared by the workers of a run.

    A mirror holds no hard links to its origin: git refreshes the times of objects that it meets again.
    """

    def __init__(self, folder: Path, git: Git) -> None:
        self._folder = folder
        self._git = git
        self._found: dict[tuple[str, str], Source] = {}
        self._busy: dict[str, asyncio.Lock] = {}

    async def find(self, repo: str, ref: str) -> Source:
        """Fetches what is missing. Raises GitFailed."""
        async with self._busy.setdefault(repo, asyncio.Lock()):
            found = self._found.get((repo, ref))
            if found is None:
                found = self._found[repo, ref] = await self._find(repo, ref or "HEAD")
        return found

    async def _find(self, repo: str, ref: str) -> Source:
        name = hashlib.sha256(repo.encode("utf-8", "surrogateescape")).hexdigest()[:16]
        mirror = self._folder / f"{name}.git"
        async with _locked(self._folder / f"{name}.lock"):
            if not mirror.is_dir():
                await self._clone(repo, mirror)
            commit = await self._commit(mirror, ref)
            if not commit and ref != "HEAD":
                await self._git.attempt("fetch", "-q", "--no-tags", "--", repo, ref, cwd=mirror)
                commit = await self._commit(mirror, "FETCH_HEAD")
        if not commit:
            raise GitFailed(f"{repo} has no commit yet." if ref == "HEAD" else f"{repo} has no branch, tag or commit {ref}.")
        return Source(mirror, commit, await self._git.run("rev-parse", "--show-object-format", cwd=mirror))

    async def _clone(self, repo: str, mirror: Path) -> None:
        partial = mirror.with_suffix(f".{os.getpid()}.partial")
        await asyncio.to_thread(shutil.rmtree, partial, ignore_errors=True)
        words = ("clone", "-q", "--mirror", "--no-hardlinks", "--template=", "--", repo, str(partial))
        await self._git.run(*words, cwd=self._folder)
        partial.rename(mirror)

    async def _commit(self, mirror: Path, ref: str) -> str:
        words = ("rev-parse", "-q", "--verify", "--end-of-options", f"{ref}^{{commit}}")
        code, found, _ = await self._git.attempt(*words, cwd=mirror)
        return "" if code else found


def is_missing(repo: Path, ref: str) -> bool:
    """Tells whether a local repository surely has no such commit; one that git refuses to read may have it."""
    words = ("rev-parse", "-q", "--verify", "--end-of-options", f"{ref}^{{commit}}")
    try:
        done = subprocess.run(["git", *words], cwd=repo, env=git_environment(), capture_output=True, check=False)
    except OSError:
        return False
    return done.returncode == 1 and not done.stderr


@asynccontextmanager
async def _locked(path: Path) -> AsyncIterator[None]:
    """Excludes the other workers of the run."""
    make_private(path.parent)
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                await asyncio.sleep(_LOCK_POLL_S)
        yield
    finally:
        os.close(fd)
