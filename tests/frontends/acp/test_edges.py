"""A client that cancels or dies while it is asked, long sessions, wrong requests and odd lines."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from acp.exceptions import RequestError
from acp.schema import AcceptElicitationResponse

from tests.fakes.acp_client import Editor, editor
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import Reply, call, text
from wolo import Agent, Message, TextPart
from wolo.testing import ScriptedTransport

WRITE = call("write", {"path": "a.py", "content": "x = 1\n"})
ASK = call("ask", {"questions": [{"question": "Which colour?", "options": [{"label": "red"}, {"label": "blue"}]}]})
PLAN = call("present_plan", {"plan": "1. Measure"})
OPEN = [
    pytest.param(WRITE, False, "ask", id="permission"),
    pytest.param(ASK, False, "ask", id="choice"),
    pytest.param(ASK, True, "ask", id="form"),
    pytest.param(PLAN, False, "plan", id="plan"),
]


@pytest.fixture
def work(isolated: Path) -> Path:
    return isolated / "work"


async def begin(client: Editor, work: Path) -> tuple[str, asyncio.Task[Any]]:
    """A session whose turn waits for the client's answer."""
    client.answers_requests.clear()
    session = (await client.new(work)).session_id
    asking = asyncio.create_task(client.say(session, "go"))
    async with asyncio.timeout(60):
        await client.is_asked.wait()
    return session, asking


@pytest.mark.parametrize(("reply", "forms", "mode"), OPEN)
async def test_cancellation_ends_a_turn_awaiting_the_user(
    provider: ProviderServer, work: Path, reply: Reply, forms: bool, mode: str
) -> None:
    provider.script(reply, text("Done."))
    async with editor(*provider.flags, "--mode", mode, forms=forms) as client:
        client.fill_in = lambda message: AcceptElicitationResponse(action="accept", content={"answer_1": "red"})
        session, asking = await begin(client, work)
        await client.agent.cancel(session_id=session)
        assert (await asking).stop_reason == "cancelled"
        client.answers_requests.set()  # too late
        assert (await client.say(session, "again")).stop_reason == "end_turn"
    assert not (work / "a.py").exists()
    assert len(provider.requests) == 2
    assert "red" not in provider.requests[1].results[-1]


@pytest.mark.parametrize(("reply", "forms", "mode"), OPEN)
async def test_client_dying_during_a_question_decides_nothing(
    provider: ProviderServer, work: Path, reply: Reply, forms: bool, mode: str
) -> None:
    provider.script(reply)
    async with editor(*provider.flags, "--mode", mode, forms=forms) as client:
        session, asking = await begin(client, work)
    assert (await asking).stop_reason == "cancelled"
    assert not (work / "a.py").exists()
    async with editor(*provider.flags) as client:
        await client.agent.load_session(cwd=str(work), session_id=session, mcp_servers=[])
        assert [each.content.text for each in client.of("user_message_chunk")] == ["go"]
        (ended,) = client.of("tool_call_update")
        assert ended.status == "failed"
    assert len(provider.requests) == 1


async def test_session_keeps_its_id_after_model_choice(provider: ProviderServer, work: Path) -> None:
    provider.script(text("Done."), text("Again."))
    async with editor(*provider.flags) as client:
        session = (await client.new(work)).session_id
        await client.agent._conn.send_request("session/set_model", {"sessionId": session, "modelId": "custom/other-model"})
        await client.say(session, "go")
        assert provider.requests[0].json["model"] == "other-model"
        assert client.text(session) == "Done."
        await client.agent.close_session(session_id=session)
        await client.agent.resume_session(cwd=str(work), session_id=session)
        await client.say(session, "again")
        assert client.text(session) == "Done.Again."


async def test_a_long_session_is_loaded_in_order(provider: ProviderServer, work: Path) -> None:
    said = [f"{role} {number}" for number in range(300) for role in ("question", "answer")]
    history = [
        Message(role="assistant" if at % 2 else "user", parts=(TextPart(text=each),), finished=True)
        for at, each in enumerate(said)
    ]
    async with Agent("test/m", transport=ScriptedTransport(["answer last"]), cwd=work) as agent:
        await agent.run("question last", history=history)
    async with editor(*provider.flags) as client:
        await client.agent.load_session(cwd=str(work), session_id=agent.session_id, mcp_servers=[])
        messages = [each for _, each in client.updates if each.session_update.endswith("_message_chunk")]
    assert [each.content.text for each in messages] == [*said, "question last", "answer last"]


async def test_wrong_request_is_refused_with_its_parameter(provider: ProviderServer, work: Path) -> None:
    async with editor(*provider.flags) as client:
        session = (await client.new(work)).session_id
        for method, params, words in (
            ("session/set_model", {"modelId": ""}, "model is empty"),
            ("session/set_model", {"modelId": 5}, "modelId is missing"),
            ("session/set_mode", {"modeId": "nothing"}, "no mode"),
            ("session/set_config_option", {"configId": "thinking", "value": "huge"}, "Unknown thinking level"),
            ("session/set_config_option", {"configId": "mode"}, "value: Field required"),
            ("session/prompt", {"prompt": "text"}, "prompt: Input should be a valid list"),
            ("session/prompt", {"prompt": []}, "prompt is empty"),
            ("session/prompt", {"prompt": [{"type": "text", "text": " \n"}]}, "prompt is empty"),
        ):
            with pytest.raises(RequestError, match=words) as refused:
                await client.agent._conn.send_request(method, {"sessionId": session, **params})
            assert refused.value.code == -32602, method
    assert not provider.requests


async def test_unreadable_server_costs_itself_with_a_notice(provider: ProviderServer, work: Path) -> None:
    async with editor(*provider.flags) as client:
        params = {"cwd": str(work), "mcpServers": [{"name": "x"}, {"type": "later", "name": "y"}, 5]}
        opened = await client.agent._conn.send_request("session/new", params)
        await client.until(lambda each: each.session_update == "available_commands_update")
        (notice,) = client.of("agent_thought_chunk", opened["sessionId"])
        assert notice.content.text == "Ignored 3 MCP servers of the editor that wolo cannot read.\n"


def test_odd_line_is_answered_and_next_request_too(provider: ProviderServer) -> None:
    lines = {
        b'{"jsonrpc":"2.0","id":1,"method":"\xff"}': -32700,
        b"[" * 100_000: -32700,
        b"\x00": -32700,
        b'[{"jsonrpc":"2.0","id":1,"method":"session/list"}]': -32600,
        b'{"jsonrpc":"2.0","id":true,"method":"session/list"}': -32600,
        b'{"jsonrpc":"2.0","id":{},"method":"session/list"}': -32600,
        b'{"id":1,"method":"session/list"}': -32600,
        b'{"jsonrpc":"2.0","id":1,"method":"session/new","params":[1]}': -32602,
        b'{"jsonrpc":"2.0","id":1,"method":"session/cancel","params":{"sessionId":"x"}}': -32601,
        b'{"jsonrpc":"2.0","method":"session/new","params":{"cwd":5}}': None,  # a notification
        b'{"jsonrpc":"2.0","method":"no/such"}': None,
        b'{"jsonrpc":"2.0","id":99,"result":{}}': None,  # nothing was asked
        b'{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"' + b"x" * 5_000_000 + b'"}}': -32602,
        b'{"jsonrpc":"2.0","id":"last","method":"session/list","params":{}}\r': 0,
    }
    done = subprocess.run(
        [sys.executable, "-m", "wolo", "acp", *provider.flags],
        input=b"\n".join(lines),
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    codes = [each["error"]["code"] if "error" in each else 0 for each in answers]
    assert sorted(codes) == sorted(code for code in lines.values() if code is not None)
    assert [each["result"] for each in answers if each["id"] == "last"] == [{"sessions": []}]
