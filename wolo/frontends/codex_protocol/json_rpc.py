"""Carries JSON-RPC messages on stdin and stdout, one on a line and without the field `jsonrpc`."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from wolo.frontends.prompt_lines import MAX_LINE_BYTES, read_lines
from wolo.frontends.streams import OutputLost, print_json

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS = -32700, -32600, -32601, -32602
SERVER_ERROR, INTERNAL_ERROR = -32000, -32603


class RpcError(Exception):
    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class ClientGone(ConnectionError):
    """The client answers nothing any more."""

    def __init__(self) -> None:
        super().__init__("it has closed its end of the connection")


class JsonRpc:
    """`on_message` gets requests and notifications, in order; the id of a notification is None."""

    def __init__(self, on_message: Callable[[str, Mapping[str, Any], Any], None]) -> None:
        self.ended = asyncio.Event()
        """The client has closed its end."""
        self._on_message = on_message
        self._num_requests = 0
        self._responses: dict[Any, asyncio.Future[Any]] = {}
        loop = asyncio.get_running_loop()
        threading.Thread(target=read_lines, args=(sys.stdin.fileno(), loop, self._take), daemon=True).start()

    def notify(self, method: str, params: Mapping[str, Any]) -> None:
        self._send({"method": method, "params": params})

    def respond(self, id: Any, result: Any) -> None:
        self._send({"id": id, "result": result})

    def refuse(self, id: Any, code: int, message: str) -> None:
        self._send({"id": id, "error": {"code": code, "message": message}})

    async def request(self, method: str, params: Mapping[str, Any]) -> tuple[int, Any]:
        """The id of the request, and the result. Raises ClientGone, and RpcError for an error of the client."""
        if self.ended.is_set():
            raise ClientGone
        self._num_requests += 1
        id = self._num_requests
        future = self._responses[id] = asyncio.get_running_loop().create_future()
        try:
            self._send({"method": method, "id": id, "params": params})
            return id, await future
        finally:
            del self._responses[id]

    def end(self) -> None:
        self.ended.set()
        for future in self._responses.values():
            if not future.done():
                future.set_exception(ClientGone())

    def _send(self, message: Mapping[str, Any]) -> None:
        try:
            print_json(message)
        except OutputLost:
            self.end()

    def _take(self, line: bytes | None) -> None:
        if line is None:
            return self.end()
        if not line.strip() or self.ended.is_set():
            return None
        try:
            if len(line) > MAX_LINE_BYTES:
                raise ValueError("the line is too long")
            message = json.loads(line)
        except (ValueError, RecursionError) as error:
            return self.refuse(None, PARSE_ERROR, f"This line is not JSON: {error}.")
        match message:
            case {"method": str(method)}:
                params = message.get("params") or {}
                if not isinstance(params, dict):
                    return self.refuse(message.get("id"), INVALID_PARAMS, "params is no object.")
                return self._on_message(method, params, message.get("id"))
            case {"id": int() | str() as id}:
                future = self._responses.get(id)
                if future is None or future.done():
                    return None  # the second answer, or a late one
                if "result" in message:
                    future.set_result(message["result"])
                else:
                    problem = message.get("error")
                    text = problem.get("message") if isinstance(problem, dict) else problem
                    future.set_exception(RpcError(SERVER_ERROR, str(text)))
                return None
        return self.refuse(None, INVALID_REQUEST, "This is no request, response or notification.")


async def settle(tasks: set[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    with suppress(asyncio.CancelledError):
        await asyncio.gather(*tasks, return_exceptions=True)
