"""Loads a file from the web, through the user's proxy and with the certificates of wolo."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from wolo.errors import ExtensionError
from wolo.extensions.sources.tree_copy import MOST_BYTES
from wolo.models.address import display_url, proxy_for
from wolo.models.http.network_errors import describe_network_error
from wolo.models.http.tls import ssl_context
from wolo.models.http.transport import HttpCall

if TYPE_CHECKING:
    import httpx2

DOWNLOAD_S = 60.0
_MOST_REDIRECTS = 5


def load_file(url: str, headers: Mapping[str, str] | None = None, *, most_bytes: int = MOST_BYTES) -> bytes:
    """`headers` go to the host of the URL only. Raises ExtensionError or ConfigError."""
    import httpx2  # noqa: PLC0415  # 60 ms, only for files on the web

    from wolo.models.http.proxied_connection import network_failure  # noqa: PLC0415  # loads httpx2

    shown, proxy, data = display_url(url), "", bytearray()
    try:
        proxy = proxy_for(url, os.environ)
        with (
            httpx2.Client(
                verify=ssl_context(os.environ),
                proxy=proxy or None,
                trust_env=False,
                timeout=DOWNLOAD_S,
                follow_redirects=True,
                max_redirects=_MOST_REDIRECTS,
                event_hooks={"request": [partial(_check_encrypted, url)]},
            ) as client,
            client.stream("GET", url, headers={"user-agent": "wolo", "accept-encoding": "identity", **(headers or {})}) as answer,
        ):
            if answer.status_code != httpx2.codes.OK:
                raise ExtensionError(f"{shown} cannot be fetched: the answer is {answer.status_code} {answer.reason_phrase}.")
            for block in answer.iter_raw():
                data += block
                if len(data) > most_bytes:
                    raise ExtensionError(f"{shown} has more than {most_bytes // 1024**2} MiB.")
    except httpx2.TooManyRedirects as error:
        raise ExtensionError(f"{shown} cannot be fetched: it redirects more than {_MOST_REDIRECTS} times.") from error
    except (httpx2.InvalidURL, ValueError) as error:
        raise ExtensionError(f"{shown} cannot be fetched: it is not a usable address.") from error
    except httpx2.HTTPError as error:
        call = HttpCall(url, b"", first_byte_s=DOWNLOAD_S, idle_s=DOWNLOAD_S)
        described = describe_network_error(network_failure(error), call, proxy=proxy, answering=bool(data))
        raise ExtensionError(f"{shown} cannot be fetched: {described.message}", hint=described.hint) from error
    return bytes(data)


def _check_encrypted(url: str, request: httpx2.Request) -> None:
    """An encrypted address must not lead to one that is not."""
    if url.lower().startswith("https:") and request.url.scheme != "https":
        raise ExtensionError(f"{display_url(url)} leads to an address that is not encrypted.")
