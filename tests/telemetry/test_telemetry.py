"""A real OTLP receiver gets what conversations do, decoded with the protocol's own package."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pexpect
import pytest

pytest.importorskip("opentelemetry.sdk", reason="needs the extra otel")

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import Hold, call, error, text, usage
from wolo import Agent
from wolo.api.run_events import RunError
from wolo.telemetry import otlp_exporter


class Receiver:
    """Spans by name, and data points of metrics by name."""

    def __init__(self) -> None:
        self.spans: list[Any] = []
        self.metrics: dict[str, list[Any]] = {}
        self.resources: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.schemas: set[str] = set()
        self._arrived = threading.Condition()

    def take(self, path: str, body: bytes) -> None:
        with self._arrived:
            self._take(path, body)
            self._arrived.notify_all()

    def wait_for_turns(self, count: int) -> bool:
        with self._arrived:
            return self._arrived.wait_for(lambda: sum("invoke_agent" in span.name for span in self.spans) >= count, 15)

    def _take(self, path: str, body: bytes) -> None:
        if path.endswith("/v1/traces"):
            for of_resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                self.resources.append(attributes(of_resource.resource))
                self.schemas |= {scope.schema_url for scope in of_resource.scope_spans}
                self.spans += [span for scope in of_resource.scope_spans for span in scope.spans]
        elif path.endswith("/v1/metrics"):
            for of_resource in ExportMetricsServiceRequest.FromString(body).resource_metrics:
                for metric in (metric for scope in of_resource.scope_metrics for metric in scope.metrics):
                    self.metrics[metric.name] = list(getattr(metric, metric.WhichOneof("data")).data_points)

    def named(self, name: str) -> Any:
        [span] = [span for span in self.spans if span.name == name]
        return span


def attributes(carrier: Any) -> dict[str, Any]:
    return {each.key: value(each.value) for each in carrier.attributes}


def value(given: Any) -> Any:
    kind = given.WhichOneof("value")
    found = getattr(given, kind)
    return [value(each) for each in found.values] if kind == "array_value" else found


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    found = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            found.headers.append(dict(self.headers))
            found.take(self.path, self.rfile.read(int(self.headers["content-length"])))
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
        yield found
        for each in otlp_exporter._exporters.values():
            each._traces.shutdown()
            each._metrics.shutdown()
        otlp_exporter._exporters.clear()
        server.shutdown()
        serving.join()


def agent(provider: ProviderServer, **more: Any) -> Agent:
    return Agent("custom/test-model", base_url=provider.base_url, api_key="k", mode="edit", **more)


WRITES = {"path": "made.txt", "content": "SECRET-CONTENT\n"}


async def test_agent_requests_and_calls_are_spans_without_content(provider: ProviderServer, receiver: Receiver) -> None:
    provider.script(call("write", WRITES), text("SECRET-ANSWER"))
    async with agent(provider) as ours:
        result = await ours.run("SECRET-PROMPT")
    turn, tool = receiver.named("invoke_agent wolo"), receiver.named("execute_tool write")
    chats = [span for span in receiver.spans if span.name == "chat test-model"]
    assert len(chats) == 2
    assert {span.parent_span_id for span in (*chats, tool)} == {turn.span_id}
    assert {span.trace_id for span in receiver.spans} == {turn.trace_id}
    about = attributes(turn)
    assert about["gen_ai.operation.name"] == "invoke_agent"
    assert about["gen_ai.conversation.id"] == result.session_id
    assert about["gen_ai.usage.output_tokens"] == result.usage.output_tokens > 0
    asked = attributes(chats[0])
    assert (asked["gen_ai.operation.name"], asked["gen_ai.provider.name"]) == ("chat", "custom")
    assert (asked["gen_ai.request.model"], asked["server.address"], asked["server.port"]) == (
        "test-model",
        "127.0.0.1",
        provider.port,
    )
    assert asked["gen_ai.response.finish_reasons"] == ["tool_calls"]
    called = attributes(tool)
    assert (called["gen_ai.operation.name"], called["gen_ai.tool.name"]) == ("execute_tool", "write")
    assert "SECRET" not in str(receiver.spans)
    tokens = {attributes(point)["gen_ai.token.type"]: point for point in receiver.metrics["gen_ai.client.token.usage"]}
    assert tokens["output"].sum == result.usage.output_tokens
    [duration] = receiver.metrics["gen_ai.client.operation.duration"]
    assert duration.count == 2
    [waiting] = receiver.metrics["gen_ai.client.operation.time_to_first_chunk"]
    assert waiting.count == 2
    assert 0 < asked["gen_ai.response.time_to_first_chunk"] <= duration.sum
    assert chats[0].end_time_unix_nano - chats[0].start_time_unix_nano > 0
    assert receiver.resources[0]["service.name"] == "wolo"


async def test_reasoning_tokens_are_told_where_there_are_some(provider: ProviderServer, receiver: Receiver) -> None:
    provider.script(call("write", WRITES), text("Done.", usage=usage(completion=10, reasoning=7)))
    async with agent(provider) as ours:
        await ours.run("Go.")
    told = [attributes(span).get("gen_ai.usage.reasoning.output_tokens") for span in receiver.spans if "chat" in span.name]
    assert told == [None, 7]
    assert attributes(receiver.named("invoke_agent wolo"))["gen_ai.usage.reasoning.output_tokens"] == 7


def test_terminal_exports_turns_and_interruptions(provider: ProviderServer, receiver: Receiver) -> None:
    """The whole command: the first turn arrives while it runs, the interrupted one when it leaves."""
    hold = Hold()
    slow = text("one two three four five six seven eight nine")
    provider.script(text("First."), replace(slow, pieces=(*slow.pieces[:1], hold, *slow.pieces[1:])))
    env = {**os.environ, "OTEL_BSP_SCHEDULE_DELAY": "50", "TERM": "xterm"}
    terminal = pexpect.spawn(sys.executable, ["-m", "wolo", *provider.flags], env=env, encoding="utf-8", timeout=30)
    terminal.expect("test-model")
    terminal.send("go\r")
    terminal.expect("First")
    assert receiver.wait_for_turns(1)
    terminal.send("again\r")
    hold.wait_until_reached(30)
    terminal.send("\x03")
    terminal.expect("(?i)interrupted")
    terminal.send("\x04")
    terminal.expect(pexpect.EOF)
    terminal.close()
    hold.release()
    first, second = (span for span in receiver.spans if span.name == "invoke_agent wolo")
    assert first.trace_id != second.trace_id
    assert attributes(second)["error.type"] == "interrupted"
    assert {span.trace_id for span in receiver.spans} == {first.trace_id, second.trace_id}
    assert receiver.metrics["gen_ai.client.operation.duration"]


async def test_editor_exports_turns_of_each_open_session(
    provider: ProviderServer, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, isolated: Path
) -> None:
    pytest.importorskip("acp", reason="needs the extra acp")
    from tests.fakes.acp_client import editor

    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
    provider.script(call("write", WRITES), text("First."), text("Second."))
    async with editor(*provider.flags, "--mode", "edit") as client:
        sessions = [(await client.new(isolated / "work")).session_id for _ in range(2)]
        for session in sessions:
            await client.say(session, "go")
        assert await asyncio.to_thread(receiver.wait_for_turns, 2)
    turns = [span for span in receiver.spans if span.name == "invoke_agent wolo"]
    assert [attributes(turn)["gen_ai.conversation.id"] for turn in turns] == sessions
    assert receiver.named("execute_tool write").parent_span_id == turns[0].span_id
    assert len({span.trace_id for span in receiver.spans}) == 2
    assert "SECRET" not in str(receiver.spans)
    assert receiver.metrics["gen_ai.client.operation.duration"]


def test_a_server_exports_turns_while_it_runs(
    provider: ProviderServer, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("starlette", reason="needs the extra web")
    from tests.frontends.server.running_server import running

    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
    provider.script(call("write", WRITES), text("Done."), error(401, "bad key"))
    with running(provider) as server:
        sessions = [server.new() for _ in range(2)]
        for count, session in enumerate(sessions, 1):
            server.prompt(session, "go")
            assert receiver.wait_for_turns(count)
    done, failed = (attributes(span) for span in receiver.spans if span.name == "invoke_agent wolo")
    assert [done["gen_ai.conversation.id"], failed["gen_ai.conversation.id"]] == sessions
    assert ("error.type" in done, failed["error.type"]) == (False, "401")
    assert receiver.named("execute_tool write")


async def test_content_is_exported_where_the_setting_allows_it(provider: ProviderServer, receiver: Receiver) -> None:
    provider.script(call("write", WRITES), text("The answer."))
    async with agent(provider, settings={"telemetry.content": True}) as ours:
        await ours.run("The prompt.")
    turn, tool = attributes(receiver.named("invoke_agent wolo")), attributes(receiver.named("execute_tool write"))
    assert "The prompt." in turn["gen_ai.input.messages"]
    assert "The answer." in turn["gen_ai.output.messages"]
    assert "SECRET-CONTENT" in tool["gen_ai.tool.call.arguments"]
    assert "made.txt" in tool["gen_ai.tool.call.result"]


async def test_requests_carry_their_messages_with_consent(provider: ProviderServer, receiver: Receiver) -> None:
    provider.script(call("write", WRITES), text("The answer."))
    async with agent(provider, settings={"telemetry.content": True}) as ours:
        await ours.run("The prompt.")
    first, second = [attributes(span) for span in receiver.spans if span.name == "chat test-model"]
    assert "The prompt." in first["gen_ai.input.messages"]
    assert "tool_call_response" not in first["gen_ai.input.messages"]
    assert '"tool_call_response"' in second["gen_ai.input.messages"]
    assert "Wolo" in first["gen_ai.system_instructions"]


@pytest.mark.parametrize(
    ("value", "settings", "is_exported"),
    [
        ("true", {}, True),
        ("SPAN_ONLY", {}, True),
        ("span_and_event", {}, True),
        ("false", {}, False),
        ("NO_CONTENT", {}, False),
        ("EVENT_ONLY", {}, False),
        ("perhaps", {}, False),
        ("true", {"telemetry.content": False}, False),
        ("false", {"telemetry.content": True}, True),
    ],
)
async def test_standard_variable_consents_unless_the_setting_decides(
    provider: ProviderServer,
    receiver: Receiver,
    monkeypatch: pytest.MonkeyPatch,
    value: str,
    settings: dict[str, Any],
    is_exported: bool,
) -> None:
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", value)
    provider.script(text("The answer."))
    async with agent(provider, settings=settings) as ours:
        await ours.run("The prompt.")
    chat = attributes(receiver.named("chat test-model"))
    names = {name for name in chat if name in ("gen_ai.input.messages", "gen_ai.system_instructions", "gen_ai.output.messages")}
    assert len(names) == (3 if is_exported else 0)


async def test_response_id_cost_and_schema_are_exported(
    provider: ProviderServer, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider.script(text("Fine."))
    async with Agent("openai/gpt-5", base_url=provider.base_url, api_key="k", api="openai-chat") as ours:
        result = await ours.run("hello")
    chat = attributes(receiver.named("chat gpt-5"))
    assert chat["gen_ai.response.id"] == "chatcmpl-1"
    assert result.cost_usd
    assert chat["wolo.cost_usd"] == pytest.approx(result.cost_usd)
    (point,) = receiver.metrics["wolo.cost"]
    assert point.as_double == pytest.approx(result.cost_usd)
    assert receiver.schemas == {otlp_exporter.SCHEMA_URL}


async def test_failures_have_their_kind(provider: ProviderServer, receiver: Receiver) -> None:
    provider.script(call("read", {"path": "missing.txt"}), error(401, "bad key"))
    async with agent(provider) as ours:
        with pytest.raises(RunError):
            await ours.run("Go.")
    assert attributes(receiver.named("execute_tool read"))["error.type"] == "error"
    chats = [attributes(span) for span in receiver.spans if span.name == "chat test-model"]
    assert [chat.get("error.type") for chat in chats] == [None, "401"]
    turn = receiver.named("invoke_agent wolo")
    assert attributes(turn)["error.type"] == "401"
    assert turn.status.code == 2


async def test_a_subagent_is_a_span_inside_its_call(provider: ProviderServer, receiver: Receiver) -> None:
    provider.script(call("task", {"prompt": "Look.", "agent": "explore"}), text("Found."), text("Done."))
    async with agent(provider) as ours:
        await ours.run("Go.")
    sub, tool = receiver.named("invoke_agent explore"), receiver.named("execute_tool task")
    assert sub.parent_span_id == tool.span_id
    assert [span.parent_span_id for span in receiver.spans if span.name == "chat test-model"].count(sub.span_id) == 1


async def test_requests_of_subagents_are_exported_in_full(provider: ProviderServer, receiver: Receiver) -> None:
    with ProviderServer() as other:
        provider.script(call("task", {"prompt": "Look there.", "agent": "explore"}), text("Done."))
        other.script(text("Found."))
        settings = {
            "telemetry.content": True,
            "small_model": "deepseek/deepseek-chat",
            "providers.deepseek.base_url": other.base_url,
            "providers.deepseek.api_key": "k",
        }
        async with Agent("custom/test-model", base_url=provider.base_url, api_key="k", settings=settings) as ours:
            await ours.run("Go.")
        chat = attributes(receiver.named("chat deepseek-chat"))
        assert chat["server.port"] == other.port
    assert "Look there." in chat["gen_ai.input.messages"]
    assert "Go." not in chat["gen_ai.input.messages"]
    assert "Another agent has given you the task" in chat["gen_ai.system_instructions"]
    assert "Found." in chat["gen_ai.output.messages"]
    assert chat["gen_ai.response.id"] == "chatcmpl-1"
    (point,) = receiver.metrics["wolo.cost"]
    assert point.as_double == pytest.approx(chat["wolo.cost_usd"]) != 0


async def test_the_variables_of_opentelemetry_are_obeyed(
    provider: ProviderServer, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_SERVICE_NAME", "nightly")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "team=blue")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=abc")
    monkeypatch.setenv("OTEL_METRICS_EXPORTER", "none")
    monkeypatch.setenv("TRACEPARENT", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
    provider.script(text("Hello."))
    async with agent(provider) as ours:
        await ours.run("Hi.")
    assert {"service.name": "nightly", "team": "blue"}.items() <= receiver.resources[0].items()
    assert receiver.headers[0]["x-key"] == "abc"
    assert not receiver.metrics
    turn = receiver.named("invoke_agent wolo")
    assert (turn.trace_id.hex(), turn.parent_span_id.hex()) == ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331")


@pytest.mark.parametrize(
    ("name", "setting", "notice"),
    [
        ("OTEL_SDK_DISABLED", "true", ""),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "OTEL_EXPORTER_OTLP_PROTOCOL=grpc is not supported"),
        ("OTEL_TRACES_EXPORTER", "console", "OTEL_TRACES_EXPORTER=console is not supported"),
    ],
)
async def test_failed_export_is_reported(
    provider: ProviderServer, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, name: str, setting: str, notice: str
) -> None:
    monkeypatch.setenv(name, setting)
    provider.script(text("Hello."))
    async with agent(provider) as ours:
        notices = [event.text async for event in ours.run_stream("Hi.") if event.type == "notice"]  # type: ignore[attr-defined]
    assert [notice in each for each in notices] == ([True] if notice else [])
    assert not receiver.spans


WAYS_OUT = {
    "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:9/v1/traces",
    "OTEL_SDK_DISABLED": "true",
    "OTEL_TRACES_EXPORTER": "none",
    "OTEL_TRACES_SAMPLER": "always_off",
    "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc",
}


def collector(monkeypatch: pytest.MonkeyPatch) -> str:
    """The receiver's address, which no variable names any more."""
    address = os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"]
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_ENDPOINT")
    return address


@pytest.mark.parametrize("name", ["", *WAYS_OUT])
async def test_managed_endpoint_holds_whatever_variables_say(
    provider: ProviderServer, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    folder = tmp_path / "managed-settings"
    folder.mkdir()
    (folder / "managed.toml").write_text(f'telemetry.endpoint = "{collector(monkeypatch)}"\n')
    monkeypatch.setenv("WOLO_MANAGED_DIR", str(folder))
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=abc")
    if name:
        monkeypatch.setenv(name, WAYS_OUT[name])
    before = {each: value for each, value in os.environ.items() if each.startswith("OTEL_")}
    provider.script(text("Hello."))
    async with agent(provider, settings={"telemetry.endpoint": "http://127.0.0.1:9"}) as ours:
        notices = [event.text async for event in ours.run_stream("Hi.") if event.type == "notice"]  # type: ignore[attr-defined]
    assert [notice.partition(" of ")[0] for notice in notices] == ["telemetry.endpoint"]
    assert receiver.named("invoke_agent wolo")
    assert receiver.headers[0]["x-key"] == "abc"
    assert {each: value for each, value in os.environ.items() if each.startswith("OTEL_")} == before


async def test_endpoint_of_the_settings_beats_the_variables(
    provider: ProviderServer, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = collector(monkeypatch)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://127.0.0.1:9/v1/traces")
    provider.script(text("Hello."), text("Hello."))
    async with agent(provider, settings={"telemetry.endpoint": f"{address}/"}) as ours:
        await ours.run("Hi.")
    assert len([span for span in receiver.spans if span.name == "invoke_agent wolo"]) == 1
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    async with agent(provider, settings={"telemetry.endpoint": address}) as ours:
        await ours.run("Hi.")
    assert len([span for span in receiver.spans if span.name == "invoke_agent wolo"]) == 1


def test_endpoint_that_is_none_is_one_sentence(provider: ProviderServer) -> None:
    argv = [sys.executable, "-m", "wolo", "-p", *provider.flags, "--set", "telemetry.endpoint=localhost:4318", "Hi."]
    done = subprocess.run(argv, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60)
    assert done.returncode == 2
    assert "telemetry.endpoint" in done.stderr
    assert provider.requests == []


def test_dead_collector_costs_nothing_visible(provider: ProviderServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole command: its output is as without telemetry."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    provider.script(text("Hello."))
    argv = [sys.executable, "-m", "wolo", "-p", *provider.flags, "Hi."]
    done = subprocess.run(argv, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "Hello.\n", "")


def test_without_the_extra_a_notice_says_so(provider: ProviderServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    provider.script(text("Hello."))
    hidden = "import sys; sys.modules['opentelemetry.sdk'] = None; from wolo.__main__ import main; main()"
    argv = [sys.executable, "-c", hidden, "-p", *provider.flags, "Hi."]
    done = subprocess.run(argv, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60)
    assert (done.returncode, done.stdout) == (0, "Hello.\n")
    assert done.stderr.count("wolo-cli[otel]") == 1
