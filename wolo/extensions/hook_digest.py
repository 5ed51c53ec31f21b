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
_OF_SCRIPTS = frozenset((".sh", ".bash", ".zsh", ".py", ".js", ".mjs", ".cjs", ".ts", ".rb", ".pl", ".php", ".lua", ".ps1"))
MOST_BYTES = 4 << 20
"""Of one file: a script is smaller, and a program that is larger counts with its size and its time."""


def digest(hooks: Sequence[tuple[str, Hook]], folder: Path) -> str:
    """Another one as soon as a command, or a file it names, has changed."""
    seen = hashlib.sha256(msgspec.json.encode(hooks))
    for path in sorted({path for _, hook in hooks for path in _named(hook.command, folder)}):
        seen.update(f"\0{path}\0".encode("utf-8", "surrogateescape"))
        seen.update(_content(path))
    return seen.hexdigest()


def programs(hooks: Sequence[tuple[str, Hook]], folder: Path, roots: Sequence[Path]) -> list[Path]:
    """Those of the files named in commands that are programs, or may become ones, and lie below the roots."""
    words = (word for _, hook in hooks for word in _words(hook.command, folder))
    paths = (Path(os.path.realpath(folder / Path(word).expanduser())) for word in words if "/" in word or "." in word)
    return [path for path in paths if any(path.is_relative_to(root) for root in roots) and _may_run(path)]


def _may_run(path: Path) -> bool:
    if path.suffix in _OF_SCRIPTS or not os.path.lexists(path):
        return True
    try:
        return path.is_file() and (os.access(path, os.X_OK) or _begins(path) == b"#!")
    except OSError:
        return False


def _begins(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(2)


def _words(command: str, folder: Path) -> list[str]:
    """Whatever in the line could be the name of a file; quotes and variables in it do not hide one."""
    return _WORDS.findall(_PROJECT.sub(str(folder), command.replace('"', "").replace("'", "")))


def _named(command: str, folder: Path) -> list[Path]:
    return [path for word in _words(command, folder) if (path := folder / word).is_relative_to(folder)]


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
