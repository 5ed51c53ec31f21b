"""A task of sixty calls with a priced model: old outputs are masked in batches, it costs less, and nothing is lost."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path

import pytest

from tests.fakes.command import Completed, run_wolo
from tests.fakes.provider_server import Asked, ProviderServer
from tests.fakes.replies import call, text
from wolo.models.tokens import BYTES_PER_TOKEN
from wolo.places import find_places

CONFIG = """
[providers.here]
base_url = "{url}"
models = [{{id = "m", context = 1000000, price = {{input = 1.0, output = 4.0, cache_read = 0.1}}}}]
"""
CALLS = 60


@pytest.fixture(autouse=True)
def _project(provider: ProviderServer) -> None:
    find_places().config.mkdir(parents=True, exist_ok=True)
    (find_places().config / "config.toml").write_text(CONFIG.format(url=provider.base_url))
    for number in range(CALLS):
        Path(f"{number}.txt").write_text("".join(f"{number}: line {line} says something of its own\n" for line in range(250)))


def go(*options: str) -> Completed:
    done = run_wolo("--json", "-m", "here/m", *options, "read them all", timeout=120)
    assert done.exit_code == 0, done.stderr
    return done


def read_all(provider: ProviderServer, *options: str) -> list[Asked]:
    """The requests of a run that reads one file after the other."""
    provider.script(*(call("read", {"path": f"{number}.txt"}) for number in range(CALLS)), text("All read."))
    begin = len(provider.requests)
    provider.forget_prefix()
    assert go(*options).stderr == ""
    return provider.requests[begin:]


def input_dollars(requests: list[Asked]) -> float:
    """By the prices above, when the provider caches every prefix that it was sent before."""
    dollars, before = 0.0, [b""]
    for asked in requests:
        pieces = [json.dumps(each).encode() for each in (asked.json["tools"], *asked.messages)]
        same = next((at for at, (one, other) in enumerate(zip(before, pieces, strict=False)) if one != other), len(before))
        cached, whole = sum(map(len, pieces[:same])), sum(map(len, pieces))
        dollars += (cached * 0.1 + (whole - cached)) / BYTES_PER_TOKEN / 1e6
        before = pieces
    return dollars


def num_breaks(requests: list[Asked]) -> int:
    return sum(one.messages != other.messages[: len(one.messages)] for one, other in pairwise(requests))


BROKEN = "differs from the request before"
"""What the linter says of a masking, which is meant here."""


def test_sixty_calls_cost_a_fifth_less(provider: ProviderServer) -> None:
    provider.expect_problem(BROKEN)
    masked, plain = read_all(provider), read_all(provider, "--set", "compaction.at_tokens=0")
    ratio = input_dollars(masked) / input_dollars(plain)
    print(f"{input_dollars(masked):.4f} of {input_dollars(plain):.4f} USD: {ratio:.3f}, {num_breaks(masked)} maskings")
    assert ratio <= 0.78
    assert (num_breaks(masked), num_breaks(plain)) == (3, 0)
    assert all("expand_message" in str(asked.json["tools"]) for asked in masked[-5:])


def test_masked_output_is_recalled_and_resumed(provider: ProviderServer) -> None:
    provider.expect_problem(BROKEN)
    requests = read_all(provider, "-s", "long")
    old = requests[-1].results[0]
    found = re.search(r'message_id "(\w+)"', old)
    assert found is not None
    assert len(old) < 700
    provider.script(call("expand_message", {"id": found[1], "limit": 100}), text("I see."))
    done = go("-s", "long")
    recalled, last = provider.requests[-1].results[-1], provider.requests[-2].messages
    assert recalled.count("0: line") >= 100 or "0: line 99" in recalled
    assert last[: len(requests[-1].messages)] == requests[-1].messages
    assert done.json["result"] == "I see."


def test_limit_masks_without_a_known_price(provider: ProviderServer) -> None:
    provider.expect_problem(BROKEN)
    places = find_places().config / "config.toml"
    places.write_text(re.sub(r", price = \{.*?\}", "", places.read_text()))
    assert num_breaks(read_all(provider)) == 0
    limited = read_all(provider, "--set", "compaction.at_tokens=60000")
    assert 1 <= num_breaks(limited) <= 4
    assert max(len(asked.body) for asked in limited) < 80_000 * BYTES_PER_TOKEN
