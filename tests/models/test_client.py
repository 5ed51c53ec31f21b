"""Asking a model: whole attempts, retries by the table, usage and cost, what a server refuses, what a person is told."""

from __future__ import annotations

import asyncio
import email.utils
import json
import time
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.fakes.provider_server import KEY, ProviderServer
from tests.fakes.replies import Ending, Hold, Reply, call, chunk, delta, error, finish, raw, sse, text, usage, whole
from wolo.errors import (
    AuthError,
    BadAnswer,
    BadRequest,
    ConfigError,
    ContentRefused,
    ContextOverflow,
    ProviderError,
    QuotaExhausted,
    RateLimited,
    Unavailable,
    Unreachable,
)
from wolo.formats.format import ToolSpec
from wolo.messages.deltas import Delta, TextDelta
from wolo.messages.message import Message, user
from wolo.messages.parts import TextPart
from wolo.models import client, retry
from wolo.models.catalog import Catalog
from wolo.models.catalog_files import load
from wolo.models.client import ClientOptions, HttpModelClient
from wolo.models.format_selection import format_of
from wolo.models.headers import HeaderSettings
from wolo.models.http.http_transport import HttpTransport
from wolo.models.protocol import ModelQuestion
from wolo.models.provider import ModelChoice, Price

READ = ToolSpec(
    name="read", description="Read a file.", parameters={"type": "object", "properties": {"path": {"type": "string"}}}
)
QUESTION = ModelQuestion(messages=(user("Hello"),), system="You are Wolo.", session_id="session_123", prompt_id="msg_1")


class Heard:
    """Writes down what a listener is told."""

    def __init__(self) -> None:
        self.log: list[Any] = []
        self.deltas: list[Delta] = []
        self.notices: list[str] = []
        self.failures: list[tuple[ProviderError, int, int, float]] = []
        self.requests: list[tuple[int, int]] = []

    async def on_request(self, attempt: int, context_tokens: int) -> None:
        self.log.append("request")
        self.requests.append((attempt, context_tokens))
        self.deltas = []

    async def on_deltas(self, deltas: Sequence[Delta]) -> None:
        self.log.append("deltas")
        self.deltas.extend(deltas)

    async def on_attempt_failed(self, error: ProviderError, attempt: int, tries: int, delay_s: float) -> None:
        self.log.append("failed")
        self.failures.append((error, attempt, tries, delay_s))

    async def on_replaced(self, error: ProviderError, model: str) -> None:
        self.log.append(f"replaced by {model}")
        self.deltas = []

    async def on_notice(self, text: str, level: str = "warning") -> None:
        self.notices.append(text)

    @property
    def text(self) -> str:
        return "".join(each.text for each in self.deltas if isinstance(each, TextDelta))


class Clock:
    """Time that passes only while somebody sleeps."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now_s += seconds

    def __call__(self) -> float:
        return self.now_s


class Room:
    """A model at the scripted provider, a listener, and a clock of its own."""

    def __init__(self, server: ProviderServer, spec: str = "custom/test-model", **around: Any) -> None:
        self.server = server
        self.clock = Clock()
        self.heard = Heard()
        self.choice: ModelChoice = Catalog({}).find(spec, base_url=server.base_url, api_key=KEY, api="openai-chat")
        self.models: list[HttpModelClient] = []
        at_keyboard = retry.RetrySettings(total_s=600)
        fixed = {"sleep": self.clock.sleep, "clock": self.clock, "random": lambda: 0.0, "project": "calculator"}
        fixed["retries"] = at_keyboard
        self.model = self.new_model(**{**fixed, **around})

    def new_model(self, **around: Any) -> HttpModelClient:
        model = HttpModelClient(self.choice, format_of(self.choice), HttpTransport({}), ClientOptions(**around))
        self.models.append(model)
        return model

    async def ask(self, question: ModelQuestion = QUESTION) -> Message:
        return await self.model.ask(question, self.heard)

    async def fails(self, *replies: Reply) -> ProviderError:
        self.server.script(*replies)
        with pytest.raises(ProviderError) as failed:
            await self.ask()
        return failed.value


@pytest.fixture
async def open_room(provider: ProviderServer) -> AsyncIterator[Callable[..., Room]]:
    opened: list[Room] = []

    def open_room(spec: str = "custom/test-model", **around: Any) -> Room:
        opened.append(Room(provider, spec, **around))
        return opened[-1]

    yield open_room
    for room in opened:
        for model in room.models:
            await model.close()


@pytest.fixture
def room(open_room: Callable[..., Room]) -> Room:
    return open_room()


# Answers


async def test_a_question_becomes_an_answer(room: Room) -> None:
    room.server.script(text("Hello, you.", usage=usage(100, 10, cached=40)))
    answer = await room.ask()
    assert answer.text == room.heard.text == "Hello, you."
    assert (answer.role, answer.finished, answer.finish_reason) == ("assistant", True, "stop")
    assert answer.usage is not None
    assert (answer.usage.input_tokens, answer.usage.cache_read_tokens, answer.usage.output_tokens) == (60, 40, 10)
    assert answer.usage.cost is None
    assert not answer.usage.estimated
    assert answer.producer is not None
    assert (answer.producer.provider, answer.producer.format, answer.producer.model) == ("custom", "openai-chat", "test-model")


async def test_watched_answer_is_read_between_rests(open_room: Callable[..., Room], provider: ProviderServer) -> None:
    first, rest, logs = Hold(), Hold(), []

    async def sleep(seconds: float) -> None:
        logs.append([*room.heard.log])
        if len(logs) == 1:
            first.release()
            await asyncio.to_thread(rest.wait_until_reached)
        else:
            rest.release()

    words = [f"word {number} " for number in range(200)]
    provider.script(sse(delta(words[0]), first, *map(delta, words[1:]), rest, finish("stop")))
    room = open_room(sleep=sleep, attended=True)
    assert (await room.ask()).text == room.heard.text == "".join(words)
    assert logs[:2] == [["request", "deltas"], ["request", "deltas", "deltas"]]


async def test_unwatched_answer_is_read_without_rests(room: Room) -> None:
    room.server.script(text("Hello, you.", size=1))
    await room.ask()
    assert room.clock.slept == []


async def test_request_names_the_sender_and_format_address(room: Room) -> None:
    room.server.script(text("Hi."))
    await room.ask()
    (asked,) = room.server.requests
    assert asked.path == "/v1/chat/completions"
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert asked.headers["user-agent"].startswith("opencode/1.0.0 (")
    assert asked.headers["x-opencode-project"] == "calculator"
    assert asked.headers["x-opencode-session"] == "session_123"
    assert asked.headers["x-opencode-request"] == "msg_1"
    assert asked.headers["x-opencode-client"] == "cli"
    assert asked.json["model"] == "test-model"
    assert asked.json["messages"] == [{"role": "system", "content": "You are Wolo."}, {"role": "user", "content": "Hello"}]


async def test_without_a_key_none_is_sent(open_room: Callable[..., Room], provider: ProviderServer) -> None:
    room = open_room()
    room.choice = replace(room.choice, api_key="")
    provider.script(text("Hi."))
    await room.new_model().ask(QUESTION, room.heard)
    assert "authorization" not in provider.requests[0].headers


async def test_headers_of_provider_and_settings_are_added(open_room: Callable[..., Room], provider: ProviderServer) -> None:
    room = open_room()
    room.choice = replace(room.choice, provider=replace(room.choice.provider, headers={"X-Title": "wölo"}))
    provider.script(text("Hi."))
    await room.new_model(headers=HeaderSettings(profile="none", extra={"Authorization": "Basic abc"})).ask(QUESTION, room.heard)
    headers = provider.requests[0].headers
    assert headers["x-title"] == "w%C3%B6lo"
    assert headers["authorization"] == "Basic abc"
    assert "x-opencode-session" not in headers


async def test_a_call_comes_back_pending(room: Room) -> None:
    room.server.script(call("read", {"path": "a.txt"}))
    answer = await room.ask(replace(QUESTION, tools=(READ,)))
    (part,) = answer.calls
    assert (part.tool, part.input, part.status) == ("read", {"path": "a.txt"}, "pending")
    assert answer.finish_reason == "tool_calls"


async def test_an_answer_in_one_document_is_an_answer(room: Room) -> None:
    message = {"role": "assistant", "content": "Whole."}
    room.server.script(whole({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": usage(7, 3)}))
    answer = await room.ask()
    assert answer.text == room.heard.text == "Whole."
    assert answer.usage is not None
    assert answer.usage.output_tokens == 3


async def test_one_question_is_one_request(room: Room) -> None:
    room.server.script(text("Hi."))
    await room.ask()
    assert len(room.server.requests) == 1
    assert room.server.looked_up == []
    assert room.heard.log[0] == "request"


async def test_the_fragments_of_one_read_are_one_delta(room: Room) -> None:
    room.server.script(text("word " * 4_000, size=1).split(1 << 30))
    message = await room.ask()
    assert message.text == "word " * 4_000
    fragments = [each for each in room.heard.deltas if isinstance(each, TextDelta)]
    assert len(fragments) <= room.heard.log.count("deltas") < 2_000


# Attempts


@pytest.mark.parametrize(
    "broken",
    [
        sse(delta("Here is"), done=False, ending="reset"),
        sse(delta("Here is"), done=False, ending="cut"),
        sse(delta("Here is"), done=False),
        sse(delta("Here is"), {"choices": [], "error": {"code": 502, "message": "upstream"}}),
        sse(delta("Here is"), finish("network_error")),
        call("read", '{"path": "a', finish_reason=None),
        raw(),
        raw(ending="reset"),
        Reply(headers={"content-type": "text/event-stream"}),
        Reply(204, framing="close"),
        error(500, {"error": {"message": "oops"}}),
        error(502, "<html><body>Bad gateway</body></html>", {"content-type": "text/html"}),
        error(503, ""),
        error(529, {"error": {"message": "overloaded"}}),
        error(408, {"error": {"message": "timeout"}}),
    ],
)
async def test_a_broken_attempt_leaves_nothing_behind(room: Room, broken: Reply) -> None:
    room.server.script(broken, text("Here is all of it."))
    answer = await room.ask(replace(QUESTION, tools=(READ,)))
    assert answer.text == room.heard.text == "Here is all of it."
    assert answer.calls == ()
    ((failure, attempt, tries, delay_s),) = room.heard.failures
    assert (attempt, tries, delay_s) == (1, 0 if isinstance(failure, Unreachable) else 5, 0.5)
    assert failure.retryable
    assert [each for each in room.heard.log if each != "deltas"] == ["request", "failed", "request"]
    assert room.clock.slept == [0.5]
    assert room.server.requests[0].body == room.server.requests[1].body


@pytest.mark.parametrize("ending", ["cut", "reset", "stall"])
async def test_a_complete_answer_needs_no_proper_end(room: Room, ending: Ending, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "LAST_WORDS_S", 0.2)
    room.server.script(
        sse(delta("All of it."), finish("stop"), done=False, ending=ending),
        sse(
            delta(tool_calls=[{"index": 0, "id": "c", "function": {"name": "read", "arguments": '{"path": "a"}'}}]),
            finish("tool_calls"),
            done=False,
            ending=ending,
        ),
    )
    assert (await room.ask(replace(QUESTION, tools=(READ,)))).text == "All of it."
    (part,) = (await room.ask(replace(QUESTION, tools=(READ,)))).calls
    assert (part.status, part.input) == ("pending", {"path": "a"})
    assert len(room.server.requests) == 2


async def test_call_without_its_end_is_incomplete(room: Room) -> None:
    broken = sse(
        delta(tool_calls=[{"index": 0, "id": "c", "function": {"name": "read", "arguments": '{"pa'}}]),
        finish("tool_calls"),
        done=False,
        ending="cut",
    )
    room.server.script(broken, text("Instead."))
    assert (await room.ask(replace(QUESTION, tools=(READ,)))).text == "Instead."


async def test_after_five_tries_the_error_comes_out(room: Room) -> None:
    failure = await room.fails(*[error(500, {"error": {"message": "engine on fire"}})] * 5)
    assert isinstance(failure, Unavailable)
    assert failure.exit_code == 75
    assert "engine on fire" in failure.message
    assert room.clock.slept == [0.5, 1, 2, 4]
    assert len(room.server.requests) == 5
    assert len(room.heard.failures) == 4


async def test_refused_connection_retries_until_total_time(open_room: Callable[..., Room]) -> None:
    room = open_room()
    room.server.close()
    failure = await room.fails()
    assert "refused" in failure.message
    assert sum(room.clock.slept) == 600
    assert room.clock.slept[:6] == [0.5, 1, 2, 4, 8, 16]
    backed = open_room(has_fallback=True)
    await backed.fails()
    assert backed.clock.slept == [0.5, 1, 2, 4]


async def test_settings_limit_tries_and_total(open_room: Callable[..., Room]) -> None:
    room = open_room(retries=retry.RetrySettings(tries=2))
    await room.fails(*[error(500, {})] * 2)
    assert room.clock.slept == [0.5]
    room = open_room(retries=retry.RetrySettings(total_s=10))
    await room.fails(*[error(429, {"error": {"message": "slow down"}})] * 3)
    assert room.clock.slept == [2, 5]


async def test_stalled_stream_is_abandoned_and_retried(open_room: Callable[..., Room], provider: ProviderServer) -> None:
    room = open_room(retries=retry.RetrySettings(idle_s=0.2))
    provider.script(sse(delta("He"), done=False, ending="stall"), raw(ending="stall"), text("Hello."))
    assert (await room.ask()).text == "Hello."
    assert [str(failed[0]).partition(": ")[2] for failed in room.heard.failures] == ["nothing came for 0.2 s."] * 2


async def test_local_servers_may_be_silent_without_limit(open_room: Callable[..., Room]) -> None:
    for spec, first_byte_s, idle_s in (("vllm/x", 0, 0), ("custom/x", 120, 300), ("zai/glm-5.2", 120, 300)):
        sent = open_room(spec).model._call(QUESTION, b"", None)
        assert (sent.first_byte_s, sent.idle_s) == (first_byte_s, idle_s)
    sent = open_room("vllm/x", retries=retry.RetrySettings(idle_s=20)).model._call(QUESTION, b"", None)
    assert (sent.first_byte_s, sent.idle_s) == (20, 20)


# The words of providers


@pytest.mark.parametrize(
    ("headers", "first_wait_s"),
    [
        ({"retry-after": "2"}, 2.0),
        ({"retry-after": "7.5"}, 7.5),
        ({"retry-after-ms": "1500"}, 1.5),
        ({"retry-after": "0"}, 2.0),
        ({"retry-after": "-1"}, 2.0),
        ({"retry-after-ms": "-1"}, 2.0),
        ({"retry-after": "abc"}, 2.0),
        ({"retry-after": "nan"}, 2.0),
        ({"retry-after": "inf"}, 2.0),
        ({"x-ratelimit-reset-requests": "6m0s"}, 2.0),
        ({}, 2.0),
    ],
)
@pytest.mark.parametrize("status", [429])
async def test_retry_after_is_obeyed_when_it_makes_sense(
    room: Room, status: int, headers: dict[str, str], first_wait_s: float
) -> None:
    room.server.script(error(status, {"error": {"message": "slow down"}}, headers), text("Hi."))
    await room.ask()
    assert room.clock.slept == [first_wait_s]
    assert room.heard.failures[0][2] == 8


async def test_retry_after_may_be_a_date(room: Room) -> None:
    when = email.utils.formatdate(time.time() + 30, usegmt=True)
    room.server.script(error(429, {"error": {"message": "slow down"}}, {"retry-after": when}), text("Hi."))
    await room.ask()
    assert 25 < room.clock.slept[0] <= 30


@pytest.mark.parametrize("status", [429, 503])
async def test_long_wait_stops_and_names_its_end(room: Room, status: int) -> None:
    failure = await room.fails(error(status, {"error": {"message": "come back"}}, {"retry-after": "86400"}))
    assert room.clock.slept == []
    assert failure.exit_code == 75
    assert failure.resets_at is not None
    assert failure.resets_at.startswith("20")


GLM = [
    ("1302", RateLimited, 8, 75),
    ("1303", RateLimited, 8, 75),
    ("1305", RateLimited, 8, 75),
    ("1312", RateLimited, 8, 75),
    ("1234", Unavailable, 8, 75),
    ("500", Unavailable, 5, 75),
    ("1120", Unavailable, 5, 75),
    *((code, AuthError, 1, 1) for code in ("1000", "1001", "1002", "1003", "1004", "1100", "1110", "1220")),
    *((code, BadRequest, 1, 1) for code in ("1210", "1211", "1212", "1213", "1214", "1215", "1221", "1231")),
    *((code, ContentRefused, 1, 1) for code in ("1300", "1301")),
    *((code, QuotaExhausted, 1, 75) for code in ("1304", "1308", "1310", "1316", "1321")),
    *((code, QuotaExhausted, 1, 1) for code in ("1113", "1309", "1311", "1313")),
]


@pytest.mark.parametrize("carrier", ["429 text", "400 number", "200 event"])
@pytest.mark.parametrize(("code", "kind", "tries", "exit_code"), GLM)
async def test_codes_of_glm_decide_whatever_carries_them(
    room: Room, carrier: str, code: str, kind: type[ProviderError], tries: int, exit_code: int
) -> None:
    body = {"error": {"code": int(code) if carrier == "400 number" else code, "message": "said by the provider"}}
    status = int(carrier[:3])
    reply = sse(delta("Par"), body) if status == 200 else error(429 if code == "500" else status, body)
    if code == "500" and status != 200:
        reply = error(500, body)
    failure = await room.fails(*[reply] * tries)
    assert type(failure) is kind
    assert (len(room.server.requests), failure.exit_code) == (tries, exit_code)
    assert failure.code == code
    assert "said by the provider" in failure.message
    assert room.clock.now_s < 600


@pytest.mark.parametrize("code", ["1308", "1310"])
async def test_a_used_up_window_says_when_it_opens(room: Room, code: str) -> None:
    words = "Usage limit reached for 5 hour. Your limit will reset at 2027-01-02 03:04:05"
    failure = await room.fails(error(429, {"error": {"code": code, "message": words}}))
    assert failure.resets_at == "2027-01-02T03:04:05+08:00"
    assert room.clock.slept == []


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (error(401, {"error": {"message": "Incorrect API key provided: sk-abc"}}), AuthError),
        (error(403, {"error": {"message": "region"}}), AuthError),
        (error(404, {"error": {"message": "The model `x` does not exist", "code": "model_not_found"}}), BadRequest),
        (error(422, {"detail": [{"msg": "extra fields"}]}), BadRequest),
        (error(400, {"error": {"message": "messages[4].content[1].text is empty"}}), BadRequest),
        (error(400, {"error": {"code": "context_length_exceeded", "message": "too long"}}), ContextOverflow),
        (error(413, {"error": {"message": "prompt is too long"}}), ContextOverflow),
        (error(429, {"error": {"code": "insufficient_quota", "message": "You exceeded your current quota"}}), QuotaExhausted),
        (sse({"error": {"message": "quota exceeded"}}), QuotaExhausted),
        (error(200, "<html><title>Login</title></html>", {"content-type": "text/html"}), BadAnswer),
        (whole({"object": "list", "data": []}), BadAnswer),
        (error(302, "", {"location": "https://login.example.com/"}), BadAnswer),
    ],
)
async def test_incurable_error_is_asked_once(room: Room, reply: Reply, kind: type[ProviderError]) -> None:
    failure = await room.fails(reply)
    assert isinstance(failure, kind)
    assert room.clock.slept == []
    assert room.heard.failures == []


@pytest.mark.parametrize("status", [404, 405])
async def test_a_wrong_path_is_named(room: Room, status: int) -> None:
    failure = await room.fails(error(status, "<html><h1>Not Found</h1></html>", {"content-type": "text/html"}))
    assert f"{room.server.base_url}/chat/completions" in failure.message
    assert "Not Found" in failure.message
    assert "Chat Completions" in failure.hint


@pytest.mark.parametrize(
    "reply",
    [error(401, {"error": {"message": f"Bad key {KEY}"}}), error(500, f"trace: Bearer {KEY}"), sse({"error": {"message": KEY}})],
)
async def test_key_repeated_by_server_is_not_shown(open_room: Callable[..., Room], reply: Reply) -> None:
    room = open_room(retries=retry.RetrySettings(tries=1))
    failure = await room.fails(reply)
    assert KEY not in f"{failure} {failure.message} {failure.hint} {failure!r}"


async def test_refused_field_is_left_out_afterwards(room: Room) -> None:
    refusal = error(400, {"error": {"message": "Unrecognized request argument supplied: stream_options"}})
    room.server.script(refusal, text("Hi."), text("Hi again."))
    assert (await room.ask()).text == "Hi."
    await room.ask()
    assert ["stream_options" in asked.json for asked in room.server.requests] == [True, False, False]
    assert room.clock.slept == []
    assert len(room.heard.notices) == 1
    assert "stream_options" in room.heard.notices[0]
    assert room.heard.failures == []


async def test_field_refused_after_omission_ends_the_request(room: Room) -> None:
    refusal = error(400, {"error": {"message": "Unrecognized request argument supplied: stream_options"}})
    failure = await room.fails(refusal, refusal)
    assert isinstance(failure, BadRequest)


async def test_unsent_field_cannot_be_left_out(room: Room) -> None:
    failure = await room.fails(error(400, {"error": {"message": "temperature must be a number", "param": "temperature"}}))
    assert isinstance(failure, BadRequest)
    assert room.heard.notices == []


async def test_field_may_be_named_by_its_position(room: Room) -> None:
    detail = [{"type": "extra_forbidden", "loc": ["body", "stream_options"], "msg": "Extra inputs are not permitted"}]
    room.server.script(error(422, {"detail": detail}), text("Hi."))
    assert (await room.ask()).text == "Hi."
    assert ["stream_options" in asked.json for asked in room.server.requests] == [True, False]


# Usage, cost and the window


async def test_usage_that_nobody_reports_is_estimated_and_marked(room: Room) -> None:
    room.server.script(sse(delta("word " * 40), finish("stop")))
    answer = await room.ask()
    assert answer.usage is not None
    assert answer.usage.estimated
    assert answer.usage.output_tokens == 50
    assert answer.usage.input_tokens == room.heard.requests[0][1] > 0


async def test_output_counted_as_nothing_is_estimated_and_marked(room: Room) -> None:
    room.server.script(text("Yes.", reasoning="Let me see. " * 100, usage=usage(500, 0)))
    answer = await room.ask()
    assert answer.usage is not None
    assert answer.usage.estimated
    assert answer.usage.input_tokens == 500
    assert 280 < answer.usage.output_tokens < 320


async def test_cost_is_usage_times_price(open_room: Callable[..., Room], provider: ProviderServer) -> None:
    room = open_room("zai/glm-5.2")
    provider.script(text("Hi.", usage=usage(1_000_000, 100_000, cached=400_000)))
    answer = await room.ask()
    assert answer.usage is not None
    assert answer.usage.cost is not None
    assert answer.usage.cost.total == pytest.approx(0.6 * 1.40 + 0.4 * 0.26 + 0.1 * 4.40)


async def test_server_cutting_the_prompt_is_detected_once(room: Room) -> None:
    long = replace(QUESTION, messages=(user("word " * 12_000),))
    room.server.script(*[text("Hi.", usage=usage(2_051, 3))] * 2)
    await room.ask(long)
    await room.ask(long)
    (notice,) = room.heard.notices
    assert "2,051" in notice
    assert "OLLAMA_CONTEXT_LENGTH" in notice


@pytest.mark.parametrize(("words", "counted"), [(12_000, 12_000), (400, 100), (12_000, 0)])
async def test_fully_read_prompt_gives_no_warning(room: Room, words: int, counted: int) -> None:
    room.server.script(text("Hi.", usage=usage(counted, 3)))
    await room.ask(replace(QUESTION, messages=(user("word " * words),)))
    assert room.heard.notices == []


# Interruption


async def test_cancelling_while_streaming_hangs_up_and_propagates(room: Room) -> None:
    hold = Hold()
    room.server.script(sse(delta("Hel"), hold, done=False))
    task = asyncio.create_task(room.ask())
    await asyncio.to_thread(hold.wait_until_reached)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(room.server.requests[0].client_gone.wait, 5)
    room.server.script(text("Again."))
    assert (await room.ask()).text == "Again."


async def test_cancelling_while_it_waits_passes_through(open_room: Callable[..., Room], provider: ProviderServer) -> None:
    waiting = asyncio.Event()

    async def sleep(seconds: float) -> None:
        waiting.set()
        await asyncio.Event().wait()

    room = open_room(sleep=sleep)
    provider.script(error(429, {"error": {"message": "slow down"}}))
    task = asyncio.create_task(room.ask())
    await waiting.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(provider.requests) == 1


async def test_a_listener_that_fails_ends_the_attempt(room: Room) -> None:
    class Deaf(Heard):
        async def on_deltas(self, deltas: Sequence[Delta]) -> None:
            raise RuntimeError("the screen is gone")

    room.server.script(sse(delta("Hi"), Hold(), done=False))
    with pytest.raises(RuntimeError, match="screen"):
        await room.model.ask(QUESTION, Deaf())
    assert await asyncio.to_thread(room.server.requests[0].client_gone.wait, 5)


# Beside the point


async def test_growing_conversations_repeat_their_beginning_byte_for_byte(room: Room) -> None:
    messages: tuple[Message, ...] = (user("One"),)
    for turn in range(3):
        room.server.script(text(f"Answer {turn}."))
        answer = await room.ask(replace(QUESTION, messages=messages, tools=(READ,)))
        messages = (*messages, answer, user(f"Next {turn}"))
    assert [len(asked.messages) for asked in room.server.requests] == [2, 4, 6]


async def test_debug_wire_writes_exchange_without_key(
    open_room: Callable[..., Room], provider: ProviderServer, tmp_path: Path
) -> None:
    directory = tmp_path / "wire" / "log"
    room = open_room(wire_log=directory)
    provider.script(error(500, {"error": {"message": f"who is {KEY}?"}}), text("Hi.").split(5))
    await room.ask(replace(QUESTION, messages=(user(f"My key is {KEY}"),)))
    files = sorted(directory.iterdir())
    assert [file.name for file in files] == ["0001-request.json", "0001-response.txt", "0002-request.json", "0002-response.txt"]
    assert all(file.stat().st_mode & 0o777 == 0o600 for file in files)
    assert directory.stat().st_mode & 0o777 == 0o700
    assert not any(KEY in file.read_text() for file in files)
    assert json.loads(files[0].read_text())["messages"][-1]["content"] == "My key is [key]"
    assert files[1].read_text().startswith("HTTP 500\n")
    assert files[3].read_bytes().endswith(text("Hi.").body)


async def test_two_runs_may_log_to_one_directory(open_room: Callable[..., Room], tmp_path: Path) -> None:
    for _ in range(2):
        exchange = open_room(wire_log=tmp_path).model._log.begin(b"{}")  # type: ignore[union-attr]  # it was given a directory
        exchange(b"x")
        exchange.close()
    assert sorted(file.name for file in tmp_path.glob("*.json")) == ["0001-request.json", "0002-request.json"]


@pytest.mark.parametrize("name", ["file", "file/log"])
def test_unmakeable_directory_is_an_error_before_sending(open_room: Callable[..., Room], tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="file"):
        open_room(wire_log=tmp_path / name)


async def test_vanishing_directory_ends_with_a_sentence(open_room: Callable[..., Room], tmp_path: Path) -> None:
    room = open_room(wire_log=tmp_path / "wire")
    (tmp_path / "wire").rmdir()
    with pytest.raises(ConfigError, match="wire"):
        await room.ask()


@pytest.mark.parametrize(
    "name", ["zai", "openai", "openrouter", "deepseek", "moonshot", "mistral", "dashscope", "ollama", "vllm"]
)
async def test_every_dialect_sends_a_strictly_valid_request(
    open_room: Callable[..., Room], provider: ProviderServer, name: str
) -> None:
    model = load(name).default_model or "any"
    room = open_room(f"{name}/{model}:high")
    provider.script(call("read", {"path": "a"}, reasoning="Hm."), text("Done."))
    first = await room.ask(replace(QUESTION, tools=(READ,)))
    results = [replace(part, status="completed", outcome="ok", output="text") for part in first.calls]
    await room.ask(replace(QUESTION, tools=(READ,), messages=(*QUESTION.messages, first.with_parts(results))))
    assert ("tool_stream" in provider.requests[0].json) is (name == "zai")


async def test_empty_answer_is_returned_unchanged(room: Room) -> None:
    room.server.script(sse(finish("stop", usage(10, 0))))
    answer = await room.ask()
    assert answer.parts == ()
    assert answer.usage is not None
    assert not answer.usage.estimated


async def test_prices_of_the_provider_itself_win(open_room: Callable[..., Room], provider: ProviderServer) -> None:
    room = open_room()
    room.choice = replace(room.choice, model=replace(room.choice.model, price=Price(input=1.0, output=1.0)))
    provider.script(sse(chunk({"content": "Hi."}), finish("stop", usage(1_000_000, 1_000_000))))
    answer = await room.new_model().ask(QUESTION, room.heard)
    assert answer.parts == (TextPart(id=answer.parts[0].id, text="Hi."),)
    assert answer.usage is not None
    assert answer.usage.cost is not None
    assert answer.usage.cost.total == pytest.approx(2.0)


# A refusal without a word


@pytest.mark.parametrize(
    ("window", "prompt", "kind"),
    [(4_000, "word " * 3_200, ContextOverflow), (4_000, "Hello", BadRequest), (None, "word " * 3_200, BadRequest)],
)
@pytest.mark.parametrize("body", ["", "{}", {"error": {}}])
async def test_empty_400_is_full_window_only_nearby(
    open_room: Callable[..., Room], window: int | None, prompt: str, kind: type[ProviderError], body: Any
) -> None:
    room = open_room()
    room.choice = replace(room.choice, model=replace(room.choice.model, context=window))
    room.model = room.new_model()
    room.server.script(error(400, body))
    with pytest.raises(ProviderError) as failed:
        await room.ask(replace(QUESTION, messages=(user(prompt),)))
    assert (failed.value.kind, failed.value.status) == (kind.kind, 400)
    assert len(room.server.requests) == 1
