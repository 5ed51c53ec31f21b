"""Reads the state of the user's repository for the first prompt: changes, and the last commits."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from msgspec import Struct

from wolo.operating_system import user_id
from wolo.workspace import git, git_branch, git_repository

MOST_COMMITS = 3
_MOST_STATUS_BYTES = 1 << 20
"""About 8,000 changed files; then git is stopped."""
_MOST_LOG_BYTES = 1 << 16
_STATUS = ["status", "--porcelain=v2", "-z", "--no-renames", "--untracked-files=normal", "--ignore-submodules=all"]
_LOG = f"log --max-count={MOST_COMMITS} --no-show-signature --no-color --no-decorate -z --format=%s HEAD".split()
_COUNT = ("rev-list", "--count", "--left-right")


class TreeState(Struct, frozen=True, kw_only=True):
    """As git has it; names and subjects may hold anything."""

    ahead: int = 0
    """Commits that the upstream branch lacks; `behind`: those that it has in addition."""
    behind: int = 0
    changed: tuple[str, ...] = ()
    """Paths of files that are not as in the last commit, from the top of the worktree."""
    is_whole: bool = True
    """False: more files are changed."""
    subjects: tuple[str, ...] = ()
    """Of the last commits, newest first."""


def find_own_repository(cwd: Path) -> git_repository.Repository | None:
    """The one around a real path, if the user, root or the owner of the path has made it and it borrows no objects."""
    if (worktree := git_branch.find_worktree(cwd)) is None:
        return None
    top, git_dir = worktree
    common = git_dir if git_dir == top / ".git" else git_dir.parent.parent
    made = (top / ".git").lstat()
    is_own = made.st_uid in (user_id(), 0, cwd.stat().st_uid) and not stat.S_ISLNK(made.st_mode)
    borrows = os.path.lexists(common / "objects" / "info" / "alternates")
    return git_repository.Repository(top, git_dir, common, False) if is_own and not borrows else None


def read_tree_state(repository: git_repository.Repository, branch: str, timeout_s: float) -> TreeState:
    """Runs a few gits at once, which are killed after the time. Raises GitFailed and OSError."""
    end_at = time.monotonic() + timeout_s
    with git_repository.open_repository(repository) as opened, ExitStack() as stack:
        remote, merged = (opened.settings.get(f"branch.{branch}.{key}", "") for key in ("remote", "merge"))
        short = merged.removeprefix("refs/heads/")
        upstream = "" if not merged else merged if remote == "." else f"refs/remotes/{remote}/{short}"
        counting = [*_COUNT, f"HEAD...{upstream}", "--"] if upstream else []
        status, log, count = (
            stack.enter_context(git.GitReader(words, repository.top, opened.environ)) if words else None
            for words in (_STATUS, _LOG, counting)
        )
        assert status is not None
        changed, is_whole = status.read(_MOST_STATUS_BYTES, end_at)
        subjects, counts = _read(log, end_at), _read(count, end_at)
    ahead, _, behind = counts.strip().partition("\t")
    return TreeState(
        ahead=int(ahead or 0),
        behind=int(behind or 0),
        changed=tuple(_paths(changed)),
        is_whole=is_whole,
        subjects=tuple(subjects.split("\0")[:-1]),
    )


def _read(reader: git.GitReader | None, end_at: float) -> str:
    """Empty if git fails: there is no commit yet, or no such branch."""
    try:
        return reader.read(_MOST_LOG_BYTES, end_at)[0] if reader else ""
    except git.GitFailed:
        return ""


def _paths(listed: str) -> Iterator[str]:
    """Paths of `git status --porcelain=v2 -z`; the last entry may be cut."""
    num_fields = {"1": 7, "u": 9, "?": 0}
    for entry in listed.split("\0")[:-1]:
        kind, _, rest = entry.partition(" ")
        if kind in num_fields:
            yield rest.split(" ", num_fields[kind])[-1]
