"""`#note`: a line to remember goes to the end of the project's instructions or of the person's own, after a question which."""

from __future__ import annotations

import errno
import os
import re
import stat
from pathlib import Path

from wolo.errors import UsageError
from wolo.places import find_places

FILE = "AGENTS.md"
QUESTION = "Keep this in [p]roject's or [y]our {file}, [s]end it as a prompt, or nothing? [p/y/s/N] › "
_OPENED = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
_NOTE = re.compile(r"#+(?![\d#])[^\S\n]*[^#\s][^\n]*\Z")


def is_note(line: str) -> bool:
    """One line that begins with `#`; `#12` is the number of something."""
    return _NOTE.match(line) is not None


def keep(line: str, path: Path) -> None:
    """At the end of the file, as an item of a list. Raises UsageError when it cannot be written."""
    note = line.lstrip("#").strip()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, _OPENED, 0o644)
        with open(descriptor, "rb+", buffering=0) as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise OSError(errno.EINVAL, "It is no regular file")
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - 1))
            gap = b"\n" if size and file.read(1) != b"\n" else b""
            item = gap + f"- {note}\n".encode()
            if file.write(item) < len(item):
                raise OSError(errno.ENOSPC, "The disk is full")
    except OSError as error:
        why = "It is a link" if error.errno == errno.ELOOP else error.strerror
        raise UsageError(f"{path} could not be written: {why}.", hint="The arrow up brings the note back.") from error


def place(answer: str, root: Path) -> Path | None:
    """Where it goes; None: nowhere."""
    match answer.strip().lower()[:1]:
        case "p":
            return root / FILE
        case "y":
            return find_places().config / FILE
        case _:
            return None
