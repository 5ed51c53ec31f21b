"""Authenticates the requests of a run with a saved login, or with the client's own credentials."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from msgspec.structs import replace

from wolo.mcp.logins import login_key
from wolo.mcp.references import fill_in
from wolo.mcp.server import OAuth, Server, ServerEnvironment

if TYPE_CHECKING:
    import httpx2


def find_auth(
    name: str, server: Server, url: str, around: ServerEnvironment, on_refused: Callable[[str], None]
) -> httpx2.Auth | None:
    """None without a login. `url` has its variables expanded.

    Raises ConfigError.
    """
    if around.logins is None or any(header.lower() == "authorization" for header in server.headers):
        return None
    key = login_key(name, url)
    if server.oauth.grant == "authorization_code" and around.logins.read(key) is None:
        return None
    from wolo.mcp.oauth.clients import make_provider  # noqa: PLC0415  # the SDK

    return make_provider(url, expand(server.oauth, around.environ), around.logins, key, on_refused)


def expand(oauth: OAuth, environ: Mapping[str, str]) -> OAuth:
    """With the values of variables. Raises ConfigError for unset ones."""
    names = (
        "client_id",
        "client_secret",
        "private_key",
        "id_token",
        "idp_token_endpoint",
        "idp_client_id",
        "client_metadata_url",
        "issuer",
    )
    return replace(oauth, **{name: fill_in(getattr(oauth, name), environ, f"oauth.{name}") for name in names})
