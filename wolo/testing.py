"""A scripted model for tests of programs that use wolo: no network, no key."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterable, Mapping
from typing import Any

from wolo.errors import UsageError
from wolo.models.http.transport import Batch, HttpCall


class ScriptedTransport:
    """Answers each request with the next item of a script.

    An item is a text, a call `{"tool": name, "input": {...}}`, a list of both, or an exception to raise. `requests` are the
    bodies that were sent.
    """

    endpoint: Mapping[str, str] = {"base_url": "http://scripted.invalid/v1", "api_key": "scripted", "api": "openai-chat"}
    """Where `Agent` sends requests with this transport."""

    def __init__(self, script: Iterable[Any]) -> None:
        self._script = list(script)
        self.requests: list[dict[str, Any]] = []

    async def send(self, call: HttpCall) -> AsyncGenerator[Batch, None]:
        """Raises UsageError when the script has no more answers."""
        self.requests.append(json.loads(call.body))
        if not self._script:
            raise UsageError("The script has no answer left for this request.")
        item = self._script.pop(0)
        if isinstance(item, BaseException):
            raise item
        for chunk in _chunks(item if isinstance(item, list) else [item], len(self.requests)):
            yield Batch(payloads=(chunk if isinstance(chunk, bytes) else json.dumps(chunk).encode(),))

    async def close(self) -> None:
        """Does nothing: there is no connection."""


def _chunks(items: list[Any], number: int) -> Iterable[dict[str, Any] | bytes]:
    """Chunks of a Chat Completions stream."""
    calls = 0
    for item in items:
        if isinstance(item, str):
            for piece in item.splitlines(keepends=True):
                yield _chunk({"content": piece})
            continue
        if not isinstance(item, Mapping) or "tool" not in item:
            raise UsageError(f"{item!r} is no answer of a script.", hint='Use a text, or {"tool": "read", "input": {…}}.')
        function = {"name": item["tool"], "arguments": json.dumps(item.get("input", {}))}
        call_id = item.get("id", f"call_{number}_{calls + 1}")
        yield _chunk({"tool_calls": [{"index": calls, "id": call_id, "type": "function", "function": function}]})
        calls += 1
    yield _chunk({}, "tool_calls" if calls else "stop")
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    yield {"id": "scripted", "object": "chat.completion.chunk", "choices": [], "usage": usage}
    yield b"[DONE]"


def _chunk(delta: Mapping[str, Any], finish: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": {"role": "assistant", **delta}, "finish_reason": finish}
    return {"id": "scripted", "object": "chat.completion.chunk", "model": "scripted", "choices": [choice]}
