"""Sessions that nobody uses are let go, so that another wolo can continue them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Literal

import pytest

from tests.fakes.provider_server import KEY, ProviderServer
from tests.fakes.replies import text
from wolo.errors import SessionError
from wolo.frontends.server.live_session import LiveSession
from wolo.frontends.server.request_bodies import NewSession
from wolo.frontends.server.session_hub import SessionHub


@pytest.fixture(autouse=True)
def configured(provider: ProviderServer, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("BASE_URL", provider.base_url), ("API_KEY", KEY), ("MODEL", "custom/test-model")):
        monkeypatch.setenv(f"WOLO_{name}", value)


async def turn(live: LiveSession, words: str) -> None:
    await live.prompt(words, (), "network")
    while live.is_busy:
        await live.log.wait()


async def test_idle_session_closes_and_reopens(provider: ProviderServer) -> None:
    provider.script(text("One."), text("Two."), text("Three."))
    here, elsewhere = SessionHub(Path.cwd(), idle_s=0.01), SessionHub(Path.cwd())
    id = (await here.create(NewSession(mode="edit")))["id"]
    live = await here.get(id)
    sweeping = asyncio.create_task(here.let_go_of_idle())
    live.log.listeners += 1
    await turn(live, "first")
    other = await elsewhere.get(id)
    for _ in range(20):
        await asyncio.sleep(0.001)
    with pytest.raises(SessionError):
        await other.prompt("second", (), "network")
    live.log.listeners -= 1
    while live.conversation is not None:
        await asyncio.sleep(0)
    await live.let_go()  # waits for the end of the other
    await turn(other, "second")
    await elsewhere.close()
    again = await here.get(id)
    assert again.mode == "edit"
    assert "Two." in str(again.messages())
    again.log.listeners += 1
    await turn(again, "third")
    assert [each["content"] for each in provider.requests[-1].messages if each["role"] == "assistant"] == ["One.", "Two."]
    sweeping.cancel()
    await here.close()


async def test_a_session_that_was_never_used_stays(provider: ProviderServer) -> None:
    hub = SessionHub(Path.cwd(), idle_s=0.0)
    id = (await hub.create(NewSession()))["id"]
    live = await hub.get(id)
    assert not live.can_be_let_go
    await live.let_go()
    assert live.conversation is not None
    await hub.close()


@pytest.mark.parametrize(("mode", "then"), [("plan", "plan"), ("yolo", "edit")])
async def test_session_reopens_in_no_looser_mode(
    provider: ProviderServer, monkeypatch: pytest.MonkeyPatch, mode: Literal["plan", "yolo"], then: str
) -> None:
    monkeypatch.setenv("WOLO_MODE", "edit")
    provider.script(text("One."), text("Two."), text("Three."))
    first, second = SessionHub(Path.cwd(), has_yolo=True), SessionHub(Path.cwd())
    live = await first.get((await first.create(NewSession(mode=mode)))["id"])
    await turn(live, "first")
    await live.let_go()
    assert live.mode != "yolo"
    await turn(live, "second")
    assert live.mode == then
    await first.close()
    saved = await second.get(live.id)
    assert saved.mode != "yolo"
    await turn(saved, "third")
    assert saved.mode == then
    await second.close()
