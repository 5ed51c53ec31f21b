"""Changing the mode of a running conversation changes permissions and sandbox of later calls."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import components
from tests.fakes.prompts import typed
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import call, text
from tests.guard.sandbox_setup import CHOSEN
from wolo.agent.events import ApprovalAsked
from wolo.conversation.conversation import Conversation
from wolo.conversation.factory import open_conversation
from wolo.conversation.resources.startup import ConversationChange, StartOptions
from wolo.errors import UsageError


async def begin(provider: ProviderServer, mode: str, **given: str) -> Conversation:
    options = {"base_url": provider.base_url, "model": "test-model", "api_key": "key", "mode": mode, **given}
    return await open_conversation(StartOptions(flags=options, attended=True))


async def asked(conversation: Conversation, prompt: str) -> list[str]:
    """The tools whose calls a person was asked about; the answer is no."""
    tools = []
    async for event in conversation.prompt(typed(prompt)):
        if isinstance(event, ApprovalAsked):
            tools.append(event.part.tool)
            conversation.answer(event.id, allowed=False)
    return tools


async def test_a_mode_holds_from_the_next_call_on(provider: ProviderServer) -> None:
    write = call("write", {"path": "new.txt", "content": "x\n"})
    provider.script(write, text("no"), write, text("denied"), write, text("written"))
    conversation = await begin(provider, "ask")
    try:
        assert await asked(conversation, "one") == ["write"]
        assert conversation.set_mode("plan") == ""
        assert conversation.info.mode == "plan"
        assert await asked(conversation, "two") == []
        assert not Path("new.txt").exists()
        assert conversation.set_mode("accept-edits") == ""
        assert conversation.info.mode == "edit"
        assert await asked(conversation, "three") == []
        assert Path("new.txt").exists()
    finally:
        await conversation.close()


async def test_a_mode_lasts_when_another_conversation_follows(provider: ProviderServer) -> None:
    conversation = await begin(provider, "ask")
    conversation.set_mode("plan")
    following = await conversation.reopen(ConversationChange(session=None))
    assert following.info.mode == "plan"
    await following.close()


async def test_sandbox_starts_with_the_mode_needing_it(provider: ProviderServer) -> None:
    components.require("bwrap")
    provider.script(call("shell", {"command": "echo $WOLO_SANDBOX > made"}), text("ok"))
    conversation = await begin(provider, "edit")
    try:
        assert conversation.info.sandbox == ""
        assert conversation.set_mode("auto") == ""
        assert conversation.info.sandbox == CHOSEN
        assert await asked(conversation, "go") == []
        assert Path("made").read_text() == f"{CHOSEN}\n"
        conversation.set_mode("edit")
        assert conversation.info.sandbox == ""
    finally:
        await conversation.close()


async def test_auto_without_walls_is_edit_and_says_so(provider: ProviderServer) -> None:
    conversation = await begin(provider, "plan", sandbox="off")
    try:
        assert "works like edit" in conversation.set_mode("auto")
        assert conversation.info.mode == "edit"
    finally:
        await conversation.close()


async def test_person_enters_yolo_for_one_conversation_only(provider: ProviderServer) -> None:
    provider.script(text("hello"), call("shell", {"command": "echo x > made"}), text("ok"))
    conversation = await begin(provider, "ask")
    await asked(conversation, "hello")
    assert conversation.set_mode("yolo") == ""
    assert await asked(conversation, "go") == []
    assert Path("made").read_text() == "x\n"
    await conversation.close()
    later = await begin(provider, "ask", resume=conversation.info.session_id)
    assert (later.info.session_id, later.info.mode) == (conversation.info.session_id, "ask")
    await later.close()


async def test_missing_mode_cannot_be_entered(provider: ProviderServer) -> None:
    conversation = await begin(provider, "ask")
    try:
        with pytest.raises(UsageError):
            conversation.set_mode("careful")
        assert conversation.info.mode == "ask"
    finally:
        await conversation.close()
