"""A scripted model server for every contender: the model's name selects the script, a log has the times.

It speaks OpenAI chat completions and the Responses API, over http or https, and offers a call in the tools of the client.
"""

from __future__ import annotations

import functools
import json
import re
import socket
import ssl
import threading
import time
from dataclasses import dataclass, field

import msgspec

from tests.fakes import replies_responses as responses

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
NOT_FOUND = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
MODEL = re.compile(rb'"model": ?"([^"\\]+)"')
DELTAS = 20_000
WORDS = [f"words {number:05} " for number in range(DELTAS)]
"""Each as long as the fragments of the Responses API; different, because an agent may stop an answer that repeats itself."""
SHELLS = {"shell": "command", "bash": "command", "shell_command": "command", "exec_command": "cmd"}
"""The shell tools that clients offer, and the name of their argument."""


@dataclass
class Log:
    """Times of one contender, on the clock of `time.perf_counter`."""

    begun: list[float] = field(default_factory=list)
    """Times at which the head of each request was there: a long body is sent and received after it."""
    arrived: list[float] = field(default_factory=list)
    """Times at which each request was received whole."""
    answered: list[float] = field(default_factory=list)
    """Times at which the last byte of each answer was handed to the socket."""
    pieces: list[list[bytes]] = field(default_factory=list)
    """Tools and messages of each request for `files-N`, in their order."""
    overhead_bytes: int = 0
    """System prompt and tool schemas of the first request."""
    first: dict = field(default_factory=dict)
    """The first request to the model. Later ones are not parsed: the time that a long one takes would be no agent's."""


class ScriptedServer:
    """Models: `text` answers at once; `reads-N` and `shells-N` ask first for N reads of `notes.txt` or N commands `true`;
    `files-N` for whole files `0.txt` to N; `deltas-N` streams 20,000 deltas, N in each chunk of HTTP."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.log = Log()
        self._tls = tls
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}/v1"

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
        try:
            with self._tls.wrap_socket(connection, server_side=True) if self._tls else connection as stream:
                while (request := _read_request(stream, buffer)) is not None:
                    line, begun, body, buffer = request
                    self._reply(stream, line, begun, body)
        except OSError:
            return

    def _reply(self, stream: socket.socket, line: bytes, begun: float, body: bytearray) -> None:
        if not line.startswith(b"POST") or not line.split()[1].endswith((b"/chat/completions", b"/responses")):
            stream.sendall(NOT_FOUND)
            return
        self.log.arrived.append(time.perf_counter())
        self.log.begun.append(begun)
        chunks = (b"%x\r\n%s\r\n" % (len(piece), piece) for piece in self._answer(body))
        stream.sendall(b"".join((HEAD, *chunks, b"0\r\n\r\n")))
        self.log.answered.append(time.perf_counter())

    def _answer(self, body: bytearray) -> list[bytes]:
        model = MODEL.search(body)
        if model is None or self.log.first.get("model") != model[1].decode():
            self.log.first = msgspec.json.decode(body)
        request = self.log.first
        chat = "messages" in request
        if not self.log.overhead_bytes:
            self.log.overhead_bytes = _overhead(request)
        script, _, count = request["model"].rpartition("/")[2].partition("-")
        if script == "files":
            request = msgspec.json.decode(body)
            texts = (request["tools"], request.get("instructions", ""), *request["messages" if chat else "input"])
            self.log.pieces.append([msgspec.json.encode(each) for each in texts])
        if script in ("reads", "shells", "files"):
            done = _num_called(body)
            if done < int(count):
                name, arguments = _call(script, done, request["tools"])
                return [_chat_call(done, name, arguments) if chat else _sse(responses.call(name, arguments, f"call_{done}"))]
        if script == "deltas":
            return _deltas(chat, int(count))
        return [_chat_event({"content": "Done."}) + _chat_end("stop") if chat else _sse(responses.message("Done."))]


def _overhead(request: dict) -> int:
    messages = request.get("messages", [])
    system = sum(len(json.dumps(each["content"])) for each in messages if each["role"] == "system")
    return system + len(request.get("instructions", "")) + len(json.dumps(request.get("tools", []), separators=(",", ":")))


def _num_called(body: bytearray) -> int:
    """By the id of the last call that is in the request, which was named by `_call`."""
    end = len(body)
    while (at := body.rfind(b'"call_', 0, end)) >= 0:
        if (number := bytes(body[at + 6 : at + 16]).partition(b'"')[0]).isdigit():
            return int(number) + 1
        end = at
    return 0


def _call(script: str, number: int, tools: list[dict]) -> tuple[str, dict]:
    """No two calls of a run are the same: an agent may stop a loop of equal calls."""
    names = [tool["function"]["name"] if "function" in tool else tool.get("name") for tool in tools]
    if script == "reads" and "read" in names:
        return "read", {"path": "notes.txt", "offset": number + 1, "limit": 1}
    if script == "files" and "read" in names:
        return "read", {"path": f"{number}.txt"}
    shell = next(name for name in SHELLS if name in names)
    commands = {"reads": f"sed -n {number + 1}p notes.txt", "files": f"cat {number}.txt", "shells": f"true {number}"}
    return shell, {SHELLS[shell]: commands[script]}


@functools.cache
def _deltas(chat: bool, together: int) -> list[bytes]:
    if chat:
        events = (*(_chat_event({"content": word}) for word in WORDS), _chat_end("stop"))
    else:
        events = responses.stream(*responses.events(responses.message("".join(WORDS)))).pieces
    return [b"".join(events[at : at + together]) for at in range(0, len(events), together)]


def _sse(item: dict) -> bytes:
    return b"".join(responses.answer(item).pieces)


def _chat_event(delta: dict, **more: object) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": None, **more}
    return b"data: " + json.dumps({"id": "c", "object": "chat.completion.chunk", "choices": [choice]}).encode() + b"\n\n"


def _chat_call(number: int, name: str, arguments: dict) -> bytes:
    call = {"index": 0, "id": f"call_{number}", "type": "function"}
    call["function"] = {"name": name, "arguments": json.dumps(arguments)}
    return _chat_event({"role": "assistant", "content": None, "tool_calls": [call]}) + _chat_end("tool_calls")


def _chat_end(reason: str) -> bytes:
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    last = {"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": reason}], "usage": usage}
    return b"data: " + json.dumps(last).encode() + b"\n\ndata: [DONE]\n\n"


def _read_request(connection: socket.socket, buffer: bytes) -> tuple[bytes, float, bytearray, bytes] | None:
    """Request line, the time at which its head was there, body, and what was received after it."""
    while b"\r\n\r\n" not in buffer:
        if not (piece := connection.recv(1 << 16)):
            return None
        buffer += piece
    begun = time.perf_counter()
    whole = 0 if isinstance(connection, ssl.SSLSocket) else socket.MSG_WAITALL
    head, _, rest = buffer.partition(b"\r\n\r\n")
    line, *headers = head.split(b"\r\n")
    length = next((int(each[15:]) for each in headers if each.lower().startswith(b"content-length:")), 0)
    body = bytearray(length)
    size = min(len(rest), length)
    body[:size] = rest[:size]
    with memoryview(body) as view:
        while size < length:
            if not (received := connection.recv_into(view[size:], 0, whole)):
                return None
            size += received
    return line, begun, body, rest[length:]
