"""Connects to MCP servers inside the embedding program, which carries their messages; the SDK is not needed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Self

from wolo import __version__
from wolo.mcp.connection import Completing, ConnectionLost, PromptMessage, RequestRejected, read_messages
from wolo.mcp.listings import ServerListing, read_listed, read_prompts, read_resources
from wolo.mcp.tool_answer import Item, ToolAnswer, read_answer, read_contents

PROTOCOL_VERSION = "2025-06-18"
MOST_PAGES = 50
Exchange = Callable[[Mapping[str, Any]], Awaitable[Any]]
"""Delivers a JSON-RPC message and returns the reply. Raises ConnectionError when the program is gone, ValueError when it
refuses."""


class HostedConnection:
    """Implements `connection.Connection`."""

    def __init__(self, exchange: Exchange) -> None:
        self.ended = asyncio.Event()
        self.changed = asyncio.Event()
        self._exchange = exchange
        self._num_requests = 0
        self._server: Mapping[str, Any] = {}
        """The server's answer to `initialize`."""

    async def open(self) -> Self:
        """Raises ConnectionLost and RequestRejected."""
        about = {"protocolVersion": PROTOCOL_VERSION, "capabilities": {}, "clientInfo": {"name": "wolo", "version": __version__}}
        self._server = await self._request("initialize", about)
        await self._deliver({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return self

    async def listing(self) -> ServerListing:
        offers = self._server.get("capabilities")
        offers = offers if isinstance(offers, Mapping) else {}
        instructions = self._server.get("instructions")
        return ServerListing(
            tools=read_listed(await self._pages("tools/list", "tools") if "tools" in offers else ()),
            prompts=read_prompts(await self._pages("prompts/list", "prompts") if "prompts" in offers else ()),
            resources=read_resources(await self._pages("resources/list", "resources") if "resources" in offers else ()),
            instructions=instructions if isinstance(instructions, str) else "",
        )

    async def call(self, tool: str, arguments: Mapping[str, Any], timeout_s: float, show: Callable[[str], None]) -> ToolAnswer:
        return read_answer(await self._request("tools/call", {"name": tool, "arguments": dict(arguments)}, timeout_s))

    async def read(self, uri: str, timeout_s: float) -> tuple[Item, ...]:
        return tuple(read_contents((await self._request("resources/read", {"uri": uri}, timeout_s)).get("contents")))

    async def prompt(self, name: str, arguments: Mapping[str, str], timeout_s: float) -> tuple[PromptMessage, ...]:
        result = await self._request("prompts/get", {"name": name, "arguments": dict(arguments)}, timeout_s)
        return read_messages(result.get("messages"))

    async def complete(self, completing: Completing) -> tuple[str, ...]:
        return ()

    async def roots_changed(self) -> None:
        """Does nothing: the server was promised no roots."""

    async def _pages(self, method: str, key: str) -> list[object]:
        entries: list[object] = []
        cursor: object = None
        for _ in range(MOST_PAGES):
            result = await self._request(method, {} if cursor is None else {"cursor": cursor})
            listed = result.get(key)
            entries += listed if isinstance(listed, list) else []
            if (following := result.get("nextCursor")) in (None, cursor):
                break
            cursor = following
        return entries

    async def _request(self, method: str, params: Mapping[str, Any], timeout_s: float | None = None) -> Mapping[str, Any]:
        self._num_requests += 1
        message = {"jsonrpc": "2.0", "id": self._num_requests, "method": method, "params": params}
        try:
            async with asyncio.timeout(timeout_s):
                reply = await self._deliver(message)
        except TimeoutError as error:
            raise RequestRejected(f"it did not answer within {timeout_s:g} s") from error
        if isinstance(reply, Mapping) and isinstance(problem := reply.get("error"), Mapping):
            raise RequestRejected(str(problem.get("message") or problem))
        result = reply.get("result") if isinstance(reply, Mapping) else None
        if not isinstance(result, Mapping):
            raise RequestRejected(f"its reply to {method} is not a JSON-RPC response")
        return result

    async def _deliver(self, message: Mapping[str, Any]) -> Any:
        try:
            return await self._exchange(message)
        except ConnectionError as error:
            self.ended.set()
            raise ConnectionLost(str(error)) from error
        except ValueError as error:
            raise RequestRejected(str(error)) from error
