"""Replaces and removes files atomically, without losing concurrent changes."""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from wolo.errors import ToolError
from wolo.workspace.files.file_locks import locked, new_temporary_name, note_temporary
from wolo.workspace.files.safe_open import open_folder, open_regular_in, read_all

_NO_RENAME = {errno.EACCES, errno.EPERM, errno.EBUSY, errno.EXDEV}
"""The folder, not the file, refuses: a read-only folder, a sticky one, a file mounted over its place."""
_NO_LINK = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}
UNLIMITED = sys.maxsize


class FileChanged(ToolError):
    """The file is not what it was when the new content was worked out; nothing was written."""


class Written(NamedTuple):
    hash: str
    created: bool
    links: int
    """More than 1: other names of the old file keep its old content."""


class FileChange(NamedTuple):
    """What is about to happen to one file; `before` and `after` are its whole content, None where there is no file."""

    path: Path
    before: bytes | None
    before_mode: int
    """Permission bits; 0 where there was no file."""
    after: bytes | None
    folders: tuple[Path, ...] = ()
    """Made for it just now."""
    in_place: bool = False
    """The file itself is written into: until that is done, neither content may be there."""


ChangeListener = Callable[[FileChange], None]
"""Called under the file's lock, right before a change is made."""


def ignore_change(change: FileChange) -> None:
    pass


def content_hash(data: bytes) -> str:
    return sha256(data).hexdigest()


def write_atomic(path: Path, data: bytes, *, locks: Path, expected: str | None, note: ChangeListener = ignore_change) -> Written:
    """Puts `data` at the real `path`, whose content must still hash to `expected` (None: it must not exist).

    `note` hears of it under the file's lock, right before anything is changed.

    Mode, owner and extended attributes stay; a new file gets the user's umask and missing folders are made.
    Raises FileChanged, ToolError or OSError; then the file is as before and nothing is left behind.
    """
    with locked(path, locks) as journal:
        return write_locked(path, data, expected=expected, journal=journal, note=note)


def write_locked(
    path: Path,
    data: bytes,
    *,
    expected: str | None,
    journal: int | None,
    note: ChangeListener = ignore_change,
    like: int | None = None,
    created: list[Path] | None = None,
) -> Written:
    """As `write_atomic`, for who holds the file's lock (`journal`).

    `like`: an open file whose mode, owner and attributes a new one gets. `created` collects the folders that were made.
    """
    made: list[Path] = []
    try:
        folder = open_folder(path.parent, created=made)
        try:
            written = _Save(folder, path, data, expected, journal, note, like, tuple(made)).run()
        finally:
            os.close(folder)
    except BaseException:
        remove_folders(made)
        raise
    if created is not None:
        created += made
    return written


def remove_folders(made: Sequence[Path]) -> None:
    """Takes back folders that were made for a file, the deepest first; one that somebody else uses by now stays."""
    for folder in reversed(made):
        with suppress(OSError):
            folder.rmdir()


def open_expected(folder: int, name: str, expected: str | None) -> int | None:
    """The file of that content, open for reading; None where there is none and none is expected. Raises FileChanged."""
    try:
        handle = open_regular_in(folder, name)
    except FileNotFoundError:
        if expected is None:
            return None
        raise FileChanged("The file was deleted in the meantime.") from None
    try:
        if expected is None:
            raise FileChanged("A file of this name appeared in the meantime.")
        if content_hash(read_all(handle, UNLIMITED)) != expected:
            raise FileChanged("The file was changed in the meantime.")
    except BaseException:
        os.close(handle)
        raise
    return handle


def refuse_read_only(folder: int, name: str, status: os.stat_result) -> None:
    # Root may write anything; a file without any write bit was closed on purpose all the same.
    marked = not status.st_mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH)
    if marked or not os.access(name, os.W_OK, dir_fd=folder):
        raise ToolError("The file is read-only; make it writable first if it is meant to be changed.")


class _Save:
    """One write, inside an open folder and under the file's lock."""

    def __init__(
        self,
        folder: int,
        path: Path,
        data: bytes,
        expected: str | None,
        journal: int | None,
        note: ChangeListener,
        like: int | None,
        made: tuple[Path, ...],
    ) -> None:
        self.folder = folder
        self.name = path.name
        self.path = path
        self.data = data
        self.expected = expected
        self.journal = journal
        self.note = note
        self.like = like
        self.made = made

    def run(self) -> Written:
        old = self._open_expected()
        if old is None:
            self.note(FileChange(self.path, None, 0, self.data, self.made))
            self._put(self.like, is_new=True)
            return Written(content_hash(self.data), True, 1)
        try:
            status = os.fstat(old)
            refuse_read_only(self.folder, self.name, status)
            self.note(FileChange(self.path, read_all(old, UNLIMITED), stat.S_IMODE(status.st_mode), self.data))
            try:
                self._put(old, is_new=False)
                return Written(content_hash(self.data), False, status.st_nlink)
            except OSError as error:
                if error.errno not in _NO_RENAME:
                    raise
            self._overwrite()
            return Written(content_hash(self.data), False, 1)
        finally:
            os.close(old)

    def _open_expected(self) -> int | None:
        return open_expected(self.folder, self.name, self.expected)

    def _put(self, like: int | None, *, is_new: bool) -> None:
        """Writes a temporary file beside the target and moves it into place."""
        temporary = new_temporary_name()
        if self.journal is not None:
            note_temporary(self.journal, self.path.with_name(temporary))
        # A new file is made with the widest mode: the kernel applies umask and default ACL, as for any program.
        mode = 0o666 if like is None else 0o600
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        handle = os.open(temporary, flags, mode, dir_fd=self.folder)
        try:
            try:
                _write_all(handle, self.data)
                if like is not None:
                    _dress_alike(handle, like)
                os.fsync(handle)
            finally:
                os.close(handle)
            if is_new:
                self._place_new(temporary)
            else:
                self._place_over(temporary)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary, dir_fd=self.folder)
            raise
        sync_folder(self.folder)

    def _place_new(self, temporary: str) -> None:
        """A link, not a rename: a file that appeared in this very moment is not overwritten."""
        try:
            os.link(temporary, self.name, src_dir_fd=self.folder, dst_dir_fd=self.folder, follow_symlinks=False)
        except FileExistsError:
            raise FileChanged("A file of this name appeared in the meantime.") from None
        except OSError as error:
            if error.errno not in _NO_LINK:
                raise
            self._place_over(temporary)
        else:
            os.unlink(temporary, dir_fd=self.folder)

    def _place_over(self, temporary: str) -> None:
        if (handle := self._open_expected()) is not None:
            os.close(handle)
        os.rename(temporary, self.name, src_dir_fd=self.folder, dst_dir_fd=self.folder)

    def _overwrite(self) -> None:
        """In place, for a writable file in a folder that is not; a failure puts the old content back."""
        handle = os.open(self.name, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, dir_fd=self.folder)
        try:
            status = os.fstat(handle)
            if status.st_nlink > 1:
                raise ToolError(
                    "The folder is read-only and the file has other names, which would change too; nothing was written."
                )
            before = read_all(handle, UNLIMITED)
            if content_hash(before) != self.expected:
                raise FileChanged("The file was changed in the meantime.")
            self.note(FileChange(self.path, before, stat.S_IMODE(status.st_mode), self.data, in_place=True))
            try:
                _write_over(handle, self.data)
            except BaseException:
                _write_over(handle, before)
                raise
        finally:
            os.close(handle)


def _write_all(handle: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(handle, rest) :]


def _write_over(handle: int, data: bytes) -> None:
    os.lseek(handle, 0, os.SEEK_SET)
    _write_all(handle, data)
    os.ftruncate(handle, len(data))
    os.fsync(handle)


def _dress_alike(new: int, old: int) -> None:
    """Gives the new file the owner, the attributes (ACLs are among them on Linux) and the mode of the old one."""
    status = os.fstat(old)
    mode = stat.S_IMODE(status.st_mode)
    try:
        os.fchown(new, status.st_uid, status.st_gid)
    except OSError:
        mode &= 0o777  # set-id bits must not pass to another owner
        try:
            os.fchown(new, -1, status.st_gid)
        except OSError:
            # Another group must not get what this file grants to its own.
            mode = mode & 0o707 | (mode & 0o007) << 3
    if sys.platform == "linux":
        for name in os.listxattr(old):
            with suppress(OSError):
                os.setxattr(new, name, os.getxattr(old, name))
    os.fchmod(new, mode)


def sync_folder(folder: int) -> None:
    # The walking handle cannot be synced; some file systems cannot sync a folder at all.
    with suppress(OSError):
        handle = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def remove_file(path: Path, *, locks: Path, expected: str, note: ChangeListener = ignore_change) -> None:
    """Removes the file at the real `path`, whose content must still hash to `expected`.

    `note` hears of it under the file's lock, right before. Raises FileChanged, ToolError or OSError; then the file is as before.
    """
    with locked(path, locks):
        os.close(remove_locked(path, expected=expected, note=note))


def remove_locked(path: Path, *, expected: str, note: ChangeListener = ignore_change) -> int:
    """As `remove_file`, for who holds the lock. Returns the removed file, still open: what it was can be read from it.

    The caller closes it.
    """
    folder = open_folder(path.parent)
    try:
        handle = open_expected(folder, path.name, expected)
        if handle is None:
            raise FileChanged("The file was deleted in the meantime.")
        try:
            status = os.fstat(handle)
            refuse_read_only(folder, path.name, status)
            note(FileChange(path, read_all(handle, UNLIMITED), stat.S_IMODE(status.st_mode), None))
            os.unlink(path.name, dir_fd=folder)
            sync_folder(folder)
        except BaseException:
            os.close(handle)
            raise
        return handle
    finally:
        os.close(folder)
