"""Every recorded stream: however it is cut, wherever it breaks off, and as the vendor's own library reads it."""

from __future__ import annotations

import contextlib
import json
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.formats.histories import TOOLS
from wolo.errors import ProviderError
from wolo.formats.format import Format, Request
from wolo.messages.deltas import Assembler, Delta, FinishDelta, join
from wolo.messages.message import Message, Producer, user
from wolo.models.catalog import Catalog
from wolo.models.format_selection import format_of
from wolo.models.http.response_body import LineSplitter, SseSplitter

ROOT = Path(__file__).with_name("recordings")
RECORDINGS = sorted(path for path in ROOT.glob("*/*") if path.is_file())
recorded = pytest.mark.parametrize("path", RECORDINGS, ids=[f"{path.parent.name}/{path.stem}" for path in RECORDINGS])
CUTS = (1, 2, 3, 7, 64)


class Read(NamedTuple):
    """What came of a stream; `error` instead of an end."""

    deltas: list[Delta]
    message: Message
    error: ProviderError | None


def format_for(path: Path) -> Format:
    return format_of(Catalog({}).find("custom/m-1", base_url="http://h/v1", api_key="k", api=path.parent.name))


def read(path: Path, pieces: Iterable[bytes]) -> Read:
    format = format_for(path)
    splitter = LineSplitter() if format.framing == "lines" else SseSplitter()
    producer = Producer(provider="p", format=format.name, model="m-1")
    request = Request(model="m-1", producer=producer, messages=(user("go"),), tools=TOOLS)
    format.encode(request)
    decoder, assembler, deltas = format.decoder(request), Assembler(), list[Delta]()

    def take(more: Sequence[Delta]) -> None:
        deltas.extend(more)
        assembler.add(more)

    error = None
    try:
        for piece in pieces:
            for payload in splitter.feed(piece):
                take(decoder.feed(payload))
        for payload in splitter.end():
            take(decoder.feed(payload))
        take(decoder.close())
    except ProviderError as failed:
        error = failed
    return Read(deltas, assembler.message(producer=producer), error)


def take_payloads(path: Path, at_once: int) -> list[Delta]:
    format = format_for(path)
    splitter = LineSplitter() if format.framing == "lines" else SseSplitter()
    request = Request(
        model="m-1", producer=Producer(provider="p", format=format.name, model="m-1"), messages=(user("go"),), tools=TOOLS
    )
    format.encode(request)
    decoder, deltas = format.decoder(request), list[Delta]()
    payloads = [*splitter.feed(path.read_bytes()), *splitter.end()]
    with contextlib.suppress(ProviderError):
        for at in range(0, len(payloads), at_once):
            deltas += decoder.feed(*payloads[at : at + at_once])
        deltas += decoder.close()
    return join(deltas)


@recorded
def test_payloads_decoded_together_say_the_same(path: Path) -> None:
    one_by_one = take_payloads(path, 1)
    if any(isinstance(delta, FinishDelta) for delta in one_by_one):  # a failing payload takes along the deltas decoded with it
        assert take_payloads(path, 3) == take_payloads(path, 100_000) == one_by_one


@pytest.mark.parametrize(
    ("name", "id", "model"),
    [
        ("anthropic/plain_text.txt", "msg_01XFDU", "claude-sonnet-5-5"),
        ("gemini/arguments_in_pieces.txt", "Xk0hacm1", "gemini-3-flash-preview"),
        ("openai-responses/refusal.sse", "resp_0f3c", "gpt-5.4-2026-03-05"),
    ],
)
def test_message_has_response_id_and_model(name: str, id: str, model: str) -> None:
    message = read(ROOT / name, [(ROOT / name).read_bytes()]).message
    assert message.metadata == {"response_id": id, "response_model": model}


@pytest.mark.parametrize("id", ['"chatcmpl-1"', "17", "null", '""', f'"{"x" * 201}"', "{}"])
def test_only_a_short_text_is_a_response_id(id: str) -> None:
    chunk = (
        f'data: {{"id":{id},"choices":[{{"index":0,"delta":{{"role":"assistant","content":"a"}},"finish_reason":"stop"}}]}}\n\n'
    )
    found = read(ROOT / "openai-chat" / "made", [chunk.encode()])
    assert found.message.text == "a"
    assert found.message.metadata == ({"response_id": "chatcmpl-1"} if "chatcmpl" in id else {})


def spoken(message: Message) -> dict[str, Any]:
    return {
        "text": message.text,
        "thinking": message.reasoning_content,
        "calls": [(call.tool, call.input) for call in message.calls if call.status == "pending"],
    }


@recorded
def test_the_cuts_of_the_network_change_nothing(path: Path) -> None:
    body = path.read_bytes()
    whole = read(path, [body])
    for size in CUTS:
        cut = read(path, [body[at : at + size] for at in range(0, len(body), size)])
        assert cut.deltas == whole.deltas
        assert str(cut.error) == str(whole.error)


@pytest.mark.sweep(every=3)
@recorded
@pytest.mark.parametrize("most", [100, pytest.param(10**9, marks=pytest.mark.soak)], ids=["some", "all"])
def test_broken_stream_runs_nothing_and_loses_no_word(path: Path, most: int) -> None:
    body = path.read_bytes()
    whole = read(path, [body])
    after_lines = [at + 1 for at, byte in enumerate(body) if byte == ord("\n")]
    for end in sorted({*range(0, len(body), len(body) // most + 1), *after_lines[:: len(after_lines) // most + 1]}):
        cut = read(path, [body[:end]])
        told = spoken(cut.message)
        assert whole.message.text.startswith(told["text"].rstrip("<`{[")) or not told["text"]
        if cut.error is not None:
            assert told["calls"] == []
            assert not cut.message.finished
        else:
            assert told == spoken(whole.message)


@recorded
def test_unknown_fields_events_and_reasons_are_read_over(path: Path) -> None:
    body = path.read_bytes()
    format = format_for(path)
    odd = b'{"type":"an.event.of.tomorrow","object":"odd","surprise":[1,{"a":null}]}'
    if format.framing == "lines":
        changed = body.replace(b"\n", b"\n" + odd + b"\n", 1)
    else:
        begin, sep, rest = body.replace(b"\r\n", b"\n").partition(b"\n\n")
        changed = begin + sep + b"data: " + odd + b"\n\n" + rest
    assert read(path, [changed]).deltas == read(path, [body]).deltas


# As the vendors' libraries read it


def payloads(path: Path) -> list[dict[str, Any]]:
    splitter = LineSplitter() if format_for(path).framing == "lines" else SseSplitter()
    return [json.loads(each) for each in (*splitter.feed(path.read_bytes()), *splitter.end()) if each != b"[DONE]"]


def by_openai(events: list[dict[str, Any]]) -> dict[str, Any]:
    from openai.lib.streaming.chat import ChatCompletionStreamState
    from openai.types.chat import ChatCompletionChunk

    state: Any = ChatCompletionStreamState()
    for event in events:
        for choice in event["choices"]:
            choice.setdefault("finish_reason", None)
        state.handle_chunk(ChatCompletionChunk.model_validate(event))
    said = state.current_completion_snapshot.choices[0].message
    calls = [(call.function.name, call.function.arguments) for call in said.tool_calls or ()]
    thinking = getattr(said, "reasoning_content", None) or ""
    return {"text": said.content or "", "thinking": thinking, "calls": calls}


def by_openai_responses(events: list[dict[str, Any]]) -> dict[str, Any]:
    from openai.types.responses import Response

    last = next(event["response"] for event in reversed(events) if "response" in event)
    output = Response.model_construct(**last).output
    items: list[Mapping[str, Any]] = [each if isinstance(each, Mapping) else each.model_dump() for each in output]
    parts = [part for item in items if item["type"] == "message" for part in item["content"]]
    thoughts = [item.get("summary") or item.get("content") or () for item in items if item["type"] == "reasoning"]
    summaries = [part["text"] for several in thoughts for part in several]
    return {
        "text": "".join(part.get("text") or part.get("refusal") or "" for part in parts),
        "thinking": "\n\n".join(summaries),
        "calls": [(item["name"], item["arguments"]) for item in items if item["type"] == "function_call"],
    }


def by_anthropic(events: list[dict[str, Any]]) -> dict[str, Any]:
    from anthropic.lib.streaming._messages import accumulate_event
    from anthropic.types import RawMessageStreamEvent
    from pydantic import TypeAdapter

    snapshot: Any = None
    buffers: dict[int, Any] = {}
    adapter: Any = TypeAdapter(RawMessageStreamEvent)
    for event in events:
        if event["type"] not in ("ping", "error") and "citation" not in event.get("delta", {}):
            snapshot = accumulate_event(event=adapter.validate_python(event), current_snapshot=snapshot, json_bufs=buffers)
    return {
        "text": "".join(part.text for part in snapshot.content if part.type == "text"),
        "thinking": "".join(part.thinking for part in snapshot.content if part.type == "thinking"),
        "calls": [(part.name, part.input) for part in snapshot.content if part.type == "tool_use"],
    }


def by_gemini(events: list[dict[str, Any]]) -> dict[str, Any]:
    from google.genai.types import GenerateContentResponse

    read_events = [GenerateContentResponse.model_validate(event) for event in events]
    contents = [(event.candidates or [None])[0] for event in read_events]
    parts = [part for each in contents if each and each.content for part in each.content.parts or ()]
    return {
        "text": "".join(part.text for part in parts if part.text and not part.thought),
        "thinking": "".join(part.text for part in parts if part.text and part.thought),
        "calls": [(part.function_call.name, part.function_call.args or {}) for part in parts if part.function_call],
    }


def by_ollama(events: list[dict[str, Any]]) -> dict[str, Any]:
    from ollama import ChatResponse

    said = [ChatResponse.model_validate(event).message for event in events if "message" in event]
    return {
        "text": "".join(each.content or "" for each in said),
        "thinking": "".join(each.thinking or "" for each in said),
        "calls": [(call.function.name, dict(call.function.arguments)) for each in said for call in each.tool_calls or ()],
    }


READERS: Mapping[str, Callable[[list[dict[str, Any]]], dict[str, Any]]] = {
    "openai-chat": by_openai,
    "openai-responses": by_openai_responses,
    "anthropic": by_anthropic,
    "gemini": by_gemini,
    "ollama": by_ollama,
}
OURS_ALONE = {"arguments_in_pieces", "call_written_as_text", "think_tags", "compatible_server", "paused_search"}
"""What the libraries take for plain text, or do not read at all."""


@pytest.mark.parametrize(
    "path",
    [path for path in RECORDINGS if path.stem not in OURS_ALONE],
    ids=[f"{path.parent.name}/{path.stem}" for path in RECORDINGS if path.stem not in OURS_ALONE],
)
def test_a_stream_says_what_the_vendors_library_hears(path: Path) -> None:
    ours = read(path, [path.read_bytes()])
    if ours.error is not None:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = READERS[path.parent.name](payloads(path))
    calls = [(name, _object(arguments)) for name, arguments in theirs["calls"]]
    assert ours.message.text == theirs["text"]
    assert ours.message.reasoning_content == theirs["thinking"]
    assert [call.tool for call in ours.message.calls] == [name for name, _ in calls]
    for call, (_, arguments) in zip(ours.message.calls, calls, strict=True):
        assert call.status == "failed" or call.input == arguments


def _object(arguments: Any) -> Any:
    """None for what was cut in the middle."""
    if not isinstance(arguments, str):
        return arguments
    try:
        return json.loads(arguments or "{}")
    except ValueError:
        return None
