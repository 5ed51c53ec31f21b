"""Secrets of other projects: what lies beside the workspace and in the home directory, as far as a short look finds it."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

from wolo.guard.protected import is_secret
from wolo.guard.sandbox.tree import is_below

_DEPTH = 3
_MOST_FOLDERS = 400
_MOST_FOUND = 60
_LOOKING_S = 0.03
_NOT_ENTERED = frozenset({"node_modules", "__pycache__", "venv", "target", "dist", "build", "proc", "sys", "dev", "run"})


def secrets_around(roots: Sequence[str], home: str) -> list[str]:
    """Nearest first. A secret in the workspace itself is the workspace's: programs there may need it."""
    starts = dict.fromkeys([*(str(Path(root).parent) for root in roots), home])
    waiting = [(folder, _DEPTH) for folder in starts if folder != "/"]
    until = time.monotonic() + _LOOKING_S
    found: list[str] = []
    for _ in range(_MOST_FOLDERS):
        if not waiting or len(found) >= _MOST_FOUND or time.monotonic() > until:
            break
        folder, depth = waiting.pop(0)
        for entry in _entries(folder):
            if entry.is_symlink() or any(is_below(entry.path, root) for root in roots):
                continue
            if is_secret(entry.path):
                found.append(entry.path)
            elif depth > 1 and entry.name not in _NOT_ENTERED and entry.name[0] != "." and entry.is_dir(follow_symlinks=False):
                waiting.append((entry.path, depth - 1))
    return found


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []
