"""Asking aside: the model sees what was said, and the conversation goes on as if nobody had asked."""

from __future__ import annotations

import asyncio
from functools import reduce
from pathlib import Path

import pytest

from tests.fakes.prompts import typed
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import Hold, Reply, call, delta, error, finish, sse, text, usage
from wolo.agent.budget import NOTHING, add
from wolo.conversation.conversation import Conversation
from wolo.conversation.factory import open_conversation
from wolo.conversation.resources.startup import StartOptions
from wolo.errors import ProviderError, UsageError


async def begin(provider: ProviderServer, **given: str) -> Conversation:
    options = {"base_url": provider.base_url, "model": "test-model", "api_key": "key", "mode": "auto", **given}
    return await open_conversation(StartOptions(flags=options, attended=True))


async def say(conversation: Conversation, words: str) -> None:
    async for _ in conversation.prompt(typed(words)):
        pass


async def test_model_sees_the_conversation_and_nothing_is_kept(provider: ProviderServer) -> None:
    provider.script(call("glob", {"pattern": "*"}), text("I looked."), text("It is a side door."), text("Done."))
    conversation = await begin(provider)
    await say(conversation, "look around")
    assert await conversation.aside("what is a postern?") == "It is a side door."
    await say(conversation, "go on")
    aside, after = provider.requests[2:]
    block, _, asked = (message["content"] for message in aside.messages[1:])
    assert block.startswith("User: look around\n\n")
    assert 'Tool: {"name": "glob"' in block
    assert "what is a postern?" in asked
    assert "tools" not in aside.json
    assert "postern" not in after.body.decode()
    assert "side door" not in after.body.decode()
    assert not any("postern" in message.text for message in conversation.history)
    await conversation.close()


async def test_it_can_be_asked_while_a_turn_runs(provider: ProviderServer) -> None:
    hold = Hold()
    provider.aside = text("Seventeen.")
    provider.script(sse(delta("Work"), hold, delta("ing."), finish("stop")))
    conversation = await begin(provider)
    turn = asyncio.create_task(say(conversation, "work"))
    await asyncio.to_thread(hold.reached.wait, 10)
    assert await conversation.aside("how many?") == "Seventeen."
    assert not turn.done()
    hold.released.set()
    await turn
    assert [message.text for message in conversation.history] == ["work", "Working."]
    await conversation.close()


async def test_cost_counts_after_a_restart(provider: ProviderServer) -> None:
    provider.script(text("One.", usage=usage(100, 10)), text("Aside.", usage=usage(30, 3)))
    conversation = await begin(provider)
    await say(conversation, "one")
    await conversation.aside("two?")
    await conversation.close()
    again = await begin(provider, resume=conversation.info.session_id)
    assert reduce(add, again.side_question_usage, NOTHING).input_tokens == 30
    assert [message.text for message in again.history] == ["one", "One."]
    await again.close()


async def test_a_secret_does_not_leave_with_it(provider: ProviderServer) -> None:
    provider.script(text("Hm."))
    conversation = await begin(provider, api_key="sk-very-secret-0123456789")
    await conversation.aside("is sk-very-secret-0123456789 fine?")
    assert b"very-secret" not in provider.requests[0].body
    await conversation.close()


async def test_no_answer_is_an_error(provider: ProviderServer) -> None:
    provider.script(text(""), error(400, {"error": {"message": "no"}}))
    conversation = await begin(provider)
    for _ in range(2):
        with pytest.raises(ProviderError):
            await conversation.aside("hm?")
    await conversation.close()


@pytest.mark.parametrize("looped", [text("and on " * 4_000), text("Fine.", reasoning="\n" * 20_000)])
async def test_looping_answer_is_an_error(provider: ProviderServer, looped: Reply) -> None:
    provider.script(looped)
    conversation = await begin(provider)
    with pytest.raises(ProviderError, match="same passage"):
        await conversation.aside("hm?")
    await conversation.close()


async def test_it_keeps_to_the_budget(provider: ProviderServer) -> None:
    provider.script(text("One.", usage=usage(100, 10)))
    conversation = await begin(provider, max_tokens="50")
    await say(conversation, "one")
    with pytest.raises(UsageError, match="50 tokens"):
        await conversation.aside("two?")
    await conversation.close()


async def test_next_prompt_begins_as_without_the_aside(provider: ProviderServer) -> None:
    """Also when a word of the instructions has turned out to be a secret in between."""
    Path("AGENTS.md").write_text("The word is plugh-xyzzy-0123456789.\n")
    provider.script(text("One."), text("Aside."), text("Two."))
    conversation = await begin(provider)
    await say(conversation, "one")
    Path(".env").write_text("TOKEN=plugh-xyzzy-0123456789\n")
    conversation.files.allow_attachment(Path(".env").absolute())
    await conversation.aside("two?")
    await say(conversation, "three")
    first, _, last = provider.requests
    assert first.messages[0] == last.messages[0]
    assert "plugh-xyzzy" in first.messages[0]["content"]
    await conversation.close()
