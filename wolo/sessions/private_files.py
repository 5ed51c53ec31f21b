"""Directories and files that only their owner may read: made so, checked at start, repaired when it is safe."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from wolo.errors import SessionError
from wolo.places import make_private
from wolo.sessions.storage_errors import explain


def make_directory(path: Path) -> list[str]:
    """Create it (and missing parents) for the owner alone, or check the one that is there. Returns warnings."""
    try:
        make_private(path)
        return _check(path, path.stat(), 0o700)
    except OSError as error:
        raise explain(error, path) from error


def check_file(path: Path) -> list[str]:
    """A file that is not there is fine. Returns warnings."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise explain(error, path) from error
    if not stat.S_ISREG(found.st_mode):
        raise SessionError(f"{path} is not a regular file.", hint="Move it aside; wolo keeps its sessions there.")
    return _check(path, found, 0o600)


def sync_directory(path: Path) -> None:
    """Make names that were added to it or taken from it last."""
    sync_file(path)


def sync_file(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _check(path: Path, found: os.stat_result, mode: int) -> list[str]:
    if found.st_uid != os.geteuid():
        raise SessionError(
            f"{path} belongs to another user, so sessions are not kept there.",
            hint="Run wolo as that user, or set WOLO_HOME to a directory of your own.",
        )
    if found.st_mode & 0o022:
        raise SessionError(
            f"{path} can be written by other users, so what it says cannot be trusted.",
            hint=f"If nobody has tampered with it: chmod go-rwx '{path}'",
        )
    if not found.st_mode & 0o077:
        return []
    try:
        path.chmod(mode)
    except OSError as error:
        raise explain(error, path) from error
    return [f"{path} could be read by other users; it is private again."]
