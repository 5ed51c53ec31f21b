"""The token counts of a Chat Completions server, taken apart so that nothing is counted twice."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from wolo.formats.decoding.loose_json import read_strictly
from wolo.formats.decoding.token_counts import token_count
from wolo.messages.message import Usage, UsageCost


def read_usage(raw: bytes) -> Usage | None:
    """None when it is no usage at all. Prompt counts include what was cached, completion counts include reasoning."""
    usage = read_strictly(raw)
    if not isinstance(usage, dict):
        return None
    prompt = _first(usage, "prompt_tokens", "input_tokens")
    details = _mapping(usage, "prompt_tokens_details", "input_tokens_details")
    read = min(_first(details, "cached_tokens") or _first(usage, "cached_tokens", "prompt_cache_hit_tokens"), prompt)
    write = min(_first(details, "cache_write_tokens", "cache_creation_tokens"), prompt - read)
    output, reasoning = _output(usage, prompt)
    return Usage(
        input_tokens=prompt - read - write,
        output_tokens=output,
        cache_read_tokens=read,
        cache_write_tokens=write,
        reasoning_tokens=reasoning,
        cost=_cost(usage.get("cost")),
    )


def _output(usage: Mapping[str, Any], prompt: int) -> tuple[int, int]:
    """Where the total shows that reasoning was left out of the completion count (xAI), it is added."""
    completion = _first(usage, "completion_tokens", "output_tokens")
    details = _mapping(usage, "completion_tokens_details", "output_tokens_details")
    reasoning = _first(details, "reasoning_tokens") or _first(usage, "reasoning_tokens")
    if reasoning and _first(usage, "total_tokens") == prompt + completion + reasoning:
        return completion + reasoning, reasoning
    return completion, min(reasoning, completion)


def _cost(dollars: Any) -> UsageCost | None:
    """Only OpenRouter says what an answer cost."""
    if isinstance(dollars, bool) or not isinstance(dollars, int | float) or not math.isfinite(dollars) or dollars < 0:
        return None
    return UsageCost(total=float(dollars))


def _first(counts: Mapping[str, Any], *names: str) -> int:
    """The first of these that is there and a count, else 0."""
    return next((count for name in names if (count := token_count(counts.get(name)))), 0)


def _mapping(usage: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    return next((value for name in names if isinstance(value := usage.get(name), dict)), {})
