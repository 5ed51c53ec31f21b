"""Finds the workspace directory and tells whether a path is inside it."""

from __future__ import annotations

import errno
import stat
import struct
import sys
from contextlib import suppress
from pathlib import Path

from msgspec import Struct
from msgspec.structs import force_setattr

from wolo.errors import ToolError, UsageError
from wolo.operating_system import os, user_id
from wolo.places import Site, find_home, find_places


def resolve_path(path: str | os.PathLike[str]) -> str:
    """`os.path.realpath`, which looks at each part of the path and raises at links of `/proc` of other users' processes.

    Linux resolves a path that exists in one step; a conversation begins with fifty of them, and as many that are missing.
    """
    if sys.platform == "linux":
        above, missing = os.fspath(path), ""
        while not (real := _resolve_by_kernel(above)):
            above, name = os.path.split(above)
            if name in ("", ".", "..") or "\0" in name or os.path.islink(os.path.join(above, name)):
                break
            missing = f"/{name}{missing}"
        else:
            return real.rstrip("/") + missing or "/"
    try:
        return os.path.realpath(os.path.abspath(path) if sys.platform == "win32" else path)  # there `name.` is `name`
    except OSError:
        above, name = os.path.split(os.path.abspath(path))  # text all along
        return os.path.join(resolve_path(above), name) if name else above  # the same


def _resolve_by_kernel(path: str | os.PathLike[str]) -> str:
    """Empty for what is missing or has no path any more."""
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except (OSError, ValueError):
        return ""
    try:
        real = os.readlink(f"/proc/self/fd/{descriptor}")  # text all along
    except OSError:  # there is no /proc
        return ""
    finally:
        os.close(descriptor)
    return real if real[:1] == "/" and not real.endswith(" (deleted)") else ""


_MAX_PATH_BYTES = 4096
"""PATH_MAX. Longer paths cannot be checked for links."""


class Resolved(Struct, frozen=True):
    path: Path
    """Absolute and real: existing links are followed, missing parts appended."""
    spelling: str
    inside: bool
    """Within the workspace's directories, compared by component."""


class Workspace(Struct, frozen=True):
    root: Path
    extra: tuple[Path, ...] = ()
    """Further directories that count as inside."""
    base: Path | None = None
    """Start of relative paths when not the root: the directory wolo was started in."""

    def __post_init__(self) -> None:
        # The root may be a link (macOS: /tmp); only real paths can be compared.
        force_setattr(self, "root", _real(self.root))
        force_setattr(self, "extra", tuple(_real(path) for path in self.extra))
        force_setattr(self, "base", None if self.base is None else _real(self.base))

    @property
    def start(self) -> Path:
        return self.base or self.root

    def resolve(self, name: str) -> Resolved:
        """Raises ToolError for a string that cannot name a file. `~` and `$HOME` are not expanded."""
        if not name.strip():
            raise ToolError("The path is empty.")
        if "\0" in name:
            raise ToolError("The path contains a NUL character.")
        is_device = name.replace("\\", "/").startswith(("//?/", "//./"))
        if sys.platform == "win32" and (is_device or ":" in os.path.splitdrive(name)[1]):
            raise ToolError("The path names a stream or a device, and rules are for files.")
        try:
            os.fsencode(name)
        except UnicodeEncodeError as error:
            raise ToolError(f"The path contains U+{ord(name[error.start]):04X}, which no file name can hold.") from error
        first, slash, _ = name.partition("/")
        if first.startswith("~") and (slash or first == "~") and not os.path.lexists(self.start / first):
            raise ToolError(f"`{first}` is not expanded in paths: give the path in full or relative to {self.start}.")
        try:
            path = _real(self.start / name)
        except OSError as error:  # it was a link when checked, and not when read
            raise ToolError(f"`{name}` is being changed by another program right now; try again.") from error
        if len(os.fsencode(path)) >= _MAX_PATH_BYTES:
            raise ToolError(f"The path is too long: the system allows {_MAX_PATH_BYTES - 1} bytes.")
        try:
            path.stat()
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise ToolError(f"`{name}` is a link that leads back to itself.") from error
        return Resolved(path, name, self.holds(path))

    def holds(self, path: Path) -> bool:
        """`path` must be real."""
        return any(path == folder or folder in path.parents for folder in (self.root, *self.extra))

    def relative(self, path: Path) -> str:
        """Shortens a path for display to model and user; `resolve` reverses it."""
        if path.is_relative_to(self.start):
            return str(path.relative_to(self.start))
        if path.is_relative_to(self.root):
            return os.path.relpath(path, self.start)
        return str(path)


def find_root(cwd: Path | None = None) -> Path:
    """Finds the nearest parent with a real `.git` directory, except home and `/`; otherwise the start."""
    start = current_directory() if cwd is None else _real(cwd)
    for folder in (start, *start.parents):
        if not may_be_project(folder):
            break
        # Not a `.git` file or link, nor one of another user, such as in `/tmp`: each could widen the workspace.
        # The owner of the start directory may own the repository.
        with suppress(OSError):
            git = (folder / ".git").lstat()
            if stat.S_ISDIR(git.st_mode) and git.st_uid in (user_id(), 0, start.stat().st_uid):
                return folder
    return start


ORIGIN = "origin"
"""Link in the record of a session's worktree, to the top of the repository it was made from."""


def worktree_files(worktrees: Path) -> Path:
    """Where the files of worktrees are, as a real path: beside the data folder, in which agents may change nothing."""
    return _real(worktrees.parent.with_name("wolo-worktrees"))


def origin_of(worktrees: Path, root: Path) -> Path:
    """The repository that a session's worktree was made from; else `root`, which must be real.

    Trust follows it, so it is read from the records in wolo's own folder `worktrees`, never from beside the files.
    """
    if worktree_files(worktrees) == (files := root.parent.parent).parent:
        with suppress(OSError):
            origin = Path(os.readlink(worktrees / files.name / root.parent.name / ORIGIN))  # text all along
            if root.name == folder_name(origin):
                return origin
    return root


def folder_name(origin: Path) -> str:
    """Of the files of a worktree: that of the repository, because prompts and paths name it."""
    return "files" if origin.name.startswith((".", "-")) or not origin.name else origin.name


def find_site(cwd: Path | None = None) -> Site:
    """The user's folders, the environment, and the project around `cwd` or the current directory."""
    cwd = current_directory() if cwd is None else cwd
    return Site(find_places(), find_root(cwd), cwd, os.environ)


def may_be_project(folder: Path) -> bool:
    """False for the home directory and `/`. `folder` must be real."""
    return str(folder) not in (resolve_path(find_home()), folder.anchor)


def current_directory() -> Path:
    try:
        return Path(os.getcwd())  # Path.cwd() is the same call under another name
    except FileNotFoundError as error:
        raise UsageError("The current directory no longer exists.", hint="Change to a directory that exists.") from error
    except OSError as error:
        raise UsageError(f"The current directory cannot be used: {error.strerror}.") from error


def _real(path: Path) -> Path:
    return Path(resolve_path(path))


_AT_FDCWD = -100
_STATX_BTIME = 0x800
_STATX_BYTES = 256
_BORN_AT = 80
"""Offset of the birth time in statx's result: seconds and nanoseconds."""


def identity_of(folder: Path) -> str:
    """Identifies a folder across reboots. Raises OSError when it is missing.

    Device numbers change on mount, and inodes are reused. So the inode is combined with the birth time, which cannot be set; with
    the device only where the file system has no birth time.
    """
    found = os.stat(folder)  # beside the system call below
    born = _born(folder, found)
    return f"inode {found.st_ino} born {born}" if born else f"inode {found.st_ino} device {found.st_dev}"


def _born(folder: Path, status: os.stat_result) -> str:
    if sys.platform != "linux":
        return str(getattr(status, "st_birthtime", "") or "")
    import ctypes  # noqa: PLC0415  # 2 ms, only for folders that need approval

    if (statx := getattr(ctypes.CDLL(None), "statx", None)) is None:
        return ""
    buffer = ctypes.create_string_buffer(_STATX_BYTES)
    if statx(ctypes.c_int(_AT_FDCWD), os.fsencode(folder), ctypes.c_int(0), ctypes.c_uint(_STATX_BTIME), buffer):
        return ""
    (mask,) = struct.unpack_from("=I", buffer.raw)
    seconds, nanoseconds = struct.unpack_from("=qI", buffer.raw, _BORN_AT)
    return f"{seconds}.{nanoseconds:09}" if mask & _STATX_BTIME and seconds else ""
