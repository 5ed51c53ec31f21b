"""Credentials of one cloud, and their cache: fetched once for all processes, and again before they expire."""

from __future__ import annotations

import asyncio
import hashlib
import time
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

import msgspec

from wolo.errors import AuthError, ConfigError
from wolo.operating_system import os, user_id
from wolo.workspace.files.file_locks import hold_process_lock

MARGIN_S: Final = 300.0
"""Credentials are fetched again this long before they expire."""


class Credentials(msgspec.Struct, frozen=True, omit_defaults=True):
    """A bearer token, or keys of AWS with their session token."""

    token: str = ""
    access_key: str = ""
    secret_key: str = ""
    expires_at: float | None = None
    """Unix time; None: unknown, or never."""

    def is_fresh(self) -> bool:
        return self.expires_at is None or self.expires_at - time.time() > MARGIN_S


class CredentialSource(Protocol):
    shared_name: str
    """Tells these credentials from all others of this user; empty: not stored for other processes."""

    async def fetch(self) -> Credentials:
        """Raises ConfigError for a missing or refused login, Unavailable for a server that does not answer."""


class CredentialCache:
    """Credentials of one source, in memory and for the processes of a user in a private file."""

    def __init__(self, source: CredentialSource, folder: Path, first: Credentials | None = None) -> None:
        self._source, self._folder, self._current = source, folder, first
        self._lock = asyncio.Lock()

    async def get(self, refused: Credentials | None = None) -> Credentials:
        """`refused` were not accepted, so others are fetched. Raises ConfigError or Unavailable, AuthError if there were some."""
        async with self._lock:
            if _is_usable(self._current, refused):
                assert self._current
                return self._current
            if not (name := self._source.shared_name):
                self._current = await self._fetch(refused)
                return self._current
            async with hold_process_lock(self._folder, name):
                path = self._folder / f"{hashlib.sha256(name.encode()).hexdigest()[:32]}.json"
                stored = _read(path)
                if not _is_usable(stored, refused):
                    stored = await self._fetch(refused)
                    if stored.expires_at is not None:  # others are in a file of the user's already
                        _write(path, stored)
                self._current = stored
                assert self._current
                return self._current

    async def _fetch(self, refused: Credentials | None) -> Credentials:
        """Those that can be had no more hold to their end; then a turn ends with its report, as after any refusal."""
        try:
            return await self._source.fetch()
        except ConfigError as error:
            if (last := self._current) is None:
                raise
            if last != refused and last.expires_at is not None and last.expires_at > time.time():
                return last
            raise AuthError(error.message, hint=error.hint) from None


def _is_usable(credentials: Credentials | None, refused: Credentials | None) -> bool:
    return credentials is not None and credentials != refused and credentials.is_fresh()


def version_of(path: Path) -> str:
    """Changes with the file, such as after another login."""
    try:
        status = path.stat()
    except OSError:
        return f"{path} -"
    return f"{path} {status.st_mtime_ns} {status.st_size}"


def _read(path: Path) -> Credentials | None:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        with open(handle, "rb") as file:
            if os.fstat(handle).st_uid != user_id():
                return None
            return msgspec.json.decode(file.read(), type=Credentials)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None


def _write(path: Path, credentials: Credentials) -> None:
    """A full disk does not keep the credentials from being used; what a killed process left is overwritten."""
    new = path.with_name(f"{path.name}.new")
    with suppress(OSError):
        handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with open(handle, "wb") as file:
            file.write(msgspec.json.encode(credentials))
        new.replace(path)
