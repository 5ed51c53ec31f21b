"""A keyring that the package `keyring` can be told to use: PYTHON_KEYRING_BACKEND names one of these classes."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from keyring.backend import KeyringBackend
from keyring.errors import PasswordDeleteError, PasswordSetError


class InAFile(KeyringBackend):
    priority = 1  # type: ignore[assignment]  # a property of the class in the package

    @property
    def _path(self) -> Path:
        return Path(os.environ["KEYRING_FILE"])

    def _read(self) -> dict[str, str]:
        return dict(json.loads(self._path.read_text())) if self._path.exists() else {}

    def get_password(self, service: str, username: str) -> str | None:
        return self._read().get(f"{service} {username}")

    def set_password(self, service: str, username: str, password: str) -> None:
        self._path.write_text(json.dumps({**self._read(), f"{service} {username}": password}))

    def delete_password(self, service: str, username: str) -> None:
        held = self._read()
        if held.pop(f"{service} {username}", None) is None:
            raise PasswordDeleteError("not there")
        self._path.write_text(json.dumps(held))


class Forgetful(InAFile):
    """Takes everything and keeps nothing."""

    def set_password(self, service: str, username: str, password: str) -> None:
        pass


class Locked(InAFile):
    """As where nobody unlocks it."""

    def get_password(self, service: str, username: str) -> str | None:
        raise PasswordSetError("locked")


class Silent(InAFile):
    """As where a window asks for a password that nobody sees."""

    def get_password(self, service: str, username: str) -> str | None:
        time.sleep(3600)
        return None
