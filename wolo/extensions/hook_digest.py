"""What exactly a project's hooks would run, as a digest: their commands, and the files of the project that these name."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Sequence
from pathlib import Path

import msgspec

from wolo.extensions.hook_settings import Hook

_WORDS = re.compile(r"""[^\s"'`;|&()<>=]+""")
_PROJECT = re.compile(r"\$\{?(?:CLAUDE_PROJECT_DIR|WOLO_PROJECT_DIR|PWD)\}?")
MOST_BYTES = 4 << 20
"""Of one file: a script is smaller, and a program that is larger counts with its size and its time."""


def digest(hooks: Sequence[tuple[str, Hook]], folder: Path) -> str:
    """Another one as soon as a command, or a file it names, has changed."""
    seen = hashlib.sha256(msgspec.json.encode(hooks))
    for path in sorted({path for _, hook in hooks for path in _named(hook.command, folder)}):
        seen.update(f"\0{path}\0".encode("utf-8", "surrogateescape"))
        seen.update(_content(path))
    return seen.hexdigest()


def _named(command: str, folder: Path) -> list[Path]:
    """Whatever in the line could be the name of a file, seen from the folder; quotes and variables in it do not hide one."""
    plain = _PROJECT.sub(str(folder), command.replace('"', "").replace("'", ""))
    return [path for word in _WORDS.findall(plain) if (path := folder / word).is_relative_to(folder)]


def _content(path: Path) -> bytes:
    """What it is, when it is no file, too: a name that a file takes later is a change."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b"none"
    with os.fdopen(handle, "rb") as file:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            return b"no file"
        if found.st_size > MOST_BYTES:
            return f"{found.st_size} {found.st_mtime_ns}".encode()
        return hashlib.file_digest(file, "sha256").digest()
