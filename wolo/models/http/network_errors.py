"""Explains network errors to the user: host, cause and remedy."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterator

from wolo.errors import ProviderError, Unavailable, Unreachable
from wolo.models.address import display_url, host_of
from wolo.models.http import transport


def describe_network_error(error: Exception, call: transport.HttpCall, *, proxy: str, answering: bool) -> ProviderError:
    """`answering`: the response had started."""
    host = host_of(call.url)
    via = f" through the proxy {host_of(proxy)}" if proxy else ""
    match error:
        case transport.ConnectTimeout():
            message = f"{host}{via} did not accept the connection in time."
            return Unreachable(message, hint="Check the network connection, the base URL and the proxy.")
        case transport.HandshakeTimeout():
            message = f"{host}{via} accepted the connection, but did not finish the TLS handshake in time."
            return Unreachable(message, hint="Check that the server speaks TLS, the base URL and the proxy.")
        case transport.ReadTimeout():
            has_begun = answering and not isinstance(error, transport.FirstByteTimeout)
            when = "stopped sending in the middle of the response" if has_begun else "did not start to respond"
            setting, silence_s = ("retry.idle_s", call.idle_s) if has_begun else ("retry.first_byte_s", call.first_byte_s)
            message = f"{host}{via} {when}: nothing came for {silence_s:g} s."
            return Unavailable(message, hint=f"A slow model needs a larger `{setting}` (0: no limit).")
        case transport.ProxyFailure():
            return _permanent(f"The proxy {host_of(proxy)} refused to connect to {host}: {_reason(error)}.", PROXY_HINT)
    for cause in _causes(error):
        if explained := _from_cause(cause, host, via, Unavailable if answering else Unreachable):
            return explained
    match error:
        case transport.InvalidRequest():
            # Its text may contain header values, including the key.
            return _permanent(
                f"The request to {display_url(call.url)} could not be built.", "Check the base URL, the key and `headers.extra`."
            )
        case transport.InvalidResponse():
            return Unavailable(f"{host}{via} sent invalid HTTP: {_reason(error)}.", hint="Check the base URL and the proxy.")
    if answering:
        return Unavailable(f"The connection to {host}{via} was lost in the middle of the response.", hint=_RETRY_HINT)
    return Unreachable(f"{host}{via} closed the connection without a response.", hint=_RETRY_HINT)


_RETRY_HINT = "Try again in a moment."
PROXY_HINT = (
    "Check HTTP_PROXY, HTTPS_PROXY and ALL_PROXY (with user name and password if required), or list the host in NO_PROXY."
)
_CERTIFICATE_HINT = (
    "If your network uses a certificate authority of its own, name its file in SSL_CERT_FILE (it is added to the system's); "
    "else check the base URL and this machine's clock."
)


def _from_cause(cause: BaseException, host: str, via: str, lost: type[Unavailable]) -> ProviderError | None:
    """`lost` is the class for network failures."""
    import ssl  # noqa: PLC0415  # only failures, and connections with TLS, load it

    match cause:
        case ssl.SSLCertVerificationError():
            return _permanent(f"The certificate of {host}{via} is not trusted: {cause.verify_message}.", _CERTIFICATE_HINT)
        case ssl.SSLError() if cause.reason == "WRONG_VERSION_NUMBER":
            return _permanent(f"{host}{via} does not speak TLS.", "Use http:// in the base URL if the server has no certificate.")
        case ssl.SSLError():
            return Unavailable(
                f"No secure connection to {host}{via}: {cause.reason or 'the handshake failed'}.", hint=_CERTIFICATE_HINT
            )
        case socket.gaierror():
            return lost(
                f"The host name {host}{via} cannot be resolved.",
                hint="Check the spelling of the base URL, and the network connection.",
            )
        case ConnectionRefusedError():
            return lost(
                f"Nothing listens at {host}{via}: the connection was refused.",
                hint="Check the address, and that the server runs.",
            )
        case OSError() if cause.errno in (errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN, errno.EHOSTDOWN):
            return lost(f"{host}{via} cannot be reached: {os.strerror(cause.errno)}.", hint="Check the network connection.")
        case _:
            return None


def _permanent(message: str, hint: str) -> ProviderError:
    """Unavailable without retry."""
    error = Unavailable(message, hint=hint)
    error.retryable = False
    error.exit_code = 1
    return error


def _reason(error: Exception) -> str:
    return " ".join("".join(letter for letter in str(error) if letter.isprintable()).split())[:200] or "no reason given"


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        current = waiting.pop()
        if current is None or id(current) in seen:
            continue
        seen.add(id(current))
        yield current
        waiting.extend((current.__context__, current.__cause__))
        if isinstance(current, BaseExceptionGroup):
            waiting.extend(current.exceptions)
