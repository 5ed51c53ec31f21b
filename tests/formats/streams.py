"""Streams of Chat Completions as tests write them: deltas in, a message out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from tests.formats.histories import OWN, TOOLS, request
from wolo.formats.openai_chat import ChatDialect, OpenAIChat
from wolo.messages.deltas import Assembler
from wolo.messages.message import Message
from wolo.messages.parts import TextPart, ThinkingPart, ToolPart

Payload = dict[str, Any] | bytes
DONE = b"[DONE]"


def said(**delta: Any) -> dict[str, Any]:
    """`said(content="Hi")`"""
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}


def calls(*fragments: dict[str, Any]) -> dict[str, Any]:
    return said(tool_calls=list(fragments))


def part(name: str | None = None, arguments: Any = None, **more: Any) -> dict[str, Any]:
    """A fragment of a call; what is None is left out."""
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    return {**more, "function": function}


def ends(reason: str | None, **more: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}], **more}


def encoded(payload: Payload) -> bytes:
    return payload if isinstance(payload, bytes) else json.dumps(payload).encode()


def decode(*payloads: Payload, dialect: ChatDialect | None = None, close: bool = True) -> Message:
    """The message as it is after these payloads, and the end of the stream."""
    assembler = Assembler()
    decoder = OpenAIChat(dialect or ChatDialect()).decoder(request(tools=TOOLS))
    for payload in payloads:
        assembler.add(decoder.feed(encoded(payload)))
    if close:
        assembler.add(decoder.close())
    return assembler.message(producer=OWN)


def shape(message: Message) -> list[Any]:
    """The parts without what is made anew each time."""
    return [_shape(part) for part in message.parts]


def called(message: Message) -> list[tuple[str, dict[str, Any]]]:
    return [(call.tool, call.input) for call in message.calls]


def cut(text: str, sizes: Sequence[int]) -> list[str]:
    """The text in pieces of these sizes, over and over."""
    pieces, at, turn = [], 0, 0
    while at < len(text):
        size = sizes[turn % len(sizes)]
        pieces.append(text[at : at + size])
        at, turn = at + size, turn + 1
    return pieces


def _shape(part: object) -> Any:
    match part:
        case TextPart():
            return part.text
        case ThinkingPart():
            return {part.field: part.text} if not part.blobs else {part.field: part.text, "blobs": part.blobs}
        case ToolPart():
            return (part.tool, part.call_id, part.input, part.status)
        case _:
            raise AssertionError(part)
