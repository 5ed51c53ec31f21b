"""Reads settings files only if no other user could have written them, and replaces them atomically."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wolo.errors import ConfigError
from wolo.operating_system import LOCK_EX, file_mode, flock, open_to_lock, os, user_id
from wolo.places import Notices, make_private

if TYPE_CHECKING:
    from tomlkit import TOMLDocument

OTHERS_WRITE = 0o002
GROUP_WRITES = 0o020
OTHERS_READ = 0o077


def read_toml(path: Path, notices: Notices, *, is_secret: bool = False) -> tuple[str, dict[str, Any]]:
    """Text and content of a TOML file; empty if it does not exist.

    Raises ConfigError for a file others may have written, and for invalid TOML with the line.
    """
    data = read_own(path, notices, is_secret=is_secret)
    return ("", {}) if data is None else parse_toml(data, path)


def read_own(path: Path, notices: Notices, *, is_secret: bool = False) -> bytes | None:
    """None if the file does not exist. Raises ConfigError if others may have written it."""
    if is_secret:
        # A killed writer may have left a copy of the secrets
        with suppress(OSError):
            if any(name.endswith(".new") for name in os.listdir(path.parent)):  # at every start
                from wolo.workspace.files.unfinished import remove_leftovers  # noqa: PLC0415  # after a kill only

                remove_leftovers(path.parent)
    try:
        check_owner(path.parent, path.parent.stat(), notices)
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            raise ConfigError(f"{path} cannot be read: it is not a regular file.")
        check_owner(path, found, notices, is_secret=is_secret)
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError) as error:
        if lost := next((each for each in (path, path.parent) if each.is_symlink()), None):
            raise ConfigError(
                f"{lost} is a link to {lost.readlink()}, which does not exist.", hint="Without it your rules would not apply."
            ) from error
        return None
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}.") from error


def parse_toml(data: bytes, path: Path | str) -> tuple[str, dict[str, Any]]:
    import tomllib  # noqa: PLC0415  # only where a settings file exists

    try:
        text = data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{path}, line {line}: this is not UTF-8.", hint="Save the file as UTF-8.") from error
    try:
        return text, tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        # Parses tomllib's message, which ends with `(at line 3, column 7)` or `(at end of document)`
        what, _, where = str(error).rpartition(" (at ")
        numbers = [word.strip(",)") for word in where.split() if word.strip(",)").isdigit()]
        line = int(numbers[0]) if numbers else text.count("\n") + 1
        shown = text.split("\n")[line - 1].partition("=")[0].strip() if numbers else ""  # the rest may be a secret
        hint = f"The line starts with: {shown}" if shown else ""
        raise ConfigError(f"{path}, line {line}: {what[:1].lower()}{what[1:] or 'this is not TOML'}.", hint=hint) from error


def open_document(path: Path, *, is_secret: bool = False) -> TOMLDocument:
    """For editing; empty if the file does not exist. Raises ConfigError if it is damaged or others may have written it."""
    import tomlkit  # noqa: PLC0415  # 30 ms, for writing only

    text, _ = read_toml(path, Notices(), is_secret=is_secret)
    return tomlkit.parse(text)


def check_owner(path: Path, status: os.stat_result, notices: Notices, *, is_secret: bool = False) -> None:
    """Accepts files of root, such as packaged settings. Corrects too wide a mode of the user's own file, with a notice."""
    if status.st_uid not in (user_id(), 0):
        raise ConfigError(f"{path} belongs to another user, so it is not read.", hint=f"To own it: chown {user_id()} '{path}'")
    is_shared_folder = stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX
    if file_mode(status) & OTHERS_WRITE and not is_shared_folder:
        raise ConfigError(
            f"{path} can be written by every user of this machine, so it is not read.",
            hint=f"If no one has tampered with it: chmod go-w '{path}'",
        )
    excess = file_mode(status) & (OTHERS_READ if is_secret else GROUP_WRITES)
    if not excess or is_shared_folder:
        return
    try:
        path.chmod(stat.S_IMODE(status.st_mode) & ~excess)
    except OSError as error:
        raise ConfigError(f"{path} is writable by its group, and the mode cannot be changed: {error.strerror}.") from error
    said = "could be read by other users" if is_secret else "could be written by its group"
    notices.add(f"{path} {said}; the permissions have been corrected.")


def read_json(path: Path, notices: Notices, hint: str) -> dict[str, Any]:
    """A private JSON table; empty if there is no file. Raises ConfigError if it is damaged or others may have written it."""
    import json  # noqa: PLC0415  # only where there is such a file

    data = read_own(path, notices, is_secret=True)
    try:
        table = json.loads(data or b"{}")
    except (ValueError, RecursionError):
        table = None
    if not isinstance(table, dict):
        raise ConfigError(f"{path} is damaged.", hint=hint)
    return table


@contextmanager
def change_document(path: Path) -> Iterator[Any]:
    """A TOML document of a locked folder, which is saved in the end if it differs. Raises ConfigError."""
    with lock_folder(path.parent):
        document = open_document(path)
        before = document.as_string()
        yield document
        if (text := document.as_string()) != before:
            replace_file(path, text)


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Locks a settings folder for one writer; creates it privately if it is missing."""
    try:
        make_private(folder)
        handle = open_to_lock(folder)
    except OSError as error:
        raise ConfigError(f"{folder} cannot be used: {error.strerror}.") from error
    try:
        try:
            flock(handle, LOCK_EX)
        except OSError as error:
            raise ConfigError(
                f"The file system of {folder} has no file locks, so another wolo could change it at the same time.",
                hint="Set WOLO_HOME to a directory on a local disk.",
            ) from error
        yield
        os.fsync(handle)
    finally:
        os.close(handle)


def replace_file(path: Path, text: str) -> None:
    """Call inside `locked`. A link stays a link: its target is replaced. The mode becomes 0600."""
    from wolo.workspace.files.unfinished import write_whole  # noqa: PLC0415  # for writing only

    try:
        write_whole(path, text.encode("utf-8"))
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}.", hint="The file is unchanged.") from error


def find_line(text: str, key: tuple[str, ...]) -> int | None:
    """The line that sets `key`, or else that of its section; None if neither is found."""
    section: tuple[str, ...] = ()
    nearest: tuple[int, int] | None = None
    for number, line in enumerate(text.split("\n"), start=1):
        stripped = line.strip()
        if stripped.startswith("["):
            section = _names(stripped.lstrip("[").partition("]")[0])
            table = section
        else:
            name, equals, _ = stripped.partition("=")
            if not equals or stripped.startswith("#"):
                continue
            table = (*section, *_names(name))
        if table == key[: len(table)] and (nearest is None or len(table) > nearest[0]):
            nearest = len(table), number
    return nearest[1] if nearest else None


def _names(dotted: str) -> tuple[str, ...]:
    return tuple(name.strip().strip("\"'") for name in dotted.split("."))
