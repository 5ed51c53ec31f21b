"""Copies of the repositories of a run: each is fetched once, and attempts borrow its objects."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from wolo.config.consents import trust_in
from wolo.fleet.seal import seal_of
from wolo.operating_system import LOCK_EX, LOCK_NB, flock, os
from wolo.places import Notices, Places, make_private
from wolo.workspace.directory_copy import remove_tree
from wolo.workspace.git import Git, GitFailed
from wolo.workspace.git_objects import LentCommit, borrowed_folders, copy_objects, copy_refs
from wolo.workspace.git_repository import find_repository, local_path, open_repository

_LOCK_POLL_S = 0.05


class Mirrors:
    """Mirrors in one folder, shared by the workers of a run.

    A mirror holds no hard links to its origin: git refreshes the times of objects that it meets again. One of this machine is
    copied without git, which would otherwise read the settings of a stranger.
    """

    def __init__(self, folder: Path, git: Git, places: Places) -> None:
        self._folder = folder
        self._git = git
        self._places = places
        self._found: dict[tuple[str, str], LentCommit] = {}
        self._busy: dict[str, asyncio.Lock] = {}

    async def find(self, repo: str, ref: str) -> LentCommit:
        """Fetches what is missing. Raises GitFailed."""
        async with self._busy.setdefault(repo, asyncio.Lock()):
            mirror = self._found.get((repo, ref))
            if mirror is None:
                mirror = self._found[repo, ref] = await self._find(repo, ref or "HEAD")
        return mirror

    async def _find(self, repo: str, ref: str) -> LentCommit:
        name = seal_of(["mirror", repo])[:16]  # nobody else can put one there
        mirror = self._folder / f"{name}.git"
        async with _lock(self._folder / f"{name}.lock"):
            local = local_path(repo)
            if not mirror.is_dir():
                origin = local or repo
                partial = mirror.with_suffix(f".{os.getpid()}.partial")
                await asyncio.to_thread(remove_tree, partial)
                if isinstance(origin, Path):
                    await asyncio.to_thread(self._copy, origin, partial)
                else:
                    await self._git.run("clone", "-q", "--mirror", "--template=", "--", origin, str(partial), cwd=self._folder)
                partial.rename(mirror)
            commit = await self._commit(mirror, ref)
            if not commit and local:
                await asyncio.to_thread(self._copy, local, mirror)
                commit = await self._commit(mirror, ref)
            elif not commit and ref != "HEAD":
                await self._git.attempt("fetch", "-q", "--no-tags", "--", repo, ref, cwd=mirror)
                commit = await self._commit(mirror, "FETCH_HEAD")
        if not commit:
            raise GitFailed(f"{repo} has no commit yet." if ref == "HEAD" else f"{repo} has no branch, tag or commit {ref}.")
        return LentCommit(mirror, commit, await self._git.run("rev-parse", "--show-object-format", cwd=mirror))

    def _copy(self, origin: Path, mirror: Path) -> None:
        """Adds what is missing. Raises GitFailed, OSError."""
        repo = find_repository(origin)
        if repo is None:
            raise GitFailed(f"{origin} is not a git repository.")
        objects = repo.common / "objects"
        if (borrowed := borrowed_folders(objects)) and trust_in(self._places, repo.top, Notices()) != "trusted":
            raise GitFailed(
                f"{origin} borrows objects from {borrowed[0]}, which nobody but itself says.",
                hint=f"git -C {origin} repack -a -d && rm {objects}/info/alternates   gives it its own.",
            )
        with open_repository(repo) as repository:
            mirror.mkdir(exist_ok=True)
            for name in ("config", "HEAD"):
                shutil.copyfile(repository.view / name, mirror / name)
        for folder in ("objects", "refs"):
            (mirror / folder).mkdir(exist_ok=True)
        copy_refs(repo.common, mirror)
        for each in (*(other for lender in borrowed for other in (*borrowed_folders(lender), lender)), objects):
            copy_objects(each, mirror / "objects")

    async def _commit(self, mirror: Path, ref: str) -> str:
        words = ("rev-parse", "-q", "--verify", "--end-of-options", f"{ref}^{{commit}}")
        done = await self._git.attempt(*words, cwd=mirror)
        return "" if done.exit_code else done.stdout.strip()


def is_missing(repo: Path, ref: str) -> bool:
    """Tells whether a local repository surely has no such commit; one that git refuses to read may have it."""
    try:
        found = find_repository(repo)
        if found is None:
            return False
        with open_repository(found) as repository:
            done = repository.run("rev-parse", "-q", "--verify", "--end-of-options", f"{ref}^{{commit}}")
    except (GitFailed, OSError):
        return False
    return done.exit_code == 1 and not done.stderr


@asynccontextmanager
async def _lock(path: Path) -> AsyncIterator[None]:
    """Excludes the other workers of the run."""
    make_private(path.parent)
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        while True:
            try:
                flock(fd, LOCK_EX | LOCK_NB)
                break
            except BlockingIOError:
                await asyncio.sleep(_LOCK_POLL_S)
        yield
    finally:
        os.close(fd)
