"""Scripted answers of the provider: status, headers, pieces of bytes, and how the connection ends."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

Ending = Literal["clean", "cut", "reset", "stall"]
"""Properly terminated, closed without a terminator, torn down with a TCP reset, or held open until the client goes."""

Framing = Literal["chunked", "close", "length", "raw"]
"""`raw` writes the pieces on the socket as they are: the pieces are the whole HTTP answer, or none of it."""


@dataclass(frozen=True)
class Pause:
    """The server waits this long before the next piece."""

    seconds: float


class Hold:
    """The server waits here until the test lets go; the test can wait until the server has come here."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.released = threading.Event()

    def wait_until_reached(self, timeout_s: float = 30.0) -> None:
        assert self.reached.wait(timeout_s), f"the server did not come to this point within {timeout_s} s"

    def release(self) -> None:
        self.released.set()


Piece = bytes | Pause | Hold


@dataclass(frozen=True)
class Reply:
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    pieces: tuple[Piece, ...] = ()
    """Each piece of bytes is one write on the socket."""
    ending: Ending = "clean"
    framing: Framing = "chunked"

    @property
    def body(self) -> bytes:
        return b"".join(piece for piece in self.pieces if isinstance(piece, bytes))

    def ends(self, ending: Ending) -> Reply:
        return replace(self, ending=ending)

    def framed(self, framing: Framing) -> Reply:
        return replace(self, framing=framing)

    def cut_at(self, size_bytes: int, ending: Ending = "cut") -> Reply:
        """Only the first bytes of the body, then the ending."""
        return replace(self, pieces=(self.body[:size_bytes],), ending=ending)

    def split(self, size_bytes: int = 1) -> Reply:
        """The same body in writes of this size: characters and JSON are torn anywhere."""
        body = self.body
        return replace(self, pieces=tuple(body[at : at + size_bytes] for at in range(0, len(body), size_bytes)))

    def slow(self, seconds: float) -> Reply:
        """A pause before every piece."""
        return replace(self, pieces=tuple(each for piece in self.pieces for each in (Pause(seconds), piece)))

    def then(self, *pieces: Piece) -> Reply:
        return replace(self, pieces=(*self.pieces, *pieces))


_call_numbers = itertools.count(1)


def usage(prompt: int = 100, completion: int = 10, *, cached: int = 0, reasoning: int = 0) -> dict[str, Any]:
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": cached},
        "completion_tokens_details": {"reasoning_tokens": reasoning},
    }


def chunk(delta: Mapping[str, Any], *, finish_reason: str | None = None, **more: Any) -> dict[str, Any]:
    """One streamed object, as a Chat Completions server sends it."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "test-model"}
    return {**head, "choices": [choice], **more}


def delta(content: str | None = None, **fields: Any) -> dict[str, Any]:
    """`delta("Hi")`, `delta(reasoning_content="…")`, `delta(tool_calls=[…])`."""
    return chunk({**({} if content is None else {"content": content}), **fields})


def finish(reason: str | None, usage: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The chunk that ends an answer; a usage rides on it, as GLM and DeepSeek do."""
    return chunk({}, finish_reason=reason, **({} if usage is None else {"usage": usage}))


def sse(*events: Mapping[str, Any] | str | Piece, done: bool = True, ending: Ending = "clean") -> Reply:
    """Objects become `data:` events, a str is the text of one event, bytes go as they are."""
    pieces = [_event(event) for event in events]
    if done:
        pieces.append(b"data: [DONE]\n\n")
    return Reply(headers={"content-type": "text/event-stream"}, pieces=tuple(pieces), ending=ending)


def text(
    content: str,
    *,
    finish_reason: str | None = "stop",
    reasoning: str = "",
    usage: Mapping[str, Any] | None = None,
    size: int = 24,
) -> Reply:
    """A plain answer, in deltas of `size` characters."""
    return sse(*_spoken(reasoning, content, size), finish(finish_reason, usage or _usage()))


def call(
    name: str,
    arguments: Mapping[str, Any] | str,
    *,
    id: str = "",
    content: str = "",
    reasoning: str = "",
    finish_reason: str | None = "tool_calls",
    usage: Mapping[str, Any] | None = None,
    size: int = 24,
) -> Reply:
    """One tool call; a str as arguments goes as it is, however broken. The argument text comes in fragments of `size`."""
    return calls((name, arguments, id), content=content, reasoning=reasoning, finish_reason=finish_reason, usage=usage, size=size)


def calls(
    *wanted: Sequence[Any],
    content: str = "",
    reasoning: str = "",
    finish_reason: str | None = "tool_calls",
    usage: Mapping[str, Any] | None = None,
    size: int = 24,
) -> Reply:
    """Several calls in one answer: `calls(("read", {"path": "a"}), ("read", {"path": "b"}, "call_b"))`."""
    events = list(_spoken(reasoning, content, size))
    for index, (name, arguments, *rest) in enumerate(wanted):
        call_id = (rest[0] if rest else "") or f"call_{next(_call_numbers)}"
        written = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
        head = {"index": index, "id": call_id, "type": "function", "function": {"name": name, "arguments": ""}}
        events.append(delta(tool_calls=[head]))
        events.extend(delta(tool_calls=[{"index": index, "function": {"arguments": piece}}]) for piece in _sliced(written, size))
    return sse(*events, finish(finish_reason, usage or _usage()))


def error(status: int, body: Mapping[str, Any] | str | bytes, headers: Mapping[str, str] | None = None) -> Reply:
    """A refusal. A mapping becomes JSON."""
    kind = "application/json" if isinstance(body, Mapping) else "text/plain"
    data = json.dumps(body).encode() if isinstance(body, Mapping) else body.encode() if isinstance(body, str) else body
    return Reply(status, {"content-type": kind, **(headers or {})}, (data,), framing="length")


def whole(body: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> Reply:
    """One JSON document with status 200 instead of a stream."""
    return error(200, body, headers)


def raw(*pieces: Piece, ending: Ending = "cut") -> Reply:
    """Bytes on the socket with no HTTP around them; without pieces the server says nothing at all."""
    return Reply(pieces=pieces, ending=ending, framing="raw")


def _usage() -> dict[str, Any]:
    return usage()


def _event(event: Mapping[str, Any] | str | Piece) -> Piece:
    if isinstance(event, bytes | Pause | Hold):
        return event
    written = event if isinstance(event, str) else json.dumps(event, ensure_ascii=False)
    return f"data: {written}\n\n".encode("utf-8", "surrogatepass")


def _spoken(reasoning: str, content: str, size: int) -> Iterable[dict[str, Any]]:
    yield from (delta(reasoning_content=piece) for piece in _sliced(reasoning, size))
    yield from (delta(piece) for piece in _sliced(content, size))


def _sliced(written: str, size: int) -> Iterable[str]:
    return (written[at : at + size] for at in range(0, len(written), size))
