"""Token counts: taken apart, never counted twice."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wolo.formats.openai_chat.decode import read_usage
from wolo.messages.message import Usage, UsageCost


def read(**usage: Any) -> Usage | None:
    return read_usage(json.dumps(usage).encode())


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"prompt_tokens": 10, "completion_tokens": 5}, Usage(input_tokens=10, output_tokens=5)),
        (
            {"prompt_tokens": 10, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 3}},
            Usage(input_tokens=3, cache_read_tokens=4, cache_write_tokens=3, output_tokens=5),
        ),
        ({"prompt_tokens": 10, "cached_tokens": 4, "completion_tokens": 0}, Usage(input_tokens=6, cache_read_tokens=4)),
        (
            {"prompt_tokens": 10, "prompt_cache_hit_tokens": 4, "prompt_cache_miss_tokens": 6},
            Usage(input_tokens=6, cache_read_tokens=4),
        ),
        (
            {
                "prompt_tokens": 1,
                "completion_tokens": 9,
                "completion_tokens_details": {"reasoning_tokens": 7},
                "total_tokens": 10,
            },
            Usage(input_tokens=1, output_tokens=9, reasoning_tokens=7),
        ),
        (
            {
                "prompt_tokens": 1,
                "completion_tokens": 2,
                "completion_tokens_details": {"reasoning_tokens": 7},
                "total_tokens": 10,
            },
            Usage(input_tokens=1, output_tokens=9, reasoning_tokens=7),
        ),
        ({"prompt_tokens": None, "completion_tokens": "5", "prompt_tokens_details": None}, Usage()),
        ({"prompt_tokens": 1.0, "cost": 0.25}, Usage(input_tokens=1, cost=UsageCost(total=0.25))),
    ],
)
def test_every_servers_counts_become_ours(usage: dict[str, Any], expected: Usage) -> None:
    assert read(**usage) == expected


COUNT = st.one_of(st.integers(-5, 10**6), st.none(), st.text(max_size=2), st.floats())


@given(COUNT, COUNT, COUNT, COUNT, COUNT)
def test_the_parts_of_a_prompt_add_up(prompt: Any, cached: Any, written: Any, completion: Any, reasoning: Any) -> None:
    usage = read(
        prompt_tokens=prompt,
        completion_tokens=completion,
        prompt_tokens_details={"cached_tokens": cached, "cache_write_tokens": written},
        completion_tokens_details={"reasoning_tokens": reasoning},
    )
    if usage is None:
        return  # NaN and Infinity are no JSON
    assert (
        usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens == max(prompt, 0)
        if isinstance(prompt, int)
        else True
    )
    assert 0 <= usage.reasoning_tokens <= usage.output_tokens
    assert min(usage.input_tokens, usage.cache_read_tokens, usage.cache_write_tokens, usage.output_tokens) >= 0


@pytest.mark.parametrize("absurd", [10**30, 1e300, 10**12, -1, float("inf")])
def test_a_count_beyond_belief_is_none(absurd: float) -> None:
    raw = json.dumps({"prompt_tokens": absurd, "completion_tokens": 7}).replace("Infinity", "1e999").encode()
    assert (read_usage(raw) or Usage()).input_tokens == 0


@pytest.mark.parametrize("raw", [b"", b"null", b"[]", b"7", b"{", b"\xff"])
def test_malformed_usage_is_none(raw: bytes) -> None:
    assert read_usage(raw) is None
