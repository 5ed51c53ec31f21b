"""The SDK's OAuth client with saved logins: refreshes once over all processes, and sends tokens to their server only."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import Any

import httpx2
from mcp.client.auth import OAuthClientProvider, TokenStorage
from mcp.client.auth.extensions.client_credentials import (
    ClientCredentialsOAuthProvider,
    PrivateKeyJWTOAuthProvider,
)
from mcp.client.auth.oauth2 import OAuthContext
from mcp.client.auth.utils import extract_field_from_www_auth, union_scopes
from mcp.shared import auth
from msgspec.structs import replace

from wolo import __version__
from wolo.errors import ToolError
from wolo.mcp.connection import ADDRESSES, PEER
from wolo.mcp.logins import LoginStore, SavedLogin
from wolo.mcp.oauth.callback import Callback, LoginFailed
from wolo.mcp.server import OAuth
from wolo.models.address import origin, proxy_for
from wolo.tools.web.address import Hosts, read_address

EARLY_S = 30.0
"""Tokens are refreshed this long before they expire."""
HEADERS = {"User-Agent": f"wolo/{__version__}", "Accept-Encoding": "identity"}
_LEGACY_METADATA = "/.well-known/oauth-authorization-server"
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


class Storage(TokenStorage):
    """One saved login, in the form of the SDK."""

    def __init__(self, store: LoginStore, key: str, preconfigured: auth.OAuthClientInformationFull | None = None) -> None:
        self.saved = SavedLogin()
        self.context: OAuthContext | None = None
        self._store = store
        self._key = key
        self._preconfigured = preconfigured

    async def load(self) -> SavedLogin:
        found = await asyncio.to_thread(self._store.read, self._key)
        self.saved = SavedLogin() if found is None else found
        return self.saved

    async def save(self, login: SavedLogin) -> None:
        self.saved = login
        await asyncio.to_thread(self._store.write, self._key, login)

    async def get_tokens(self) -> auth.OAuthToken | None:
        return auth.OAuthToken.model_validate(self.saved.tokens) if self.saved.tokens else None

    async def set_tokens(self, tokens: auth.OAuthToken) -> None:
        context = self.context
        assert context is not None  # the provider sets it
        await self.save(
            SavedLogin(
                tokens=_plain(tokens),
                expires_at=time.time() + tokens.expires_in if tokens.expires_in is not None else None,
                client=_plain(context.client_info),
                metadata=_plain(context.oauth_metadata),
                resource_metadata=_plain(context.protected_resource_metadata),
                authorization_server=context.auth_server_url or "",
            )
        )

    async def get_client_info(self) -> auth.OAuthClientInformationFull | None:
        if self._preconfigured is not None:
            return self._preconfigured
        return auth.OAuthClientInformationFull.model_validate(self.saved.client) if self.saved.client else None

    async def set_client_info(self, client_info: auth.OAuthClientInformationFull) -> None:
        await self.save(replace(self.saved, client=_plain(client_info)))


class OAuthProvider(OAuthClientProvider):
    """What all ways of logging in share."""

    storage: Storage
    settings: OAuth
    addresses: MetadataAddresses
    refreshing: Callable[[], Any]
    on_refused: Callable[[str], None]
    callback: Callback | None = None
    """Present in `wolo mcp login`."""
    failure: Exception | None = None
    """Why the last login failed."""
    has_logged_in = False
    _flow_lock: asyncio.Lock

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Checks the addresses that the flow asks."""
        flow = super().async_auth_flow(request)
        try:
            outgoing = await anext(flow)
            while True:
                if outgoing is not request:
                    check_address(self.context.server_url, str(outgoing.url))
                    outgoing.extensions = {**outgoing.extensions, ADDRESSES: await self.addresses.resolve(str(outgoing.url))}
                    outgoing.headers.update({**HEADERS, **outgoing.headers})
                response = yield outgoing
                if outgoing is request:
                    self.addresses.peer = response.extensions.get(PEER, "")
                outgoing = await flow.asend(response)
        except StopAsyncIteration:
            return
        except Exception as error:
            self.failure = error
            raise

    async def _auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        async with self._flow_lock:
            await self._load()
            if self.context.current_tokens and not self.context.is_token_valid() and self.context.can_refresh_token():
                async with self.refreshing():
                    await self._load(again=True)
                    if not self.context.is_token_valid() and self.context.can_refresh_token():
                        await self._handle_refresh_response((yield await self._refresh_token()))
            if self.context.is_token_valid():
                self._add_auth_header(request)
            response = yield request
            if response.status_code == 401 and self.context.can_refresh_token():
                refused = self.context.current_tokens
                async with self.refreshing():
                    await self._load(again=True)
                    is_refreshed = self.context.current_tokens != refused
                    if not is_refreshed:
                        is_refreshed = await self._handle_refresh_response((yield await self._refresh_token()))
                if is_refreshed:
                    self._add_auth_header(request)
                    response = yield request
            refused_scope = None
            if response.status_code == 403 and extract_field_from_www_auth(response, "error") == "insufficient_scope":
                refused_scope = extract_field_from_www_auth(response, "scope") or ""
            if response.status_code != 401 and refused_scope is None and not self._is_forced:
                return
            if self.callback is None and self.settings.grant == "authorization_code":
                await self._remember(refused_scope)
                return
        # The SDK's flow begins with the request; it gets the response that is already there.
        self.context.clear_tokens() if response.status_code == 401 else None
        flow = super()._auth_flow(request)
        answer = self._challenge(request, response)
        await anext(flow)
        try:
            while True:
                outgoing = await flow.asend(answer)
                answer = await self._without_own_issuer((yield outgoing))
        except StopAsyncIteration:
            return

    @property
    def _is_forced(self) -> bool:
        """A scope was refused before: log in although this request needs no login."""
        return self.callback is not None and not self.has_logged_in and bool(self.storage.saved.refused_scope)

    async def _load(self, *, again: bool = False) -> None:
        if self._initialized and not again:
            return
        saved = await self.storage.load()
        await self._initialize()
        self.context.token_expiry_time = saved.expires_at - EARLY_S if saved.expires_at else None
        if self.callback is not None and not again:
            self.context.clear_tokens()
            if not (
                self.context.client_info is not None
                and self.callback.redirect_uri in map(str, self.context.client_info.redirect_uris or ())
            ):
                self.context.client_info = None
            return
        if saved.metadata:
            self.context.oauth_metadata = auth.OAuthMetadata.model_validate(saved.metadata)
        if saved.resource_metadata:
            self.context.protected_resource_metadata = auth.ProtectedResourceMetadata.model_validate(saved.resource_metadata)
        self.context.auth_server_url = saved.authorization_server or None

    async def _remember(self, scope: str | None) -> None:
        """For the next login. The user is told what to do."""
        if scope is None:
            self.on_refused("")
            return
        granted = self.context.current_tokens.scope if self.context.current_tokens else None
        wanted = union_scopes(granted, scope) or ""
        if wanted != self.storage.saved.refused_scope:
            await self.storage.save(replace(self.storage.saved, refused_scope=wanted))
        self.on_refused(scope or "more scopes")

    def _challenge(self, request: httpx2.Request, response: httpx2.Response) -> httpx2.Response:
        """The server's refusal, with the scopes of the settings and those refused before."""
        configured = " ".join(self.settings.scopes) or None
        refused = self.storage.saved.refused_scope or None
        if not configured and not refused:
            return response
        asked = configured or extract_field_from_www_auth(response, "scope")
        scope = union_scopes(asked, refused)
        fields = [f'scope="{scope}"']
        if where := extract_field_from_www_auth(response, "resource_metadata"):
            fields.append(f'resource_metadata="{where}"')
        return httpx2.Response(401, headers={"WWW-Authenticate": f"Bearer {', '.join(fields)}"}, request=request)

    async def _without_own_issuer(self, response: httpx2.Response) -> httpx2.Response:
        """Servers of the revision 2025-03-26 describe themselves, and may name an issuer below their own address."""
        url, server = response.request.url, httpx2.URL(self.context.server_url)
        is_legacy = self.context.auth_server_url is None and url.path == _LEGACY_METADATA and _origin(url) == _origin(server)
        if not is_legacy or response.status_code != 200:
            return response
        try:
            document = json.loads(await response.aread())
            issuer = httpx2.URL(document["issuer"])
        except (ValueError, KeyError, TypeError, httpx2.InvalidURL):
            return response
        if _origin(issuer) != _origin(server):
            return response
        fitting = {**document, "issuer": f"{server.scheme}://{server.netloc.decode()}"}
        return httpx2.Response(200, json=fitting, request=response.request)

    async def _perform_authorization(self) -> httpx2.Request:
        if self.callback is not None and (metadata := self.context.oauth_metadata) is not None:
            check_address(self.context.server_url, str(metadata.authorization_endpoint))
            await self.addresses.resolve(str(metadata.authorization_endpoint))
            if "S256" not in (metadata.code_challenge_methods_supported or ["S256"]):
                raise LoginFailed("the authorization server does not support PKCE with S256")
        self._choose_auth_method()
        return await super()._perform_authorization()

    def _choose_auth_method(self) -> None:
        """For a client of the settings; a registered one was assigned its method."""
        client, metadata = self.context.client_info, self.context.oauth_metadata
        if client is None or client.client_id != self.settings.client_id:
            return
        issuer = self.settings.issuer
        if issuer and (metadata is None or str(metadata.issuer).rstrip("/") != issuer.rstrip("/")):
            raise LoginFailed(f"the server leads to another authorization server than oauth.issuer, {issuer}")
        if self.settings.auth_method or client.token_endpoint_auth_method == "private_key_jwt":
            return
        supported = metadata.token_endpoint_auth_methods_supported if metadata else None
        choices = ("client_secret_basic", "client_secret_post") if client.client_secret else ()
        client.token_endpoint_auth_method = next(
            (each for each in choices if supported is None or each in supported), choices[0] if choices else "none"
        )

    async def _handle_token_response(self, response: httpx2.Response) -> None:
        await super()._handle_token_response(response)
        self.has_logged_in = True

    def _add_auth_header(self, request: httpx2.Request) -> None:
        if _origin(request.url) == _origin(httpx2.URL(self.context.server_url)):
            super()._add_auth_header(request)


class BrowserProvider(OAuthProvider):
    """The authorization code grant."""


class SecretProvider(OAuthProvider, ClientCredentialsOAuthProvider):
    """The client credentials grant with a secret."""


class KeyProvider(OAuthProvider, PrivateKeyJWTOAuthProvider):
    """The client credentials grant with a signed assertion."""


class AssertionProvider(OAuthProvider, ClientCredentialsOAuthProvider):
    """The grant of an organisation: its identity provider vouches for the user (SEP-990) or the workload (RFC 7523)."""

    exchange: Callable[[str, Mapping[str, str]], Awaitable[httpx2.Response]]
    """Sends a form to the identity provider."""

    async def _assertion(self, issuer: str) -> str:
        """The token itself, or the one that the identity provider exchanges it for."""
        settings = self.settings
        if not settings.idp_token_endpoint:
            return settings.id_token
        asked = {
            "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
            "requested_token_type": "urn:ietf:params:oauth:token-type:id-jag",
            "subject_token": settings.id_token,
            "subject_token_type": "urn:ietf:params:oauth:token-type:id_token",
            "audience": issuer,
            "resource": self.context.get_resource_url(),
            "client_id": settings.idp_client_id or settings.client_id,
        }
        answer = await self.exchange(settings.idp_token_endpoint, asked)
        assertion = answer.json().get("access_token") if answer.status_code == 200 else None
        if not isinstance(assertion, str):
            raise LoginFailed(f"the identity provider refused to exchange oauth.id_token ({answer.status_code})")
        return assertion

    async def _exchange_token_client_credentials(self) -> httpx2.Request:
        context = self.context
        if context.oauth_metadata is None:
            raise LoginFailed("the server names no authorization server")
        assertion = await self._assertion(str(context.oauth_metadata.issuer))
        data = {"grant_type": auth.JWT_BEARER_GRANT_TYPE, "assertion": assertion, "resource": context.get_resource_url()}
        if context.client_metadata.scope:
            data["scope"] = context.client_metadata.scope
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        data, headers = context.prepare_token_auth(data, headers)
        return httpx2.Request("POST", self._get_token_endpoint(), data=data, headers=headers)


def check_address(server_url: str, address: str) -> None:
    """A server with TLS leads nowhere without: neither to readable tokens nor into the local network. Raises LoginFailed."""
    url, own = httpx2.URL(address), httpx2.URL(server_url)
    is_local = own.host in _LOOPBACK and url.host in _LOOPBACK
    if url.scheme != "https" and not is_local and (url.scheme != "http" or own.scheme != "http" or own.host != url.host):
        raise LoginFailed(f"the server leads to {url.copy_with(query=None)}, which is not https")


def _origin(url: httpx2.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port or {"https": 443, "http": 80}.get(url.scheme)


def _plain(model: Any) -> Mapping[str, Any] | None:
    return None if model is None else model.model_dump(mode="json", by_alias=True, exclude_none=True)


class MetadataAddresses:
    def __init__(self, server_url: str, issuer: str = "", hosts: Hosts | None = None) -> None:
        """`issuer`: the authorization server that the user named, which may be anywhere."""
        self.peer = ""
        """IP address at which the server answered; empty: not known, or behind a proxy."""
        self._server_url, self._issuer = server_url, issuer
        self._hosts = hosts or Hosts()

    async def resolve(self, url: str) -> tuple[str, ...]:
        """The IP addresses that may be contacted for `url`; empty: any. Raises LoginFailed."""
        if self._issuer and origin(url) == origin(self._issuer):
            return ()
        try:
            if await self._is_server_private():
                return ()
            address = read_address(url)
            if proxy_for(address.url, os.environ):
                self._hosts.check_name(address)
                return ()
            return await self._hosts.find(address)
        except ToolError as error:
            raise LoginFailed(f"the server leads to {url.partition('?')[0]}: {error.message.rstrip('.')}") from error
        except OSError as error:
            raise LoginFailed(f"the server leads to {url.partition('?')[0]}, which has no address") from error

    async def _is_server_private(self) -> bool:
        """Judges the connection itself where there was one: a name can mean another address at each lookup."""
        if self.peer:
            return not self._hosts.is_open(self.peer)
        server = read_address(self._server_url)
        try:
            self._hosts.check_name(server)
        except ToolError:
            return True
        if server.is_literal or proxy_for(server.url, os.environ):
            return False
        return not any(map(self._hosts.is_open, await self._hosts.look_up(server.host, server.port)))
