"""Stores logins of MCP servers, and values that they ask for, in `mcp_logins.json`, or in the system keyring as API keys are."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractAsyncContextManager, suppress
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from wolo.config import key_store, project
from wolo.config.files import lock_folder, read_json, replace_file
from wolo.errors import ConfigError, ExtensionError
from wolo.extensions.settings_documents import parse_settings
from wolo.mcp.logins import SavedLogin
from wolo.mcp.server import ConfiguredServer
from wolo.mcp.server_entries import ServerInput, read_inputs
from wolo.messages.secret_values import Secret
from wolo.places import Notices, Places
from wolo.workspace.files.file_locks import hold_process_lock
from wolo.workspace.root import origin_of

FILE: Final = "mcp_logins.json"


class MCPLogins:
    """Implements `wolo.mcp.logins.LoginStore`."""

    def __init__(self, places: Places, *, in_keyring: bool = True) -> None:
        self._places, self._in_keyring = places, in_keyring
        self._learn: Callable[[Iterable[Secret]], None] = lambda secrets: None

    def read(self, key: str) -> SavedLogin | None:
        if (login := self._login(key, self._rows().get(key))) is not None:
            self._learn(login.secrets())
        return login

    def write(self, key: str, login: SavedLogin) -> None:
        self._learn(login.secrets())
        with lock_folder(self._places.config):
            rows = self._rows()
            row: Any = msgspec.to_builtins(login)
            before = rows.get(key)
            wants_keyring = self._in_keyring and before in (None, key_store.IN_KEYRING) and key_store.has_keyring()
            if wants_keyring and key_store.store_in_keyring(_entry(key), json.dumps(row)):
                row = key_store.IN_KEYRING
            elif before == key_store.IN_KEYRING:
                with suppress(ConfigError):
                    key_store.remove_from_keyring(_entry(key))
            if row != before:
                self._replace({**rows, key: row})

    def remove(self, key: str) -> bool:
        with lock_folder(self._places.config):
            rows = self._rows()
            if (row := rows.pop(key, None)) is None:
                return False
            if row == key_store.IN_KEYRING:
                key_store.remove_from_keyring(_entry(key))
            self._replace(rows)
        return True

    def keys(self) -> frozenset[str]:
        """Of all saved logins. Raises ConfigError."""
        return frozenset(self._rows())

    def secrets(self) -> Iterator[Secret]:
        """Tokens and secrets of all logins. Raises ConfigError."""
        for key, row in self._rows().items():
            if login := self._login(key, row):
                yield from login.secrets()

    def report_secrets(self, learn: Callable[[Iterable[Secret]], None]) -> None:
        self._learn = learn

    def refreshing(self, key: str) -> AbstractAsyncContextManager[None]:
        return hold_process_lock(self._places.state / "mcp", key)

    def _login(self, key: str, row: Any) -> SavedLogin | None:
        if row is None:
            return None
        try:
            if row == key_store.IN_KEYRING:
                text = key_store.fetch_from_keyring(_entry(key))
                return msgspec.json.decode(text, type=SavedLogin) if text else None
            return msgspec.convert(row, SavedLogin)
        except msgspec.MsgspecError as error:
            raise ConfigError(
                f"The saved login of {key.partition(' ')[0]} is damaged.", hint="`wolo mcp login` again."
            ) from error

    def _rows(self) -> dict[str, Any]:
        return read_json(self._places.config / FILE, Notices(), "Remove it, and log in again: wolo mcp login NAME")

    def _replace(self, rows: dict[str, Any]) -> None:
        replace_file(self._places.config / FILE, json.dumps(rows, indent=1) + "\n")


def _entry(key: str) -> str:
    """Name in the keyring, apart from those of API keys."""
    return f"mcp {key}"


class ServerInputs(Struct, frozen=True):
    """Values of `${input:ID}`, which belong to one project: a server of another one never gets them."""

    places: Places
    root: Path

    def find(self, name: str) -> str:
        """Empty if it is not saved. Raises ConfigError."""
        login = MCPLogins(self.places).read(self._key(name))
        return login.value if login else ""

    def save(self, name: str, value: str) -> None:
        """In the keyring if there is one. Raises ConfigError."""
        MCPLogins(self.places).write(self._key(name), SavedLogin(value=value))

    def missing(self, configured: ConfiguredServer) -> list[ServerInput]:
        """Raises ConfigError."""
        if not (names := configured.server.inputs):
            return []
        path = self.root / configured.source
        try:
            described = read_inputs(parse_settings(project.read_file(path, self.root), str(path)))
        except ExtensionError as error:
            raise ConfigError(error.message) from error
        return [described[name] for name in names if name in described and not self.find(name)]

    def _key(self, name: str) -> str:
        return f"input:{name} {origin_of(self.places.worktrees, self.root)}"
