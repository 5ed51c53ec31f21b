"""Programs that wolo starts of its own accord: the system's, never one by the same name that a checkout brings along."""

from __future__ import annotations

import os
from pathlib import Path

from wolo.workspace.root import Workspace, may_be_project


def find_program(name: str, workspace: Workspace) -> str | None:
    """The first on the PATH that neither lies in the workspace nor leads into it.

    A directory of the PATH that is no full path (`.`) is the checkout itself, or will be after the next `cd`.
    """
    checkouts = [folder for folder in (workspace.root, *workspace.extra) if may_be_project(folder)]
    for folder in os.get_exec_path():
        path = Path(folder, name)
        if not path.is_absolute() or not os.access(path, os.X_OK) or path.is_dir():
            continue
        real = [Path(os.path.realpath(each)) for each in (folder, path)]
        if not any(each.is_relative_to(checkout) for each in real for checkout in checkouts):
            return str(path)
    return None
