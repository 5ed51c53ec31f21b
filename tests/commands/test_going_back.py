"""Going back: to before a prompt, to another branch; what was left is never lost, and the model is told what stays done."""

from __future__ import annotations

import pytest

from tests.commands.test_commands import converse, say, shown
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import call, text
from wolo.commands.command import CommandContext, SwitchConversation, dispatch
from wolo.commands.table import load_commands
from wolo.conversation.conversation import Conversation
from wolo.errors import UsageError

COMMANDS = load_commands()


async def go(line: str, conversation: Conversation) -> SwitchConversation:
    outcome = await dispatch(line, CommandContext(conversation, COMMANDS))
    assert isinstance(outcome, SwitchConversation)
    return outcome


def last_words(provider: ProviderServer) -> list[str]:
    return [message["content"] for message in provider.requests[-1].messages[1:]]


async def test_a_prompt_is_taken_back_and_written_anew(provider: ProviderServer) -> None:
    provider.script(text("A one."), text("A two."), text("A three."))
    conversation = await converse(provider)
    assert "Nothing of this conversation" in await shown("/tree", conversation)
    await say(conversation, "one")
    await say(conversation, "two")
    opened = await go("/rewind 2", conversation)
    assert opened.draft == "two"
    provider.forget_prefix()
    await say(opened.conversation, "other two")
    assert last_words(provider) == ["one", "A one.", "other two"]
    drawn = await shown("/tree", opened.conversation)
    assert drawn.split("\n")[:3] == ["  1 ● one", "├─   2 ○ two", "└─   3 ● other two  ← here"]
    await opened.conversation.close()


async def test_abandoned_branch_can_be_continued(provider: ProviderServer) -> None:
    provider.script(text("A one."), text("A two."), text("A other."), text("A again."))
    conversation = await converse(provider)
    await say(conversation, "one")
    await say(conversation, "two")
    other = (await go("/rewind 1", conversation)).conversation
    provider.forget_prefix()
    await say(other, "other")
    back = (await go("/branch 2", other)).conversation
    provider.forget_prefix()
    await say(back, "go on")
    assert last_words(provider) == ["one", "A one.", "two", "A two.", "go on"]
    with pytest.raises(UsageError, match="is there already"):
        await dispatch("/branch 2", CommandContext(back, COMMANDS))
    await back.close()


async def test_the_model_is_told_what_was_not_undone(provider: ProviderServer) -> None:
    provider.script(text("A one."), call("write", {"path": "new.py", "content": "x = 1\n"}), text("Wrote it."), text("Fine."))
    conversation = await converse(provider)
    await say(conversation, "one")
    await say(conversation, "write it")
    back = (await go("/rewind 2", conversation)).conversation
    provider.forget_prefix()
    await say(back, "what now?")
    assert any("new.py changed" in words for words in last_words(provider))
    assert "write it" not in last_words(provider)
    await back.close()


async def test_a_prompt_can_be_named(provider: ProviderServer) -> None:
    provider.script(text("A one."), text("A two."))
    conversation = await converse(provider)
    await say(conversation, "one")
    await say(conversation, "two")
    assert await shown("/label 1 the start", conversation) == "Label: the start"
    assert await shown("/label good so far", conversation) == "Label: good so far"
    drawn = (await shown("/tree", conversation)).split("\n")
    assert drawn[:2] == ["  1 ● one  [the start]", "  2 ● two  [good so far]  ← here"]
    await conversation.close()


@pytest.mark.parametrize("line", ["/rewind 7", "/rewind x", "/branch 0", "/branch -1", "/label", "/label 9 x"])
async def test_missing_number_is_reported_in_words(provider: ProviderServer, line: str) -> None:
    provider.script(text("A one."))
    conversation = await converse(provider)
    await say(conversation, "one")
    with pytest.raises(UsageError) as caught:
        await dispatch(line, CommandContext(conversation, COMMANDS))
    assert caught.value.hint
    await conversation.close()
