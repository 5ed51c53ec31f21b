"""Reads one file of instructions, with the checks that its owner needs."""

from __future__ import annotations

import re
import stat
from pathlib import Path
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from wolo.guard.protected_paths import is_secret
from wolo.messages.terminal_text import escape_hidden
from wolo.operating_system import file_mode, os, user_id
from wolo.places import Notices

MAX_BYTES = 32 * 1024
"""Per file."""
Owner = Literal["user", "notes", "project"]


class InstructionFile(Struct, frozen=True):
    path: Path
    name: str
    """Shown to the user and the model; identifies the file in a conversation."""
    text: str
    owner: Owner = "project"
    base: Path = Path("/")
    """Folder that a project's imports must not leave; its real path."""
    imported_by: str = ""
    paths: tuple[str, ...] = ()
    """Patterns, relative to `folder`: the file applies only to files that match one. Empty: it always applies."""
    folder: Path = Path("/")

    @property
    def section(self) -> str:
        through = f" (imported by {self.imported_by})" if self.imported_by else ""
        return f"# Instructions from {self.name}{through}\n\n{self.text}"


def read_named(path: Path, base: Path, notices: Notices) -> InstructionFile | None:
    """Reads a file of the project."""
    if not Path(os.path.realpath(path.parent)).is_relative_to(base):
        if os.path.lexists(path):
            notices.add(f"{path} is not read: it is outside {base}.")
        return None
    return read_file(path, one_line(str(path.relative_to(base))), notices, base=base)


def read_import(path: Path, importer: InstructionFile, notices: Notices) -> InstructionFile | None:
    """Reads an imported file; a project's is a regular file inside its base folder."""
    name = str(path.relative_to(importer.base)) if importer.owner == "project" else f"your own {path}"
    file = read_file(path, one_line(name), notices, owner=importer.owner, base=importer.base, is_import=True)
    return None if file is None else replace(file, imported_by=importer.name, folder=importer.folder)


def read_file(
    path: Path, name: str, notices: Notices, *, owner: Owner = "project", base: Path = Path("/"), is_import: bool = False
) -> InstructionFile | None:
    data = read_regular(path, notices, within=base if owner == "project" else None)
    if data is not None and is_import and b"\0" in data:
        notices.add(f"{path} is not imported: it is not text.")
        return None
    if data is None:
        return None
    if len(data) > MAX_BYTES:
        data = cut(data, MAX_BYTES)
        notices.add(f"{path} is longer than {MAX_BYTES // 1024} KiB; the rest is left out.")
    text = _decode(data, path, notices).replace("\r\n", "\n").replace("\r", "\n")
    shown = escape_hidden(text)
    if shown != text:
        notices.add(f"{path} contains invisible characters; the model sees them escaped.")
    text = shown.strip()
    return InstructionFile(path, name, text, owner, base, folder=path.parent) if text else None


def read_regular(path: Path, notices: Notices, *, within: Path | None, most_bytes: int = MAX_BYTES) -> bytes | None:
    """Accepts only regular files: a pipe may never end. `within`: the checkout that a link must not leave.

    Returns at most one byte more than `most_bytes`; None, if there is no such file, or with a notice.
    """
    follow = within is None
    target = path
    if within is not None and path.is_symlink():
        target = Path(os.path.realpath(path))
        if not target.is_relative_to(within) or is_secret(str(target)):
            leads = "whose name says that it contains secrets" if target.is_relative_to(within) else f"outside {within}"
            notices.add(f"{path} is not read: it is a link to a file {leads}.")
            return None
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
    try:
        handle = os.open(target, flags)
    except OSError as error:
        if path.is_symlink() or not isinstance(error, FileNotFoundError | NotADirectoryError):
            notices.add(f"{path} is not read: {error.strerror}.")
        return None
    # Other users must not be able to write the user's own file
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode):
        why = "it is not a regular file"
    elif follow and status.st_uid not in (user_id(), 0):
        why = "it belongs to another user"
    elif follow and file_mode(status) & stat.S_IWOTH:
        why = "every user of this machine can write it"
    else:
        why = ""
    if why:
        os.close(handle)
        notices.add(f"{path} is not read: {why}.")
        return None
    with os.fdopen(handle, "rb") as file:
        return file.read(most_bytes + 1)


def _decode(data: bytes, path: Path, notices: Notices) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if error.start >= MAX_BYTES - 3:  # a character at the cut
            return data.decode("utf-8-sig", "ignore")
    from wolo.workspace.files.encodings import find_encoding, printable  # noqa: PLC0415  # nearly all files are UTF-8

    encoding = find_encoding(data)
    if encoding is None or encoding.codec == "utf-8":
        return data.decode("utf-8-sig", "replace")
    notices.add(f"{path} is not UTF-8; it is read as {encoding.label}.")
    return printable(encoding.decode(data))


def cut(data: bytes, size: int) -> bytes:
    return data[: data.rfind(b"\n", size // 2, size) + 1] or data[:size]


def one_line(name: str) -> str:
    return re.sub(r"[\r\n\t]", " ", escape_hidden(name))
