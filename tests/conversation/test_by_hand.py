"""Commands of the person's own, which they run from inside a conversation."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.fakes.provider_server import ProviderServer
from wolo.agent.events import CallEnded, CallProgressed, CallStarted
from wolo.conversation.conversation import Conversation
from wolo.conversation.factory import open_conversation
from wolo.conversation.resources.startup import StartOptions


@asynccontextmanager
async def begun(provider: ProviderServer, mode: str = "plan") -> AsyncIterator[Conversation]:
    given = {"base_url": provider.base_url, "model": "test-model", "api_key": "key", "mode": mode}
    conversation = await open_conversation(StartOptions(flags=given, attended=True))
    try:
        yield conversation
    finally:
        await conversation.close()


async def ended(conversation: Conversation, command: str) -> CallEnded:
    events = [event async for event in conversation.run_user_command(command)]
    assert isinstance(events[0], CallStarted)
    assert isinstance(events[-1], CallEnded)
    return events[-1]


async def test_command_runs_in_any_mode_and_moves_shell(provider: ProviderServer) -> None:
    Path("below").mkdir()
    async with begun(provider) as conversation:
        assert "made" in (await ended(conversation, "cd below && touch made && ls")).part.output
        assert (await ended(conversation, "pwd")).part.output.startswith(f"{Path.cwd()}/below\n")
        failed = (await ended(conversation, "exit 3")).part
        assert failed.is_error
        assert "[exit 3]" in failed.output
        assert conversation.session.stored.tree() == ([], 0)


async def test_it_sees_the_persons_own_environment(provider: ProviderServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_OWN_SETTING", "it is mine")
    async with begun(provider) as conversation:
        assert "it is mine" in (await ended(conversation, "echo $MY_OWN_SETTING")).part.output


async def test_it_is_stopped_with_all_it_started(provider: ProviderServer) -> None:
    async with begun(provider) as conversation:
        last = None
        async for event in conversation.run_user_command("echo begun; sleep 300; touch after"):
            if isinstance(event, CallProgressed):
                conversation.interrupt()
            last = event
        assert isinstance(last, CallEnded)
        assert last.part.outcome == "interrupted"
    assert not Path("after").exists()
