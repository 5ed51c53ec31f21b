"""Summaries and titles by the setting `small_model`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakes.command import run_wolo
from tests.fakes.prompts import typed
from tests.fakes.provider_server import KEY, ProviderServer
from tests.fakes.replies import Reply, error, text
from wolo.agent.events import Compacted, Event, Noticed
from wolo.conversation.factory import open_conversation
from wolo.conversation.resources.startup import StartOptions
from wolo.sessions.store import Store

PROSE = " ".join(f"sentence {number} about nothing much" for number in range(900))


@pytest.mark.parametrize(
    ("reply", "asked"), [(text("Goal: prose."), ["m", "m", "m", "small"]), (error(401, "no"), ["m", "m", "m", "small", "m"])]
)
async def test_small_model_summarizes_and_main_one_replaces_it(provider: ProviderServer, reply: Reply, asked: list[str]) -> None:
    provider.script(text("One."), text("Two."), text("Three."), reply)
    provider.otherwise = lambda request: text("Goal: prose.")
    settings = [f"providers.here.base_url={provider.base_url}", f"providers.here.api_key={KEY}", "small_model=here/small"]
    settings += ["context.window=100000", "compaction.keep_turns=1", "compaction.auto=false"]
    given = {"model": "here/m", "no_session": True, "set": settings, "mode": "yolo", "sandbox": "off"}
    conversation = await open_conversation(StartOptions(flags=given, attended=False))
    events: list[Event] = []
    try:
        for _ in range(3):
            async for _event in conversation.prompt(typed(PROSE)):
                pass
        provider.forget_prefix()
        async for event in conversation.compact():
            events.append(event)
    finally:
        await conversation.close()
    assert [request.json["model"] for request in provider.requests] == asked
    assert next(event for event in events if isinstance(event, Compacted)).is_summarised
    notices = [event.text for event in events if isinstance(event, Noticed)]
    assert [notice.endswith("here/m does it instead.") for notice in notices] == [True] * (len(asked) - 4)


@pytest.mark.parametrize(
    ("reply", "title"),
    [
        (text('"Tides of the sea"\n'), "Tides of the sea"),
        (text("x" * 100), "explain the tides"),
        (error(401, "no"), "explain the tides"),
    ],
)
async def test_small_model_writes_the_title_of_user_sessions(
    provider: ProviderServer, isolated: Path, reply: Reply, title: str
) -> None:
    provider.script(text("They follow the moon."), reply, text("Yes."))
    settings = [f"providers.here.base_url={provider.base_url}", f"providers.here.api_key={KEY}", "small_model=here/small"]
    given = {"model": "here/m", "set": settings, "sandbox": "off"}
    conversation = await open_conversation(StartOptions(flags=given, attended=True))
    async for _ in conversation.prompt(typed("explain the tides")):
        provider.forget_prefix()
    await conversation.close()
    assert [request.json["model"] for request in provider.requests] == ["m", "small"]
    assert "They follow" not in str(provider.requests[1].json)
    with Store.open(isolated / "wolo" / "data") as store:
        (info,) = store.list(None)
    assert info.title == title


async def test_a_title_of_the_user_stays(provider: ProviderServer, isolated: Path) -> None:
    provider.script(text("They follow the moon."), text("Tides"))
    settings = [f"providers.here.base_url={provider.base_url}", f"providers.here.api_key={KEY}", "small_model=here/small"]
    conversation = await open_conversation(StartOptions(flags={"model": "here/m", "set": settings}, attended=True))
    async for _ in conversation.prompt(typed("explain the tides")):
        provider.forget_prefix()
    conversation.session.set_title("mine")
    await conversation.close()
    with Store.open(isolated / "wolo" / "data") as store:
        (info,) = store.list(None)
    assert info.title == "mine"


def test_unusable_small_model_costs_only_itself(provider: ProviderServer) -> None:
    provider.script(text("Done."))
    ran = run_wolo("-p", *provider.flags, "--set", "small_model=zai/glm-4.5-air", "go")
    assert (ran.exit_code, ran.stdout) == (0, "Done.\n")
    assert "small_model is not used: Z.ai needs an API key" in ran.stderr
