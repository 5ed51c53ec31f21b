"""Saved logins of MCP servers, and the interface of the store that keeps them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from msgspec import Struct

from wolo.messages.secret_values import Secret


class SavedLogin(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The result of a login; the tables are JSON objects as the SDK writes them."""

    tokens: Mapping[str, Any] | None = None
    expires_at: float | None = None
    """Unix time; None: unknown."""
    client: Mapping[str, Any] | None = None
    """The registered client."""
    metadata: Mapping[str, Any] | None = None
    """Of the authorization server, for refreshing without discovery."""
    resource_metadata: Mapping[str, Any] | None = None
    authorization_server: str = ""
    refused_scope: str = ""
    """Scope that a server asked for in vain; the next login requests it."""
    value: str = ""
    """In place of a login: what the user typed for an input of a server."""

    def secrets(self) -> Iterator[Secret]:
        """Values that must never be shown."""
        if self.value:
            yield Secret("MCP_INPUT", self.value)
        for table in (self.tokens or {}, self.client or {}):
            for key in ("access_token", "refresh_token", "client_secret"):
                if isinstance(value := table.get(key), str):
                    yield Secret(f"MCP_{key.upper()}", value)


class LoginStore(Protocol):
    """Where logins are saved. Keys come from `login_key`."""

    def read(self, key: str) -> SavedLogin | None:
        """Raises ConfigError."""

    def write(self, key: str, login: SavedLogin) -> None:
        """Raises ConfigError."""

    def remove(self, key: str) -> bool:
        """Returns whether there was one. Raises ConfigError."""

    def report_secrets(self, learn: Callable[[Iterable[Secret]], None]) -> None:
        """`learn` receives the secrets of each login that is read or saved from now on."""

    def refreshing(self, key: str) -> AbstractAsyncContextManager[None]:
        """Held by one process at a time while it refreshes a token."""


def login_key(name: str, url: str) -> str:
    """A login is for one server at one address: another one of that name never gets its token."""
    return f"{name} {url}"
