"""A new key is tried with one tiny request before it is kept: never repeated, answered within ten seconds or not at all."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from typing import Final, Literal

from msgspec import Struct

from wolo.errors import AuthError, BadAnswer, ProviderError, QuotaExhausted, RateLimited, Unavailable
from wolo.formats.format import Request
from wolo.messages.message import Producer, user
from wolo.models import catalog
from wolo.models.address import under
from wolo.models.catalog_files import Overrides
from wolo.models.format_selection import format_of, redact, request_headers
from wolo.models.http.http_transport import HttpTransport
from wolo.models.http.transport import Call, Refused
from wolo.models.provider import Choice, Provider

TRY_S: Final = 10.0
ANSWER_TOKENS: Final = 16
"""The least that every server takes for a limit."""


class KeyCheck(Struct, frozen=True, kw_only=True):
    """What came of it."""

    verdict: Literal["works", "refused", "unclear", "untried"]
    """`unclear`: nobody said that the key is good. `untried`: no model is known that could be asked."""
    words: str
    hint: str = ""
    exit_code: int = 0

    @property
    def may_be_kept(self) -> bool:
        return self.verdict in ("works", "untried")


async def try_key(provider: Provider, key: str, *, environ: Mapping[str, str], overrides: Overrides) -> KeyCheck:
    """Raises ConfigError when no request can be made of this key, or of what the settings say of the provider."""
    key = catalog.checked_key(key)
    model = provider.default_model or next((model.id for model in provider.models), "")
    if not model or not provider.base_url:
        return KeyCheck(
            verdict="untried", words=f"The key was not tried: no model of {provider.label} is known that could be asked."
        )
    choice = catalog.find(f"{provider.name}/{model}", environ=environ, api_key=key, overrides=overrides)
    try:
        await _ask(choice)
    except ProviderError as error:
        redact(error, choice)
        return _judged(error, provider)
    return KeyCheck(verdict="works", words=f"{provider.label} takes the key.")


def _judged(error: ProviderError, provider: Provider) -> KeyCheck:
    match error:
        case AuthError():
            return _trial("refused", f"{provider.label} refuses the key", error)
        case RateLimited() | QuotaExhausted():
            return _trial("works", f"{provider.label} knows the key, but it can do nothing with it just now", error)
        case Unavailable():
            return _trial("unclear", f"{provider.label} could not be asked about the key", error)
        case _:
            return _trial("unclear", f"{provider.label} did not say whether the key is good", error)


def _trial(verdict: Literal["works", "refused", "unclear"], words: str, error: ProviderError) -> KeyCheck:
    exit_code = 0 if verdict == "works" else error.exit_code
    return KeyCheck(verdict=verdict, words=f"{words}: {error.message}", hint=error.hint, exit_code=exit_code)


async def _ask(choice: Choice) -> None:
    """Returns as soon as an answer begins. Raises ProviderError."""
    format = format_of(choice)
    request = Request(
        model=choice.model.id,
        producer=Producer(provider=choice.provider.name, format=format.name, model=choice.model.id),
        messages=(user("Hi"),),
        max_tokens=ANSWER_TOKENS,
    )
    call = Call(
        url=under(choice.base_url, format.path(choice.model.id), choice.provider.query),
        body=format.encode(request),
        headers=request_headers(choice),
        framing=format.framing,
        first_byte_s=TRY_S,
        idle_s=TRY_S,
    )
    transport, decoder = HttpTransport(), format.decoder(request)
    try:
        async with asyncio.timeout(TRY_S), contextlib.aclosing(transport.send(call)) as batches:
            async for batch in batches:
                with contextlib.suppress(BadAnswer):  # cut at once, as it was asked to be
                    for payload in batch.payloads:
                        decoder.feed(payload)
                    if batch.whole is not None:
                        format.read_whole(batch.whole)
                return
    except Refused as refused:
        raise format.read_error(refused.status, refused.headers, refused.body) from None
    except TimeoutError:
        raise Unavailable(f"It did not answer within {TRY_S:g} s.", hint="Check the network connection and the proxy.") from None
    finally:
        await transport.close()
