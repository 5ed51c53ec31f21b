"""Replaces and removes files atomically, without losing concurrent changes."""

from __future__ import annotations

import errno
import stat
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from hashlib import sha256
from pathlib import Path

from msgspec import Struct

from wolo.errors import ToolError
from wolo.operating_system import hold_open, os
from wolo.workspace.files.file_locks import lock_file, new_temporary_name, note_temporary
from wolo.workspace.files.safe_open import open_folder, open_regular_in, read_all

_NO_RENAME = {errno.EACCES, errno.EPERM, errno.EBUSY, errno.EXDEV}
"""The folder refuses, not the file: read-only, sticky, or a file mounted over the target."""
_NO_LINK = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}
UNLIMITED = sys.maxsize


class FileChanged(ToolError):
    """The file has changed since it was read; nothing was written."""


class WrittenFile(Struct, frozen=True):
    hash: str
    created: bool
    num_links: int
    """More than 1: other names of the old file have the old content."""


class PendingChange(Struct, frozen=True):
    """A change about to be made; `before` and `after` are the whole content, None for no file."""

    path: Path
    before: bytes | None
    before_mode: int
    """Permission bits; 0 without a file."""
    after: bytes | None
    folders: tuple[Path, ...] = ()
    """Created for this file."""
    in_place: bool = False
    """Written in place: while it lasts, the content may be neither."""


ChangeListener = Callable[[PendingChange], None]
"""Called under the file's lock, right before a change."""


def ignore_change(change: PendingChange) -> None:
    pass


def content_hash(data: bytes) -> str:
    return sha256(data).hexdigest()


def write_atomic(
    path: Path, data: bytes, *, locks: Path, expected: str | None, note: ChangeListener = ignore_change
) -> WrittenFile:
    """Writes `data` to the real `path`, whose content must have the hash `expected` (None: must not exist).

    Mode, owner and extended attributes are preserved; a new file gets the umask, missing folders are created. Raises FileChanged,
    ToolError or OSError; the file is then unchanged.
    """
    with lock_file(path, locks) as journal:
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
) -> WrittenFile:
    """As `write_atomic`, under the file's lock `journal`.

    A new file gets mode, owner and attributes of the open file `like`. `created` collects the folders made.
    """
    made: list[Path] = []
    try:
        with hold_open(open_folder(path.parent, created=made)) as folder:
            written = _Write(folder, path, data, expected, journal, note, like, tuple(made)).run()
    except BaseException:
        remove_folders(made)
        raise
    if created is not None:
        created += made
    return written


def remove_folders(made: Sequence[Path]) -> None:
    """Removes created folders, deepest first, unless they are in use."""
    for folder in reversed(made):
        with suppress(OSError):
            folder.rmdir()


def open_expected(folder: int, name: str, expected: str | None) -> int | None:
    """Opens the file with the expected content for reading; None when none is expected. Raises FileChanged."""
    try:
        handle = open_regular_in(folder, name)
    except FileNotFoundError:
        if expected is None:
            return None
        raise FileChanged("The file was deleted meanwhile.") from None
    try:
        if expected is None:
            raise FileChanged("A file of this name was created meanwhile.")
        if content_hash(read_all(handle, UNLIMITED)) != expected:
            raise FileChanged("The file was changed meanwhile.")
    except BaseException:
        os.close(handle)
        raise
    return handle


def refuse_read_only(folder: int, name: str, status: os.stat_result) -> None:
    # Root may write anything; a file without any write bit is read-only on purpose.
    marked = not status.st_mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH)
    if marked or not os.access(name, os.W_OK, dir_fd=folder):
        raise ToolError("The file is read-only; make it writable first if it is meant to be changed.")


class _Write(Struct, frozen=True):
    folder: int
    path: Path
    data: bytes
    expected: str | None
    journal: int | None
    note: ChangeListener
    like: int | None
    made: tuple[Path, ...]

    def run(self) -> WrittenFile:
        if (old := open_expected(self.folder, self.path.name, self.expected)) is None:
            self.note(PendingChange(self.path, None, 0, self.data, self.made))
            self._write_temporary(self.like)
            return WrittenFile(content_hash(self.data), True, 1)
        with ExitStack() as opened:
            opened.callback(os.close, old)
            status = os.fstat(old)
            refuse_read_only(self.folder, self.path.name, status)
            self.note(PendingChange(self.path, read_all(old, UNLIMITED), stat.S_IMODE(status.st_mode), self.data))
            try:
                self._write_temporary(old, release=opened.close)
                return WrittenFile(content_hash(self.data), False, status.st_nlink)
            except OSError as error:
                if error.errno not in _NO_RENAME:
                    raise
            # Writes in place, for a writable file in a read-only folder; a failure restores the old content
            with hold_open(
                os.open(self.path.name, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, dir_fd=self.folder)
            ) as handle:
                status = os.fstat(handle)
                if status.st_nlink > 1:
                    raise ToolError(
                        "The folder is read-only and the file has other names, which would change too; nothing was written."
                    )
                before = read_all(handle, UNLIMITED)
                if content_hash(before) != self.expected:
                    raise FileChanged("The file was changed meanwhile.")
                self.note(PendingChange(self.path, before, stat.S_IMODE(status.st_mode), self.data, in_place=True))
                try:
                    _write_over(handle, self.data)
                except BaseException:
                    _write_over(handle, before)
                    raise
            return WrittenFile(content_hash(self.data), False, 1)

    def _write_temporary(self, like: int | None, release: Callable[[], None] | None = None) -> None:
        """`release` closes the old file, which Windows replaces only then; None: there is none."""
        temporary = new_temporary_name()
        if self.journal is not None:
            note_temporary(self.journal, self.path.with_name(temporary))
        # A new file is created with the widest mode: the kernel applies umask and default ACL.
        mode = 0o666 if like is None else 0o600
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        handle = os.open(temporary, flags, mode, dir_fd=self.folder)
        try:
            try:
                _write_all(handle, self.data)
                if like is not None:
                    _copy_attributes(handle, like)
                os.fsync(handle)
            finally:
                os.close(handle)
            if release is None:
                # Links rather than renames, which never overwrites a file created at this moment
                try:
                    os.link(temporary, self.path.name, src_dir_fd=self.folder, dst_dir_fd=self.folder, follow_symlinks=False)
                except FileExistsError:
                    raise FileChanged("A file of this name was created meanwhile.") from None
                except OSError as error:
                    if error.errno not in _NO_LINK:
                        raise
                    self._place_over(temporary)
                else:
                    os.unlink(temporary, dir_fd=self.folder)
            else:
                release()
                self._place_over(temporary)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary, dir_fd=self.folder)
            raise
        sync_folder(self.folder)

    def _place_over(self, temporary: str) -> None:
        if (handle := open_expected(self.folder, self.path.name, self.expected)) is not None:
            os.close(handle)
        os.rename(temporary, self.path.name, src_dir_fd=self.folder, dst_dir_fd=self.folder)


def _write_all(handle: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(handle, rest) :]


def _write_over(handle: int, data: bytes) -> None:
    os.lseek(handle, 0, os.SEEK_SET)
    _write_all(handle, data)
    os.ftruncate(handle, len(data))
    os.fsync(handle)


def _copy_attributes(new: int, old: int) -> None:
    """Copies owner, attributes (including ACLs on Linux) and mode."""
    status = os.fstat(old)
    mode = stat.S_IMODE(status.st_mode)
    try:
        os.fchown(new, status.st_uid, status.st_gid)
    except OSError:
        mode &= 0o777  # set-id bits must not pass to another owner
        try:
            os.fchown(new, -1, status.st_gid)
        except OSError:
            # Another group must not get the group's permissions.
            mode = mode & 0o707 | (mode & 0o007) << 3
    if sys.platform == "linux":
        for name in os.listxattr(old):
            with suppress(OSError):
                os.setxattr(new, name, os.getxattr(old, name))
    os.fchmod(new, mode)


def sync_folder(folder: int) -> None:
    # An O_PATH descriptor cannot be synced; some file systems cannot sync folders.
    with suppress(OSError), hold_open(os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)) as handle:
        os.fsync(handle)


def remove_locked(path: Path, *, expected: str, note: ChangeListener = ignore_change) -> int:
    """Removes the file at the real `path`, whose content must have the hash `expected`, under its lock.

    Returns the removed file, open; the caller closes it. Raises FileChanged, ToolError or OSError; the file is then unchanged.
    """
    with hold_open(open_folder(path.parent)) as folder:
        if (handle := open_expected(folder, path.name, expected)) is None:
            raise FileChanged("The file was deleted meanwhile.")
        try:
            status = os.fstat(handle)
            refuse_read_only(folder, path.name, status)
            note(PendingChange(path, read_all(handle, UNLIMITED), stat.S_IMODE(status.st_mode), None))
            os.unlink(path.name, dir_fd=folder)
            sync_folder(folder)
        except BaseException:
            os.close(handle)
            raise
        return handle
