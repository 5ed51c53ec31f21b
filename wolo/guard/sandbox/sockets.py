"""Unix sockets of this machine that lie somewhere in the file tree: whoever reaches one talks to a program outside."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from wolo.errors import ToolError
from wolo.workspace.root import led_to

_TABLE = Path("/proc/net/unix")
_MOST = 400
"""More of them are not hidden one by one."""


def host_sockets(*, by_modes: bool, is_seen: Callable[[str], bool] = lambda path: True) -> list[str]:
    """All that are there now, by their real path; of what lies in a folder that no command can enter, that folder.

    `by_modes`: who asks may enter everywhere, but a command only where the modes let root in. What it cannot enter nothing can
    be mounted in, either. Raises ToolError where not all can be told: then nothing may run.
    """
    try:
        lines = _TABLE.read_bytes().splitlines()[1:]
    except OSError as error:
        raise ToolError(f"sandbox denied: {_TABLE} cannot be read, so programs outside could be reached.") from error
    named = [(fields[6], os.fsdecode(fields[7])) for line in lines if len(fields := line.split(maxsplit=7)) == 8]
    relative = {inode: path for inode, path in named if path[0] not in "/@"}
    absolute = [path for _, path in named if path.startswith("/")]
    there = dict.fromkeys(led_to(path) for path in (*absolute, *_located(relative)) if os.path.lexists(path))
    reached = (_closed_above(path) or path for path in there) if by_modes else there
    found = [path for path in dict.fromkeys(reached) if is_seen(path)]
    if len(found) > _MOST:
        raise ToolError(f"sandbox denied: {len(found)} programs outside have sockets that a command could reach.")
    return found


def _located(named: Mapping[bytes, str]) -> Iterator[str]:
    """Where sockets are that were bound under a relative name: below the directory of the program that has them."""
    if not named:
        return
    wanted = {f"socket:[{os.fsdecode(inode)}]": path for inode, path in named.items()}
    for pid in filter(str.isdecimal, os.listdir("/proc")):  # noqa: PTH208  # names, not paths
        with suppress(OSError):
            for fd in os.listdir(f"/proc/{pid}/fd"):  # noqa: PTH208  # the same
                path = wanted.get(os.readlink(f"/proc/{pid}/fd/{fd}"))  # noqa: PTH115  # the same
                if path is not None:
                    yield os.path.normpath(f"{os.readlink(f'/proc/{pid}/cwd')}/{path}")  # noqa: PTH115  # the same


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
