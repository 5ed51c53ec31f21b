"""Applies the patch of an attempt to the user's own files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from wolo.errors import UsageError, WoloError
from wolo.fleet.ledger.run_rows import Row
from wolo.fleet.worktrees import is_repository
from wolo.workspace.git import GitEnd, run_git
from wolo.workspace.git_repository import find_repository, open_repository


class RunGit(Protocol):
    def __call__(self, *words: str) -> GitEnd: ...


class ReadyPatch(Struct, frozen=True):
    """A patch that may be applied."""

    file: Path
    target: Path
    """Working directory of git."""
    options: tuple[str, ...]
    """For `git apply`."""
    text: str
    is_applied: bool
    """The files are already as it makes them."""
    needs_merge: bool
    """The files have changed since; git merges three ways."""


def prepare_patch(run: Path, row: Row, target: Path | None, *, is_own: bool) -> ReadyPatch:
    """Changes nothing. `is_own`: the run was made here, so that it may name the folder to change.

    Raises UsageError if there is nothing to apply, WoloError if it cannot be applied here.
    """
    patch = row.outcome.patch if row.outcome else None
    if patch is None:
        raise UsageError(f"{row.task.id} has no patch: it is {row.state}.")
    file = patch.file_in(run)
    if not file.is_file():
        raise UsageError(f"{file} is gone.")
    if target is None and not is_own and row.task.repo.startswith("/"):
        raise UsageError(
            f"This run was not made here, and its maker has chosen the folder to change: {row.task.repo}.",
            hint="Name the folder with --to; `--to .` is the present one.",
        )
    folder = target or (Path(row.task.repo) if row.task.repo.startswith("/") else Path.cwd())
    if not folder.is_dir():
        raise UsageError(f"{folder} is not a folder.", hint="Name one with --to.")
    text = file.read_text("utf-8", "replace")
    folder, below = _place(folder, row.task.repo)
    with _git_in(folder) as git:
        if not _complaint(git, *below, "--check", "--reverse", str(file)):
            return ReadyPatch(file, folder, below, text, True, False)
        if not (said := _complaint(git, *below, "--check", str(file))):
            return ReadyPatch(file, folder, below, text, False, False)
        if not is_repository(folder):
            raise WoloError(f"The patch does not apply to {folder}: {said}")
        # Files of the patch that differ from the last commit
        listed = git("apply", *below, "--numstat", "-z", str(file)).stdout
        named = [entry.split("\t", 2)[2] for entry in listed.split("\0") if entry.count("\t") == 2]
        words = ("status", "--porcelain", "-z", "--untracked-files=all", "--ignore-submodules=all")
        status = git(*words, "--", *(f":(top,literal){name}" for name in named))
        changed = [entry[3:] for entry in status.stdout.split("\0") if len(entry) > 3]
    if changed:
        raise WoloError(
            f"The patch conflicts with uncommitted changes in {folder}: {', '.join(changed[:5])}.",
            hint="Commit or stash them first.",
        )
    return ReadyPatch(file, folder, below, text, False, True)


def _place(folder: Path, repo: str) -> tuple[Path, tuple[str, ...]]:
    """Working directory of git, and options with the folder that paths of the patch start at.

    git passes over files outside of its working directory.
    """
    repository = find_repository(folder)
    if repository is None or repository.is_bare:
        return folder, ()
    inner = folder.resolve().relative_to(repository.top).as_posix()
    is_whole = repo and (not repo.startswith("/") or is_repository(Path(repo)))
    return repository.top, () if is_whole or inner == "." else (f"--directory={inner}",)


@contextmanager
def _git_in(folder: Path) -> Iterator[RunGit]:
    """Runs git there, in a repository or not."""
    found = find_repository(folder)
    if found is None:
        yield lambda *words: run_git(*words, cwd=folder)
        return
    with open_repository(found) as repository:
        yield repository.run


def apply_patch(ready: ReadyPatch) -> None:
    """Raises WoloError; after a merge with conflicts it names their files."""
    with _git_in(ready.target) as git:
        if ready.needs_merge:
            git("update-index", "-q", "--refresh", "--ignore-submodules")  # a merge compares the times of files
        complaint = _complaint(git, *ready.options, *(["--3way"] if ready.needs_merge else []), str(ready.file))
        if not complaint:
            return
        names = ("diff", "--name-only", "--diff-filter=U", "--no-ext-diff", "--ignore-submodules=all", "-z")
        conflicts = git(*names).stdout.split("\0")[:-1]
    if conflicts:
        raise WoloError(f"Merged with conflicts in {', '.join(conflicts)}.", hint="They are marked in the files.")
    raise WoloError(f"The patch does not apply to {ready.target}: {complaint}")


def _complaint(git: RunGit, *words: str) -> str:
    """The first complaint of `git apply`; empty: none."""
    done = git("apply", "--whitespace=nowarn", *words)
    return (done.stderr.strip().splitlines() or ["it failed"])[0].removeprefix("error: ") if done.exit_code else ""
