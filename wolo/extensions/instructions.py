"""Reads AGENTS.md files, from general to specific, as one text for the system prompt.

They are read without asking and cannot change permissions. The same files yield the same bytes.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from msgspec import Struct

from wolo.messages.terminal_text import escape_hidden

NAMES = ("AGENTS.md", "CLAUDE.md")
"""The first usable file in each directory counts."""
MAX_BYTES = 32 * 1024


class Instructions(Struct, frozen=True):
    text: str
    """Empty if there are none."""
    files: tuple[Path, ...] = ()
    notices: tuple[str, ...] = ()
    """Parts that were left out or changed."""


def read_instructions(root: Path, cwd: Path, config: Path) -> Instructions:
    """Reads the user's file in `config`, then each directory from `root` down to `cwd`. Both are real paths."""
    texts: list[str] = []
    files: list[Path] = []
    notices: list[str] = []
    for folder in (config, *_folders(root, cwd)):
        found = _read_first(folder, notices, follow=folder == config)
        if found is None:
            continue
        path, text = found
        shown = str(path.relative_to(root)) if path.is_relative_to(root) else str(path)
        shown = f"your own {path.name}" if folder == config else shown
        texts.append(f"# Instructions from {shown}\n\n{text}")
        files.append(path)
    return Instructions("\n\n".join(texts), tuple(files), tuple(notices))


def _folders(root: Path, cwd: Path) -> list[Path]:
    """Root first; only `cwd` if it is outside."""
    if not cwd.is_relative_to(root):
        return [cwd]
    return [folder for folder in reversed((cwd, *cwd.parents)) if folder.is_relative_to(root)]


def _read_first(folder: Path, notices: list[str], *, follow: bool) -> tuple[Path, str] | None:
    complaints: list[str] = []
    for name in NAMES:
        path = folder / name
        data = _read_regular(path, complaints, follow=follow)
        if data is None:
            continue
        text = _clean(data, path, notices)
        if text:
            return path, text
    notices += complaints
    return None


def _read_regular(path: Path, complaints: list[str], *, follow: bool) -> bytes | None:
    """Accepts only regular files from a checkout: a link may point to a key file, and a pipe may never end."""
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
    try:
        handle = os.open(path, flags)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        why = "it is a link" if path.is_symlink() else error.strerror
        complaints.append(f"{path} is not read: {why}.")
        return None
    if why := _unfit(os.fstat(handle), is_own=follow):
        os.close(handle)
        complaints.append(f"{path} is not read: {why}.")
        return None
    with os.fdopen(handle, "rb") as file:
        return file.read(MAX_BYTES + 1)


def _unfit(found: os.stat_result, *, is_own: bool) -> str:
    """Reason not to read a file; empty if there is none. Other users must not be able to write the user's own file."""
    if not stat.S_ISREG(found.st_mode):
        return "it is not a regular file"
    if is_own and found.st_uid not in (os.geteuid(), 0):
        return "it belongs to another user"
    if is_own and found.st_mode & stat.S_IWOTH:
        return "every user of this machine can write it"
    return ""


def _clean(data: bytes, path: Path, notices: list[str]) -> str:
    if len(data) > MAX_BYTES:
        data = data[: data.rfind(b"\n", 0, MAX_BYTES) + 1] or data[:MAX_BYTES]
        notices.append(f"{path} is longer than {MAX_BYTES // 1024} KiB; the rest is left out.")
    text = data.decode("utf-8-sig", "replace").replace("\r\n", "\n").replace("\r", "\n")
    shown = escape_hidden(text)
    if shown != text:
        notices.append(f"{path} contains invisible characters; the model sees them escaped.")
    return shown.strip()
