"""Copies and removes directory trees. Links stay links, and none of a copy leads back into the original."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from wolo.errors import SessionError

MAX_BYTES = 500 << 20
MAX_ENTRIES = 100_000
MAX_GIT_BYTES = 100 << 20
GIT = ".git"


class Copied(Struct, frozen=True):
    num_files: int
    size_bytes: int
    notices: tuple[str, ...]
    """About what the copy does not contain."""


class _Sizes(Struct):
    num_entries: int = 0
    size_bytes: int = 0


def copy_tree(source: Path, target: Path, *, most_bytes: int = MAX_BYTES) -> Copied:
    """Copies to a new directory `target`. Raises SessionError before copying when the source is too large."""
    notices: list[str] = []
    leaves_git = _measure(source / GIT, most_bytes).size_bytes > MAX_GIT_BYTES
    if leaves_git:
        notices.append(f"{GIT} is larger than {MAX_GIT_BYTES >> 20} MB and was not copied.")
    sizes = _measure(source, most_bytes, leaving_out=GIT if leaves_git else "")
    if sizes.size_bytes > most_bytes or sizes.num_entries > MAX_ENTRIES:
        raise SessionError(
            f"{source} is too large to copy: more than {most_bytes >> 20} MB, or {MAX_ENTRIES:,} files.",
            hint="Name a smaller directory to start from, such as a fresh checkout: --at DIR.",
        )
    skipped: list[str] = []
    target.mkdir(parents=True)
    target.chmod(stat.S_IMODE(source.stat().st_mode) | stat.S_IRWXU)
    for entry in _entries(source, leaving_out=GIT if leaves_git else ""):
        place = target / os.path.relpath(entry.path, source)
        try:
            if entry.is_symlink():
                link = str(Path(entry.path).readlink())
                if link == str(source) or link.startswith(f"{source}/"):  # an absolute link into the original
                    link = str(target) + link[len(str(source)) :]
                place.symlink_to(link)
            elif entry.is_dir():
                place.mkdir()
                place.chmod(stat.S_IMODE(entry.stat().st_mode) | stat.S_IRWXU)
            elif entry.is_file():
                shutil.copy2(entry.path, place)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise SessionError(
                    f"No space left for a copy of {source}.", hint="Set TMPDIR to a directory with more space."
                ) from error
            skipped.append(os.path.relpath(entry.path, source))
    if skipped:
        many = f"{len(skipped)} files could not be read and were not copied, {skipped[0]} among them."
        notices.append(f"{skipped[0]} could not be read and was not copied." if len(skipped) == 1 else many)
    return Copied(sizes.num_entries, sizes.size_bytes, tuple(notices))


_OPEN_FOLDERS = ("-type", "d", "!", "-perm", "-700", "-execdir", "chmod", "u+rwx", "{}", ";")
"""Each before `find` goes into it."""


def remove_tree(folder: Path) -> None:
    """Whatever its modes and its depth. What cannot be removed stays. Outside of it nothing changes, no mode either."""
    folder = folder.absolute()  # `find` takes a name such as -delete for an action, in the current directory

    def again(remove: Callable[..., object], path: str, error: object) -> None:
        if remove in (os.unlink, os.rmdir) and os.fspath(path) != os.fspath(folder):
            with suppress(OSError):
                os.chmod(os.path.dirname(path), stat.S_IRWXU)  # noqa: PTH101, PTH120  # text all along
                remove(path)

    with suppress(RecursionError):
        shutil.rmtree(folder, onerror=again)
    if folder.is_dir() and not folder.is_symlink():  # closed folders, or more levels than Python or the open files go down
        for words in (("find", folder, *_OPEN_FOLDERS), ("rm", "-rf", "--", folder)):
            with suppress(OSError):
                subprocess.run(words, env={"PATH": os.defpath}, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


def _measure(source: Path, most_bytes: int, leaving_out: str = "") -> _Sizes:
    sizes = _Sizes()
    for entry in _entries(source, leaving_out):
        sizes.num_entries += 1
        if entry.is_file(follow_symlinks=False):
            sizes.size_bytes += entry.stat(follow_symlinks=False).st_size
        if sizes.size_bytes > most_bytes or sizes.num_entries > MAX_ENTRIES:
            break
    return sizes


def _entries(source: Path, leaving_out: str = "") -> Iterator[os.DirEntry[str]]:
    """Yields directories before their content."""
    waiting = [str(source)]
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(folder) as found:
                entries = sorted(found, key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in entries:
            if entry.name == leaving_out and folder == str(source):
                continue
            yield entry
            if entry.is_dir(follow_symlinks=False):
                waiting.append(entry.path)
