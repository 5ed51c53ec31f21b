"""Sends an event to a web address, for hooks of type `http`."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Mapping
from ipaddress import ip_address
from typing import Any

from wolo import __version__
from wolo.errors import ConfigError, ToolError
from wolo.extensions.hooks.definitions import Hook
from wolo.extensions.hooks.response import read_answer
from wolo.models.address import proxy_for
from wolo.models.http.network_errors import describe_network_error
from wolo.models.http.tls import ssl_context
from wolo.models.http.transport import HttpCall
from wolo.tools.tool_values import HookReply
from wolo.tools.web.address import Hosts, WebAddress, is_public, read_address

MOST_BYTES = 256 * 1024
"""Of the response."""
CONNECT_S = 10.0
_THIS_MACHINE = "127.0.0.1"


async def post(event: str, hook: Hook, data: bytes, timeout_s: float, *, is_own: bool) -> HookReply | str:
    """The answer of the server, or a text that describes what went wrong.

    A hook may name this machine; only the user's own hook (`is_own`) may name another private address.
    """
    address = None

    def value(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        return os.environ.get(name, "") if name in hook.allowed_env_vars else ""

    try:
        address = read_address(hook.url)
        async with asyncio.timeout(timeout_s):
            headers = {name: re.sub(r"\$(?:\{(\w+)\}|(\w+))", value, text).strip() for name, text in hook.headers.items()}
            if broken := [name for name, text in headers.items() if not text.isprintable()]:
                raise ConfigError(f"the header {broken[0]} contains a line break.")
            status, body = await _send(
                address,
                {"content-type": "application/json", "user-agent": f"wolo/{__version__}", **headers},
                data,
                os.environ,
                is_own=is_own,
            )
    except TimeoutError:
        return f"took longer than {timeout_s:g} s and was ended"
    except (ToolError, ConfigError) as error:
        return f"was not sent: {error.message}"
    except Exception as error:  # whatever the network raises
        return f"failed: {_describe(error, address)}"
    if not 200 <= status < 300:
        return f"was answered with status {status}"
    if len(body) > MOST_BYTES:
        return f"was answered with more than {MOST_BYTES:,} bytes"
    return read_answer(event, 0, body, b"")


async def _send(
    address: WebAddress, headers: Mapping[str, str], data: bytes, environ: Mapping[str, str], *, is_own: bool
) -> tuple[int, bytes]:
    import httpx2  # noqa: PLC0415  # 60 ms, at the first request

    proxy, at = await _way_to(address, environ, is_own=is_own)
    extensions: dict[str, Any] = {"timeout": {"connect": CONNECT_S, "read": None, "write": None, "pool": None}}
    if address.scheme == "https":
        extensions["sni_hostname"] = address.host
    engine = httpx2.AsyncHTTPTransport(verify=ssl_context(environ), trust_env=False, proxy=proxy or None)
    async with engine:
        request = httpx2.Request("POST", at, headers={**headers, "host": address.authority}, content=data, extensions=extensions)
        response = await engine.handle_async_request(request)
        body = bytearray()
        try:
            async for piece in response.stream:  # type: ignore[union-attr]  # an async response has an async stream
                body += piece
                if len(body) > MOST_BYTES:
                    break
        finally:
            await response.stream.aclose()  # type: ignore[union-attr]  # the same
    return response.status_code, bytes(body)


async def _way_to(address: WebAddress, environ: Mapping[str, str], *, is_own: bool) -> tuple[str, str]:
    """The proxy, and the address with a checked IP address. Raises ToolError, ConfigError and OSError."""
    if _is_this_machine(address.host):
        return "", address.at(_THIS_MACHINE if address.host == "localhost" else address.host)
    proxy = proxy_for(address.url, environ)
    if proxy:
        return proxy, address.url
    if is_own:
        return "", address.url
    found = await Hosts(is_open=is_public).find(address)
    return "", address.at(found[0])


def _is_this_machine(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _describe(error: Exception, address: WebAddress | None) -> str:
    from wolo.models.http.proxied_connection import network_failure  # noqa: PLC0415  # loads httpx2

    url = address.url if address else ""
    return describe_network_error(network_failure(error), HttpCall(url, b""), proxy="", answering=False).message.rstrip(".")
