"""/undo and /redo: turns and files go back and forth while the conversation lives, kept or not."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from tests.fakes.prompts import typed
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import call, text
from wolo.commands.command import CommandContext, Outcome, ShowText, SwitchConversation, dispatch
from wolo.commands.table import load_commands
from wolo.conversation.conversation import Conversation
from wolo.conversation.factory import open_conversation
from wolo.conversation.resources.startup import StartOptions
from wolo.errors import UsageError
from wolo.frontends.terminal.composer.completion import Suggestions

COMMANDS = load_commands()

ASKED = CompleteEvent(text_inserted=True)


async def converse(provider: ProviderServer, *, kept: bool = True) -> Conversation:
    _, base_url, _, key, _, model = provider.flags
    given: dict[str, str | bool | list[str]] = {"base_url": base_url, "api_key": key, "model": model, "mode": "yolo"}
    return await open_conversation(StartOptions(flags=given if kept else {**given, "no_session": True}, attended=False))


async def do(conversation: Conversation, provider: ProviderServer, command: str) -> None:
    provider.forget_prefix()
    provider.script(call("shell", {"command": command}), text("done"))
    async for _ in conversation.prompt(typed(f"please {command}")):
        pass


async def run(line: str, conversation: Conversation) -> Outcome:
    return await dispatch(line, CommandContext(conversation, COMMANDS))


async def test_name_with_blanks_is_offered_as_read(provider: ProviderServer) -> None:
    conversation = await converse(provider)
    await do(conversation, provider, "echo 1 > 'two words.txt'; echo 2 > plain")
    offered = [
        each.text
        for each in Suggestions(lambda: CommandContext(conversation, COMMANDS)).get_completions(
            Document("/diff plain two"), ASKED
        )
    ]
    assert offered == ['"two words.txt"']
    shown = await run('/diff "two words.txt"', conversation)
    assert isinstance(shown, ShowText)
    assert "two words.txt" in shown.text
    assert "plain" not in shown.text
    undone = await run('/undo 1 @"two words.txt"', conversation)
    assert isinstance(undone, SwitchConversation)
    assert not Path("two words.txt").exists()
    assert Path("plain").read_text() == "2\n"
    await undone.conversation.close()


@pytest.mark.parametrize("kept", [True, False])
async def test_turns_go_back_one_after_the_other(provider: ProviderServer, kept: bool, isolated: Path) -> None:
    conversation = await converse(provider, kept=kept)
    for number in range(3):
        await do(conversation, provider, f"echo {number} > a")
    for number, there in ((2, "1\n"), (1, "0\n")):
        outcome = await run("/undo", conversation)
        assert isinstance(outcome, SwitchConversation)
        assert (outcome.draft, Path("a").read_text()) == (f"please echo {number} > a", there)
        conversation = outcome.conversation
    assert len([message for message in conversation.history if message.is_prompt]) == 1
    if kept:
        for there in ("1\n", "2\n"):
            outcome = await run("/redo", conversation)
            assert isinstance(outcome, SwitchConversation)
            assert Path("a").read_text() == there
            conversation = outcome.conversation
        assert len([message for message in conversation.history if message.is_prompt]) == 3
    await conversation.close()
    with closing(sqlite3.connect(next((isolated / "wolo" / "data" / "checkpoints").glob("*.db")))) as database:
        (changes,) = database.execute("SELECT count(*) FROM changes").fetchone()
    assert bool(changes) == kept


async def test_conflicts_are_shown_before_anything_is_done(provider: ProviderServer) -> None:
    conversation = await converse(provider)
    await do(conversation, provider, "echo x > a; echo x > b")
    Path("b").write_text("person\n")
    shown = await run("/undo", conversation)
    assert isinstance(shown, ShowText)
    assert "b: changed since" in shown.text
    assert "/undo --anyway skips the files in conflict." in shown.text
    assert Path("a").exists()
    outcome = await run("/undo --anyway", conversation)
    assert isinstance(outcome, SwitchConversation)
    assert (Path("a").exists(), Path("b").read_text()) == (False, "person\n")
    await outcome.conversation.close()


async def test_preview_changes_nothing_and_single_files_leave_turn(provider: ProviderServer) -> None:
    conversation = await converse(provider)
    await do(conversation, provider, "echo x > a; echo x > b")
    preview = await run("/undo 1 --preview", conversation)
    assert isinstance(preview, ShowText)
    assert preview.text.endswith("Nothing was changed yet; /undo 1 does it.")
    outcome = await run("/undo 1 b", conversation)
    assert isinstance(outcome, SwitchConversation)
    assert (Path("a").exists(), Path("b").exists()) == (True, False)
    conversation = outcome.conversation
    assert any(message.is_prompt for message in conversation.history)
    assert "b" in conversation.history[-1].text
    await conversation.close()


@pytest.mark.parametrize("line", ["/undo 1", "/undo 0", "/undo --nosuch", "/redo", "/redo 3"])
async def test_senseless_request_is_refused_with_a_sentence(provider: ProviderServer, line: str) -> None:
    conversation = await converse(provider)
    with pytest.raises(UsageError):
        await run(line, conversation)
    await conversation.close()
