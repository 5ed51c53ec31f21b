"""Differences between Messages API servers and models, as flags; the format never checks model names."""

from __future__ import annotations

import re
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from wolo.formats.format import ThinkingLevel

GENERATION = re.compile(r"claude-(?:[a-z]+-)?(\d+)(?:[.-](\d{1,2})(?!\d))?", re.IGNORECASE)
ADAPTIVE_SINCE = (4, 6)
HIDES_THINKING_SINCE = (4, 7)


class AnthropicDialect(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Defaults fit an unknown compatible server."""

    # Thinking

    thinking_style: Literal["auto", "none", "budget", "adaptive"] = "auto"
    """`budget`: a number of thinking tokens; `adaptive`: the model decides, guided by an effort. `auto`: by the Claude
    generation in the model name; `budget` for other names."""
    thinking_off: Literal["disabled", "between_tools", "refused"] = "disabled"
    """Parameter that disables thinking. `between_tools` still allows it after tool results; `refused`: only the lowest effort is
    possible."""
    thinks_unasked: bool = False
    """The model thinks even when the request does not ask for it."""
    thinking_levels: tuple[ThinkingLevel, ...] = ()
    """Supported levels; empty: all. Others map to the next higher level, or the highest."""
    thinking_display: Literal["", "summarized", "omitted"] = ""
    """Visibility of thinking; newer models hide it unless this is set."""
    thinking_replay: Literal["always", "tool_turns", "never"] = "always"
    """Assistant messages whose thinking is replayed; never to another producer."""
    unsigned_thinking: bool = False
    """Replay thinking without a signature: this server sends none."""
    bound_thinking: bool = True
    """Replay thinking only after the exact prefix it was written after."""

    # Caching

    cache_marks: bool = True
    long_cache: bool = False
    """Cache tools and system prompt for an hour instead of five minutes (writes cost more)."""

    # Other

    max_tokens: int = 16_384
    """Output limit when neither request nor catalogue sets one; the field is required."""
    sampling: Literal["open", "fixed"] = "open"
    """`fixed`: temperature and top_p are refused."""
    structured_output: bool = False
    """Supports JSON schema output."""
    images: bool = True
    image_urls: bool = True
    """Images may be URLs that the server fetches."""
    files: bool = True
    """PDF and plain text are sent as documents."""
    tool_result_media: bool = True
    """Tool results may contain images and documents; otherwise these follow the results."""


def resolve_dialect(dialect: AnthropicDialect, model: str) -> AnthropicDialect:
    """Replace every `auto`."""
    if dialect.thinking_style != "auto":
        return dialect
    generation = generation_of(model)
    if generation < ADAPTIVE_SINCE:
        return replace(dialect, thinking_style="budget")
    display = "summarized" if generation >= HIDES_THINKING_SINCE else ""
    return replace(dialect, thinking_style="adaptive", thinking_display=dialect.thinking_display or display)


def generation_of(model: str) -> tuple[int, int]:
    """`claude-opus-4-7` is (4, 7), `claude-3-7-sonnet-20250219` (3, 7); (0, 0) for names without a number."""
    found = GENERATION.search(model)
    return (int(found[1]), int(found[2] or 0)) if found else (0, 0)
