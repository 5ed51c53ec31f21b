"""Makes the OAuth client of a server from its settings."""

from __future__ import annotations

import asyncio
import base64
import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx2
from mcp.client.auth.extensions.client_credentials import (
    SignedJWTParameters,
)
from mcp.client.auth.oauth2 import OAuthContext
from mcp.shared import auth

from wolo.errors import ConfigError
from wolo.mcp.logins import LoginStore, SavedLogin
from wolo.mcp.oauth.callback import Callback
from wolo.mcp.oauth.provider import (
    EARLY_S,
    HEADERS,
    AssertionProvider,
    BrowserProvider,
    KeyProvider,
    MetadataAddresses,
    OAuthProvider,
    SecretProvider,
    Storage,
    check_address,
)
from wolo.mcp.server import OAuth
from wolo.tools.web.address import Hosts

_ELLIPTIC = bytes.fromhex("2a8648ce3d0201")
"""Object identifier of elliptic curve keys."""


def make_provider(
    url: str,
    oauth: OAuth,
    store: LoginStore,
    key: str,
    on_refused: Callable[[str], None],
    callback: Callback | None = None,
    hosts: Hosts | None = None,
) -> OAuthProvider:
    """`oauth` with variables expanded; `on_refused` receives the scope that is missing; `hosts` for isolated networks.

    Raises ConfigError.
    """
    provider = _make(url, oauth, Storage(store, key, _client_of(oauth, callback)), callback)
    provider.addresses = MetadataAddresses(url, oauth.issuer, hosts)
    provider.storage.context = provider.context
    provider.settings, provider.callback, provider.on_refused = oauth, callback, on_refused
    provider.refreshing = lambda: store.refreshing(key)
    provider._flow_lock = asyncio.Lock()
    return provider


def revocations(url: str, oauth: OAuth, saved: SavedLogin) -> Iterator[httpx2.Request]:
    """Requests that revoke the tokens of a login (RFC 7009) at the server `url`. Raises LoginFailed."""
    client = _client_of(oauth, None) or auth.OAuthClientInformationFull.model_validate(saved.client)
    metadata = auth.OAuthMetadata.model_validate(saved.metadata)
    check_address(url, str(metadata.revocation_endpoint))
    context = OAuthContext("", auth.OAuthClientMetadata(redirect_uris=None), None, None, None, client_info=client)  # type: ignore[arg-type]  # nothing is stored
    for kind in ("refresh_token", "access_token"):
        if token := (saved.tokens or {}).get(kind):
            data = {"token": token, "token_type_hint": kind, "client_id": client.client_id}
            data, headers = context.prepare_token_auth(data, dict(HEADERS))
            yield httpx2.Request("POST", str(metadata.revocation_endpoint), data=data, headers=headers)


def _make(url: str, oauth: OAuth, storage: Storage, callback: Callback | None) -> OAuthProvider:
    scope = " ".join(oauth.scopes) or None
    issuer = oauth.issuer or None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # without an issuer in the settings the server's discovery decides
        if oauth.grant == "client_credentials" and oauth.private_key:
            key, algorithm = _key_of(oauth)
            parameters = SignedJWTParameters(
                issuer=oauth.client_id, subject=oauth.client_id, signing_key=key, signing_algorithm=algorithm
            )
            signed = parameters.create_assertion_provider()
            provider: OAuthProvider = KeyProvider(url, storage, oauth.client_id, signed, scope, issuer)
        elif oauth.grant != "authorization_code":
            method: Any = oauth.auth_method or ("client_secret_basic" if oauth.client_secret else "none")
            kind = AssertionProvider if oauth.grant == "identity_assertion" else SecretProvider
            provider = kind(url, storage, oauth.client_id, oauth.client_secret, method, scope, issuer)
        else:
            metadata = auth.OAuthClientMetadata(
                client_name="wolo",
                redirect_uris=[(callback.redirect_uri if callback else "http://127.0.0.1/callback")],  # type: ignore[list-item]  # converted
                grant_types=["authorization_code", "refresh_token"],
                response_types=["code"],
                scope=" ".join(oauth.scopes) or None,
            )

            async def wait() -> auth.AuthorizationCodeResult:
                assert callback is not None  # asked for in a login only
                found = await callback.wait()
                return auth.AuthorizationCodeResult(code=found.code, state=found.state, iss=found.issuer)

            async def show(address: str) -> None:
                assert callback is not None
                callback.show(address)

            provider = BrowserProvider(url, metadata, storage, show, wait, oauth.client_metadata_url or None)
    provider.storage = storage
    if isinstance(provider, AssertionProvider):
        provider.exchange = _exchange
    return provider


async def _exchange(url: str, form: Mapping[str, str]) -> httpx2.Response:
    from wolo.mcp.sdk_transport import plain_client  # noqa: PLC0415  # for one grant only

    async with plain_client(url, os.environ, EARLY_S) as client:
        return await client.post(url, data=dict(form))


def _client_of(oauth: OAuth, callback: Callback | None) -> auth.OAuthClientInformationFull | None:
    if not oauth.client_id:
        return None
    return auth.OAuthClientInformationFull(
        client_id=oauth.client_id,
        client_secret=oauth.client_secret or None,
        redirect_uris=[callback.redirect_uri] if callback else None,  # type: ignore[list-item]  # converted
        token_endpoint_auth_method=oauth.auth_method or None,
    )


def _key_of(oauth: OAuth) -> tuple[str, str]:
    text = oauth.private_key
    if "-----BEGIN" not in text:
        try:
            text = Path(text).expanduser().read_text()
        except (OSError, ValueError, RuntimeError) as error:
            raise ConfigError("oauth.private_key is neither a PEM key nor a file that can be read.") from error
    try:
        der = base64.b64decode("".join(line for line in text.splitlines() if "-----" not in line and ":" not in line))
    except ValueError as error:
        raise ConfigError("oauth.private_key is not a PEM key.") from error
    is_elliptic = "BEGIN EC" in text or _ELLIPTIC in der[:64]
    return text, "ES256" if is_elliptic else "RS256"
