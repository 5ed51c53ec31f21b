"""Logs in to MCP servers and out again, and authenticates the requests of a run with what was saved."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from msgspec.structs import replace

from wolo.errors import ConfigError
from wolo.mcp import listings, logins, references, server_requests
from wolo.mcp.connection import ADDRESSES, ConnectionLost, RequestRejected
from wolo.mcp.oauth.callback import Callback, LoginFailed
from wolo.mcp.server import OAuth, Server, ServerEnvironment
from wolo.tools.web.address import Hosts

if TYPE_CHECKING:
    import httpx2


_REVOKE_S = 10.0


async def log_in(
    name: str,
    server: Server,
    store: logins.LoginStore,
    environ: Mapping[str, str],
    on_address: Callable[[str], None],
    on_listening: Callable[[Callback], None] = lambda callback: None,
    hosts: Hosts | None = None,
) -> listings.ServerListing | None:
    """Returns what the server offers; None if it asked for no login. Raises LoginFailed and ConfigError.

    `on_address` receives the address to open in a browser; `hosts` for isolated networks.
    """
    from wolo.mcp import sdk  # noqa: PLC0415  # most of a second
    from wolo.mcp.oauth.clients import make_provider  # noqa: PLC0415

    url, oauth = server_url(server, environ), expand(server.oauth, environ)
    key = logins.login_key(name, url)
    callback = None
    if oauth.grant == "authorization_code":
        # The port that the registered client listened on; its address may be exactly registered.
        saved = store.read(key)
        addresses: Any = (saved.client or {}).get("redirect_uris", ()) if saved else ()
        callback = Callback(
            on_address, oauth.redirect_uri, next((port for each in addresses if (port := urlsplit(str(each)).port)), 0)
        )
        await callback.open()
        on_listening(callback)
    try:
        provider = make_provider(url, oauth, store, key, lambda scope: None, callback, hosts)
        headers = {header: references.with_bare(value, environ, f"headers.{header}") for header, value in server.headers.items()}
        requests = server_requests.ServerRequests(name, attended=False)
        old = server.transport == "sse"
        connecting = sdk.connect_http(
            url, headers, old=old, environ=environ, on_status=lambda status: None, requests=requests, auth=provider
        )
        try:
            async with connecting as connection:
                listing = await connection.listing()
        except (ConnectionLost, RequestRejected) as error:
            failure = provider.failure
            if isinstance(failure, LoginFailed | ConfigError):
                raise failure from error
            if provider.has_logged_in and failure is None:
                raise LoginFailed(f"logged in, but the server cannot be used: {error}") from error
            raise LoginFailed(str(failure or error)) from error
        return listing if provider.has_logged_in else None
    finally:
        if callback is not None:
            await callback.close()


async def log_out(name: str, server: Server, store: logins.LoginStore, environ: Mapping[str, str]) -> bool:
    """Removes the saved login, and revokes its tokens where the authorization server offers that. Raises ConfigError."""
    key = logins.login_key(name, server_url(server, environ))
    saved = store.read(key)
    removed = store.remove(key)
    if saved is not None and saved.tokens and (saved.metadata or {}).get("revocation_endpoint"):
        with suppress(Exception):  # the tokens are gone from here; their server may be gone too
            from wolo.mcp.oauth.clients import revocations  # noqa: PLC0415
            from wolo.mcp.oauth.provider import MetadataAddresses  # noqa: PLC0415
            from wolo.mcp.sdk_transport import plain_client  # noqa: PLC0415  # most of a second

            url = server_url(server, environ)
            oauth = expand(server.oauth, environ)
            async with plain_client(url, environ, _REVOKE_S) as client:
                for request in revocations(url, oauth, saved):
                    request.extensions[ADDRESSES] = await MetadataAddresses(url, oauth.issuer).resolve(str(request.url))
                    await client.send(request)
    return removed


def server_url(server: Server, environ: Mapping[str, str]) -> str:
    """Raises ConfigError for unset variables."""
    return references.fill_in(server.url, environ, "url")


def find_auth(
    name: str, server: Server, url: str, around: ServerEnvironment, on_refused: Callable[[str], None]
) -> httpx2.Auth | None:
    """None without a login. `url` has its variables expanded.

    Raises ConfigError.
    """
    if around.logins is None or any(header.lower() == "authorization" for header in server.headers):
        return None
    key = logins.login_key(name, url)
    if server.oauth.grant == "authorization_code" and around.logins.read(key) is None:
        return None
    from wolo.mcp.oauth.clients import make_provider  # noqa: PLC0415  # the SDK

    return make_provider(url, expand(server.oauth, around.environ), around.logins, key, on_refused)


def expand(oauth: OAuth, environ: Mapping[str, str]) -> OAuth:
    """With the values of variables. Raises ConfigError for unset ones."""
    names = (
        *("client_id", "client_secret", "private_key", "id_token"),
        *("idp_token_endpoint", "idp_client_id", "client_metadata_url", "issuer"),
    )
    return replace(oauth, **{name: references.fill_in(getattr(oauth, name), environ, f"oauth.{name}") for name in names})
