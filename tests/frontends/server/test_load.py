"""Many listeners of many sessions on real sockets: nothing is lost, doubled or kept."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from benchmarks.serve_load import Load
from wolo.frontends.server import routes, session_lines
from wolo.frontends.server.live_session import LiveSession


async def test_changing_listeners_miss_nothing_and_slow_block_nobody() -> None:
    load = Load(sessions=5, listeners=10)
    await load.run(8_000, None, with_slow=True)
    assert load.faults() == []
    assert all(len(ids) > 1_600 for ids in load.received)


def test_deltas_of_complete_messages_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_lines, "KEPT_DELTAS", 100)
    load = Load(sessions=1, listeners=0)
    asyncio.run(load.run(20_000, None))
    kept = load.live[0].log.after(0)[1]
    assert kept.count(b"text_delta") < 500
    assert kept.count(b'"assistant"') == 100


async def test_a_listener_that_takes_nothing_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routes, "STALLED_S", 0.01)
    live = LiveSession("stalled", Path.cwd(), (), mode="ask", model="none/none")
    stalled: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def send(message: object) -> None:
        if live.log.listeners:
            await stalled

    await routes.Events(routes.stream(live, -1)).stream_response(send)
    assert live.log.listeners == 0
