"""Differences between Responses API servers, as flags; the format never checks provider names."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from wolo.formats.format import ThinkingLevel


class ResponsesDialect(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Defaults fit an unknown server."""

    # Requests

    system: Literal["instructions", "developer", "system"] = "instructions"
    """Place of the system prompt: the `instructions` field, or the first item with this role."""
    images: bool = True
    files: bool = True
    phase: bool = True
    """Replay whether a text was commentary or the final answer."""
    reasoning_replay: Literal["encrypted", "always", "never"] = "encrypted"
    """Reasoning to replay to its producer: encrypted only, all, or none."""

    strict_field: bool = True
    """Send `strict: false`; otherwise null, the server's default."""
    schema_null_types: bool = True
    """Schemas may use the type null."""
    reserved_tool_names: tuple[str, ...] = ()
    """Names of the model's built-in tools; ours are renamed."""
    parallel_flag: bool = False
    """Send `parallel_tool_calls: true`."""

    effort: bool = True
    """Send thinking levels as `reasoning.effort`."""
    thinking_levels: tuple[ThinkingLevel, ...] = ()
    """Supported levels; empty: all. Others map to the next higher level, or the highest."""
    summary: Literal["", "auto", "concise", "detailed"] = ""
    """Kind of reasoning summary to request; without one, OpenAI models show no reasoning."""
    encrypted_reasoning: bool = True
    """Request encrypted reasoning, which can be replayed without server-side state."""
    sampling: Literal["open", "fixed"] = "open"
    """`fixed`: temperature and top_p are refused."""
    verbosity: Literal["", "low", "medium", "high"] = ""
    json_schema: bool = True
    """Supports `text.format`."""
    cache_key: bool = False
    """Send the session id so that requests reach the server with the cached prefix."""
