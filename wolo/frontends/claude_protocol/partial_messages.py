"""Messages in the form of the Messages API, whole and as the events of a stream."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from wolo.messages.message import Usage

WireMessage = dict[str, Any]


def wire_answer(id: str, model: str, block: WireMessage, usage: Usage) -> WireMessage:
    """The message of one block, whose stop reason is not known yet."""
    head = {"id": id, "type": "message", "role": "assistant", "model": model, "content": [block]}
    return {**head, "stop_reason": None, "stop_sequence": None, "usage": wire_usage(usage)}


def wire_usage(usage: Usage) -> WireMessage:
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cache_creation_input_tokens": usage.cache_write_tokens,
        "cache_read_input_tokens": usage.cache_read_tokens,
        "server_tool_use": {"web_search_requests": 0},
        "service_tier": "standard",
    }


class PartialMessages:
    """Events of the Messages API for what is streamed. Calls come whole: their arguments have other names in wolo."""

    def __init__(self) -> None:
        self._head: WireMessage | None = None
        """The message that has not begun yet."""
        self._kind = ""
        """Of the open block; empty: none is open."""
        self._num_blocks = 0

    def begin(self, id: str, model: str) -> None:
        usage = wire_usage(Usage())
        message = {"id": id, "type": "message", "role": "assistant", "model": model, "content": [], "usage": usage}
        self._head, self._kind, self._num_blocks = {**message, "stop_reason": None, "stop_sequence": None}, "", 0

    def on_delta(self, kind: str, text: str) -> Iterator[WireMessage]:
        yield from self._start()
        if self._kind != kind:
            yield from self._stop()
            yield from self._open({"type": kind, kind: "", **({"signature": ""} if kind == "thinking" else {})})
        yield self._delta({"type": f"{kind}_delta", kind: text})

    def end(self, blocks: list[WireMessage], stop_reason: str | None, usage: WireMessage) -> Iterator[WireMessage]:
        yield from self._start()
        was_streamed = bool(self._kind or self._num_blocks)
        yield from self._stop()
        for block in blocks if not was_streamed else ():
            if block["type"] == "tool_use":
                continue
            yield from self.on_delta(block["type"], block[block["type"]])
            yield from self._stop()
        for block in blocks:
            if block["type"] == "tool_use":
                yield from self._open({**block, "input": {}})
                yield self._delta({"type": "input_json_delta", "partial_json": json.dumps(block["input"], ensure_ascii=False)})
                yield from self._stop()
        yield {"type": "message_delta", "delta": {"stop_reason": stop_reason, "stop_sequence": None}, "usage": usage}
        yield {"type": "message_stop"}

    def _start(self) -> Iterator[WireMessage]:
        if self._head is not None:
            head, self._head = self._head, None
            yield {"type": "message_start", "message": head}

    def _open(self, block: WireMessage) -> Iterator[WireMessage]:
        self._kind = block["type"]
        yield {"type": "content_block_start", "index": self._num_blocks, "content_block": block}

    def _delta(self, delta: WireMessage) -> WireMessage:
        return {"type": "content_block_delta", "index": self._num_blocks, "delta": delta}

    def _stop(self) -> Iterator[WireMessage]:
        if self._kind:
            yield {"type": "content_block_stop", "index": self._num_blocks}
            self._kind = ""
            self._num_blocks += 1
