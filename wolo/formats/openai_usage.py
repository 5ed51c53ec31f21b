"""Token counts as OpenAI's APIs and servers like them report them."""

from __future__ import annotations

from collections.abc import Mapping

from wolo.formats.tolerant_json import token_counts
from wolo.messages.message import Usage


def usage_of(usage: object) -> Usage | None:
    """None when there is no usage. Prompt counts include cached tokens, completion counts include reasoning."""
    if not isinstance(usage, dict):
        return None
    counts = token_counts(usage)
    of_prompt, of_output = (
        token_counts(next((usage[name] for name in names if isinstance(usage.get(name), dict)), None))
        for names in (("prompt_tokens_details", "input_tokens_details"), ("completion_tokens_details", "output_tokens_details"))
    )
    prompt = _first(counts, "prompt_tokens", "input_tokens")
    read = min(_first(of_prompt, "cached_tokens") or _first(counts, "cached_tokens", "prompt_cache_hit_tokens"), prompt)
    write = min(_first(of_prompt, "cache_write_tokens", "cache_creation_tokens"), prompt - read)
    output = _first(counts, "completion_tokens", "output_tokens")
    reasoning = _first(of_output, "reasoning_tokens") or _first(counts, "reasoning_tokens")
    if reasoning and counts.get("total_tokens") == prompt + output + reasoning:
        output += reasoning  # the total shows that the completion count excludes it (xAI)
    return Usage(prompt - read - write, output, read, write, min(reasoning, output))


def _first(counts: Mapping[str, int], *names: str) -> int:
    return next((counts[name] for name in names if name in counts), 0)
