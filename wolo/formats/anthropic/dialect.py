"""How servers and models of the Messages API differ, as flags: the format asks a flag, never the name of a model."""

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
    """The defaults fit a compatible server nothing is known about."""

    # Thinking

    thinking_style: Literal["auto", "none", "budget", "adaptive"] = "auto"
    """`budget`: so many tokens of thinking; `adaptive`: the model decides, an effort says how hard it tries. `auto`: as the
    generation of Claude that the model's name tells does; a budget for any other name."""
    thinking_off: Literal["disabled", "between_tools", "refused"] = "disabled"
    """What turns thinking off. `between_tools` keeps it behind results of tools; `refused`: the least effort is all there is."""
    thinks_unasked: bool = False
    """The model thinks also when a request says nothing about it."""
    thinking_levels: tuple[ThinkingLevel, ...] = ()
    """The levels this model knows; empty: all. Others become the nearest one above, or the highest."""
    thinking_display: Literal["", "summarized", "omitted"] = ""
    """Whether thinking may be read; newer models keep it to themselves unless this is said."""
    thinking_replay: Literal["always", "tool_turns", "never"] = "always"
    """Which assistant messages carry their thinking back; never to another producer."""
    unsigned_thinking: bool = False
    """Thinking goes back without a signature too: this server gives none."""
    bound_thinking: bool = True
    """Thinking goes back only behind the very prefix that it was written behind."""

    # Caching

    cache_marks: bool = True
    long_cache: bool = False
    """Tools and system prompt are kept for an hour instead of five minutes (writing them costs more)."""

    # The rest

    max_tokens: int = 16_384
    """The limit of an answer where neither the request nor the catalogue names one: the field is required."""
    sampling: Literal["open", "fixed"] = "open"
    """`fixed`: temperature and top_p are refused."""
    structured_output: bool = False
    """Answers can be held to a JSON schema."""
    images: bool = True
    image_urls: bool = True
    """Images may be addresses that the server fetches."""
    files: bool = True
    """PDF and plain text go as documents."""
    tool_result_media: bool = True
    """Images and documents may stand inside a result; otherwise they follow behind the results."""


def resolve_dialect(dialect: AnthropicDialect, model: str) -> AnthropicDialect:
    """The same flags without any `auto`."""
    if dialect.thinking_style != "auto":
        return dialect
    generation = generation_of(model)
    if generation < ADAPTIVE_SINCE:
        return replace(dialect, thinking_style="budget")
    display = "summarized" if generation >= HIDES_THINKING_SINCE else ""
    return replace(dialect, thinking_style="adaptive", thinking_display=dialect.thinking_display or display)


def generation_of(model: str) -> tuple[int, int]:
    """`claude-opus-4-7` is (4, 7), `claude-3-7-sonnet-20250219` (3, 7); a name that tells none is older than every number."""
    found = GENERATION.search(model)
    return (int(found[1]), int(found[2] or 0)) if found else (0, 0)
