"""Files of the workspace that usually hold secrets: found, and read for what nobody else may see.

Looking is bounded in files, bytes and time, follows no link, opens regular files only, and runs nothing.
"""

from __future__ import annotations

import os
import stat
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

from wolo.guard import protected_paths
from wolo.guard.secrets.parser import read_values
from wolo.messages.secret_values import Known
from wolo.workspace.root import led_to

NEAR_LEVELS = 3
NEAR_ENTRIES = 4_000
NEAR_S = 0.05
FAR_ENTRIES = 100_000
FAR_S = 1.0
MAX_BYTES = 128 * 1024
"""Of one file."""
_SKIPPED = frozenset(
    {".git", ".hg", ".svn", "node_modules", "__pycache__", "site-packages", ".venv", "venv", ".tox", ".mypy_cache", ".ruff_cache"}
)
_SETTINGS_OF_GIT = ".git/config"
"""Addresses in it may carry a password."""

_UTF_16 = (b"\xff\xfe", b"\xfe\xff")

Signature = tuple[int, int, int, int]


class SecretFiles:
    """Remembers what was read, so that only a file that changed is read again."""

    def __init__(self, roots: Iterable[Path] = ()) -> None:
        self._roots = tuple(os.path.realpath(root) for root in roots)
        self._seen: dict[str, Signature] = {}

    def near(self) -> list[Known]:
        """What lies at the top: costs next to nothing where there is no such file."""
        until = time.monotonic() + NEAR_S
        found = self._read((f"{root}/{_SETTINGS_OF_GIT}" for root in self._roots), until)
        return found + self._read(_find(self._roots, NEAR_LEVELS, NEAR_ENTRIES, until), until)

    def far(self) -> list[Known]:
        """What lies deeper."""
        until = time.monotonic() + FAR_S
        return self._read(_find(self._roots, None, FAR_ENTRIES, until), until)

    def again(self, paths: Iterable[str] = (), *, folders: Iterable[str] = ()) -> list[Known]:
        """What is new in files that were read, in these if they are of the kind, and right in these folders."""
        until = time.monotonic() + FAR_S
        named = (*filter(None, map(_secret_behind, paths)), *self._seen)
        return self._read((*_find((*self._roots, *folders), 1, NEAR_ENTRIES, until), *named), until)

    def _read(self, paths: Iterable[str], until: float) -> list[Known]:
        found: list[Known] = []
        for path in paths:
            found += self._read_one(path)
            if time.monotonic() > until:
                break
        return found

    def _read_one(self, path: str) -> list[Known]:
        try:
            status = os.lstat(path)
            signature = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
            if self._seen.get(path) == signature or not stat.S_ISREG(status.st_mode):
                return []
            data = _regular(path)
        except (OSError, ValueError):
            return []
        self._seen[path] = signature
        if b"\0" in data[:1024] and not data.startswith(_UTF_16):
            return []
        return read_values(_decoded(data), Path(path).name)


def _decoded(data: bytes) -> str:
    if data.startswith(_UTF_16):
        return data.decode("utf-16", "replace")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        is_cut = error.end == len(data) == MAX_BYTES
        return data.decode("utf-8-sig", "ignore") if is_cut else data.decode("latin-1")


def _secret_behind(path: str) -> str:
    """The file that a name leads to, when either says that it holds secrets; else empty."""
    real = led_to(path)
    return real if protected_paths.is_secret(os.path.abspath(path)) or protected_paths.is_secret(real) else ""  # noqa: PTH100  # links stay


def _regular(path: str) -> bytes:
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as file:
        return file.read(MAX_BYTES) if stat.S_ISREG(os.fstat(handle).st_mode) else b""


def _find(roots: Sequence[str], levels: int | None, most_entries: int, until: float) -> Iterator[str]:
    """Level by level, small files first: what matters is found however much there is beside and below it."""
    waiting = deque((root, 0) for root in roots)
    entries = 0
    while waiting and entries < most_entries and time.monotonic() < until:
        folder, level = waiting.popleft()
        try:
            with os.scandir(folder) as scanned:
                here = list(islice(scanned, most_entries - entries))
        except OSError:
            continue
        entries += len(here)
        folders = [entry for entry in here if _is_folder(entry)]
        yield from sorted(filter(None, (_secret_file(entry, roots) for entry in here)), key=_size)
        if levels is None or level + 1 < levels:
            waiting += ((entry.path, level + 1) for entry in folders if entry.name not in _SKIPPED)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def _secret_file(entry: os.DirEntry[str], roots: Sequence[str]) -> str:
    """Its real path; empty for what is no such file. A link counts where it leads to a file of the workspace."""
    if not protected_paths.is_secret(entry.path):
        return ""
    if not entry.is_symlink():
        return entry.path
    real = led_to(entry.path)
    return real if any(real.startswith(f"{root}/") for root in roots) else ""


def _size(path: str) -> int:
    try:
        return os.lstat(path).st_size
    except OSError:
        return 0
