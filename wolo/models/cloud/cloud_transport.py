"""Adds a cloud's signature or token to each request, and fetches other credentials once when they are refused."""

from __future__ import annotations

import asyncio
import json
import os
import time
from binascii import a2b_base64
from collections.abc import AsyncGenerator, Callable, Mapping, MutableMapping
from contextlib import aclosing
from typing import Final

from msgspec.structs import replace

from wolo.errors import ConfigError
from wolo.messages.secret_values import ValueRedactor, encoded_forms
from wolo.models.cloud.credentials import CredentialCache, Credentials, CredentialSource
from wolo.models.cloud.token_requests import clock_hint
from wolo.models.http.transport import Batch, HttpCall, HttpStatusError, Transport
from wolo.models.provider import ModelChoice
from wolo.models.secret_references import resolve_key
from wolo.places import find_places

EXPIRED: Final = (b"ExpiredToken", b"RequestExpired", b"UnrecognizedClient", b"security token", b"InvalidClientTokenId")
"""Words of AWS about credentials that are no longer valid; its status is 403 for other reasons too."""
OTHER_TIME: Final = (b"Signature expired", b"Signature not yet current", b"RequestTimeTooSkewed")
COMMAND_S: Final = 300.0
"""Lifetime of a token whose end cannot be read."""
KeyCaches = MutableMapping[tuple[str, str, str], CredentialCache]
"""Of the keys that programs print, by provider, program and first key: a conversation and its subagents fetch one once."""


class CloudTransport:
    """Carries the requests of one model choice through another transport."""

    def __init__(self, choice: ModelChoice, inner: Transport, source: CredentialSource) -> None:
        self._inner = inner
        self._auth = "command" if choice.key_command else choice.provider.auth
        self._key = choice.api_key
        """Fetched when the model was chosen; it is in the headers."""
        self._region = choice.provider.region
        first = _as_credentials(self._key, None) if self._key else None
        self.cache = CredentialCache(source, find_places().state / "cloud", first)

    async def send(self, call: HttpCall) -> AsyncGenerator[Batch, None]:
        """Raises ConfigError too, for credentials that cannot be had and for a wrong clock."""
        refused: Credentials | None = None
        while True:
            credentials = await self.cache.get(refused)
            if self._auth == "aws":
                from wolo.models.cloud.aws_source import sign  # noqa: PLC0415  # other clouds need none

                added = sign(call, credentials, self._region, "bedrock")
            elif self._key:
                added = {name: value.replace(self._key, credentials.token) for name, value in call.headers.items()}
            else:
                added = {"authorization": f"Bearer {credentials.token}"}
            try:
                async with aclosing(self._inner.send(replace(call, headers={**call.headers, **added}))) as batches:
                    async for batch in batches:
                        yield batch
                return
            except HttpStatusError as error:
                is_login_refused = error.status == 401
                if self._auth == "aws":
                    answer = error.headers.get("x-amzn-errortype", "").encode("ascii", "replace") + b" " + error.body
                    is_login_refused = error.status in (400, 401, 403) and any(words in answer for words in EXPIRED)
                if self._auth == "aws" and error.status in (400, 403) and any(words in error.body for words in OTHER_TIME):
                    hint = clock_hint(error.headers) or "Set the clock of this machine."
                    raise ConfigError("AWS refused the signature because of its time.", hint=hint) from None
                if refused is not None or not is_login_refused:
                    body = error.body
                    for value in filter(None, (credentials.token, credentials.secret_key)):
                        body = ValueRedactor(encoded_forms(value), lambda _: "[key]").data(body)
                    raise HttpStatusError(error.status, error.headers, body, error.url) from None
                refused = credentials

    async def close(self) -> None:
        await self._inner.close()


def add_credentials(
    choice: ModelChoice,
    inner: Transport,
    environ: Mapping[str, str] | None = None,
    *,
    caches: KeyCaches | None = None,
    on_key: Callable[[str], object] | None = None,
) -> Transport:
    """Transport that authorizes the requests of this choice; `inner` itself for one with a key. `environ` None: the process's.

    `on_key` gets each key that a program prints later.
    """
    values = os.environ if environ is None else environ
    if choice.key_command:
        transport = CloudTransport(choice, inner, CommandSource(choice, values, on_key))
        if caches is not None:
            transport.cache = caches.setdefault((choice.provider.name, choice.key_command, choice.api_key), transport.cache)
        return transport
    if choice.api_key:
        return inner
    source: CredentialSource
    match choice.provider.auth:
        case "aws":
            from wolo.models.cloud.aws_source import AwsSource  # noqa: PLC0415  # one cloud is used

            source = AwsSource(values)
        case "google":
            from wolo.models.cloud.google_source import GoogleSource  # noqa: PLC0415

            source = GoogleSource(values)
        case "entra":
            from wolo.models.cloud.entra_source import EntraSource  # noqa: PLC0415

            source = EntraSource(values, choice.provider.token_scope)
        case _:
            return inner
    return CloudTransport(choice, inner, source)


class CommandSource:
    """Runs the command of `api_key` again when its token expires."""

    shared_name = ""

    def __init__(self, choice: ModelChoice, environ: Mapping[str, str], on_key: Callable[[str], object] | None) -> None:
        self._choice, self._environ, self._on_key = choice, environ, on_key

    async def fetch(self) -> Credentials:
        setting = f"providers.{self._choice.provider.name}.api_key"
        token = await asyncio.to_thread(resolve_key, self._choice.key_command, self._environ, setting=setting)
        if not (token.isascii() and token.isprintable()) or " " in token:
            raise ConfigError(f"{setting}: the command printed something else than a token.")
        if self._on_key is not None:
            self._on_key(token)
        return _as_credentials(token, None if self._choice.api_key else time.time() + COMMAND_S * 2)


def _as_credentials(token: str, end_at: float | None) -> Credentials:
    """Expires by the claim `exp` of a JSON web token, which is not verified; others at `end_at`, None: when they are refused."""
    try:
        payload = token.split(".")[1]
        claims = json.loads(a2b_base64(payload.translate(str.maketrans("-_", "+/")) + "=" * (-len(payload) % 4)))
        return Credentials(token, expires_at=float(claims["exp"]))
    except (IndexError, ValueError, KeyError, TypeError, RecursionError):
        return Credentials(token, expires_at=end_at)
