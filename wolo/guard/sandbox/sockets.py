"""Unix sockets of this machine that lie somewhere in the file tree: whoever reaches one talks to a program outside."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from wolo.workspace.led_to import led_to

_TABLE = Path("/proc/net/unix")
_MOST = 200


def host_sockets(*, by_modes: bool) -> list[str]:
    """Those that are there now, by their real path; of what lies in a folder that no command can enter, that folder.

    `by_modes`: who asks may enter everywhere, but a command only where the modes let root in. What it cannot enter nothing can
    be mounted in, either.
    """
    try:
        lines = _TABLE.read_bytes().splitlines()[1:]
    except OSError:
        return []
    named = (os.fsdecode(fields[7]) for line in lines if len(fields := line.split(maxsplit=7)) == 8)
    there = dict.fromkeys(led_to(path) for path in named if path.startswith("/") and os.path.lexists(path))
    reached = (_closed_above(path) or path for path in there) if by_modes else there
    return list(dict.fromkeys(reached))[:_MOST]


def _closed_above(path: str) -> str:
    """The first folder on the way that root's own modes do not open; empty when there is none."""
    for folder in reversed(Path(path).parents):
        try:
            status = folder.stat()
        except OSError:
            return str(folder)
        if (
            status.st_uid != 0
            and not status.st_mode & stat.S_IXOTH
            and not (status.st_gid == 0 and status.st_mode & stat.S_IXGRP)
        ):
            return str(folder)
    return ""
