"""The file tree as a command sees it: which mount stands where, in bubblewrap's words.

Mounts are laid from the root outwards, so what is said of a deeper path wins: a workspace in `/tmp` is seen although `/tmp` is
another one, and what is hidden in a workspace stays hidden.
"""

from __future__ import annotations

import fcntl
import os
import stat
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from wolo.errors import ToolError
from wolo.guard.sandbox.cleanup import sweep
from wolo.guard.sandbox.python_launcher import bare_python, text_of
from wolo.places import make_private
from wolo.workspace.root import led_to

_NOTHING = "/dev/null"
TEMPORARY = ("/tmp", "/var/tmp")


class Tree:
    def __init__(self, tmp: str, *, closed_by_mode: bool) -> None:
        """`tmp` is the directory that stands for `/tmp`. `closed_by_mode`: what is empty is kept so by its mode, half as dear
        as a mount that cannot be written; it does not hold who may pass over modes, and old versions of bwrap cannot.
        """
        self._closed_by_mode = closed_by_mode
        self._mounts: dict[str, tuple[str, ...]] = {
            "/": ("--ro-bind", "/", "/"),
            **{path: ("--bind", tmp, path) for path in map(os.path.realpath, TEMPORARY) if Path(path).is_dir()},
        }
        self._closed: list[str] = []
        """To be made read-only when all is laid."""
        self._covering = [path for path in self._mounts if path != "/"]
        self._opened: list[str] = []
        for path in dict.fromkeys(map(os.path.realpath, ("/run", "/var/run"))):
            if Path(path).is_dir():
                self._empty(path)
        self.show("/run/current-system")

    def write(self, path: str) -> None:
        self._mounts[path] = ("--bind", path, path)
        self._opened.append(path)

    def show(self, path: str) -> None:
        """Read-only; for what would be covered otherwise."""
        if not self.is_seen(path) and Path(path).exists():
            self._mounts[path] = ("--ro-bind", os.path.realpath(path), path)
            self._opened.append(path)
            self._covering = [each for each in self._covering if each != path]
            self._closed = [each for each in self._closed if each != path]

    def hide(self, path: str) -> None:
        """Nothing is found there, nor can anything be put there."""
        if path in self._mounts or not self.is_seen(path) or not os.path.lexists(path):
            return
        if Path(path).is_dir():
            self._empty(path)
        else:
            self._mounts[path] = ("--ro-bind", _NOTHING, path)

    def protect(self, path: str) -> None:
        """Read-only as it is."""
        if path not in self._mounts and self.is_seen(path):
            self._mounts[path] = ("--ro-bind", path, path)

    def keep_in_place(self, path: str) -> None:
        """What something is mounted on cannot be moved."""
        if path not in self._mounts and self.is_seen(path):
            self._mounts[path] = ("--bind", path, path)

    def cover(self, path: str) -> None:
        """A placeholder: it is seen as empty, and nothing can be made of it."""
        self._empty(path)

    def is_seen(self, path: str) -> bool:
        """Nothing that was laid so far covers it."""
        nearest = max((each for each in (*self._covering, *self._opened) if is_below(path, each)), key=len, default="")
        return nearest not in self._covering

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
        self._covering.append(path)


def is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def topmost_missing(path: str, above: str) -> str:
    """The first part of `path` below `above` that is not there; empty when all is."""
    missing = ""
    each = Path(path)
    while str(each) != above and not os.path.lexists(each):
        missing = str(each)
        each = each.parent
    return missing


class Placeholders:
    """Of one writable directory. `hold` and `take_away` may be called by several commands at once, from one thread."""

    def __init__(self, state: Path, root: str) -> None:
        self.record = state / "placeholders" / sha256(os.fsencode(root)).hexdigest()[:24]
        self._fd = -1
        self._users = 0

    def hold(self) -> None:
        """From now on nobody takes away what stands here. Raises OSError."""
        if self._fd < 0:
            make_private(self.record.parent)
            self._fd = os.open(self.record, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            fcntl.flock(self._fd, fcntl.LOCK_SH)
        self._users += 1

    def put(self, paths: Iterable[str]) -> None:
        """Raises OSError where one cannot be made; what was made by then goes with `take_away`."""
        for path in paths:
            os.write(self._fd, os.fsencode(path) + b"\0")
            with suppress(FileExistsError):
                os.mkdir(path, 0o755)  # noqa: PTH102  # a string is what the kernel wants, and this is done for every command

    def take_away(self) -> None:
        """Call it once for every `hold`. Where another wolo has commands, that one will do it. Must not raise."""
        self._users -= 1
        if self._users > 0 or self._fd < 0:
            return
        with suppress(OSError):
            sweep(self._fd)
        os.close(self._fd)
        self._fd = -1


class Janitor:
    """Sweeps when wolo has gone, and with it whatever was given its `fd`: it waits for the end of a pipe."""

    def __init__(self, records: Sequence[Path]) -> None:
        self._records = list(map(str, records))
        self._text = text_of("cleanup")
        self._process: subprocess.Popen[bytes] | None = None
        self.fd = -1

    def begin(self) -> None:
        """Does nothing when it has begun. Raises OSError."""
        python = bare_python()
        if self._process is not None or not python:
            return
        reading, self.fd = os.pipe()
        try:
            self._process = subprocess.Popen(
                [python, "-I", "-S", "-c", self._text, *self._records],
                stdin=reading,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={},
                cwd="/",
                start_new_session=True,
            )
        finally:
            os.close(reading)

    def close(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        os.close(self.fd)
        self.fd = -1
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=2)


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
