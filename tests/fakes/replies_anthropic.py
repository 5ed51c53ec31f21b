"""Scripted answers of the Messages API, from the same pieces as the other replies."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from typing import Any

from tests.fakes.replies import Piece, Reply
from tests.fakes.replies import error as refuse

Event = dict[str, Any]
_numbers = itertools.count(1)


def usage(input_tokens: int = 100, output_tokens: int = 10, *, read: int = 0, written: int = 0) -> Event:
    return {
        "input_tokens": input_tokens,
        "cache_creation_input_tokens": written,
        "cache_read_input_tokens": read,
        "output_tokens": output_tokens,
    }


def start(message_id: str = "", counted: Mapping[str, Any] | None = None) -> Event:
    number = message_id or f"msg_{next(_numbers)}"
    head: Event = {"id": number, "type": "message", "role": "assistant", "model": "test-model", "content": []}
    return {"type": "message_start", "message": {**head, "stop_reason": None, "usage": dict(counted or usage(output_tokens=1))}}


def begin(index: int, block: Mapping[str, Any]) -> Event:
    return {"type": "content_block_start", "index": index, "content_block": dict(block)}


def grow(index: int, kind: str, **fields: Any) -> Event:
    """`grow(0, "text_delta", text="Hi")`"""
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **fields}}


def stop(index: int) -> Event:
    return {"type": "content_block_stop", "index": index}


def end(reason: str | None = "end_turn", counted: Mapping[str, Any] | None = None, **more: Any) -> Event:
    delta = {"stop_reason": reason, "stop_sequence": None, **more}
    return {"type": "message_delta", "delta": delta, "usage": dict(counted or {"output_tokens": 10})}


LAST: Event = {"type": "message_stop"}
PING: Event = {"type": "ping"}


def failed(kind: str = "overloaded_error", message: str = "Overloaded") -> Event:
    return {"type": "error", "error": {"type": kind, "message": message}}


def text_block(index: int, text: str, size: int = 24) -> list[Event]:
    pieces = [grow(index, "text_delta", text=piece) for piece in _sliced(text, size)]
    return [begin(index, {"type": "text", "text": ""}), *pieces, stop(index)]


def thinking_block(index: int, text: str, signature: str, size: int = 24) -> list[Event]:
    pieces = [grow(index, "thinking_delta", thinking=piece) for piece in _sliced(text, size)]
    signed = [grow(index, "signature_delta", signature=signature)] if signature else []
    return [begin(index, {"type": "thinking", "thinking": "", "signature": ""}), *pieces, *signed, stop(index)]


def call_block(index: int, name: str, arguments: Mapping[str, Any] | str, call_id: str = "", size: int = 24) -> list[Event]:
    """A str as arguments goes as it is, however broken. The first fragment is empty, as Claude's is."""
    written = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    block = {"type": "tool_use", "id": call_id or f"toolu_{next(_numbers)}", "name": name, "input": {}}
    pieces = [grow(index, "input_json_delta", partial_json=piece) for piece in ("", *_sliced(written, size))]
    return [begin(index, block), *pieces, stop(index)]


def sse(*events: Mapping[str, Any] | Piece) -> Reply:
    """Objects become events under their own name; bytes and pauses go as they are."""
    pieces = [written(each) if isinstance(each, Mapping) else each for each in events]
    return Reply(headers={"content-type": "text/event-stream"}, pieces=tuple(pieces))


def written(event: Mapping[str, Any]) -> bytes:
    data = json.dumps(event, ensure_ascii=False)
    return f"event: {event['type']}\ndata: {data}\n\n".encode("utf-8", "surrogatepass")


def text(content: str, *, reason: str = "end_turn", thinking: str = "", signature: str = "", counted: Any = None) -> Reply:
    """A plain answer, thought about first if that is wanted."""
    spoken = _blocks(thinking, signature, content)
    return sse(start(counted=counted), PING, *spoken, end(reason), LAST)


def call(name: str, arguments: Mapping[str, Any] | str, *, id: str = "", **more: Any) -> Reply:
    return calls((name, arguments, id), **more)


def calls(
    *wanted: Sequence[Any],
    content: str = "",
    thinking: str = "",
    signature: str = "",
    reason: str = "tool_use",
    counted: Any = None,
) -> Reply:
    """Several calls in one answer: `calls(("read", {"path": "a"}), ("read", {"path": "b"}, "toolu_b"))`."""
    events = _blocks(thinking, signature, content)
    index = sum(event["type"] == "content_block_stop" for event in events)
    for at, (name, arguments, *rest) in enumerate(wanted):
        events += call_block(index + at, name, arguments, rest[0] if rest else "")
    return sse(start(counted=counted), *events, end(reason), LAST)


def error(status: int, kind: str, message: str, headers: Mapping[str, str] | None = None) -> Reply:
    body = {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}
    return refuse(status, body, headers)


def _blocks(thinking: str, signature: str, content: str) -> list[Event]:
    thought = thinking_block(0, thinking, signature) if thinking or signature else []
    return [*thought, *(text_block(1 if thought else 0, content) if content else [])]


def _sliced(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]
