"""Copies a folder of someone else: regular files only, within bounds, nothing from outside."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from wolo.errors import ExtensionError

MOST_FILES = 5_000
MOST_BYTES = 100 * 1024 * 1024
DEEPEST = 24
PASSED_OVER = frozenset((".git", "__pycache__", ".DS_Store"))


def copy_tree(source: Path, into: Path, *, inside: Path, files: Sequence[str] = ()) -> None:
    """Copies the files that exist of `files`, or all.

    A link becomes a copy of its target, which must be below `inside`. Raises ExtensionError.
    """
    copying = _Copying(source, Path(os.path.realpath(inside)))
    try:
        if files:
            into.mkdir()
            for name in files:
                copying.single(source / name, into / name)
        else:
            copying.folder(source, into, ())
    except OSError as error:
        raise ExtensionError(f"{source} cannot be copied: {error}.") from error


class _Copying:
    def __init__(self, source: Path, inside: Path) -> None:
        self._source = source
        self._inside = inside
        self._files = 0
        self._bytes = 0

    def folder(self, source: Path, into: Path, way: tuple[str, ...]) -> None:
        real = os.path.realpath(source)
        if real in way or len(way) > DEEPEST:
            raise ExtensionError(f"{self._relative_name(source)} contains itself, or is too deep.")
        into.mkdir(0o755)
        with os.scandir(source) as found:
            listed = sorted((entry for entry in found if entry.name not in PASSED_OVER), key=lambda entry: entry.name)
        for entry in listed:
            path = Path(entry.path)
            if entry.is_symlink() and not self._is_inside(path):
                raise ExtensionError(f"{self._relative_name(path)} is a link that leads outside.")
            if entry.is_dir():
                self.folder(path, into / entry.name, (*way, real))
            elif entry.is_file():
                self._file(path, into / entry.name)
            else:
                raise ExtensionError(f"{self._relative_name(path)} is no regular file.")

    def single(self, source: Path, into: Path) -> None:
        if source.is_file():
            if not self._is_inside(source):
                raise ExtensionError(f"{self._relative_name(source)} is a link that leads outside.")
            into.parent.mkdir(parents=True, exist_ok=True)
            self._file(source, into)

    def _file(self, source: Path, into: Path) -> None:
        status = source.stat()
        self._files += 1
        self._bytes += status.st_size
        check_size(self._files, self._bytes)
        shutil.copyfile(source, into)
        into.chmod(0o755 if status.st_mode & 0o100 else 0o644)

    def _is_inside(self, link: Path) -> bool:
        return Path(os.path.realpath(link)).is_relative_to(self._inside) and link.exists()

    def _relative_name(self, path: Path) -> str:
        return str(path.relative_to(self._source)) if path.is_relative_to(self._source) else str(path)


def check_size(num_files: int, size: int) -> None:
    """Raises ExtensionError."""
    if num_files > MOST_FILES:
        raise ExtensionError(f"There are more than {MOST_FILES:,} files.")
    if size > MOST_BYTES:
        raise ExtensionError(f"The files have more than {MOST_BYTES // 1024**2} MiB.")


def files_in(folder: Path) -> list[Path]:
    """Relative paths of all files, sorted."""
    found = (Path(at, name).relative_to(folder) for at, _, names in os.walk(folder) for name in names)
    return sorted(found)


def tree_digest(folder: Path) -> str:
    """Hash of names, modes and contents."""
    seen = hashlib.sha256()
    for path in files_in(folder):
        is_run = os.access(folder / path, os.X_OK)
        seen.update(f"{path}\0{is_run}\0".encode("utf-8", "surrogateescape"))
        seen.update(hashlib.sha256((folder / path).read_bytes()).digest())
    return f"sha256:{seen.hexdigest()}"
