"""Sessions without a prompt, prompts during a turn, and announcements that fail."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from acp.exceptions import RequestError
from acp.helpers import resource_link_block

from tests.fakes.acp_client import editor
from tests.fakes.command import run_wolo
from tests.fakes.provider_server import KEY, ProviderServer
from tests.fakes.replies import Hold, Reply, text
from wolo.conversation.conversation import Conversation
from wolo.conversation.factory import open_conversation
from wolo.conversation.resources.startup import StartOptions
from wolo.frontends.acp.session import Session


@pytest.fixture
def work(isolated: Path) -> Path:
    return isolated / "work"


def held(words: str, hold: Hold) -> Reply:
    reply = text(words)
    return Reply(pieces=(*reply.pieces[:2], hold, *reply.pieces[2:]))


async def test_session_without_a_prompt_is_loaded(provider: ProviderServer, work: Path) -> None:
    provider.script(text("Fine."))
    async with editor(*provider.flags) as client:
        session, deleted = (await client.new(work)).session_id, (await client.new(work)).session_id
        await client.agent.load_session(cwd=str(work), session_id=session, mcp_servers=[])
        await client.agent._conn.send_request("session/delete", {"sessionId": deleted})
        with pytest.raises(RequestError, match="no session"):
            await client.agent.load_session(cwd=str(work), session_id=deleted, mcp_servers=[])
    async with editor(*provider.flags) as client:
        await client.agent.load_session(cwd=str(work), session_id=session, mcp_servers=[])
        fork = await client.agent.fork_session(cwd=str(work), session_id=session, mcp_servers=[])
        assert fork.session_id != session
        assert (await client.say(session, "hello")).stop_reason == "end_turn"
        assert client.text(session) == "Fine."
        await client.agent.load_session(cwd=str(work), session_id=session, mcp_servers=[])
        assert [each.content.text for each in client.of("user_message_chunk", session)] == ["hello"]
        listed = await client.agent.list_sessions()
        assert [each.session_id for each in listed.sessions] == [session]


async def test_prompt_during_a_turn_steers_it(provider: ProviderServer, work: Path) -> None:
    hold = Hold()
    provider.script(held("a long answer", hold), text("Brief."))
    async with editor(*provider.flags) as client:
        session = (await client.new(work)).session_id
        asking = asyncio.create_task(client.say(session, "go"))
        await client.until(lambda each: each.session_update == "agent_message_chunk")
        (work / "a.py").touch()
        for refused in (["/compact"], [resource_link_block("a.py", (work / "a.py").as_uri())], ["  "]):
            with pytest.raises(RequestError, match=r"only text|empty"):
                await client.say(session, *refused)
        steering = asyncio.create_task(client.say(session, "be brief"))
        await client.agent.set_session_mode(session_id=session, mode_id="edit")  # answered after the prompt was read
        hold.release()
        assert [(await each).stop_reason for each in (asking, steering)] == ["end_turn", "end_turn"]
        assert client.text(session) == "a long answerBrief."
    assert provider.requests[1].messages[-1]["content"].endswith("be brief")


async def test_cancellation_ends_the_steered_turn_too(provider: ProviderServer, work: Path) -> None:
    hold = Hold()
    provider.script(held("a long answer", hold), text("Done."))
    async with editor(*provider.flags) as client:
        session = (await client.new(work)).session_id
        asking = asyncio.create_task(client.say(session, "go"))
        await client.until(lambda each: each.session_update == "agent_message_chunk")
        steering = asyncio.create_task(client.say(session, "be brief"))
        await client.agent.set_session_mode(session_id=session, mode_id="edit")
        await client.agent.cancel(session_id=session)
        assert [(await each).stop_reason for each in (asking, steering)] == ["cancelled", "cancelled"]
        hold.release()
        assert (await client.say(session, "again")).stop_reason == "end_turn"


async def test_usage_comes_only_with_a_size(provider: ProviderServer, work: Path) -> None:
    provider.script(text("Fine."), text("Fine."))
    for options in ((), ("--set", "context.window=9000")):
        provider.forget_prefix()
        async with editor(*provider.flags, *options) as client:
            session = (await client.new(work)).session_id
            await client.say(session, "hello")
            assert {each.size for each in client.of("usage_update")} == ({9000} if options else set())


async def test_commands_that_cannot_be_listed_are_reported(
    provider: ProviderServer, work: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Client:
        def __init__(self) -> None:
            self.updates: asyncio.Queue[Any] = asyncio.Queue()

        async def update(self, session_id: str, update: Any) -> None:
            self.updates.put_nowait(update)

    def fail(conversation: Conversation) -> None:
        raise OSError("no such disk")

    monkeypatch.setattr("wolo.frontends.acp.slash_commands.available", fail)
    flags = {"base_url": provider.base_url, "api_key": KEY, "model": "custom/test-model"}
    conversation = await open_conversation(StartOptions(flags=flags, attended=False, cwd=work))
    session = Session(conversation, client := Client())  # type: ignore[arg-type]  # the other end of the wire
    session.announce_soon()
    said = await asyncio.wait_for(client.updates.get(), 20)
    assert said.content.text == "The slash commands cannot be listed: OSError\n"
    assert "could not be announced" in caplog.text
    await session.close()


def test_help_names_the_options_that_apply() -> None:
    page = run_wolo("acp", "--help").stdout
    assert all(option in page for option in ("--model", "--mode", "--add-dir", "--set", "--trust"))
    assert not any(f"{option} " in page for option in ("--print", "--resume", "--output-format", "--json", "--bg", "--goal"))
