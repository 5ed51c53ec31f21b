"""Scripted answers of an Ollama server: one JSON object a line."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tests.fakes.replies import Ending, Piece, Reply, error

REFUSES_THINKING = error(400, {"error": '"test-model" does not support thinking'})
REFUSES_TOOLS = error(400, {"error": "registry.ollama.ai/library/test-model does not support tools"})
NOT_PULLED = error(404, {"error": "model 'test-model' not found"})


def lines(*documents: Mapping[str, Any] | str | Piece, ending: Ending = "clean") -> Reply:
    """Objects and texts become lines, bytes go as they are."""
    return Reply(headers={"content-type": "application/x-ndjson"}, pieces=tuple(map(_line, documents)), ending=ending)


def said(**message: Any) -> dict[str, Any]:
    """`said(content="Hi")`"""
    return {
        "model": "test-model",
        "created_at": "2026-01-01T00:00:00Z",
        "message": {"role": "assistant", "content": "", **message},
        "done": False,
    }


def done(reason: str | None = "stop", *, prompt: int | None = 100, answer: int | None = 10, **more: Any) -> dict[str, Any]:
    """The last line; what is None is left out."""
    counts = {"done_reason": reason, "prompt_eval_count": prompt, "eval_count": answer}
    spoken = said() | {"done": True, "total_duration": 5_000_000, "eval_duration": 4_000_000}
    return {**spoken, **{name: value for name, value in counts.items() if value is not None}, **more}


def called(name: str, arguments: Any, **more: Any) -> dict[str, Any]:
    return {"function": {"name": name, "arguments": arguments}, **more}


def text(content: str, *, thinking: str = "", size: int = 24, prompt: int | None = 100, reason: str | None = "stop") -> Reply:
    """A plain answer, in pieces of `size` characters."""
    spoken = [said(thinking=piece) for piece in _sliced(thinking, size)]
    return lines(*spoken, *(said(content=piece) for piece in _sliced(content, size)), done(reason, prompt=prompt))


def calls(*wanted: Sequence[Any], content: str = "", thinking: str = "", together: bool = False) -> Reply:
    """`calls(("read", {"path": "a"}), ("read", {"path": "b"}))`, each in a line of its own unless `together`."""
    spoken = [said(thinking=thinking)] if thinking else []
    spoken += [said(content=content)] if content else []
    made = [called(name, arguments) for name, arguments in wanted]
    spoken += [said(tool_calls=made)] if together else [said(tool_calls=[each]) for each in made]
    return lines(*spoken, done())


def call(name: str, arguments: Any, *, content: str = "", thinking: str = "") -> Reply:
    return calls((name, arguments), content=content, thinking=thinking)


def _line(document: Mapping[str, Any] | str | Piece) -> Piece:
    if isinstance(document, Mapping):
        document = json.dumps(document, ensure_ascii=False)
    return f"{document}\n".encode() if isinstance(document, str) else document


def _sliced(written: str, size: int) -> list[str]:
    return [written[at : at + size] for at in range(0, len(written), size)]
