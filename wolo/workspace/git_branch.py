"""Finds the worktree and its branch from files: git itself would run what a hostile checkout configures."""

from __future__ import annotations

import os
import re
from pathlib import Path

from wolo.errors import ToolError
from wolo.workspace.files.safe_open import open_regular, read_all
from wolo.workspace.root import may_be_project

MAX_BYTES = 4096
_COMMIT = r"[0-9a-f]{40}|[0-9a-f]{64}"
_SHOWN_DIGITS = 7
_WORKTREES = "worktrees"


def current_branch(cwd: Path) -> str:
    """Returns the branch, or the short commit id when detached; empty when unknown. `cwd` must be a real path."""
    worktree = find_worktree(cwd)
    head = _line_of(worktree[1] / "HEAD") if worktree else ""
    kind, _, ref = head.partition(": ")
    if kind == "ref" and ref.startswith("refs/heads/"):
        name = ref.removeprefix("refs/heads/")
        return name if name != ".invalid" else ""  # its name where refs are stored in a table
    return head[:_SHOWN_DIGITS] if re.fullmatch(_COMMIT, head) else ""


def find_worktree(cwd: Path) -> tuple[Path, Path] | None:
    """The top of the worktree around a real path, and its git directory, which knows it. Runs nothing."""
    for folder in (cwd, *cwd.parents):
        if not may_be_project(folder):
            break
        git = folder / ".git"
        if not os.path.lexists(git):
            continue
        directory = git
        kind, _, named = _line_of(git).partition(": ")
        if kind == "gitdir":
            linked = Path(os.path.realpath(folder / named))
            # A checkout cannot make the directory of another repository refer to it. Both names may be relative.
            if linked.parent.name == _WORKTREES and os.path.realpath(linked / _line_of(linked / "gitdir")) == str(git):
                directory = linked
        return folder, directory
    return None


def _line_of(path: Path) -> str:
    """First line of a regular file, following no links; empty for anything else or unprintable content."""
    try:
        handle = open_regular(path)
    except (OSError, ToolError):
        return ""
    try:
        data = read_all(handle, MAX_BYTES)
    except OSError:
        return ""
    finally:
        os.close(handle)
    line = data.decode("utf-8", "replace").partition("\n")[0].strip()
    return line if len(data) < MAX_BYTES and line.isprintable() else ""
