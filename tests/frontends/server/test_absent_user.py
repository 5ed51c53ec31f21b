"""A session of the server that nobody looks at: forms, approvals and questions wait, and nobody says yes to them."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.end_to_end.test_mcp import FAKES, set_up
from tests.fakes.provider_server import KEY, ProviderServer
from tests.fakes.replies import Reply, call, text
from wolo.frontends.server.http_errors import HttpError
from wolo.frontends.server.live_session import LiveSession
from wolo.frontends.server.request_bodies import NewSession
from wolo.frontends.server.session_hub import SessionHub
from wolo.tools.tool_values import Reply as Answer

FORM = call("mcp__lib__agree", {})
APPROVAL = call("shell", {"command": "touch done"})
QUESTION = call("ask", {"questions": [{"question": "Which?", "options": [{"label": "red"}, {"label": "blue"}]}]})


@pytest.fixture(autouse=True)
def configured(provider: ProviderServer, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("BASE_URL", provider.base_url), ("API_KEY", KEY), ("MODEL", "custom/test-model")):
        monkeypatch.setenv(f"WOLO_{name}", value)
    agreed = {"AGREED": str(Path("agreed").absolute())}
    set_up(lib={"command": sys.executable, "args": [str(FAKES / "mcp_features.py")], "env": agreed})


async def until(live: LiveSession, is_so: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not is_so():
            await live.log.wait()


def waiting(live: LiveSession) -> str:
    """The id of what waits."""
    assert live.conversation is not None
    return next(iter((*live.conversation.approvals.waiting, *live.conversation.questions.waiting)), "")


async def asked(hub: SessionHub, provider: ProviderServer, reply: Reply) -> LiveSession:
    provider.script(reply, text("Done."))
    live = await hub.get((await hub.create(NewSession(mode="yolo" if reply is FORM else "ask")))["id"])
    await live.prompt("go", (), "network")
    await until(live, lambda: waiting(live))
    return live


@pytest.mark.parametrize("reply", [FORM, APPROVAL, QUESTION])
async def test_question_waits_for_a_listener(provider: ProviderServer, reply: Reply) -> None:
    hub = SessionHub(Path.cwd(), idle_s=0.0, has_yolo=True)
    live = await asked(hub, provider, reply)
    assert not live.log.listeners
    await live.let_go()
    assert live.conversation is not None
    assert live.is_busy
    if reply is APPROVAL:
        live.approve(waiting(live), "once", "")
    else:
        live.answer(waiting(live), (Answer(chosen=("Send" if reply is FORM else "red",)),))
    await until(live, lambda: not live.is_busy)
    result = provider.requests[-1].results[-1]
    assert ("accept" in result) == (reply is FORM), result
    assert Path("done").exists() == (reply is APPROVAL)
    await hub.close()


@pytest.mark.sweep(every=3)
@pytest.mark.parametrize("ends_server", [True, False])
@pytest.mark.parametrize("reply", [FORM, APPROVAL, QUESTION])
async def test_question_ends_unaccepted_with_its_turn(provider: ProviderServer, reply: Reply, ends_server: bool) -> None:
    hub = SessionHub(Path.cwd(), has_yolo=True)
    live = await asked(hub, provider, reply)
    id = waiting(live)
    if ends_server:
        await hub.close()
    else:
        live.interrupt()
        await until(live, lambda: not live.is_busy)
    assert (live.is_busy, waiting(live)) == (False, "")
    with pytest.raises(HttpError):
        live.approve(id, "once", "") if reply is APPROVAL else live.answer(id, (Answer(chosen=("Send",)),))
    await hub.close()
    assert len(provider.requests) == 1
    assert not any(Path(name).exists() for name in ("done", "agreed"))
