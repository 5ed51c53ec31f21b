"""What exactly a project's hooks would run, as a digest: their commands, and the files of the project that these name."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Sequence
from pathlib import Path

import msgspec

from wolo.extensions.hooks.settings import Hook
from wolo.extensions.referenced_files import files_named

MOST_BYTES = 4 << 20
"""Of one file: a script is smaller, and a program that is larger counts with its size and its time."""


def digest(hooks: Sequence[tuple[str, Hook]], folder: Path) -> str:
    """Another one as soon as a command, or a file it names, has changed."""
    seen = hashlib.sha256(msgspec.json.encode(hooks))
    named = {named.path for _, hook in hooks for named in files_named(hook.command, folder)}
    for path in sorted(path for path in named if path.is_relative_to(folder)):
        seen.update(f"\0{path}\0".encode("utf-8", "surrogateescape"))
        seen.update(_content(path))
    return seen.hexdigest()


def _content(path: Path) -> bytes:
    """What it is, when it is no file, too: a name that a file takes later is a change."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b"none"
    found = os.fstat(handle)
    if not stat.S_ISREG(found.st_mode):
        os.close(handle)
        return b"no file"
    with os.fdopen(handle, "rb") as file:
        if found.st_size > MOST_BYTES:
            return f"{found.st_size} {found.st_mtime_ns}".encode()
        return hashlib.file_digest(file, "sha256").digest()
