"""The token counts of the Messages API: they come in two events, and what was cached stands beside the input."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wolo.formats.decoding.token_counts import token_count
from wolo.messages.message import Usage


class Counts:
    """The last count of each kind that says anything."""

    def __init__(self) -> None:
        self._by_name: dict[str, int] = {}

    def take(self, usage: object) -> Usage | None:
        """The counts so far; None when this was no usage at all."""
        if not isinstance(usage, Mapping):
            return None
        for name in ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens"):
            self._note(name, usage.get(name))
        if not usage.get("cache_creation_input_tokens") and isinstance(parts := usage.get("cache_creation"), Mapping):
            self._note("cache_creation_input_tokens", sum(map(token_count, parts.values())))
        if isinstance(details := usage.get("output_tokens_details"), Mapping):
            self._note("thinking_tokens", details.get("thinking_tokens"))
        return self._usage()

    def _note(self, name: str, value: Any) -> None:
        if count := token_count(value):
            self._by_name[name] = count

    def _usage(self) -> Usage:
        output = self._by_name.get("output_tokens", 0)
        return Usage(
            input_tokens=self._by_name.get("input_tokens", 0),
            output_tokens=output,
            cache_read_tokens=self._by_name.get("cache_read_input_tokens", 0),
            cache_write_tokens=self._by_name.get("cache_creation_input_tokens", 0),
            reasoning_tokens=min(self._by_name.get("thinking_tokens", 0), output),
        )
