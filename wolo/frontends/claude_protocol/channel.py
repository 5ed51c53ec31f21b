"""Carries the lines of the protocol: reads stdin in a thread, matches requests with their responses, writes stdout."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from wolo.errors import UsageError
from wolo.frontends.prompt_lines import MAX_LINE_BYTES, read_lines
from wolo.frontends.streams import OutputLost, print_json
from wolo.messages.parts import new_id

GONE = "the program has closed its end of the connection"
_SHOWN_CHARS = 120


class ProgramGone(ConnectionError):
    """The program can answer nothing any more."""

    def __init__(self) -> None:
        super().__init__(GONE)


class ProgramRefused(ValueError):
    """The program answered a request with an error."""


class Channel:
    """`on_request` gets the control requests of the program; its prompts wait in `prompts`."""

    def __init__(self, on_request: Callable[[str, Mapping[str, Any]], None]) -> None:
        self.prompts: asyncio.Queue[Mapping[str, Any] | None] = asyncio.Queue()
        """None: no further one comes."""
        self.mistake: UsageError | None = None
        """A line that is not understood; it ends the input."""
        self._on_request = on_request
        self._is_open = True
        self._responses: dict[str, asyncio.Future[Mapping[str, Any]]] = {}
        loop = asyncio.get_running_loop()
        threading.Thread(target=read_lines, args=(sys.stdin.fileno(), loop, self._take), daemon=True).start()

    def send(self, message: Mapping[str, Any]) -> None:
        """Raises OutputLost."""
        print_json(message)

    async def request(self, subtype: str, **fields: Any) -> Mapping[str, Any]:
        """Asks the program. Raises ProgramGone and ProgramRefused; when cancelled, the program is told."""
        if not self._is_open:
            raise ProgramGone
        id = new_id("req")
        future = self._responses[id] = asyncio.get_running_loop().create_future()
        try:
            self.send({"type": "control_request", "request_id": id, "request": {"subtype": subtype, **fields}})
            response = await future
        except OutputLost as lost:
            raise ProgramGone from lost
        except asyncio.CancelledError:
            with suppress(OutputLost):
                self.send({"type": "control_cancel_request", "request_id": id})
            raise
        finally:
            del self._responses[id]
        if response.get("subtype") != "success":
            raise ProgramRefused(str(response.get("error") or "no reason given"))
        answer = {} if response.get("response") is None else response["response"]
        if not isinstance(answer, Mapping):
            raise ProgramRefused("its answer is no object")
        return answer

    def respond(self, id: str, response: Mapping[str, Any]) -> None:
        self._respond({"subtype": "success", "request_id": id, "response": response})

    def refuse(self, id: str, why: str) -> None:
        self._respond({"subtype": "error", "request_id": id, "error": why})

    def _respond(self, response: Mapping[str, Any]) -> None:
        with suppress(OutputLost):  # the running turn finds out too
            self.send({"type": "control_response", "response": response})

    def end(self) -> None:
        """Nothing is read any more, and what the program was asked is not answered."""
        if self._is_open:
            self._is_open = False
            self.prompts.put_nowait(None)
            for future in self._responses.values():
                if not future.done():
                    future.set_exception(ProgramGone())

    def _take(self, line: bytes | None) -> None:
        if not self._is_open or (line is not None and not line.strip()):
            return None
        if line is None:
            return self.end()
        try:
            self._dispatch(line)
        except UsageError as error:
            self.mistake = error
            self.end()

    def _dispatch(self, line: bytes) -> None:
        """Raises UsageError."""
        if len(line) > MAX_LINE_BYTES:
            raise UsageError(f"A line on stdin is larger than {MAX_LINE_BYTES // 2**20} MB.")
        try:
            message = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise UsageError(f"A line on stdin is no JSON: {error}.", hint=_shorten(line)) from error
        match message:
            case {"type": "user"}:
                self.prompts.put_nowait(message)
            case {"type": "control_request", "request_id": str(id), "request": {"subtype": str()} as request}:
                self._on_request(id, request)
            case {"type": "control_response", "response": {"request_id": str(id)} as response}:
                future = self._responses.get(id)
                if future is not None and not future.done():  # else it is the second answer, or a late one
                    future.set_result(response)
            case {"type": "control_cancel_request" | "keep_alive"}:
                pass  # requests are answered at once
            case _:
                raise UsageError("A line on stdin is no message of the protocol.", hint=_shorten(line))


def _shorten(line: bytes) -> str:
    text = line.decode("utf-8", "replace").strip()
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…"
