"""Serves one client of the Agent Client Protocol on stdin and stdout, which belong to the protocol alone."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
import threading
from collections.abc import Mapping
from queue import SimpleQueue
from typing import Any

from wolo.config.cli_options import Flags
from wolo.frontends.acp import acp_sdk as sdk
from wolo.frontends.acp.acp_agent import AcpAgent
from wolo.operating_system import on_signal

CLOSE_S = 1.5
"""Time for turns and servers to end when the client is gone; sessions are saved as they go."""


async def serve(flags: Flags, exit_codes: Mapping[signal.Signals, int]) -> None:
    """Ends the process: with exit code 0 at the end of input, else with that of the signal."""
    agent = AcpAgent(flags)
    transport = Stdio()
    connection = sdk.connect(agent, transport, agent.more)
    serving = asyncio.create_task(connection.main_loop())
    code = 0

    def stop(number: signal.Signals) -> None:
        nonlocal code
        code = exit_codes[number]
        serving.cancel()

    for number in exit_codes:
        on_signal(asyncio.get_running_loop(), number, stop, number)
    await asyncio.wait({serving})
    with contextlib.suppress(TimeoutError, ConnectionError):
        async with asyncio.timeout(CLOSE_S):
            await agent.close()
            await transport.wait_for_answers()
            await agent.close()  # sessions that were being opened
    agent.kill()
    sys.stderr.flush()
    os._exit(code)  # threads still wait for input


MOST_BYTES = 256 * 1024 * 1024
"""A longer message ends the connection."""
_PIECE = 1 << 18
_NO_MESSAGE = "This is not a JSON-RPC 2.0 message."


class Stdio:
    """Takes over both descriptors: `print` and child processes write to stderr, and child processes have no stdin.

    Threads read and write, so that any kind of file may stand at either end and none is made non-blocking.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._input, self._output = os.dup(0), os.dup(1)
        empty = os.open(os.devnull, os.O_RDONLY)
        os.dup2(empty, 0)
        os.close(empty)
        os.dup2(2, 1)
        sys.stdout = sys.stderr
        self._lines: asyncio.Queue[bytes] = asyncio.Queue()
        self._written: SimpleQueue[tuple[bytes, asyncio.Future[None]]] = SimpleQueue()
        self._is_lost = False
        self._open: set[str | int] = set()
        """Ids of requests without an answer."""
        self._is_answered = asyncio.Event()
        self._is_answered.set()
        threading.Thread(target=self._read, daemon=True).start()
        threading.Thread(target=self._write, daemon=True).start()

    async def receive(self) -> dict[str, Any] | None:
        """The next message; None at the end of input. What is no message is answered with an error."""
        while line := await self._lines.get():
            if not line.strip():
                continue
            try:
                message = json.loads(line)
            except (ValueError, RecursionError) as error:
                await self._refuse(-32700, f"This line is not JSON: {error}.")
                continue
            if _is_message(message):
                if "method" in message and message.get("id") is not None:
                    self._open.add(message["id"])
                    self._is_answered.clear()
                return message  # type: ignore[no-any-return]  # it was checked
            reason = "Batches are not supported; send one message per line." if isinstance(message, list) else _NO_MESSAGE
            await self._refuse(-32600, reason)
        return None

    async def send(self, message: dict[str, Any]) -> None:
        """Returns when it is written. Raises ConnectionError when the client is gone."""
        if self._is_lost:
            raise ConnectionError("The client is gone.")
        data = json.dumps(message, separators=(",", ":")).encode() + b"\n"
        done: asyncio.Future[None] = self._loop.create_future()
        self._written.put((data, done))
        await done
        if "method" not in message:
            self._open.discard(message["id"])
            if not self._open:
                self._is_answered.set()

    async def wait_for_answers(self) -> None:
        """Returns when every request has its answer, or the client is gone."""
        if not self._is_lost:
            await self._is_answered.wait()

    async def close(self) -> None:
        """Does nothing: the descriptors are closed with the process."""

    async def _refuse(self, code: int, why: str) -> None:
        await self.send({"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": why}})

    def _read(self) -> None:
        rest = bytearray()
        while True:
            try:
                piece = os.read(self._input, _PIECE)
            except OSError:
                piece = b""
            rest += piece
            *lines, left = rest.split(b"\n") if b"\n" in piece else [rest]
            rest = bytearray(left)
            for line in lines:
                self._pass_on(bytes(line) or b"\n")
            if not piece or len(rest) > MOST_BYTES:
                self._pass_on(bytes(rest))
                return self._pass_on(b"")

    def _write(self) -> None:
        while True:
            data, done = self._written.get()
            error = None
            try:
                while data:
                    data = data[os.write(self._output, data) :]
            except OSError as failed:
                error, self._is_lost = ConnectionError(f"The client is gone: {failed.strerror}."), True
                self._pass_on(b"")
            self._call(_settle, done, error)

    def _pass_on(self, line: bytes) -> None:
        self._call(self._lines.put_nowait, line)

    def _call(self, function: Any, *args: Any) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: wolo exits
            self._loop.call_soon_threadsafe(function, *args)


def _settle(done: asyncio.Future[None], error: Exception | None) -> None:
    if done.done():
        return
    if error is None:
        done.set_result(None)
    else:
        done.set_exception(error)


def _is_message(message: object) -> bool:
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0" or isinstance(message.get("id"), bool):
        return False
    if "method" in message:
        return isinstance(message["method"], str) and isinstance(message.get("id"), str | int | None)
    return "id" in message and ("result" in message or isinstance(message.get("error"), dict))
