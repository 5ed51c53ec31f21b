"""The limits of a provider key, shared by all workers of a run."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.fakes import replies
from tests.fakes.command import run_wolo
from tests.fakes.provider_server import ProviderServer
from tests.fleet.clocks import TestHost
from wolo.fleet.ledger.ledger import Ledger
from wolo.fleet.ledger.ledger_folder import create_ledger, open_ledger
from wolo.fleet.ledger.limit_sockets import serve_limits
from wolo.fleet.ledger.run_rows import Meta
from wolo.fleet.ledger.shared_limits import SharedLimits
from wolo.models.retry import LIMITER_VARIABLE


def most_in_a_minute(sent: list[tuple[float, int]]) -> tuple[int, int]:
    """Requests and tokens of the fullest minute."""
    windows = [[tokens for at, tokens in sent if start <= at < start + 60] for start, _ in sent]
    return max(map(len, windows)), max(map(sum, windows))


def send_greedily(limits: list[SharedLimits], host: TestHost, tokens: int, seconds: float) -> list[tuple[float, int]]:
    sent, end = [], host.time + seconds
    while host.time < end:
        waits = []
        for each in limits:
            while (wait_s := each.acquire("key", tokens)) == 0:
                sent.append((host.time, tokens))
                each.note_answer("key")
            waits.append(wait_s)
        host.time += min(waits)
    return sent


def test_four_workers_stay_just_under_the_limits(run: Path, host: TestHost) -> None:
    ledgers = [create_ledger(run, Meta(version="1"), host=host), *(open_ledger(run, host) for _ in range(3))]
    by_requests = send_greedily([each.limits(requests=60) for each in ledgers], host, 0, 300)
    assert 54 <= most_in_a_minute(by_requests)[0] <= 60
    host.time += 1000
    by_tokens = send_greedily([each.limits(requests=10_000, tokens=30_000) for each in ledgers], host, 500, 300)
    assert 27_000 <= most_in_a_minute(by_tokens)[1] <= 30_000
    for ledger in ledgers:
        ledger.close()


def test_rate_limit_delays_all_then_halves_pace(run: Path, host: TestHost) -> None:
    ledger = create_ledger(run, Meta(version="1"), host=host)
    one, other = ledger.limits(), ledger.limits()
    assert [one.acquire("key") for _ in range(40)] == [0.0] * 40
    one.note_refusal("key", 20.0)
    one.note_refusal("key", 5.0)  # of a request that was under way
    assert 19 < other.acquire("key") <= 20.0
    assert other.acquire("another key") == 0.0
    host.time += 20
    sent = [(host.time, 0) for _ in range(100) if other.acquire("key") == 0.0]
    assert 1 <= len(sent) <= 3
    host.time += 120
    assert most_in_a_minute(send_greedily([one, other], host, 0, 60))[0] >= 20
    ledger.close()


def test_quota_delays_all_and_keeps_the_pace(run: Path, host: TestHost) -> None:
    ledger = create_ledger(run, Meta(version="1"), host=host)
    one, other = ledger.limits(), ledger.limits()
    assert [one.acquire("key") for _ in range(40)] == [0.0] * 40
    one.sleep("key", 7200.0)
    one.sleep("key", 60.0)
    assert 7100 < other.acquire("key") <= 7200.01
    host.time += 7200
    assert [other.acquire("key") for _ in range(40)] == [0.0] * 40
    ledger.close()


def test_used_tokens_above_expectation_count(run: Path, host: TestHost) -> None:
    ledger = create_ledger(run, Meta(version="1"), host=host)
    limits = ledger.limits(tokens=1000)
    assert limits.acquire("key", 10) == 0.0
    limits.note_answer("key", more_tokens=990)
    assert limits.acquire("key", 10) > 50
    ledger.close()


def test_every_database_holds_limits(ledger: Ledger) -> None:
    limits = ledger.limits()
    assert limits.acquire("key", 10) == 0.0
    limits.note_refusal("key", 100.0, requests=5)
    assert limits.acquire("key", 10) > 90


async def test_agents_of_a_batch_ask_before_each_request(run: Path, host: TestHost, provider: ProviderServer) -> None:
    ledger = create_ledger(run, Meta(version="1"), host=host)
    refusal = {"retry-after-ms": "50", "x-ratelimit-limit-requests": "7", "x-ratelimit-limit-tokens": "90000"}
    provider.script(replies.error(429, {"error": {"message": "slow down"}}, refusal), replies.text("done"))
    async with serve_limits(ledger.limits()) as path:
        asked = asyncio.create_task(asyncio.to_thread(run_wolo, "-p", "go", *provider.flags, env={LIMITER_VARIABLE: path}))
        while not asked.done():
            await asyncio.sleep(0.01)
            host.time += 1  # a pace of one a minute after the first refusal
        ended = asked.result()
    assert (ended.exit_code, ended.stdout.strip()) == (0, "done"), ended.stderr
    (state,) = ledger._store.transaction(lambda execute: execute("SELECT state FROM limits", ()))
    assert '"requests":7.0,"tokens":90000.0' in state[0]
    ledger.close()


def test_silent_worker_answer_lets_requests_go(provider: ProviderServer, tmp_path: Path) -> None:
    provider.script(replies.text("done"))
    assert run_wolo("-p", "go", *provider.flags, env={LIMITER_VARIABLE: str(tmp_path / "gone")}).stdout.strip() == "done"
