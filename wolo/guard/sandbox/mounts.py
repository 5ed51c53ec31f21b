"""Plans the file tree that a command sees, as bubblewrap's mount options.

Deeper mounts come later and win: a workspace in `/tmp` is visible although `/tmp` is replaced, and hidden paths in a workspace
stay hidden. Sockets of the host are hidden.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache, lru_cache
from pathlib import Path

from wolo.errors import ToolError
from wolo.workspace.root import resolve_path

_NOTHING = "/dev/null"
TEMPORARY = ("/tmp", "/var/tmp")


class Tree:
    def __init__(self, tmp: str, *, closed_by_mode: bool) -> None:
        """`tmp` replaces `/tmp`. `closed_by_mode`: empty directories are closed by their mode, which is faster than a
        read-only mount.

        A mode does not stop a user with DAC_OVERRIDE, and old versions of bwrap cannot set it.
        """
        self._closed_by_mode = closed_by_mode
        self._mounts: dict[str, tuple[str, ...]] = {
            "/": ("--ro-bind", "/", "/"),
            **{path: ("--bind", tmp, path) for path in _folders_of_the_system(TEMPORARY)},
        }
        self._closed: list[str] = []
        """Paths to make read-only once everything is mounted."""
        self._covering = {path for path in self._mounts if path != "/"}
        self._opened: set[str] = set()
        self.held: set[str] = set()
        """Paths that must stay hidden or read-only: a mount is gone when its path is removed or replaced outside."""
        for path in _folders_of_the_system(("/run", "/var/run")):
            self._empty(path)
        self.show("/run/current-system")

    def write(self, path: str) -> None:
        self._mounts[path] = ("--bind", path, path)
        self._opened.add(path)

    def show(self, path: str) -> None:
        """Mounts read-only what would otherwise be covered."""
        if not self.is_seen(path) and os.path.exists(path):  # noqa: PTH110  # text all along
            self._mounts[path] = ("--ro-bind", os.path.realpath(path), path)
            self._opened.add(path)
            self._covering.discard(path)
            self._closed = [each for each in self._closed if each != path]

    def hide(self, path: str, *, for_long: bool = True) -> None:
        """Makes the path empty and not writable. `for_long`: it is not expected to be removed by others."""
        if path in self._mounts or not self.is_seen(path) or not os.path.lexists(path):
            return
        if os.path.isdir(path):  # noqa: PTH112  # text all along
            self._empty(path)
        else:
            self._mounts[path] = ("--ro-bind", _NOTHING, path)
        if for_long:
            self.held.add(path)

    def protect(self, path: str) -> None:
        """Makes the path read-only."""
        if path not in self._mounts and self.is_seen(path):
            self._mounts[path] = ("--ro-bind", path, path)
            self.held.add(path)

    def keep_in_place(self, path: str) -> None:
        """Prevents the path from being moved by mounting it on itself."""
        if path not in self._mounts and self.is_seen(path):
            self._mounts[path] = ("--bind", path, path)

    def is_seen(self, path: str) -> bool:
        """Tells whether no mount so far covers the path."""
        while path and path not in self._covering and path not in self._opened:
            path = path.rpartition("/")[0]
        return path not in self._covering

    def options(self) -> list[str]:
        laid = sorted(self._mounts, key=lambda path: path.count("/") if path != "/" else 0)
        words = [word for path in laid for word in self._mounts[path]]
        # Settings of the kernel in /proc belong to the whole machine, and root may write them in any namespace.
        after_root = [*words[:3], "--dev", "/dev", "--proc", "/proc", "--remount-ro", "/proc", *words[3:]]
        return [*after_root, *(word for path in self._closed for word in ("--remount-ro", path))]

    def _empty(self, path: str) -> None:
        if self._closed_by_mode:
            self._mounts[path] = ("--perms", "0555", "--tmpfs", path)
        else:
            self._mounts[path] = ("--tmpfs", path)
            self._closed.append(path)
        self._covering.add(path)


@cache
def _folders_of_the_system(paths: tuple[str, ...]) -> tuple[str, ...]:
    """Their real paths: only root can change these, and hardly does."""
    return tuple(dict.fromkeys(path for path in map(os.path.realpath, paths) if os.path.isdir(path)))  # noqa: PTH112  # text all along


def is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def topmost_missing(path: str, above: str) -> str:
    """The topmost missing part of `path` below `above`; empty if the path exists."""
    missing = ""
    each = Path(path)
    while str(each) != above and not os.path.lexists(each):
        missing = str(each)
        each = each.parent
    return missing


_TABLE = Path("/proc/net/unix")
_MOST = 400
"""More of them cannot be hidden one by one."""


def host_sockets(*, by_modes: bool, is_seen: Callable[[str], bool] = lambda path: True) -> list[str]:
    """Real paths of all Unix sockets in the file tree; for one in a folder that commands cannot enter, that folder.

    `by_modes`: the caller may enter everywhere, but a command only where modes let root in; elsewhere nothing can be mounted.
    Raises ToolError if the list is not complete: then nothing may run.
    """
    try:
        lines = _TABLE.read_bytes().splitlines()[1:]
    except OSError as error:
        raise ToolError(f"sandbox denied: {_TABLE} cannot be read, so sockets of the host cannot be hidden.") from error
    named = [(fields[6], os.fsdecode(fields[7])) for line in lines if len(fields := line.split(maxsplit=7)) == 8]
    relative = {inode: path for inode, path in named if path[0] not in "/@"}
    absolute = [path for _, path in named if path.startswith("/")]
    located = _locate_again(frozenset(relative.items())) if relative else ()
    there = dict.fromkeys(resolve_path(path) for path in (*absolute, *located) if os.path.lexists(path))
    reached = (_closed_above(path) or path for path in there) if by_modes else there
    sockets = [path for path in dict.fromkeys(reached) if is_seen(path)]
    if len(sockets) > _MOST:
        raise ToolError(f"sandbox denied: {len(sockets)} programs outside have sockets that a command could reach.")
    return sockets


def _locate_again(named: frozenset[tuple[bytes, str]]) -> Iterator[str]:
    """Absolute paths of sockets bound under a relative name. All processes are looked through when these have changed."""
    from wolo.guard.sandbox.calls import stamp_of  # noqa: PLC0415  # few machines have such sockets

    located = _locate(named)
    if any(stamp_of(path) != stamp for _, path, stamp in located):
        _locate.cache_clear()
        located = _locate(named)
    if len({socket for socket, *_ in located}) < len(named):  # those of the others may become visible
        _locate.cache_clear()
    return (path for _, path, _ in located)


@lru_cache(maxsize=1)
def _locate(named: frozenset[tuple[bytes, str]]) -> frozenset[tuple[str, str, tuple[int, ...]]]:
    """Each socket with its path, from the directory of its processes, and the stamp of its file."""
    from wolo.guard.sandbox.calls import stamp_of  # noqa: PLC0415  # the same

    sockets = {f"socket:[{os.fsdecode(inode)}]": path for inode, path in named}
    located = set()
    for pid in filter(str.isdecimal, os.listdir("/proc")):  # noqa: PTH208  # names, not paths
        with suppress(OSError):
            for fd in os.listdir(f"/proc/{pid}/fd"):  # noqa: PTH208  # the same
                socket = os.readlink(f"/proc/{pid}/fd/{fd}")  # noqa: PTH115  # the same
                if socket in sockets:
                    path = os.path.normpath(f"{os.readlink(f'/proc/{pid}/cwd')}/{sockets[socket]}")  # noqa: PTH115  # the same
                    located.add((socket, path, stamp_of(path)))
    return frozenset(located)


def _closed_above(path: str) -> str:
    """The first parent folder that its mode closes to root without capabilities; empty if there is none."""
    names = path.split("/")
    for folder in ("/".join(names[:end]) or "/" for end in range(1, len(names))):
        try:
            status = os.stat(folder)  # noqa: PTH116  # text all along
        except OSError:
            return folder
        if (
            status.st_uid != 0
            and not status.st_mode & stat.S_IXOTH
            and not (status.st_gid == 0 and status.st_mode & stat.S_IXGRP)
        ):
            return folder
    return ""
