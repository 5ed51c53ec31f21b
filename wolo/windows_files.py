"""Gives `os` the calls on files that POSIX has and Windows lacks, made of those that Windows has.

A link is refused by comparing what was opened with its name before a byte is read or written. Calls that take the descriptor of a
folder compare its path with what was opened; on Windows the open folder also cannot be renamed or replaced.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

_STANDS_FOR_ANOTHER = 0x20000000
"""Bit in the tag of a reparse point, as links and junctions have it."""
_READ, _WRITE, _LIST, _SHARE_ALL, _SHARE_NO_REMOVAL = 1 << 31, 1 << 30, 1, 7, 3
_CREATE_NEW, _OPEN_EXISTING, _OPEN_ALWAYS, _LINK_ITSELF, _ALSO_FOLDERS = 1, 3, 4, 0x200000, 0x2000000
"""Of `CreateFileW`: https://learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-createfilew."""


def _below_folder(call: Callable[..., Any]) -> Callable[..., Any]:
    def below(self: WindowsFiles, path: Any, *arguments: Any, dir_fd: int | None = None, **options: Any) -> Any:
        return call(self.locate(path, dir_fd), *arguments, **options)

    return below


class WindowsFiles:
    O_CLOEXEC = O_NONBLOCK = O_NOCTTY = O_PATH = 0
    """Files are never inherited there, and opening one never blocks."""
    O_NOFOLLOW, O_DIRECTORY = 1 << 24, 1 << 25
    access, chmod, mkdir, readlink, rmdir, stat, unlink = (
        _below_folder(call) for call in (os.access, os.chmod, os.mkdir, os.readlink, os.rmdir, os.stat, os.unlink)
    )

    def __init__(self) -> None:
        self._folders: dict[int, tuple[Path, os.stat_result]] = {}
        """By descriptor, as opened last; those of closed ones are not asked for."""

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def locate(self, path: Any, folder: int | None) -> Any:
        """The path of a name in an open folder. Raises OSError when something else is where the folder was."""
        if folder is None:
            return path
        place, opened = self._folders[folder]
        if not os.path.samestat(place.stat(), opened):
            raise _link_error(place)
        return place / os.fsdecode(path)

    def open(self, path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        place = Path(os.fsdecode(self.locate(path, dir_fd)))
        no_link = flags & self.O_NOFOLLOW
        if no_link and os.path.lexists(place) and _is_link(place.lstat()):
            raise _link_error(place)
        is_folder = place.is_dir()
        if flags & self.O_DIRECTORY and place.exists() and not is_folder:
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(place))
        plain = flags & ~(self.O_NOFOLLOW | self.O_DIRECTORY | os.O_TRUNC)
        handle = _open(str(place), plain, mode, is_folder=is_folder, no_link=bool(no_link))
        try:
            status, name = os.fstat(handle), place.lstat()
            if no_link and (_is_link(name) or not os.path.samestat(status, name)):
                raise _link_error(place)
            self.locate("", dir_fd)
            if is_folder:
                self._folders[handle] = place.absolute(), status
            if flags & os.O_TRUNC:
                os.ftruncate(handle, 0)
        except BaseException:
            os.close(handle)
            raise
        return handle

    def rename(self, old: Any, new: Any, *, src_dir_fd: int | None = None, dst_dir_fd: int | None = None) -> None:
        """Over an existing file, as with POSIX."""
        Path(self.locate(old, src_dir_fd)).replace(self.locate(new, dst_dir_fd))

    def link(
        self, old: Any, new: Any, *, src_dir_fd: int | None = None, dst_dir_fd: int | None = None, follow_symlinks: bool = False
    ) -> None:
        os.link(self.locate(old, src_dir_fd), self.locate(new, dst_dir_fd))

    def symlink(self, target: Any, path: Any, *, dir_fd: int | None = None) -> None:
        Path(os.fsdecode(self.locate(path, dir_fd))).symlink_to(os.fsdecode(target))

    def pread(self, handle: int, size: int, offset: int) -> bytes:
        return bytes(self._at(handle, offset, lambda: os.read(handle, size)))

    def pwrite(self, handle: int, data: bytes, offset: int) -> int:
        return int(self._at(handle, offset, lambda: os.write(handle, data)))

    def _at(self, handle: int, offset: int, call: Callable[[], Any]) -> Any:
        before = os.lseek(handle, 0, os.SEEK_CUR)
        try:
            os.lseek(handle, offset, os.SEEK_SET)
            return call()
        finally:
            os.lseek(handle, before, os.SEEK_SET)

    def fsync(self, handle: int) -> None:
        """Of what can be written: there is no way to sync a folder, or a file that is open for reading."""
        with suppress(PermissionError):
            os.fsync(handle)

    def fchmod(self, handle: int, mode: int) -> None:
        """Files have no mode there; who may read them is inherited from their folder."""

    def fchown(self, handle: int, user: int, group: int) -> None:
        """The same."""

    def statvfs(self, path: Any) -> Any:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))


def _open(path: str, flags: int, mode: int, *, is_folder: bool, no_link: bool) -> int:
    if sys.platform != "win32":
        return os.open(path, flags, mode)
    import _winapi  # noqa: PLC0415  # Windows only
    import msvcrt  # noqa: PLC0415  # the same

    access = (0 if flags & os.O_WRONLY else _READ) | (_WRITE if flags & (os.O_WRONLY | os.O_RDWR) else 0)
    made = _CREATE_NEW if flags & os.O_EXCL else _OPEN_ALWAYS if flags & os.O_CREAT else _OPEN_EXISTING
    options = _ALSO_FOLDERS | (_LINK_ITSELF if no_link else 0)
    share = _SHARE_NO_REMOVAL if is_folder else _SHARE_ALL
    handle = _winapi.CreateFile(path, _LIST if is_folder else access, share, 0, made, options, 0)
    return msvcrt.open_osfhandle(handle, flags & os.O_APPEND | os.O_NOINHERIT | os.O_BINARY)


def _is_link(status: os.stat_result) -> bool:
    return stat.S_ISLNK(status.st_mode) or bool(getattr(status, "st_reparse_tag", 0) & _STANDS_FOR_ANOTHER)


def _link_error(path: Path) -> OSError:
    return OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
