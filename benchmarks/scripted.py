"""The server every contender talks to: the model's name says what it plays, and it notes when what happened."""

from __future__ import annotations

import json
import socket
import threading
import time
from dataclasses import dataclass, field

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
DELTAS = 20_000


@dataclass
class Log:
    """Times of one contender, on the clock of `time.perf_counter`."""

    arrived: list[float] = field(default_factory=list)
    """When each request had been received whole."""
    answered: list[float] = field(default_factory=list)
    """When the last byte of each answer had been handed to the socket."""
    sizes: list[int] = field(default_factory=list)
    overhead_bytes: int = 0
    """System prompt and tool schemas of the first request."""


class ScriptedServer:
    """Models: `text` answers at once, `reads-N` asks for N reads of `notes.txt` first, `deltas-N` streams
    20,000 pieces, N in each chunk of HTTP."""

    def __init__(self) -> None:
        self.log = Log()
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def fresh_log(self) -> Log:
        self.log = Log()
        return self.log

    def _accept(self) -> None:
        while True:
            connection, _ = self._socket.accept()
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        buffer = b""
        with connection:
            while (request := _read_request(connection, buffer)) is not None:
                body, buffer = request
                self.log.arrived.append(time.perf_counter())
                self.log.sizes.append(len(body))
                try:
                    chunks = [b"%x\r\n%s\r\n" % (len(piece), piece) for piece in self._answer(body)]
                    connection.sendall(b"".join((HEAD, *chunks, b"0\r\n\r\n")))
                except OSError:
                    return
                self.log.answered.append(time.perf_counter())

    def _answer(self, body: bytes) -> list[bytes]:
        request = json.loads(body)
        if not self.log.overhead_bytes:
            self.log.overhead_bytes = _overhead(request)
        model = request["model"].rpartition("/")[2]
        if model.startswith("reads-"):
            done = sum(1 for message in request["messages"] if message["role"] == "tool")
            if done < int(model.removeprefix("reads-")):
                return [_read_call(done)]
        if model.startswith("deltas-"):
            event, together = _event({"content": "word "}), int(model.removeprefix("deltas-"))
            return [event * together] * (DELTAS // together) + [_end("stop")]
        return [_event({"content": "Done."}) + _end("stop")]


def _overhead(request: dict) -> int:
    system = sum(len(json.dumps(m["content"])) for m in request["messages"] if m["role"] == "system")
    return system + len(json.dumps(request.get("tools", []), separators=(",", ":")))


def _read_request(connection: socket.socket, buffer: bytes) -> tuple[bytes, bytes] | None:
    while b"\r\n\r\n" not in buffer:
        if not (piece := connection.recv(1 << 16)):
            return None
        buffer += piece
    head, _, rest = buffer.partition(b"\r\n\r\n")
    length = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
    pieces, size = [rest], len(rest)
    while size < length:
        if not (piece := connection.recv(1 << 20)):
            return None
        pieces.append(piece)
        size += len(piece)
    whole = b"".join(pieces)
    return whole[:length], whole[length:]


def _event(delta: dict) -> bytes:
    chunk = {"id": "c", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


def _read_call(number: int) -> bytes:
    call = {"index": 0, "id": f"call_{number}", "type": "function"}
    # Each read is a different one, as in a real task: the same call over and over is a loop, and stopped.
    arguments = json.dumps({"path": "notes.txt", "offset": number + 1, "limit": 1})
    call["function"] = {"name": "read", "arguments": arguments}
    return _event({"role": "assistant", "content": None, "tool_calls": [call]}) + _end("tool_calls")


def _end(reason: str) -> bytes:
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    last = {"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": reason}], "usage": usage}
    return b"data: " + json.dumps(last).encode() + b"\n\ndata: [DONE]\n\n"
