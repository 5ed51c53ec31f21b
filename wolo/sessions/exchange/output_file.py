"""A file that a subcommand was told to write."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from wolo.errors import SessionError

Write = Callable[[bytes], object]


def write_file(path: Path, write_to: Callable[[Write], None]) -> None:
    """Whole or not at all, and readable by its owner alone: a session may hold anything. Raises SessionError."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        if path.exists() and not path.is_file():
            with path.open("wb") as device:  # such as /dev/stdout
                write_to(device.write)
            return
        try:
            with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                write_to(file.write)
            beside.replace(path)
        except BaseException:
            with suppress(OSError):
                beside.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise SessionError(f"{path} cannot be written: {error.strerror}.", hint="Name another file.") from error
