"""Applies the patch of an attempt to the user's own files."""

from __future__ import annotations

import subprocess
from pathlib import Path

from msgspec import Struct

from wolo.errors import UsageError, WoloError
from wolo.fleet.ledger.run_rows import Row
from wolo.fleet.worktrees import is_repository


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


def prepare_patch(run: Path, row: Row, target: Path | None) -> ReadyPatch:
    """Changes nothing. Raises UsageError if there is nothing to apply, WoloError if it cannot be applied here."""
    patch = row.outcome.patch if row.outcome else None
    if patch is None:
        raise UsageError(f"{row.task.id} has no patch: it is {row.state}.")
    file = run / patch.path
    if not file.is_file():
        raise UsageError(f"{file} is gone.")
    folder = target or (Path(row.task.repo) if row.task.repo.startswith("/") else Path.cwd())
    if not folder.is_dir():
        raise UsageError(f"{folder} is not a folder.", hint="Name one with --to.")
    text = file.read_text("utf-8", "replace")
    folder, below = _place(folder, row.task.repo)
    if not _fails(folder, *below, "--check", "--reverse", str(file)):
        return ReadyPatch(file, folder, below, text, True, False)
    if not (said := _fails(folder, *below, "--check", str(file))):
        return ReadyPatch(file, folder, below, text, False, False)
    if not is_repository(folder):
        raise WoloError(f"The patch does not apply to {folder}: {said}")
    changed = _uncommitted(folder, below, file)
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
    found = _git(folder, "rev-parse", "--show-toplevel", "--show-prefix").stdout.split("\n")
    if not found[0]:
        return folder, ()
    is_whole = repo and (not repo.startswith("/") or is_repository(Path(repo)))
    return Path(found[0]), () if is_whole or not found[1] else (f"--directory={found[1]}",)


def apply_patch(ready: ReadyPatch) -> None:
    """Raises WoloError; after a merge with conflicts it names their files."""
    if said := _fails(ready.target, *ready.options, *(["--3way"] if ready.needs_merge else []), str(ready.file)):
        conflicts = _git(ready.target, "diff", "--name-only", "--diff-filter=U", "-z").stdout.split("\0")[:-1]
        if conflicts:
            raise WoloError(f"Merged with conflicts in {', '.join(conflicts)}.", hint="They are marked in the files.")
        raise WoloError(f"The patch does not apply to {ready.target}: {said}")


def _uncommitted(folder: Path, options: tuple[str, ...], file: Path) -> list[str]:
    """Files of the patch that differ from the last commit."""
    listed = _git(folder, "apply", *options, "--numstat", "-z", str(file)).stdout
    named = [entry.split("\t", 2)[2] for entry in listed.split("\0") if entry.count("\t") == 2]
    status = _git(
        folder, "status", "--porcelain", "-z", "--untracked-files=all", "--", *(f":(top,literal){name}" for name in named)
    )
    return [entry[3:] for entry in status.stdout.split("\0") if len(entry) > 3]


def _fails(folder: Path, *words: str) -> str:
    """The first complaint of `git apply`; empty: none."""
    done = _git(folder, "apply", "--whitespace=nowarn", *words)
    return (done.stderr.strip().splitlines() or ["it failed"])[0].removeprefix("error: ") if done.returncode else ""


def _git(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, errors="replace", check=False)
    except FileNotFoundError as error:
        raise UsageError("git is not installed.") from error
