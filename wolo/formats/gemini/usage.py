"""The token counts of Gemini, taken apart so that nothing is counted twice."""

from __future__ import annotations

from wolo.formats.decoding.loose_json import read_strictly
from wolo.formats.decoding.token_counts import token_count
from wolo.messages.message import Usage


def read_usage(raw: bytes) -> Usage | None:
    """None when it is no usage at all. Prompt counts include what was cached; thoughts come on top of the candidates."""
    usage = read_strictly(raw)
    if not isinstance(usage, dict):
        return None
    prompt = token_count(usage.get("promptTokenCount")) + token_count(usage.get("toolUsePromptTokenCount"))
    cached = min(token_count(usage.get("cachedContentTokenCount")), prompt)
    thoughts = token_count(usage.get("thoughtsTokenCount"))
    return Usage(
        input_tokens=prompt - cached,
        output_tokens=token_count(usage.get("candidatesTokenCount")) + thoughts,
        cache_read_tokens=cached,
        reasoning_tokens=thoughts,
    )
