"""Reading what was piped in, without waiting for ever on a pipe nobody writes to."""

from __future__ import annotations

import os
import select
import stat
import sys

from wolo.errors import UsageError
from wolo.frontends.streams import say

WAIT_S = 3.0
"""How long a prompt given as an argument waits for the first byte of an open pipe."""

MAX_BYTES = 16 * 1024 * 1024


def read_piped(*, patient: bool) -> str:
    """Invalid UTF-8 is replaced. `patient`: stdin is the only source of the prompt, so it is waited for."""
    if sys.stdin is None:
        return ""
    try:
        descriptor = sys.stdin.fileno()
        kind = os.fstat(descriptor).st_mode
    except (OSError, ValueError):
        return ""
    if stat.S_ISCHR(kind) and not patient:
        return ""
    if not patient and (stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind)) and not _has_input(descriptor):
        say("Nothing came on stdin; going on without it.")
        return ""
    return _read(descriptor)


def _has_input(descriptor: int) -> bool:
    ready, _, _ = select.select([descriptor], [], [], WAIT_S)
    return bool(ready)


def _read(descriptor: int) -> str:
    pieces: list[bytes] = []
    size = 0
    while True:
        try:
            piece = os.read(descriptor, 1 << 20)
        except OSError as error:
            raise UsageError(f"stdin cannot be read: {error.strerror}.") from error
        if not piece:
            return b"".join(pieces).decode("utf-8-sig", "replace")
        size += len(piece)
        if size > MAX_BYTES:
            raise UsageError(f"More than {MAX_BYTES // 2**20} MB came on stdin.", hint="Put it into a file and name the file.")
        pieces.append(piece)
