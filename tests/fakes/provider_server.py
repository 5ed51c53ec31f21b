"""A model provider on a real socket that plays a script and checks every request it gets.

    with ProviderServer(call("read", {"path": "a.txt"}), text("Done.")) as provider:
        …                       # point wolo at provider.base_url
    provider.requests           # what was asked; provider.problems: what was wrong with it

It runs in threads of its own, so that sync tests, async tests and subprocesses can use it alike.
"""

from __future__ import annotations

import contextlib
import json
import re
import select
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

from tests.fakes.linter import lint
from tests.fakes.replies import Hold, Pause, Piece, Reply, error

MODEL = "test-model"
KEY = "test-key-0123456789abcdef"
SESSION_HEADERS = ("x-opencode-session", "x-session-id")
POLL_S = 0.01
CONTEXT = r"(?s)\n\n<context>\n(.*?)\n</context>"
LOOK_UPS = ("/api/show",)
"""What is looked up by POST."""


@dataclass
class Asked:
    """One request, as it came."""

    method: str
    path: str
    headers: dict[str, str]
    """Names in lower case."""
    body: bytes
    whole: Any
    """The parsed body; None when it is not JSON."""
    arrived: float
    """`time.monotonic()` when its last byte was read."""
    connection: int
    client_gone: threading.Event = field(default_factory=threading.Event)
    """Set when the client hung up before the reply was through."""
    answered: threading.Event = field(default_factory=threading.Event)
    """Set when the reply was written to its end."""

    @cached_property
    def json(self) -> Any:
        """The parsed body without the local context, which differs from day to day and from machine to machine."""
        return without_context(self.whole)

    @property
    def local_contexts(self) -> list[str]:
        """The texts between the marks, in order."""
        return re.findall(CONTEXT, json.dumps(self.whole, ensure_ascii=False).replace("\\n", "\n").replace('\\"', '"'))

    @property
    def messages(self) -> list[dict[str, Any]]:
        return list(self.json["messages"])

    @property
    def is_summary(self) -> bool:
        """It asks for a summary of the conversation."""
        return b"<transcript" in self.body and "tools" not in self.json

    @property
    def is_review(self) -> bool:
        """Of a call, by the reviewer; it does not join the conversation either."""
        return b"<why_it_asks>" in self.body and "tools" not in self.json

    @property
    def is_aside(self) -> bool:
        """It asks something that does not belong to the conversation."""
        return b"<aside>" in self.body and "tools" not in self.json

    @property
    def is_search(self) -> bool:
        """It has the provider search the web, and does not join the conversation."""
        return b"<query>" in self.body and b"_search" in json.dumps(self.json.get("tools")).encode()

    @property
    def results(self) -> list[str]:
        """The text of every tool message, in order."""
        return [message["content"] for message in self.messages if message["role"] == "tool"]


def without_context(value: Any) -> Any:
    """Items of a list that are nothing else are gone."""
    match value:
        case dict():
            return {key: without_context(each) for key, each in value.items()}
        case list():
            pairs = ((each, without_context(each)) for each in value)
            return [new for old, new in pairs if not isinstance(new, dict) or new.get("text") != "" or old.get("text") == ""]
        case str():
            return re.sub(CONTEXT, "", value)
    return value


Script = Reply | Callable[[Asked], Reply]


class ClientGone(Exception):
    """The client hung up."""


class ProviderServer:
    """`problems` collects what the linter found and requests nobody scripted; the `provider` fixture wants it empty."""

    def __init__(self, *script: Script, port: int = 0) -> None:
        """`port` 0: any that is free."""
        self.requests: list[Asked] = []
        """Every POST, in order of arrival."""
        self.looked_up: list[Asked] = []
        """Every GET, and every POST that asks no model."""
        self.num_connections = 0
        """All that were ever accepted."""
        self.pages: dict[str, Script] = {}
        """Replies to look-ups, by path; anything else is 404."""
        self.problems: list[str] = []
        self.strict_template = False
        """Lint as a server with a strict chat template would: no two user messages in a row."""
        self.linted = True
        self.otherwise: Script | None = None
        """The reply to every request after the script has run out; None: that is a problem."""
        self.summary: Script | None = None
        """The reply to requests for a summary; None: they are answered like all others."""
        self.aside: Script | None = None
        """The reply to questions aside; the same."""
        self._script: list[Script] = list(script)
        self._expected: list[str] = []
        self._previous: dict[str, Any] = {}
        self._changed = threading.Condition()
        self._closing = threading.Event()
        self._threads: list[threading.Thread] = []
        self._connections: set[socket.socket] = set()
        self._listener = socket.create_server(("127.0.0.1", port), backlog=64)
        self.port: int = self._listener.getsockname()[1]

    # What a test says and asks

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def base_url(self) -> str:
        return f"{self.origin}/v1"

    @property
    def flags(self) -> tuple[str, ...]:
        """What points a `wolo` command here."""
        return ("--base-url", self.base_url, "--api-key", KEY, "--model", f"custom/{MODEL}")

    def script(self, *replies: Script) -> Self:
        """Adds replies to the end of the script."""
        with self._changed:
            self._script.extend(replies)
        return self

    def expect_problem(self, part: str) -> None:
        """A problem that holds this text is what the test is about: it must appear."""
        self._expected.append(part)

    def forget_prefix(self) -> None:
        """The next request may begin differently: after a compaction, an undo or a change of model."""
        with self._changed:
            self._previous.clear()

    def wait_for_requests(self, count: int, timeout_s: float = 30.0) -> list[Asked]:
        """Blocks until this many POSTs have come; from a coroutine call it through `asyncio.to_thread`."""
        with self._changed:
            came = self._changed.wait_for(lambda: len(self.requests) >= count, timeout_s)
        assert came, f"{len(self.requests)} of {count} requests came within {timeout_s} s"
        return self.requests

    def wait_for_connections(self, count: int, timeout_s: float = 30.0) -> None:
        with self._changed:
            came = self._changed.wait_for(lambda: self.num_connections >= count, timeout_s)
        assert came, f"{self.num_connections} of {count} connections came within {timeout_s} s"

    def check(self) -> None:
        """Fails unless the problems are exactly the expected ones, and the whole script was played."""
        unexpected = [problem for problem in self.problems if not any(part in problem for part in self._expected)]
        missing = [part for part in self._expected if not any(part in problem for problem in self.problems)]
        assert not unexpected, "the provider was sent bad requests:\n" + "\n".join(unexpected)
        assert not missing, f"these problems were expected and did not appear: {missing}"

    @property
    def unplayed(self) -> int:
        """How many replies of the script nobody has asked for yet."""
        return len(self._script)

    # Life

    def __enter__(self) -> Self:
        self._spawn(self._accept)
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def close(self) -> None:
        self._closing.set()
        try:
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes the accept
        except OSError:  # some systems say "not connected"
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", self.port)).close()
        for thread in self._threads[:1]:  # which would otherwise accept for whatever gets the descriptor next
            thread.join(timeout=30)
        self._listener.close()
        with self._changed:
            for connection in self._connections:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(timeout=30)

    def _spawn(self, target: Callable[..., None], *args: object) -> None:
        thread = threading.Thread(target=target, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while not self._closing.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._changed:
                self.num_connections += 1
                self._connections.add(connection)
                self._changed.notify_all()
            self._spawn(self._serve, connection, self.num_connections)

    def _serve(self, connection: socket.socket, number: int) -> None:
        stream = connection.makefile("rb")
        try:
            while asked := _read_request(stream, number):
                try:
                    reply = self._reply_to(asked)
                except OSError as error:  # no fault of the connection
                    self.problems.append(f"the request was not inspected: {error!r}")
                    raise
                if not self._play(connection, asked, reply):
                    return
        except (OSError, ClientGone):
            pass
        finally:
            stream.close()
            with self._changed:
                self._connections.discard(connection)
            connection.close()

    # One request

    def _reply_to(self, asked: Asked) -> Reply:
        with self._changed:
            if asked.method == "POST" and asked.path.partition("?")[0] not in LOOK_UPS:
                self._inspect(asked)
                self.requests.append(asked)
                scripted = self._scripted(asked)
            else:
                self.looked_up.append(asked)
                scripted = self.pages.get(asked.path, error(404, {"error": {"message": "not found"}}))
            self._changed.notify_all()
        if scripted is None:
            self.problems.append(f"request {len(self.requests)}: the script has run out")
            return error(400, {"error": {"message": "the script of this test has run out", "code": "script_ran_out"}})
        if isinstance(scripted, Reply):
            return scripted
        try:
            return scripted(asked)
        except Exception as reason:
            self.problems.append(f"request {len(self.requests)}: its scripted reply raised {reason!r}")
            return error(400, {"error": {"message": f"the test's own reply failed: {reason!r}"}})

    def _scripted(self, asked: Asked) -> Script | None:
        if asked.is_summary and self.summary is not None:
            return self.summary
        if asked.is_aside and self.aside is not None:
            return self.aside
        return self._script.pop(0) if self._script else self.otherwise

    def _inspect(self, asked: Asked) -> None:
        if not self.linted:
            return
        label = f"request {len(self.requests) + 1}"
        if not isinstance(asked.whole, dict):
            self.problems.append(f"{label}: the body is not a JSON object: {asked.body[:200]!r}")
            return
        session = next((asked.headers[name] for name in SESSION_HEADERS if name in asked.headers), "")
        if asked.is_summary:  # after it less is sent
            self._previous.pop(session, None)
        is_apart = asked.is_aside or asked.is_review or asked.is_search
        previous = None if is_apart else self._previous.get(session)
        found = lint(asked.path, asked.whole, previous, strict_template=self.strict_template)
        self.problems.extend(f"{label}: {problem}" for problem in found)
        if not (asked.is_summary or is_apart):
            self._previous[session] = asked.whole

    def _play(self, connection: socket.socket, asked: Asked, reply: Reply) -> bool:
        """Writes the reply; False when the connection is over."""
        try:
            if reply.framing != "raw":
                connection.sendall(_head(reply))
            for piece in reply.pieces:
                self._write(connection, reply, piece)
            if reply.ending == "clean" and reply.framing == "chunked":
                connection.sendall(b"0\r\n\r\n")
        except (OSError, ClientGone):
            asked.client_gone.set()
            return False
        asked.answered.set()
        if reply.ending == "stall":
            with contextlib.suppress(ClientGone):
                self._wait(connection, threading.Event(), None)
            asked.client_gone.set()
            return False
        if reply.ending == "reset":
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return False
        return reply.ending == "clean" and reply.framing != "close"

    def _write(self, connection: socket.socket, reply: Reply, piece: Piece) -> None:
        match piece:
            case Pause(seconds):
                self._wait(connection, self._closing, time.monotonic() + seconds)
            case Hold():
                piece.reached.set()
                self._wait(connection, piece.released, None)
            case bytes() if piece:
                connection.sendall(b"%x\r\n%b\r\n" % (len(piece), piece) if reply.framing == "chunked" else piece)

    def _wait(self, connection: socket.socket, until: threading.Event, deadline: float | None) -> None:
        """Returns when the event is set or the time is up; raises when the client hangs up or the server closes."""
        while not until.wait(POLL_S) and (deadline is None or time.monotonic() < deadline):
            readable, _, _ = select.select([connection], [], [], 0)
            if self._closing.is_set() or (readable and not connection.recv(1, socket.MSG_PEEK)):
                raise ClientGone


def _read_request(stream: Any, connection: int) -> Asked | None:
    head = list(_read_head(stream))
    if not head:
        return None
    method, path, _ = head[0].split(" ", 2)
    pairs = (line.split(":", 1) for line in head[1:])
    headers = {name.strip().lower(): value.strip() for name, value in pairs}
    length = int(headers.get("content-length", "0"))
    body = stream.read(length)
    if len(body) < length:
        return None  # the client was ended in the middle
    arrived = time.monotonic()
    try:
        parsed = json.loads(body)
    except ValueError:
        parsed = None
    return Asked(method, path, headers, body, parsed, arrived, connection)


def _read_head(stream: Any) -> Iterator[str]:
    while line := stream.readline().decode("latin-1").strip():
        yield line


def _head(reply: Reply) -> bytes:
    framing = {"chunked": ("transfer-encoding", "chunked"), "length": ("content-length", str(len(reply.body)))}
    name, value = framing.get(reply.framing, ("connection", "close"))
    headers = {"content-type": "text/event-stream", **reply.headers, name: value}
    lines = [f"HTTP/1.1 {reply.status} Scripted", *(f"{key}: {value}" for key, value in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
