"""Talks to a wolo server: requests, and events that continue after a lost connection."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, Self
from urllib.parse import parse_qs, quote, urlsplit

import httpx2

from wolo.errors import SessionError, Unreachable, UsageError, WoloError
from wolo.formats.tolerant_json import mapping_at, read_fields, read_json
from wolo.models.address import is_loopback

PAUSES_S = (0.1, 0.2, 0.4, 0.8, 1.6)
"""Before each new try of a lost connection."""
SILENCE_S = 45
"""The server sends something every 15 seconds."""
ANSWER_S = 600
"""A prompt is answered when it is saved, after the user's hooks; an undo when the files are restored."""
NEEDED = ("prompt", "steer", "interrupt", "approve", "answer", "events")
HOW = "The address is the line that `wolo serve` printed."
LOST = (httpx2.TransportError, httpx2.StreamError)


class Refused(WoloError):
    """The server answered with an error."""

    def __init__(self, status: int, message: str, hint: str) -> None:
        super().__init__(message, hint=hint)
        self.status = status
        self.exit_code = {404: 3, 409: 3, 422: 2, 400: 2}.get(status, 1)


def split_address(address: str) -> tuple[str, str]:
    """The origin, and the token, which may be missing. Raises UsageError."""
    try:
        parts = urlsplit(address)
        origin, has_host = f"{parts.scheme}://{parts.netloc}", bool(parts.hostname) and parts.port != 0
    except ValueError:
        has_host, origin = False, ""
    if not has_host or parts.scheme not in ("http", "https") or "@" in parts.netloc or not address.isprintable():
        raise UsageError(f"{address!r} is not the address of a wolo server.", hint=HOW)
    if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
        hint = "Forward the port, `ssh -L PORT:127.0.0.1:PORT HOST`, and attach to 127.0.0.1."
        raise UsageError("The token would go to another machine unencrypted.", hint=hint)
    return origin, parse_qs(parts.query).get("token", [""])[0]


class ServerClient:
    """Use it as an asynchronous context manager."""

    def __init__(self, origin: str, token: str) -> None:
        if not (token.isascii() and token.isprintable()):
            raise UsageError("The token is no token of a wolo server.", hint=HOW)
        headers = {"Authorization": f"Bearer {token}"}
        self._origin = origin
        limit = httpx2.Timeout(30, connect=10, read=SILENCE_S)
        self._client = httpx2.AsyncClient(headers=headers, timeout=limit, trust_env=False)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.aclose()

    async def check(self) -> None:
        """Raises UsageError for a wrong token and a server that is none of ours or of another version."""
        try:
            schema = await self.ask("GET", "/openapi.json")
            title, paths = schema["info"]["title"], set(schema["paths"])
        except (KeyError, TypeError, Refused) as error:
            if isinstance(error, Refused) and error.status in (401, 403):
                raise UsageError(error.message, hint=error.hint) from error
            raise UsageError(f"There is no wolo server at {self._origin}.", hint=HOW) from error
        needed = {f"/v1/sessions/{{id}}/{name}" for name in NEEDED}
        if title != "wolo serve" or not needed <= paths:
            version = str(schema["info"].get("version", "?"))[:40]
            raise UsageError(f"The server at {self._origin} is another version ({version}).", hint="Use the same wolo for both.")

    async def ask(self, method: str, path: str, body: object = None) -> Any:
        """The answer's JSON. Raises Refused, and Unreachable without a server."""
        try:
            limit = httpx2.Timeout(30, connect=10, read=ANSWER_S)
            response = await self._client.request(method, self._origin + path, json=body, timeout=limit)
        except LOST as error:
            raise Unreachable(f"No server answers at {self._origin}.", hint="Is `wolo serve` running?") from error
        return _content(response.status_code, response.content)

    async def events(self, session_id: str, on_loss: Callable[[], None]) -> AsyncIterator[tuple[int, dict[str, Any]]]:
        """Id and line of each event, none lost and none twice. Raises Refused, and Unreachable when the server has ended."""
        last, tries = -1, 0
        while True:
            try:
                async for id, data in self._stream(session_id, last):
                    last, tries = id, 0
                    yield id, read_fields(data)
            except Refused as error:
                if error.status != 401:
                    raise
                hint = f"Attach to its new address, or continue the session here with `wolo --resume {session_id}`."
                raise Unreachable("The server was started again, and has another token.", hint=hint) from error
            except LOST as error:
                if tries == len(PAUSES_S):
                    hint = f"`wolo --resume {session_id}` continues the session in a terminal."
                    raise Unreachable("The server has ended, or cannot be reached any more.", hint=hint) from error
            if tries == 1:
                on_loss()
            await asyncio.sleep(PAUSES_S[min(tries, len(PAUSES_S) - 1)])
            tries = min(tries + 1, len(PAUSES_S))

    async def _stream(self, session_id: str, last: int) -> AsyncIterator[tuple[int, bytes]]:
        headers = {"Last-Event-ID": str(last)} if last >= 0 else {}
        async with self._client.stream("GET", self._origin + path_of(session_id, "events"), headers=headers) as response:
            if response.status_code != 200:
                _content(response.status_code, await response.aread())
            rest = b""
            async for piece in response.aiter_bytes():
                *blocks, rest = (rest + piece).split(b"\n\n") if b"\n\n" in rest[-1:] + piece else (rest + piece,)
                for block in blocks:
                    fields = dict(line.split(b": ", 1) for line in block.split(b"\n") if b": " in line)
                    if fields.get(b"id", b"").isdigit() and b"data" in fields:
                        yield int(fields[b"id"]), fields[b"data"]


def path_of(session_id: str, what: str = "") -> str:
    if session_id in (".", ".."):
        raise SessionError(f"There is no session {session_id!r}.")
    return f"/v1/sessions/{quote(session_id, safe='')}" + (f"/{what}" if what else "")


def _content(status: int, content: bytes) -> Any:
    value = read_json(content)
    if status < 400 and value is not None:
        return value
    error = mapping_at(value, "error")
    message = str(error.get("message") or f"The server answered with status {status}.")
    raise Refused(status, message[:1000], str(error.get("hint") or "")[:1000])
