"""The token counts of a Responses server, taken apart so that nothing is counted twice."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wolo.formats.decoding.token_counts import token_count
from wolo.messages.message import Usage


def read_usage(usage: object) -> Usage | None:
    """None when it is no usage at all. Input counts include what was cached, output counts include reasoning."""
    if not isinstance(usage, dict):
        return None
    prompt, output = token_count(usage.get("input_tokens")), token_count(usage.get("output_tokens"))
    cached = _mapping(usage, "input_tokens_details")
    read = min(token_count(cached.get("cached_tokens")), prompt)
    write = min(token_count(cached.get("cache_write_tokens")), prompt - read)
    reasoning = token_count(_mapping(usage, "output_tokens_details").get("reasoning_tokens"))
    if reasoning and token_count(usage.get("total_tokens")) == prompt + output + reasoning:
        output += reasoning  # the total shows that this server counts reasoning apart
    return Usage(
        input_tokens=prompt - read - write,
        output_tokens=output,
        cache_read_tokens=read,
        cache_write_tokens=write,
        reasoning_tokens=min(reasoning, output),
    )


def _mapping(usage: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = usage.get(name)
    return value if isinstance(value, dict) else {}
