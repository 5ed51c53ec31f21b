"""Plans the file tree that a command sees, as bubblewrap's mount options.

Deeper mounts come later and win: a workspace in `/tmp` is visible although `/tmp` is replaced, and hidden paths in a workspace
stay hidden. Missing protected names are covered by placeholders, sockets of the host are hidden.
"""

from __future__ import annotations

import errno
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
            **{path: ("--bind", tmp, path) for path in map(os.path.realpath, TEMPORARY) if Path(path).is_dir()},
        }
        self._closed: list[str] = []
        """Paths to make read-only once everything is mounted."""
        self._covering = {path for path in self._mounts if path != "/"}
        self._opened: set[str] = set()
        for path in dict.fromkeys(map(os.path.realpath, ("/run", "/var/run"))):
            if Path(path).is_dir():
                self._empty(path)
        self.show("/run/current-system")

    def write(self, path: str) -> None:
        self._mounts[path] = ("--bind", path, path)
        self._opened.add(path)

    def show(self, path: str) -> None:
        """Mounts read-only what would otherwise be covered."""
        if not self.is_seen(path) and Path(path).exists():
            self._mounts[path] = ("--ro-bind", os.path.realpath(path), path)
            self._opened.add(path)
            self._covering.discard(path)
            self._closed = [each for each in self._closed if each != path]

    def hide(self, path: str) -> None:
        """Makes the path empty and not writable."""
        if path in self._mounts or not self.is_seen(path) or not os.path.lexists(path):
            return
        if Path(path).is_dir():
            self._empty(path)
        else:
            self._mounts[path] = ("--ro-bind", _NOTHING, path)

    def protect(self, path: str) -> None:
        """Makes the path read-only."""
        if path not in self._mounts and self.is_seen(path):
            self._mounts[path] = ("--ro-bind", path, path)

    def keep_in_place(self, path: str) -> None:
        """Prevents the path from being moved by mounting it on itself."""
        if path not in self._mounts and self.is_seen(path):
            self._mounts[path] = ("--bind", path, path)

    def cover(self, path: str) -> None:
        """Covers a placeholder with an empty, closed directory."""
        self._empty(path)

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


class Placeholders:
    """Empty directories that stand for missing protected names while commands run, in one writable directory.

    A name can be kept from being created only by covering something. Placeholders are recorded first, under a lock shared by all
    wolos there, so that the last one, or the next after a crash, removes them. `acquire` and `release` may be called by several
    commands at once, from one thread.

    Between commands they are kept in a private folder where it is on the same file system: a file system takes many times as
    long to make a directory as to move one.
    """

    def __init__(self, state: Path, root: str) -> None:
        self.record = state / "placeholders" / sha256(os.fsencode(root)).hexdigest()[:24]
        self._spare = state / "placeholders" / "spare"
        self._made: list[str] = []
        """Placeholders by their number in the private folder."""
        self._fd = -1
        self._users = 0

    def acquire(self) -> None:
        """Prevents the removal of placeholders from now on. Raises OSError."""
        if self._fd < 0:
            make_private(self.record.parent)
            make_private(self._spare)
            self._fd = os.open(self.record, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            fcntl.flock(self._fd, fcntl.LOCK_SH)
        self._users += 1

    def create(self, paths: Iterable[str]) -> None:
        """Raises OSError if one cannot be created; `release` removes those created before."""
        wanted = tuple(paths)
        record = b"".join(os.fsencode(path) + b"\0" for path in wanted)
        if os.write(self._fd, record) < len(record):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.record))
        for path in wanted:
            try:
                self._take(len(self._made), path)
            except FileExistsError:
                continue
            except OSError:  # no spare one, or it is on another file system
                try:
                    os.mkdir(path, 0o700)  # noqa: PTH102  # fast path for every command
                except FileExistsError:
                    continue
            self._made.append(path)

    def release(self) -> None:
        """Call once for every `acquire`. Does nothing while another wolo runs commands there. Must not raise."""
        self._users -= 1
        if self._users > 0 or self._fd < 0:
            return
        with suppress(OSError):
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for number, path in enumerate(self._made):
                with suppress(OSError):
                    self._keep(number, path)
            sweep(self._fd)
        self._made.clear()
        os.close(self._fd)
        self._fd = -1

    def _take(self, number: int, path: str) -> None:
        """Raises OSError if there is no empty one with this number."""
        spare = f"{self._spare}/{number}"
        if os.listdir(spare):  # noqa: PTH208  # fast path for every command
            raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), spare)
        _move(spare, path)

    def _keep(self, number: int, path: str) -> None:
        """Raises OSError if it cannot be kept: then it is removed if it is empty."""
        spare = f"{self._spare}/{number}"
        if _is_folder(path) and not os.listdir(path):  # noqa: PTH208  # fast path for every command
            _move(path, spare)
            if not _is_folder(spare) or os.listdir(spare):  # noqa: PTH208  # fast path for every command
                _move(spare, path)  # another program has replaced or filled it meanwhile


def _move(source: str, target: str) -> None:
    from wolo.guard.sandbox.calls import rename_new  # noqa: PLC0415  # for the first command

    rename_new(source, target)


def _is_folder(path: str) -> bool:
    return stat.S_ISDIR(os.lstat(path).st_mode)


class CleanupProcess:
    """A small process that removes placeholders after wolo has been killed: it waits for the end of a pipe."""

    def __init__(self, records: Sequence[Path]) -> None:
        self._records = list(map(str, records))
        self._text = text_of("cleanup")
        self._process: subprocess.Popen[bytes] | None = None
        self.fd = -1

    def begin(self) -> None:
        """Starts the process once. Raises OSError."""
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
    there = dict.fromkeys(resolve_path(path) for path in (*absolute, *_located(relative)) if os.path.lexists(path))
    reached = (_closed_above(path) or path for path in there) if by_modes else there
    found = [path for path in dict.fromkeys(reached) if is_seen(path)]
    if len(found) > _MOST:
        raise ToolError(f"sandbox denied: {len(found)} programs outside have sockets that a command could reach.")
    return found


def _located(named: Mapping[bytes, str]) -> Iterator[str]:
    """Yields absolute paths of sockets bound under a relative name, from the directory of their process."""
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
    """The first parent folder that its mode closes to root without capabilities; empty if there is none."""
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
