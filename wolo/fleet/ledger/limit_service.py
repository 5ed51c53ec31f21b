"""Serves the shared limits of a ledger to the agents that a worker starts, on a Unix socket."""

from __future__ import annotations

import asyncio
import tempfile
from types import TracebackType

import msgspec
from msgspec import Struct

from wolo.fleet.ledger.ledger_store import LedgerError
from wolo.fleet.ledger.shared_limits import SharedLimits


class _LimitRequest(Struct, rename={"what": "do"}):
    """A line of `wolo.models.retry`."""

    what: str
    key: str
    tokens: float | None = None
    requests: float | None = None
    more_tokens: int = 0
    wait_s: float = 0.0


class LimitService:
    """An asynchronous context. Its `path` goes into the environment of agents, as `LIMITER_VARIABLE`."""

    def __init__(self, limits: SharedLimits) -> None:
        self._limits = limits
        self._folder = tempfile.TemporaryDirectory(prefix="wolo-")  # the path of a socket must be short
        self.path = f"{self._folder.name}/limiter"
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> LimitService:
        self._server = await asyncio.start_unix_server(self._answer, self.path)
        return self

    async def __aexit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        if self._server:
            self._server.close()
            await self._server.wait_closed()
        self._folder.cleanup()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            said = msgspec.json.decode(await reader.readline(), type=_LimitRequest)
            wait_s = await asyncio.to_thread(self._do, said)
            writer.write(msgspec.json.encode({"wait_s": wait_s}) + b"\n")
            await writer.drain()
        except (msgspec.MsgspecError, LedgerError, OSError, ValueError):
            pass  # without an answer the agent goes on; the worker meets the error of a ledger itself
        finally:
            writer.close()

    def _do(self, said: _LimitRequest) -> float:
        if said.what == "acquire":
            return self._limits.acquire(said.key, int(said.tokens or 0))
        if said.what == "refused":
            self._limits.refused(said.key, said.wait_s, requests=said.requests, tokens=said.tokens)
        if said.what == "answered":
            self._limits.answered(said.key, more_tokens=said.more_tokens, requests=said.requests, tokens=said.tokens)
        return 0.0
