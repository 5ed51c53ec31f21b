"""Clients of the official SDK drive wolo: in-process, over pipes and over HTTP."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import mcp_types as types
import pytest
from jsonschema import validate
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from tests.fakes.provider_server import KEY, MODEL, Asked, ProviderServer
from tests.fakes.replies import Hold, Reply, call, text
from wolo.errors import UsageError
from wolo.frontends.mcp_server.server import make_server
from wolo.frontends.mcp_server.tasks import ServerTasks

ERAS = ("legacy", "2026-07-28")
"""With a handshake, where the server sends requests; without, where it answers with what it asks."""


@pytest.fixture
def model(provider: ProviderServer, monkeypatch: pytest.MonkeyPatch) -> ProviderServer:
    """What tasks ask: the scripted provider."""
    monkeypatch.setenv("WOLO_BASE_URL", provider.base_url)
    monkeypatch.setenv("WOLO_API_KEY", KEY)
    monkeypatch.setenv("WOLO_MODEL", f"custom/{MODEL}")
    return provider


@asynccontextmanager
async def served(mode: str = "", era: Any = "legacy", **client: Any) -> AsyncIterator[Client]:
    tasks = ServerTasks(mode=mode)
    try:
        async with Client(make_server(tasks), mode=era, **client) as connected:
            yield connected
    finally:
        await tasks.close()


def first_text(result: types.CallToolResult) -> str:
    assert isinstance(result.content[0], types.TextContent)
    return result.content[0].text


async def answered(client: Client, tool: str, arguments: dict[str, Any], **more: Any) -> dict[str, Any]:
    """The structured result, which fits its schema."""
    result = await client.call_tool(tool, arguments, **more)
    assert not result.is_error, result.content
    schema = next(each.output_schema for each in (await client.list_tools()).tools if each.name == tool)
    assert schema is not None
    validate(result.structured_content, schema)
    assert isinstance(result.structured_content, dict)
    return result.structured_content


def by_folder(asked: Asked) -> Reply:
    """Writes a file in whatever folder the task has, then says so."""
    if asked.results:
        return text("Done.")
    return call("write", {"path": "made.txt", "content": "made\n"})


@pytest.mark.parametrize("era", ERAS)
async def test_task_runs_reports_and_continues(model: ProviderServer, isolated: Path, era: str) -> None:
    model.script(call("write", {"path": "made.txt", "content": "made\n"}), text("Done."), text("It was made.txt."))
    told: list[str | None] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        told.append(message)

    async with served(era=era) as client:
        made = await answered(client, "run_task", {"prompt": "Make it.", "mode": "edit"}, progress_callback=on_progress)
        more = await answered(client, "continue_task", {"session_id": made["session_id"], "prompt": "Which file?"})
        listed = await answered(client, "list_sessions", {})
        read = await answered(client, "read_session", {"session_id": made["session_id"], "last": 3})
    assert (isolated / "work" / "made.txt").read_text() == "made\n"
    assert (made["text"], made["files_changed"], made["stop_reason"]) == ("Done.", ["made.txt"], "stop")
    assert told[0] == f"session {made['session_id']}"
    assert "write made.txt" in told
    assert (more["text"], more["session_id"]) == ("It was made.txt.", made["session_id"])
    assert [(row["id"], row["turns"], row["running"]) for row in listed["sessions"]] == [(made["session_id"], 2, False)]
    assert [each["role"] for each in read["messages"]] == ["assistant", "user", "assistant"]
    assert read["omitted"] == 2
    assert model.requests[-1].messages[-1]["content"] == "Which file?"


async def test_parallel_tasks_run_in_their_own_folders(model: ProviderServer, isolated: Path) -> None:
    model.otherwise = by_folder
    folders = [isolated / f"folder{number}" for number in range(4)]
    for folder in folders:
        folder.mkdir()
    async with served() as client:
        made = await asyncio.gather(
            *(answered(client, "run_task", {"prompt": "Go.", "cwd": str(folder), "mode": "edit"}) for folder in folders)
        )
        here = await answered(client, "list_sessions", {"cwd": str(folders[0])})
    assert all((folder / "made.txt").exists() for folder in folders)
    assert len({each["session_id"] for each in made}) == 4
    assert [row["id"] for row in here["sessions"]] == [made[0]["session_id"]]


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(("decision", "is_written"), [("once", True), ("no", False), (None, False)])
async def test_approvals_are_forms(
    model: ProviderServer, isolated: Path, era: str, decision: str | None, is_written: bool
) -> None:
    model.script(call("write", {"path": "made.txt", "content": "made\n"}), text("Over."))
    forms: list[types.ElicitRequestFormParams] = []

    async def fill(_: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        assert isinstance(params, types.ElicitRequestFormParams)
        forms.append(params)
        return types.ElicitResult(action="accept", content={} if decision is None else {"decision": decision})

    async with served(era=era, elicitation_callback=fill) as client:
        made = await answered(client, "run_task", {"prompt": "Go.", "mode": "ask"})
    assert len(forms) == 1
    assert "run: write\npath: made.txt\ncontent: made\n" in forms[0].message
    choices = [each["const"] for each in forms[0].requested_schema["properties"]["decision"]["oneOf"]]
    assert choices == ["once", "session", "always", "no", "never"]
    assert (isolated / "work" / "made.txt").exists() == is_written
    assert made["text"] == "Over."


async def test_a_client_without_forms_has_its_approvals_declined(model: ProviderServer, isolated: Path) -> None:
    model.script(call("write", {"path": "made.txt", "content": "x"}), text("Not allowed."))
    async with served() as client:
        made = await answered(client, "run_task", {"prompt": "Go.", "mode": "ask"})
    assert [each["tool"] for each in made["denials"]] == ["write"]
    assert not (isolated / "work" / "made.txt").exists()


@pytest.mark.parametrize("era", ERAS)
async def test_questions_are_forms(model: ProviderServer, era: str) -> None:
    question = {"question": "Which colour?", "header": "Colour", "options": [{"label": "red"}, {"label": "blue"}]}
    model.script(call("ask", {"questions": [question]}), text("Blue it is."))

    async def fill(_: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        assert "Which colour?" in params.message
        return types.ElicitResult(action="accept", content={"answer_1": "blue"})

    async with served(era=era, elicitation_callback=fill) as client:
        await answered(client, "run_task", {"prompt": "Go."})
    assert "blue" in model.requests[-1].results[0]


@pytest.mark.parametrize(("mode", "offered"), [("plan", ["keep", "revise"]), ("edit", ["edit", "keep", "revise"])])
async def test_plan_starts_in_no_looser_mode(model: ProviderServer, mode: str, offered: list[str]) -> None:
    model.script(call("present_plan", {"plan": "1. Measure"}), text("I wait."))

    async def fill(_: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        assert isinstance(params, types.ElicitRequestFormParams)
        assert [each["const"] for each in params.requested_schema["properties"]["answer_1"]["oneOf"]] == offered
        return types.ElicitResult(action="accept", content={"answer_1": "auto"})

    async with served(mode, elicitation_callback=fill) as client:
        await answered(client, "run_task", {"prompt": "Go.", "mode": "plan"})
    assert "does not say why" in model.requests[-1].results[0]


async def test_client_cannot_loosen_the_server_mode(model: ProviderServer) -> None:
    async with served() as client:
        refused = await client.call_tool("run_task", {"prompt": "Go.", "mode": "yolo"})
        other = await client.call_tool("run_task", {"prompt": "Go.", "mode": "bypassPermissions"})
    async with served("plan") as client:
        tightened = await client.call_tool("run_task", {"prompt": "Go.", "mode": "edit"})
    assert refused.is_error
    assert other.is_error
    assert "auto at most, not yolo" in first_text(refused)
    assert "plan at most, not edit" in first_text(tightened)
    assert not model.requests
    with pytest.raises(UsageError, match="no mode"):
        ServerTasks(mode="wild")


async def test_a_session_of_a_looser_server_is_tightened(model: ProviderServer, isolated: Path) -> None:
    model.script(text("Hello."), call("write", {"path": "made.txt", "content": "x"}), text("Denied."))
    async with served("yolo") as client:
        made = await answered(client, "run_task", {"prompt": "Go."})
    async with served("ask") as client:
        await answered(client, "continue_task", {"session_id": made["session_id"], "prompt": "Write."})
    assert not (isolated / "work" / "made.txt").exists()


async def test_running_task_is_listed_exclusive_and_cancellable(model: ProviderServer) -> None:
    held = Hold()
    model.script(Reply(pieces=(held,)), text("Again."))
    async with served() as client:
        running = asyncio.create_task(client.call_tool("run_task", {"prompt": "Wait."}))
        await asyncio.to_thread(held.wait_until_reached)
        [row] = (await answered(client, "list_sessions", {}))["sessions"]
        second = await client.call_tool("continue_task", {"session_id": row["id"], "prompt": "And?"})
        await answered(client, "cancel", {"session_id": row["id"]})
        ended = await running
        held.release()
        again = await answered(client, "continue_task", {"session_id": row["id"], "prompt": "Go on."})
        idle = await client.call_tool("cancel", {"session_id": row["id"]})
    assert row["running"]
    assert second.is_error
    assert "is running" in first_text(second)
    assert ended.is_error
    assert isinstance(ended.structured_content, dict)
    assert ended.structured_content["stop_reason"] == "interrupted"
    assert again["text"] == "Again."
    assert idle.is_error


@pytest.mark.parametrize("era", ERAS)
async def test_a_cancelled_request_interrupts_its_turn(model: ProviderServer, era: str) -> None:
    held = Hold()
    model.script(Reply(pieces=(held,)), text("Here."))
    async with served(era=era) as client:
        running = asyncio.create_task(client.call_tool("run_task", {"prompt": "Wait."}))
        await asyncio.to_thread(held.wait_until_reached)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        assert await asyncio.to_thread(model.requests[0].client_gone.wait, 10)
        held.release()
        [row] = (await answered(client, "list_sessions", {}))["sessions"]
        while row["running"]:
            [row] = (await answered(client, "list_sessions", {}))["sessions"]
        assert (await answered(client, "continue_task", {"session_id": row["id"], "prompt": "Still there?"}))["text"] == "Here."


@pytest.mark.parametrize(
    ("tool", "arguments", "expected"),
    [
        ("run_task", {}, "`prompt`"),
        ("run_task", {"prompt": ""}, "prompt"),
        ("run_task", {"prompt": "x", "colour": 1}, "colour"),
        ("run_task", {"prompt": "x", "cwd": "/nowhere/at/all"}, "no directory"),
        ("run_task", {"prompt": "x", "mode": "wild"}, "no mode"),
        ("continue_task", {"session_id": "nothing", "prompt": "x"}, "nothing"),
        ("read_session", {"session_id": "nothing"}, "nothing"),
        ("read_session", {"session_id": "nothing", "last": 0}, "last"),
        ("cancel", {"session_id": "nothing"}, "nothing"),
    ],
)
async def test_mistakes_are_sentences(model: ProviderServer, tool: str, arguments: dict[str, Any], expected: str) -> None:
    async with served() as client:
        result = await client.call_tool(tool, arguments)
    assert result.is_error
    assert expected in first_text(result)


async def test_a_session_is_named_by_its_id_alone(model: ProviderServer) -> None:
    model.script(text("Hello."))
    async with served() as client:
        made = await answered(client, "run_task", {"prompt": "greet the gardener"})
        session = made["session_id"]
        for spelling in ("gardener", "greet the gardener", session[:-1], f" {session}", session.upper() + "x"):
            for tool, more in (("continue_task", {"prompt": "again"}), ("read_session", {}), ("cancel", {})):
                result = await client.call_tool(tool, {"session_id": spelling, **more})
                assert result.is_error
                assert "There is no session" in first_text(result)
    assert len(model.requests) == 1


async def test_failed_task_names_reason_and_session(model: ProviderServer) -> None:
    model.script(Reply(status=401, headers={"content-type": "application/json"}, pieces=(b'{"error": {"message": "bad key"}}',)))
    async with served() as client:
        result = await client.call_tool("run_task", {"prompt": "Go."})
    assert result.is_error
    assert isinstance(result.structured_content, dict)
    assert result.structured_content["session_id"].startswith("session_")
    assert "bad key" in json.dumps(result.structured_content["error"])


WOLO = [sys.executable, "-m", "wolo", "mcp", "serve"]


async def test_over_pipes_nothing_but_the_protocol_is_printed(model: ProviderServer, isolated: Path) -> None:
    """The whole command, driven by the SDK's own client."""
    model.script(call("write", {"path": "made.txt", "content": "x"}), text("Done."))
    server = StdioServerParameters(command=WOLO[0], args=WOLO[1:], env=dict(os.environ))
    pipes = stdio_client(server, errlog=sys.__stderr__)  # type: ignore[arg-type]  # its default is bound at import, and may be closed
    async with Client(pipes, mode="legacy") as client:
        made = await answered(client, "run_task", {"prompt": "Go.", "mode": "edit"})
    assert made["text"] == "Done."
    assert (isolated / "work" / "made.txt").exists()


INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}


@pytest.mark.parametrize("ending", ["end of input", "SIGTERM"])
def test_the_end_of_the_client_saves_running_tasks(model: ProviderServer, ending: str) -> None:
    held = Hold()
    model.script(Reply(pieces=(held,)))
    asking = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "run_task", "arguments": {"prompt": "Wait."}}}
    lines = [INITIALIZE, {"jsonrpc": "2.0", "method": "notifications/initialized"}, asking]
    with subprocess.Popen(WOLO, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        process.stdin.write("".join(json.dumps(each) + "\n" for each in lines))
        process.stdin.flush()
        held.wait_until_reached()
        if ending == "SIGTERM":
            process.send_signal(signal.SIGTERM)
            process.wait(20)
        out, err = process.communicate(timeout=20)
    held.release()
    listed = subprocess.run(
        [sys.executable, "-m", "wolo", "sessions", "list", "--json"], capture_output=True, text=True, check=True
    )
    assert process.returncode == (143 if ending == "SIGTERM" else 0), err
    assert [json.loads(line)["jsonrpc"] for line in out.splitlines()]
    [session] = json.loads(listed.stdout)
    assert (session["turns"], session["live"]) == (1, False)


def test_questions_before_the_end_of_input_are_answered() -> None:
    asking = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "list_sessions", "arguments": {}}}
    lines = [INITIALIZE, {"jsonrpc": "2.0", "method": "notifications/initialized"}, asking]
    given = "".join(json.dumps(each) + "\n" for each in lines)
    ended = subprocess.run(WOLO, input=given, capture_output=True, text=True, check=True)
    answers = {each["id"]: each for each in map(json.loads, ended.stdout.splitlines())}
    assert answers[2]["result"]["structuredContent"] == {"sessions": []}


@contextmanager
def serving_http(*options: str) -> Iterator[str]:
    with subprocess.Popen([*WOLO, "--http", *options], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130


async def test_http_serves_this_machine_with_token_only(model: ProviderServer, isolated: Path) -> None:
    model.script(call("write", {"path": "made.txt", "content": "x"}), text("Done."))

    async def approve(_: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        return types.ElicitResult(action="accept", content={"decision": "once"})

    with serving_http() as line:
        address, _, token = line.partition("?token=")
        assert address.endswith("/mcp")
        bearer = {"Authorization": f"Bearer {token}"}
        with httpx2.Client() as raw:
            statuses = [
                raw.post(address, json=INITIALIZE, headers=headers).status_code
                for headers in (
                    {},
                    {"Authorization": "Bearer wrong"},
                    {**bearer, "Host": "evil.example"},
                    {**bearer, "Origin": "http://evil.example"},
                )
            ]
        async with (
            httpx2.AsyncClient(headers=bearer, timeout=30) as http,
            Client(streamable_http_client(address, http_client=http), mode="legacy", elicitation_callback=approve) as client,
        ):
            made = await answered(client, "run_task", {"prompt": "Go.", "mode": "ask"})
    assert statuses == [401, 401, 403, 403]
    assert made["text"] == "Done."
    assert (isolated / "work" / "made.txt").exists()


def test_a_port_needs_http() -> None:
    ended = subprocess.run([*WOLO, "--port", "0"], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert ended.returncode == 2
    assert "--port needs --http" in ended.stderr
