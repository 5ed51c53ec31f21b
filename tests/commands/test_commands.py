"""Slash commands are values: what each does with a conversation, and how a typed line finds it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakes.prompts import typed
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import call, text, usage
from wolo.commands.command import CommandContext, Exit, ShowText, SwitchConversation, dispatch
from wolo.commands.table import load_commands
from wolo.conversation.conversation import Conversation
from wolo.conversation.factory import open_conversation
from wolo.conversation.phrasing import in_words
from wolo.conversation.resources.startup import StartOptions
from wolo.errors import UsageError, WoloError
from wolo.messages.message import Usage, UsageCost
from wolo.places import find_places

COMMANDS = load_commands()


async def converse(provider: ProviderServer, **flags: str) -> Conversation:
    _, base_url, _, key, _, model = provider.flags
    given = {"base_url": base_url, "api_key": key, "model": model, **flags}
    return await open_conversation(StartOptions(flags=given, attended=False))


async def say(conversation: Conversation, words: str) -> None:
    async for _ in conversation.prompt(typed(words)):
        pass


async def shown(line: str, conversation: Conversation) -> str:
    outcome = await dispatch(line, CommandContext(conversation, COMMANDS))
    assert isinstance(outcome, ShowText)
    return outcome.text


async def test_help_names_every_command_and_its_aliases(provider: ProviderServer) -> None:
    conversation = await converse(provider)
    page = await shown("/help", conversation)
    assert all(f"/{name}" in page for command in COMMANDS for name in (command.name, *command.aliases))
    assert await shown("/?", conversation) == page
    await conversation.close()


async def test_an_unknown_command_names_help(provider: ProviderServer) -> None:
    conversation = await converse(provider)
    for line in ("/nosuch", "/", "/ help", "/Model x"):
        with pytest.raises(UsageError) as caught:
            await dispatch(line, CommandContext(conversation, COMMANDS))
        assert "/help" in caught.value.hint
    await conversation.close()


async def test_leaving_has_three_names(provider: ProviderServer) -> None:
    conversation = await converse(provider)
    for line in ("/exit", "/quit", "/q"):
        assert isinstance(await dispatch(line, CommandContext(conversation, COMMANDS)), Exit)
    await conversation.close()


async def test_cost_counts_the_whole_session(provider: ProviderServer) -> None:
    provider.script(text("One.", usage=usage(100, 10, cached=40)), text("Two.", usage=usage(200, 20)))
    conversation = await converse(provider)
    assert await shown("/cost", conversation) == "No request has been sent in this session yet."
    await say(conversation, "one")
    await say(conversation, "two")
    assert await shown("/cost", conversation) == "300 tokens in (40 cached) · 30 out · price unknown · 2 answers in this session"
    following = await dispatch("/model custom/other", CommandContext(conversation, COMMANDS))
    assert isinstance(following, SwitchConversation)
    assert "2 answers" in await shown("/cost", following.conversation)
    await following.conversation.close()


async def test_receipt_counts_the_newest_turn_alone(provider: ProviderServer) -> None:
    Path("big.txt").write_text("word word word word\n" * 1000)
    reads = call("read", {"path": "big.txt"}, usage=usage(200, 20, cached=40, reasoning=5))
    provider.script(text("Hi.", usage=usage(100, 10)), reads, text("So.", usage=usage(6000, 30, cached=5000)))
    conversation = await converse(provider)
    assert await shown("/cost turn", conversation) == "No request of this turn has been answered yet."
    await say(conversation, "hello")
    await say(conversation, "read it")
    receipt = (await shown("/cost turn", conversation)).splitlines()
    assert [" ".join(line.split()) for line in receipt[:5]] == [
        *("fresh 1,160", "cached 5,040", "written 0", "output 50, 5 of it reasoning"),
        "price unknown · 2 answers in this turn",
    ]
    assert receipt[6].startswith("A request is now ~")
    assert "tool calls and outputs ~" in receipt[6]
    assert receipt[7].startswith("Largest calls: read big.txt ~5,")
    with pytest.raises(UsageError, match="does not know 'trun'"):
        await shown("/cost trun", conversation)
    await conversation.close()


async def test_receipt_names_compactions_and_side_questions(provider: ProviderServer) -> None:
    provider.linted = False
    provider.otherwise = text("Words. " * 900, usage=usage(100, 10))
    conversation = await converse(provider)
    await say(conversation, "first " * 2_000)
    await conversation.aside("before")
    await say(conversation, "second")
    provider.script(text("A summary.", usage=usage(70, 7)), text("Aside.", usage=usage(60, 6)))
    async for _ in conversation.compact():
        pass
    await conversation.aside("what?")
    rows = [" ".join(line.split()) for line in (await shown("/cost turn", conversation)).splitlines()[:7]]
    assert rows == [
        *("fresh 230", "cached 0", "written 0", "output 23"),
        "of it 1 compaction: 70 tokens in · 7 out · price unknown",
        "of it 1 side question: 60 tokens in · 6 out · price unknown",
        "price unknown · 1 answer and 1 compaction and 1 side question in this turn",
    ]
    await conversation.close()


async def test_receipt_after_resume_counts_compactions_too(provider: ProviderServer) -> None:
    provider.linted = False
    provider.otherwise = text("Words. " * 900, usage=usage(100, 10))
    conversation = await converse(provider)
    for words in ("first " * 2_000, "second"):
        await say(conversation, words)
        provider.script(text("A summary.", usage=usage(70, 7)), text("Aside.", usage=usage(60, 6)))
        async for _ in conversation.compact():
            pass
        await conversation.aside("what?")
    before = await shown("/cost turn", conversation)
    await conversation.close()
    resumed = await converse(provider, resume=conversation.info.session_id)
    assert (await shown("/cost turn", resumed)).splitlines()[:7] == before.splitlines()[:7]
    assert "1 answer and 1 compaction and 1 side question" in before
    await resumed.close()


async def test_limited_agent_names_the_mode_in_force(provider: ProviderServer) -> None:
    folder = find_places().config / "agents"
    folder.mkdir(parents=True)
    (folder / "planner.md").write_text("---\ndescription: x\nmode: primary\npermissionMode: plan\n---\nYou plan.\n")
    conversation = await converse(provider, agent="planner")
    limited = await shown("/mode edit", conversation)
    assert limited.startswith("The definition of this agent limits it to mode plan: ")
    assert (await shown("/mode plan", conversation)).startswith("Mode plan: ")
    await conversation.close()


async def test_model_shows_and_changes(provider: ProviderServer) -> None:
    conversation = await converse(provider)
    assert (await shown("/model", conversation)).startswith("custom/test-model\n")
    outcome = await dispatch("/model custom/other", CommandContext(conversation, COMMANDS))
    assert isinstance(outcome, SwitchConversation)
    assert outcome.conversation.info.model == "custom/other"
    await outcome.conversation.close()


async def test_sessions_can_be_listed_left_and_resumed(provider: ProviderServer) -> None:
    provider.script(text("One."))
    conversation = await converse(provider)
    assert await shown("/sessions", conversation) == "No saved sessions of this directory yet."
    await say(conversation, "my first question")
    first = conversation.info.session_id
    assert f"* {first}  my first question" in await shown("/sessions", conversation)
    new = await dispatch("/clear", CommandContext(conversation, COMMANDS))
    assert isinstance(new, SwitchConversation)
    assert new.conversation.info.session_id != first
    assert f"  {first}  my first question" in await shown("/resume", new.conversation)
    with pytest.raises(WoloError):
        await dispatch("/resume never heard of", CommandContext(new.conversation, COMMANDS))
    back = await dispatch("/resume first question", CommandContext(new.conversation, COMMANDS))
    assert isinstance(back, SwitchConversation)
    assert back.conversation.info.session_id == first
    assert [message.text for message in back.conversation.history] == ["my first question", "One."]
    await back.conversation.close()


@pytest.mark.parametrize(
    ("used", "words"),
    [
        (Usage(input_tokens=1200, output_tokens=34, cost=UsageCost(total=0.00123)), "1,200 tokens in · 34 out · $0.0012"),
        (Usage(input_tokens=5, cache_read_tokens=7, estimated=True), "~12 tokens in (7 cached) · ~0 out · price unknown"),
        (Usage(input_tokens=5, output_tokens=1, cost=UsageCost()), "5 tokens in · 1 out · free"),
    ],
)
def test_usage_in_words(used: Usage, words: str) -> None:
    assert in_words(used) == words
