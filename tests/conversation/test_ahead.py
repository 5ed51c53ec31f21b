"""What is done ahead of the first question, and what is left of it."""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fakes.prompts import typed
from tests.fakes.provider_server import KEY, MODEL, ProviderServer
from tests.fakes.replies import text
from wolo.agent.events import TurnEnded
from wolo.config import layers
from wolo.conversation.factory import open_conversation
from wolo.conversation.resources.model_selection import ModelAccess, choose, make_asker
from wolo.conversation.resources.startup import StartOptions
from wolo.guard.secrets.redactor import Secrets
from wolo.places import find_places
from wolo.workspace.root import find_site


async def do_ahead(base_url: str) -> list[str]:
    """Does all of it, and returns the names of the steps."""
    config = layers.load(find_site(), {"base_url": base_url, "api_key": KEY, "model": "custom/qwen-0.5b"})
    steps: list[Callable[[], object]] = []
    access = ModelAccess(
        settings=config.settings,
        places=find_places(),
        project="work",
        cwd=Path.cwd(),
        secrets=Secrets(),
        attended=False,
        ahead=steps,
    )
    asker = make_asker(access, choose(config, {}))
    done = []
    while steps:
        step = steps.pop(0)
        done.append(getattr(step, "func", step).__name__)
        step()
    await asyncio.gather(*asyncio.all_tasks() - {asyncio.current_task()})
    await asker.close()
    return done


async def test_nothing_is_done_ahead_through_a_proxy(provider: ProviderServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", provider.origin)
    assert await do_ahead("http://model.example.com/v1") == ["open"]
    assert provider.num_connections == 0
    assert await do_ahead(provider.base_url) == ["open", "connect", "look_ahead"]
    assert (len(provider.looked_up), provider.num_connections) == (1, 2)  # a look-up has a connection of its own


async def test_unsaved_prompt_costs_no_further_connection(provider: ProviderServer) -> None:
    """What was begun ahead of a prompt that could not be saved is there for the next."""
    provider.script(text("Hi."))
    flags = {"base_url": provider.base_url, "api_key": KEY, "model": f"custom/{MODEL}"}
    conversation = await open_conversation(StartOptions(flags=flags, attended=False))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1, limits[1]))
        lost = [event async for event in conversation.prompt(typed("hello"))]
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    try:
        assert isinstance(lost[-1], TurnEnded)
        assert lost[-1].cause == "session_error"
        assert not provider.requests
        async for _ in conversation.prompt(typed("hello again")):
            pass
    finally:
        await conversation.close()
    assert len(provider.requests) == 1
    assert (len(provider.looked_up), provider.num_connections) == (1, 2)  # as without the first prompt
