"""`make bench`: CPU of the wire formats: encoding a long history, decoding a long stream, and the floor of its JSON."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
from runs import Table

from wolo.formats.format import Format, Request, ToolSpec
from wolo.messages.message import Message, Producer, user
from wolo.messages.parts import TextPart, ToolPart
from wolo.models.catalog import Catalog
from wolo.models.format_selection import FORMATS, format_of

MESSAGES = 1_000
DELTAS = 20_000
ROUNDS = 9
TOOLS = tuple(
    ToolSpec(name=f"tool_{number}", description="Does it. " * 20, parameters={"type": "object", "properties": {}})
    for number in range(8)
)


def main() -> None:
    table = Table("Wire formats, CPU", "", f"encode {MESSAGES:,}", "one more", f"{DELTAS:,} deltas", "JSON floor", "ratio")
    for name in FORMATS:
        producer = Producer(provider="custom", format=name, model="m")
        first_s, more_s = zip(*(encode(name, producer) for _ in range(ROUNDS)), strict=True)
        lines = [json.dumps(event).encode() for event in EVENTS[name]()]
        decode_s = min(decode(name, producer, lines) for _ in range(ROUNDS))
        floor_s = min(spent(lambda lines=lines: read_all(msgspec.json.decode, lines)) for _ in range(ROUNDS))
        times = (f"{seconds * 1e3:.1f} ms" for seconds in (min(first_s), min(more_s), decode_s, floor_s))
        table.row(name, *times, f"{decode_s / floor_s:.1f}x")
    table.save()


def encode(name: str, producer: Producer) -> tuple[float, float]:
    """CPU seconds to encode a long history, and to encode it again with one more message."""
    format, history = new_format(name), tuple(long_history(producer))
    once, more = (request(producer, messages) for messages in (history, (*history, user("and now?"))))
    return spent(lambda: format.encode(once)), spent(lambda: format.encode(more))


def decode(name: str, producer: Producer, lines: list[bytes]) -> float:
    format, asked = new_format(name), request(producer, (user("go"),))
    format.encode(asked)
    feed = format.decoder(asked).feed
    return spent(lambda: read_all(feed, lines))


def read_all(read: Callable[[bytes], object], lines: list[bytes]) -> None:
    for line in lines:
        read(line)


def spent(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def new_format(name: str) -> Format:
    return format_of(Catalog({}).find("custom/m", base_url="http://127.0.0.1/v1", api_key="none", api=name))


def request(producer: Producer, messages: tuple[Message, ...]) -> Request:
    return Request(model="m", producer=producer, messages=messages, system="Rules. " * 600, tools=TOOLS, max_output=8192)


def long_history(producer: Producer) -> Iterator[Message]:
    for number in range(MESSAGES // 2):
        yield user(f"Question {number}: " + "what is in this file, and why? " * 4)
        written = json.dumps({"path": f"src/file_{number}.py"})
        call = ToolPart(
            tool="tool_1",
            input=json.loads(written),
            raw_input=written,
            call_id=f"call_{number}",
            status="completed",
            outcome="ok",
            output="a line of text\n" * 20,
        )
        yield Message(role="assistant", parts=(TextPart(text="I read it. " * 10), call), producer=producer, finished=True)


def chat_events() -> Iterator[dict[str, Any]]:
    for number in range(DELTAS):
        choice = {"index": 0, "delta": {"content": f"word{number} "}, "finish_reason": None}
        yield {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}


def responses_events() -> Iterator[dict[str, Any]]:
    item = {"type": "message", "id": "msg_1", "role": "assistant", "content": []}
    yield {"type": "response.output_item.added", "output_index": 0, "sequence_number": 0, "item": item}
    place = {"item_id": "msg_1", "output_index": 0, "content_index": 0, "logprobs": []}
    for number in range(DELTAS):
        yield {"type": "response.output_text.delta", **place, "delta": f"word{number} ", "sequence_number": number + 1}


def anthropic_events() -> Iterator[dict[str, Any]]:
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "content": [], "model": "m", "usage": usage}
    yield {"type": "message_start", "message": message}
    yield {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    for number in range(DELTAS):
        yield {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": f"word{number} "}}


def gemini_events() -> Iterator[dict[str, Any]]:
    for number in range(DELTAS):
        content = {"parts": [{"text": f"word{number} "}], "role": "model"}
        usage = {"promptTokenCount": 5, "candidatesTokenCount": number, "totalTokenCount": 5 + number}
        yield {"candidates": [{"content": content, "index": 0}], "usageMetadata": usage, "modelVersion": "m", "responseId": "r"}


def ollama_events() -> Iterator[dict[str, Any]]:
    for number in range(DELTAS):
        message = {"role": "assistant", "content": f"word{number} "}
        yield {"model": "m", "created_at": "2026-01-01T00:00:00Z", "message": message, "done": False}


EVENTS: dict[str, Callable[[], Iterator[dict[str, Any]]]] = {
    "openai-chat": chat_events,
    "openai-responses": responses_events,
    "anthropic": anthropic_events,
    "gemini": gemini_events,
    "ollama": ollama_events,
    "xml": chat_events,
}


if __name__ == "__main__":
    main()
