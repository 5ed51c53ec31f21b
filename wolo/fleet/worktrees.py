"""Worktrees of attempts: made from a repository, a folder or nothing, and compared with their beginning.

An attempt has two git directories: the agent's own `.git`, and one outside of its reach that makes the patch. Both borrow objects
from a mirror, so nothing is ever written to the source, and nothing that the agent configures is run.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from wolo.errors import SessionError
from wolo.fleet.ledger.outcomes import Patch
from wolo.fleet.mirrors import Mirrors
from wolo.fleet.tasks import BatchTask
from wolo.fleet.worktree_pool import WorktreePool
from wolo.workspace.directory_copy import copy_tree, remove_tree
from wolo.workspace.git import Git, GitFailed
from wolo.workspace.git_objects import LentCommit, add_words, make_git_dir

_EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
MAX_COPY_BYTES = 4 << 30


class Worktree(Struct, frozen=True):
    folder: Path
    """Working directory of the agent."""
    git_dir: Path
    """Makes the patch; the agent knows nothing of it."""
    base: str
    """Commit or tree to compare with."""

    @property
    def environment(self) -> dict[str, str]:
        return {"GIT_DIR": str(self.git_dir), "GIT_WORK_TREE": str(self.folder)}


async def make_worktree(
    task: BatchTask, work: Path, mirrors: Mirrors, git: Git, note: Callable[[str], None], pool: WorktreePool
) -> Worktree:
    """Makes a fresh worktree below the new folder `work`, or one of the pool as good as fresh. Raises GitFailed, OSError."""
    # Prompts and paths that the agent sees name the repository.
    name = task.repo.rstrip("/").rpartition("/")[2].rpartition(":")[2].removesuffix(".git")
    is_safe = name.strip(".") and name != "base" and not name.startswith("-")
    folder, git_dir = work / (name if is_safe else "work"), work / "base.git"
    await asyncio.to_thread(work.mkdir, parents=True)
    if task.repo and (not task.repo.startswith("/") or is_repository(Path(task.repo))):
        source = await mirrors.find(task.repo, task.ref)
        await pool.check_out(source, folder)
        make_git_dir(git_dir, source)
        shutil.copyfile(folder / ".git/index", git_dir / "index")
        return Worktree(folder, git_dir, source.commit)
    if task.ref:
        raise GitFailed(f"{task.repo} is not a git repository, so it has no {task.ref}.")
    if task.repo:
        try:
            copied = await asyncio.to_thread(copy_tree, Path(task.repo), folder, most_bytes=MAX_COPY_BYTES)
        except SessionError as error:
            raise GitFailed(error.message) from error
        for notice in copied.notices:
            note(notice)
    make_git_dir(folder / ".git")  # or a repository around the run's folder would be the agent's workspace
    make_git_dir(git_dir)
    worktree = Worktree(folder, git_dir, _EMPTY_TREE)
    return await rebase(worktree, git) if task.repo else worktree


async def adopt_folder(folder: Path, work: Path, git: Git) -> Worktree:
    """Makes a worktree of a copied repository: every file stays, of its history one commit. Raises GitFailed, OSError."""
    git_dir, own = work / "base.git", folder / ".git"
    make_git_dir(git_dir)
    worktree = Worktree(folder, git_dir, _EMPTY_TREE)
    if (own / "index").is_file() and not own.is_symlink() and not (own / "index").is_symlink():
        # Files of its commit may be ignored at once; their objects are in the other repository.
        (index := git_dir / "index").write_bytes((own / "index").read_bytes())
        listed = await git.run("ls-files", "-z", cwd=folder, env=worktree.environment)
        index.unlink()
        names = work / "names"
        names.write_bytes(b"\0".join(os.fsencode(each) for each in listed.split("\0") if each and (folder / each).is_file()))
        await git.run(
            *("add", "-f", "--ignore-errors", f"--pathspec-from-file={names}", "--pathspec-file-nul"),
            cwd=folder,
            env={**worktree.environment, "GIT_LITERAL_PATHSPECS": "1"},
        )
    tree = (await rebase(worktree, git)).base
    identity = ("-c", "user.name=wolo", "-c", "user.email=wolo@localhost")
    commit = await git.run(
        *identity, "commit-tree", "-m", "The repository of the image", tree, cwd=folder, env=worktree.environment
    )
    await asyncio.to_thread(remove_tree, own)
    own.unlink(missing_ok=True)  # a file or a link
    make_git_dir(own, LentCommit(git_dir, commit, "sha1"))
    shutil.copyfile(git_dir / "index", own / "index")
    return Worktree(folder, git_dir, tree)


async def rebase(worktree: Worktree, git: Git) -> Worktree:
    """Takes the present state as the one to compare with."""
    await _add_all(worktree, git)
    tree = await git.run("write-tree", cwd=worktree.folder, env=worktree.environment)
    return Worktree(worktree.folder, worktree.git_dir, tree)


async def make_patch(worktree: Worktree, file: Path, path: str, git: Git, note: Callable[[str], None]) -> Patch | None:
    """Writes all changes but those of ignored files. `path` is how results name the file. None: nothing was changed."""
    for line in await _add_all(worktree, git):
        note(f"git add: {line}")
    words = ("--cached", "--binary", "--full-index", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color", "-U3")
    prefixes = ("--src-prefix=a/", "--dst-prefix=b/", "--ignore-submodules=all")
    await git.run("diff", *words, *prefixes, f"--output={file}", worktree.base, cwd=worktree.folder, env=worktree.environment)
    return _read_patch(file, path)


def _read_patch(file: Path, path: str) -> Patch | None:
    content = file.read_bytes()
    if not content:
        file.unlink()
        return None
    changed = content.count(b"\ndiff --git ") + content.startswith(b"diff --git ")
    return Patch(path, hashlib.sha256(content).hexdigest(), len(content), changed)


async def _add_all(worktree: Worktree, git: Git) -> list[str]:
    """Files that cannot be read, and repositories in the worktree, are left out; the complaints about them are returned."""
    listed = await git.run("ls-files", "--stage", "-z", cwd=worktree.folder, env=worktree.environment)
    done = await git.attempt(*add_words(listed), cwd=worktree.folder, env=worktree.environment)
    if done.exit_code and "index.lock" in done.stderr:
        raise GitFailed(f"git add: {done.complaint}")
    return [line for line in done.stderr.splitlines() if done.exit_code or "embedded git repository" in line]


def is_repository(folder: Path) -> bool:
    """A worktree's top, or a bare repository."""
    return (folder / ".git").exists() or all((folder / name).exists() for name in ("HEAD", "objects", "refs"))
