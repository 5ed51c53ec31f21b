"""Going over to a model that cannot be opened leaves the conversation as it was, whatever the reason."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.commands.test_every_command import ran
from tests.fakes.prompts import typed
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import text
from wolo.agent.events import TurnEnded
from wolo.commands.command import SwitchConversation
from wolo.conversation.conversation import Conversation
from wolo.conversation.factory import open_conversation
from wolo.conversation.handover import HandoverFailed
from wolo.conversation.resources.startup import ConversationChange, StartOptions
from wolo.errors import WoloError
from wolo.places import find_places

SETTINGS = """
model = "here/test-model"

[providers.here]
base_url = "{url}"
api_key = "sk-0123456789abcdef"
models = [{{id = "test-model", price = {{input = 1.0, output = 1.0}}}}, {{id = "other"}}]

[providers.unset]
base_url = "{url}"
api_key = "$NO_SUCH_KEY_VARIABLE"
models = [{{id = "m"}}]

[providers.failing]
base_url = "{url}"
api_key = "!false"
models = [{{id = "m"}}]

[providers.flagged]
base_url = "{url}"
dialect = {{no_such_flag = true}}
models = [{{id = "m"}}]

[providers.flagged-model]
base_url = "{url}"
models = [{{id = "m", dialect = {{no_such_flag = true}}}}]

[providers.nowhere]
models = [{{id = "m"}}]
"""
CANNOT_BE_OPENED = (
    "zzz", "zzz/zzz", "zai/zzz", "zai/glm-5.2", "openai/gpt-5", "local/qwen2.5-coder-1.5b", "local/zzz",
    "local/missing.gguf", "unset/m", "failing/m", "flagged/m", "flagged-model/m", "nowhere/m", "azure-openai/x",
)  # fmt: skip


def write_settings(provider: ProviderServer, more: str = "", after: str = "") -> None:
    path = find_places().config / "config.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{more}\n{SETTINGS.format(url=provider.base_url)}\n{after}")


async def answered(conversation: Conversation, words: str) -> str:
    ended = [event async for event in conversation.prompt(typed(words))][-1]
    assert isinstance(ended, TurnEnded), ended
    return ended.answer


@pytest.fixture(params=[{}, {"no_session": True}], ids=["kept", "not kept"])
async def conversation(provider: ProviderServer, request: pytest.FixtureRequest) -> AsyncIterator[Conversation]:
    write_settings(provider)
    provider.script(text("One."), text("Two."))
    begun = await open_conversation(StartOptions(flags=request.param, attended=True))
    yield begun
    await begun.close()


@pytest.mark.sweep(every=3)
@pytest.mark.parametrize("spec", CANNOT_BE_OPENED)
async def test_a_model_that_cannot_be_opened_changes_nothing(
    provider: ProviderServer, conversation: Conversation, spec: str
) -> None:
    assert await answered(conversation, "one") == "One."
    with pytest.raises(WoloError) as refused:
        await ran(f"/model {spec}", conversation)
    assert not isinstance(refused.value, HandoverFailed)
    assert conversation.info.model == "here/test-model"
    assert await answered(conversation, "two") == "Two."
    assert len(provider.requests[-1].messages) == 4


async def test_unpriced_model_is_refused_under_a_money_budget(provider: ProviderServer) -> None:
    write_settings(provider)
    provider.script(text("One."))
    conversation = await open_conversation(StartOptions(flags={"max_cost": "1"}, attended=True))
    with pytest.raises(WoloError, match="price of here/other") as refused:
        await ran("/model here/other", conversation)
    assert not isinstance(refused.value, HandoverFailed)
    assert await answered(conversation, "one") == "One."
    await conversation.close()


@pytest.mark.parametrize("spoilt", ["model = ", "no_such_setting = 1", 'fallback_model = "zzz/zzz"', "limits.max_turns = 0"])
async def test_settings_that_were_spoilt_meanwhile_change_nothing(
    provider: ProviderServer, conversation: Conversation, spoilt: str
) -> None:
    assert await answered(conversation, "one") == "One."
    write_settings(provider, spoilt)
    for line in ("/model here/other", "/new"):
        with pytest.raises(WoloError) as refused:
            await ran(line, conversation)
        assert not isinstance(refused.value, HandoverFailed)
    assert await answered(conversation, "two") == "Two."


SPOILING = """
import sqlite3, sys
with sqlite3.connect(sys.argv[1]) as database:
    database.execute("DELETE FROM entries WHERE session = ?", (sys.argv[2],))
    database.execute("DELETE FROM sessions WHERE id = ?", (sys.argv[2],))
"""


@pytest.mark.parametrize("spoils_settings", [False, True], ids=["the other session", "the settings"])
async def test_failed_opening_returns_to_the_same_conversation(
    provider: ProviderServer, tmp_path: Path, spoils_settings: bool
) -> None:
    """A hook at the end of the session spoils what was checked before."""
    write_settings(provider)
    provider.script(text("One."), text("Two."), text("Three."))
    first = await open_conversation(StartOptions(flags={}, attended=True))
    assert await answered(first, "one") == "One."
    places, program = find_places(), tmp_path / "spoil.py"
    program.write_text(SPOILING)
    spoil = [sys.executable, str(program), str(places.data / "wolo.db"), first.info.session_id]
    if spoils_settings:
        spoil = ["truncate", "-s", "20", str(places.config / "config.toml")]
    hook = f"[[hooks.SessionEnd]]\ncommand = {json.dumps(shlex.join(spoil))}\n"
    write_settings(provider, after=hook)
    opened = await ran("/new", first)
    assert isinstance(opened, SwitchConversation)
    second = opened.conversation
    assert await answered(second, "two") == "Two."
    with pytest.raises(HandoverFailed) as failed:
        await second.reopen(ConversationChange(session=first.info.session_id))
    third = failed.value.conversation
    if spoils_settings:
        assert third is None
        return
    assert third is not None
    assert third.info.session_id == second.info.session_id
    assert await answered(third, "three") == "Three."
    await third.close()


async def test_a_model_that_can_be_opened_follows(provider: ProviderServer, conversation: Conversation) -> None:
    assert await answered(conversation, "one") == "One."
    opened = await ran("/model here/other", conversation)
    assert isinstance(opened, SwitchConversation)
    assert opened.conversation.info.model == "here/other"
    provider.forget_prefix()
    assert await answered(opened.conversation, "two") == "Two."
    await opened.conversation.close()


async def test_hooks_learn_why_a_session_starts_and_ends(provider: ProviderServer, tmp_path: Path) -> None:
    note = f"cat >> {shlex.quote(str(tmp_path / 'told'))}; echo >> {shlex.quote(str(tmp_path / 'told'))}"
    write_settings(
        provider, after="".join(f"[[hooks.{event}]]\ncommand = {json.dumps(note)}\n" for event in ("SessionStart", "SessionEnd"))
    )
    provider.otherwise = text("Done.")
    first = await open_conversation(StartOptions(flags={}, attended=True))
    await answered(first, "one")
    opened = await ran("/new", first)
    assert isinstance(opened, SwitchConversation)
    await answered(opened.conversation, "two")
    third = await opened.conversation.reopen(ConversationChange(session=first.info.session_id))
    await answered(third, "three")
    await third.close()
    told = [json.loads(line) for line in (tmp_path / "told").read_text().splitlines()]
    assert [(each.get("source"), each.get("reason")) for each in told] == [
        *(("startup", None), (None, "clear"), ("clear", None), (None, "resume"), ("resume", None)),
        (None, "prompt_input_exit"),
    ]
