"""Scripted answers of a Gemini server, from the same pieces as the other replies."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tests.fakes.replies import Piece, Reply

Event = dict[str, Any]


def usage(prompt: int = 100, candidates: int = 10, *, cached: int = 0, thoughts: int = 0, tool_use: int = 0) -> Event:
    counted = {
        "promptTokenCount": prompt,
        "candidatesTokenCount": candidates,
        "totalTokenCount": prompt + candidates + thoughts + tool_use,
        "cachedContentTokenCount": cached,
        "thoughtsTokenCount": thoughts,
        "toolUsePromptTokenCount": tool_use,
    }
    return {name: count for name, count in counted.items() if count}


def said(*parts: Mapping[str, Any], finish: str | None = None, index: int = 0, **more: Any) -> Event:
    """One payload: the parts it adds, and why the answer ended if it did."""
    ended = {} if finish is None else {"finishReason": finish}
    candidate = {"content": {"role": "model", "parts": list(parts)}, "index": index, **ended}
    return {"candidates": [candidate], "usageMetadata": usage(), "modelVersion": "gemini-test", "responseId": "r1", **more}


def word(text: str, signature: str = "", *, thought: bool = False) -> Event:
    return {"text": text, **({"thought": True} if thought else {}), **_signed(signature)}


def called(name: str, args: Mapping[str, Any] | None = None, signature: str = "", call_id: str = "") -> Event:
    """A call without arguments comes without `args`."""
    call: Event = {"name": name, **({"args": dict(args)} if args else {}), **({"id": call_id} if call_id else {})}
    return {"functionCall": call, **_signed(signature)}


def stream(*payloads: Mapping[str, Any] | Piece) -> Reply:
    """Nothing tells the end but the end of the connection's answer."""
    pieces = [payload if not isinstance(payload, Mapping) else b"data: %b\r\n\r\n" % _json(payload) for payload in payloads]
    return Reply(headers={"content-type": "text/event-stream"}, pieces=tuple(pieces))


def text(content: str, *, finish: str = "STOP", signature: str = "", thoughts: str = "") -> Reply:
    """A plain answer; its signature comes in a last part of empty text."""
    half = len(content) // 2
    events = [said(word(thoughts, thought=True))] if thoughts else []
    events += [said(word(piece)) for piece in (content[:half], content[half:]) if piece]
    return stream(*events, said(word("", signature), finish=finish))


def calls(*wanted: Event, finish: str = "STOP") -> Reply:
    """Several calls in one payload: `calls(called("read", {"path": "a"}, SIGNATURE), called("read", {"path": "b"}))`."""
    return stream(said(*wanted), said(word(""), finish=finish))


def refused(status: int, code: str, message: str, *details: Mapping[str, Any]) -> Reply:
    error = {"code": status, "message": message, "status": code, **({"details": list(details)} if details else {})}
    return Reply(status, {"content-type": "application/json"}, (_json({"error": error}),), framing="length")


def _signed(signature: str) -> Event:
    return {"thoughtSignature": signature} if signature else {}


def _json(payload: Mapping[str, Any]) -> bytes:
    return json.dumps(payload, ensure_ascii=False).encode()
