"""No answer is endless: what is too long, empty or behind the end is stopped."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from tests.fakes.provider_server import KEY, MODEL, ProviderServer
from tests.fakes.replies import Pause, delta, finish, sse
from tests.models.test_client import QUESTION, READ, Heard
from wolo.errors import BadAnswer, ProviderError, Unavailable
from wolo.formats.format import Format, Request
from wolo.messages.deltas import TextDelta, size_of
from wolo.messages.message import Message, Producer, user
from wolo.models import client
from wolo.models.catalog import Catalog
from wolo.models.client import ClientOptions, HttpModelClient, StreamLimits
from wolo.models.format_selection import FORMATS, format_of
from wolo.models.http.http_transport import HttpTransport
from wolo.models.http.transport import PATIENCE
from wolo.models.retry import RetrySettings

Ask = Callable[..., Any]


@pytest.fixture
async def ask(provider: ProviderServer) -> AsyncIterator[Ask]:
    """Asks a model at the scripted provider once."""
    opened: list[HttpModelClient] = []

    async def ask(**around: Any) -> Message:
        choice = Catalog({}).find(f"custom/{MODEL}", base_url=provider.base_url, api_key=KEY)
        opened.append(HttpModelClient(choice, format_of(choice), HttpTransport({}), ClientOptions(**around)))
        async with asyncio.timeout(30):
            return await opened[-1].ask(QUESTION, Heard())

    yield ask
    for model in opened:
        await model.close()


def arguments(text: str) -> dict[str, Any]:
    return delta(tool_calls=[{"index": 0, "id": "c", "function": {"name": "read", "arguments": text}}])


@pytest.mark.parametrize(
    "piece",
    [
        lambda number: delta(f"line {number} " * 10),
        lambda number: delta(reasoning_content=f"line {number} " * 10),
        lambda number: arguments(f"line {number} " * 10),
        lambda number: delta(("<tool_call>" if not number else "") + f"<function=read> {number}" * 5),
    ],
    ids=["text", "reasoning", "arguments", "a call written as text"],
)
async def test_an_answer_may_only_be_so_long(provider: ProviderServer, ask: Ask, piece: Callable[[int], Any]) -> None:
    provider.script(sse(*map(piece, range(1_000)), finish("stop")))
    with pytest.raises(BadAnswer, match="longer than 20,000 bytes") as failed:
        await ask(max_answer_bytes=20_000)
    assert "limits.max_answer_bytes" in failed.value.hint
    assert len(provider.requests) == 1


async def test_an_answer_may_only_make_so_many_calls(provider: ProviderServer, ask: Ask) -> None:
    def call(number: int) -> Any:
        function = {"name": "read", "arguments": json.dumps({"path": str(number)})}
        return delta(tool_calls=[{"index": number, "id": f"c{number}", "function": function}])

    provider.script(sse(*map(call, range(2_100)), finish("tool_calls")))
    with pytest.raises(BadAnswer, match="more than 2,000 calls"):
        await ask()


async def test_one_that_is_shorter_is_whole(provider: ProviderServer, ask: Ask) -> None:
    provider.script(sse(*[delta("0123456789")] * 1_000, finish("stop")))
    assert len((await ask(max_answer_bytes=10_000)).text) == 10_000


@pytest.mark.parametrize(
    "empty",
    [
        {"choices": [{"index": 0, "delta": {}}]},
        delta(""),
        delta(reasoning_content=""),
        delta(role="assistant"),
        {"choices": []},
        {"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 1}},
        "no json at all",
    ],
    ids=lambda empty: json.dumps(empty)[:40],
)
async def test_an_event_without_content_is_silence(provider: ProviderServer, ask: Ask, empty: Any) -> None:
    pieces = [each for _ in range(300) for each in (Pause(0.1), *sse(empty, done=False).pieces)]
    provider.script(sse(delta("So far"), done=False).then(*pieces))
    with pytest.raises(Unavailable, match="nothing but empty events"):
        await ask(retries=RetrySettings(idle_s=0.5, tries=1))


async def test_text_behind_the_end_delays_nobody(provider: ProviderServer, ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "LAST_WORDS_S", 0.5)
    pieces = [each for _ in range(400) for each in (Pause(0.1), *sse({"choices": []}, done=False).pieces)]
    provider.script(sse(delta("All of it."), finish("stop"), done=False).then(*pieces))
    assert (await ask()).text == "All of it."


async def test_behind_the_last_event_nothing_counts(provider: ProviderServer, ask: Ask) -> None:
    whole = sse(delta("All of it."), finish("stop"))
    more = sse(delta(" And more."), arguments('{"path": "a"}'), finish("tool_calls"), {"error": {"message": "late"}}).body
    for reply in (whole.then(more), sse().then(whole.body + more)):
        provider.script(reply)
        if reply.pieces[0].startswith(b"data: [DONE]"):  # type: ignore[union-attr]  # bytes
            with pytest.raises(ProviderError):
                await ask(retries=RetrySettings(tries=1))
        else:
            answer = await ask()
            assert (answer.text, answer.calls, answer.finish_reason) == ("All of it.", (), "stop")


async def test_behind_a_finish_reason_it_still_counts(provider: ProviderServer, ask: Ask) -> None:
    provider.script(sse(delta("All "), finish("stop"), delta("of it."), finish("stop")))
    assert (await ask()).text == "All of it."


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_growth_is_given_and_held_size() -> None:
    clock = Clock()
    limits = StreamLimits(1_000, 10.0, clock)
    for held_chars in range(1, 20):
        clock.now_s += 9.0
        limits.take((b"{}",), (), held_chars)
    clock.now_s += 9.0
    limits.take((b"{}",), (TextDelta("x"),), 0)
    clock.now_s += 10.1
    with pytest.raises(Unavailable):
        limits.take((b"{}",), (TextDelta(""),), 0)


def test_working_server_has_a_longer_limit() -> None:
    clock = Clock()
    limits = StreamLimits(1_000, 10.0, clock)
    clock.now_s = 10.0 * PATIENCE
    limits.take((b'{"type": "ping"}', b'{"type":"keepalive"}'), (), 0)
    clock.now_s += 0.1
    with pytest.raises(Unavailable):
        limits.take((b'{"type": "ping"}',), (), 0)
    limits = StreamLimits(1_000, 0.0, clock)
    clock.now_s += 1_000
    limits.take((b"{}",), (), 0)


EMPTY: dict[str, list[dict[str, Any]]] = {
    "openai-chat": [delta(""), {"choices": [{"delta": {"content": None, "tool_calls": []}}]}],
    "xml": [delta(""), delta(role="assistant")],
    "ollama": [{"message": {"role": "assistant", "content": ""}, "done": False}],
    "anthropic": [
        {"type": "ping"},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": ""}},
    ],
    "openai-responses": [
        {"type": "keepalive"},
        {"type": "response.in_progress", "response": {}},
        {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": ""},
    ],
    "gemini": [
        {"candidates": [{"content": {"parts": [{"text": ""}]}}]},
        {"usageMetadata": {"promptTokenCount": 1}},
        {"candidates": [{"content": {"parts": []}}]},
    ],
}


@pytest.mark.parametrize("api", FORMATS)
def test_in_every_format_an_empty_delta_carries_nothing(api: str) -> None:
    format: Format = format_of(Catalog({}).find("custom/m-1", base_url="http://h/v1", api_key="k", api=api))
    producer = Producer(provider="p", format=api, model="m-1")
    request = Request(model="m-1", producer=producer, messages=(user("go"),), tools=(READ,))
    format.encode(request)
    decoder = format.decoder(request)
    for _ in range(3):
        for event in EMPTY[api]:
            assert size_of(decoder.feed(json.dumps(event).encode())) == 0
            assert decoder.held_chars == 0
