"""Lists the running web servers of the user: address and token of each in a private file beside the sessions."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from wolo.config.files import lock_folder
from wolo.errors import UsageError
from wolo.formats.tolerant_json import read_as
from wolo.operating_system import LOCK_EX, file_mode, flock, os, user_id
from wolo.sessions.locks import is_held

_REDIRECT = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="referrer" content="no-referrer"><title>wolo</title>'
    '<meta http-equiv="refresh" content="0; url={}">\n'
)
_LONGEST_BYTES = 4096
FOLDER = "servers"
"""Beside the sessions."""


class RunningServer(Struct, frozen=True):
    port: int
    token: str
    pid: int
    ends_idle: bool = False
    """Started for sessions in the background."""
    version: str = ""
    has_yolo: bool = False
    """Clients may choose that mode."""

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def address(self) -> str:
        return f"{self.origin}/?token={self.token}"


@contextmanager
def list_server(data: Path, server: RunningServer) -> Iterator[None]:
    """Lists the server until the end of the block; a file without its lock is one of a server that was killed.

    Raises ConfigError and OSError.
    """
    folder = data / FOLDER
    path = folder / f"{server.port}.json"
    with lock_folder(folder):
        for stale in folder.glob("*.json"):
            if not is_held(stale):
                _remove(stale)
        descriptor = _create(path)
        with suppress(OSError):  # without file locks the entry stays after a kill
            flock(descriptor, LOCK_EX)
    try:
        os.write(descriptor, msgspec.json.encode(server))
        yield
    finally:
        _remove(path)
        os.close(descriptor)


def write_redirect(data: Path, server: RunningServer) -> Path:
    """A private page that leads a browser to the server, whose command line then shows no token. Raises OSError."""
    path = data / FOLDER / f"{server.port}.html"
    with os.fdopen(_create(path), "w", encoding="ascii") as file:
        file.write(_REDIRECT.format(server.address))
    return path


def remove_redirect(path: Path) -> None:
    with suppress(OSError):
        path.unlink(missing_ok=True)


def running_servers(data: Path) -> list[RunningServer]:
    """Sorted by port. Raises UsageError for a file that another user could have written or read."""
    folder = data / FOLDER
    if not folder.is_dir():
        return []
    _check(folder, folder.stat())
    found = [_read(path) for path in folder.glob("*.json") if is_held(path)]
    return sorted((each for each in found if each is not None), key=lambda each: each.port)


def _read(path: Path) -> RunningServer | None:
    """None for a server that ends now, or begins."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        _check(path, os.fstat(descriptor))
        return read_as(file.read(_LONGEST_BYTES), RunningServer)


def _check(path: Path, status: os.stat_result) -> None:
    if status.st_uid != user_id():
        raise UsageError(f"{path} belongs to another user, so its token is not used.", hint="Give the whole address.")
    excess = 0o022 if stat.S_ISDIR(status.st_mode) else 0o077
    if file_mode(status) & excess:
        raise UsageError(
            f"{path} is open to other users, so its token is not used.", hint="Start `wolo serve` again: it makes another token."
        )


def _create(path: Path) -> int:
    path.unlink(missing_ok=True)
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def _remove(path: Path) -> None:
    for each in (path.with_suffix(".html"), path):
        with suppress(OSError):
            each.unlink(missing_ok=True)
