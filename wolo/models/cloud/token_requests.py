"""Requests for credentials: to token endpoints, and to metadata servers, which must answer at once."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import urlencode, urljoin

from msgspec import Struct, field

from wolo.errors import ConfigError, ProviderError, Unavailable
from wolo.models.address import display_url
from wolo.models.http.http_transport import HttpTransport
from wolo.models.http.transport import HttpCall

METADATA_S: Final = 2.0
ENDPOINT_S: Final = 20.0
SHOWN_LETTERS: Final = 300


class TokenRequest(Struct, frozen=True):
    """`is_metadata`: a server of this machine's network, which no proxy leads to."""

    what: str
    """Begins the sentences of errors."""
    url: str
    method: Literal["GET", "POST", "PUT"] = "GET"
    headers: Mapping[str, str] = field(default_factory=dict)
    form: Mapping[str, str] = field(default_factory=dict)
    is_metadata: bool = False
    hint: str = ""
    """Advice for a refusal."""


async def fetch_text(request: TokenRequest, environ: Mapping[str, str]) -> tuple[str, Mapping[str, str]]:
    """Body and headers of a successful response. Raises ConfigError for a refusal, Unavailable for no answer."""
    limit_s = METADATA_S if request.is_metadata else ENDPOINT_S
    headers = {"accept": "application/json, */*", "content-type": "application/x-www-form-urlencoded", **request.headers}
    body = urlencode(request.form).encode()
    call = HttpCall(
        url=request.url, body=body, headers=headers, method=request.method, first_byte_s=limit_s, idle_s=limit_s, framing="sse"
    )
    transport = HttpTransport({} if request.is_metadata else environ)
    where = f"{request.what} at {display_url(request.url)}"
    try:
        async with asyncio.timeout(limit_s):
            status, answer_headers, answer = await transport.fetch(call)
    except TimeoutError:
        raise Unavailable(f"{where} did not answer within {limit_s:g} s.") from None
    except ProviderError as error:  # the hints of others are about the model's server
        raise Unavailable(f"{where} did not answer: {error.message}") from error
    finally:
        await transport.close()
    if 300 <= status < 400:
        target = display_url(urljoin(request.url, answer_headers.get("location", "")))
        raise ConfigError(f"{where} redirects to {target}; redirects are not followed, to protect the credentials.")
    text = answer.decode("utf-8", "replace")
    if status >= 500 or status == 429:
        raise Unavailable(f"{where} failed with status {status}.", status=status)
    if status != 200:
        hint = clock_hint(answer_headers) or request.hint
        raise ConfigError(f"{where} refused: {_reason(text) or f'status {status}'}.", hint=hint)
    return text, answer_headers


async def read_token(variable: str, path: str) -> str:
    """The text of the file that a variable names. Raises ConfigError."""
    try:
        return (await asyncio.to_thread(Path(path).read_text, "utf-8")).strip()
    except (OSError, UnicodeDecodeError):
        raise ConfigError(f"{variable}: {path} cannot be read.") from None


async def fetch_document(request: TokenRequest, environ: Mapping[str, str]) -> Mapping[str, Any]:
    """The JSON object in the response. Raises as `fetch_text`."""
    return parse_document(request, (await fetch_text(request, environ))[0])


def parse_document(request: TokenRequest, text: str) -> Mapping[str, Any]:
    """Raises ConfigError for anything else."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise no_credentials(request)
    return document


def no_credentials(request: TokenRequest) -> ConfigError:
    return ConfigError(
        f"{request.what} at {display_url(request.url)} sent something else than credentials.",
        hint="Check what answers at this address; a proxy or a login page may be in the way.",
    )


def text_of(request: TokenRequest, document: Mapping[str, Any], name: str) -> str:
    """A value that fits in a header. Raises ConfigError."""
    value = document.get(name)
    if not isinstance(value, str) or not value or not (value.isascii() and value.isprintable()) or " " in value:
        raise no_credentials(request)
    return value


def _reason(text: str) -> str:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        document = None
    if isinstance(document, dict):
        error = document.get("error")
        inner = error.get("message") if isinstance(error, dict) else None
        words = document.get("error_description") or inner or document.get("message") or document.get("Message") or error or ""
        text = str(words)
    elif text.lstrip().startswith("<"):
        text = ""
    line = " ".join(text.split()).rstrip(".")
    return "".join(letter for letter in line if letter.isprintable())[:SHOWN_LETTERS]


TOLERATED_S: Final = 240
"""AWS and Google refuse signatures that are more than five minutes off."""


def clock_hint(headers: Mapping[str, str]) -> str:
    """How far this clock is from the response's `date`; empty if it is right or unknown. Header names are lower case."""
    from email.utils import parsedate_to_datetime  # noqa: PLC0415  # for refusals only

    try:
        skew_s = time.time() - parsedate_to_datetime(headers.get("date", "")).timestamp()
    except (ValueError, TypeError, OverflowError):
        return ""
    if abs(skew_s) < TOLERATED_S:
        return ""
    direction = "ahead of" if skew_s > 0 else "behind"
    return f"The clock of this machine is {abs(skew_s) / 60:,.0f} minutes {direction} the server's; set it."
