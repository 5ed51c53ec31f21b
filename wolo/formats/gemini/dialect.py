"""Differences between Gemini models and servers, as flags."""

from __future__ import annotations

import re
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from wolo.formats.encoding.thinking_levels import nearest_level
from wolo.formats.format import ThinkingLevel

GENERATION = re.compile(r"gemini-(\d+)(?:[.-](\d)(?!\d))?", re.IGNORECASE)
NEWEST = (3, 0)
"""What a name without a number is taken for: such as `gemini-flash-latest`, or one that a company has given."""


class GeminiDialect(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`auto` stands for what the generation in the model's name does."""

    models_path: str = "/v1beta/models"
    """Where the models lie below the base URL; on Vertex AI elsewhere."""
    thinking_style: Literal["auto", "budget", "level", "none"] = "auto"
    """Thinking is measured in tokens (2.5) or in levels (since 3)."""
    thinking_levels: tuple[ThinkingLevel, ...] = ("low", "medium", "high")
    """The levels this model knows; others become the nearest one above, or the highest."""
    thinking_budgets: tuple[int, int] = (0, 24_576)
    """Fewest and most tokens of thinking. A fewest of 0 means that it can be turned off."""

    signatures: Literal["auto", "required", "optional"] = "auto"
    """Whether the first call of each answer must carry a thought signature, or else the word that stands for one."""
    result_media: Literal["auto", "native", "after"] = "auto"
    """Images of a result go into its function response, or behind all responses of the batch."""
    call_ids: bool = True
    """Ids that the server gave to calls are sent back."""
    system_instruction: bool = True
    """Otherwise the system prompt is what the user says first."""

    schema_field: Literal["parametersJsonSchema", "parameters"] = "parametersJsonSchema"
    """Where the schema of a tool goes: as JSON Schema, or reduced to the subset of OpenAPI that all servers know."""
    tool_mode: Literal["AUTO", "VALIDATED", ""] = "AUTO"
    """The mode of function calling; empty: it goes without saying."""
    json_beside_tools: Literal["auto", "yes", "no"] = "auto"
    """A schema for the answer may stand in a request that offers tools."""
    sampling: Literal["open", "fixed"] = "open"
    """`fixed`: temperature and topP are refused or ignored."""

    images: bool = True
    audio: bool = True
    files: bool = True
    """PDF, text and video."""
    file_addresses: bool = True
    """The server fetches what it is given the address of."""


def resolve_dialect(dialect: GeminiDialect, model: str) -> GeminiDialect:
    """The same flags without any `auto`."""
    generation = generation_of(model)
    is_new = generation >= NEWEST
    thinking = "level" if is_new else "budget" if generation >= (2, 5) else "none"
    told: dict[str, str] = {
        "thinking_style": thinking,
        "signatures": "required" if is_new else "optional",
        "result_media": "native" if is_new else "after",
        "json_beside_tools": "yes" if is_new else "no",
    }
    return replace(dialect, **{name: value for name, value in told.items() if getattr(dialect, name) == "auto"})


def generation_of(model: str) -> tuple[int, int]:
    """`gemini-2.5-pro` is (2, 5); the open Gemma models are older than every number."""
    if "gemma" in model.lower():
        return (0, 0)
    found = GENERATION.search(model)
    return (int(found[1]), int(found[2] or 0)) if found else NEWEST


BUDGETS: dict[ThinkingLevel, int] = {"off": 0, "minimal": 512, "low": 2_048, "medium": 8_192, "high": 16_384, "xhigh": 24_576}
"""Brought within what the model allows; `max` is the most of it."""


def thinking_config(dialect: GeminiDialect, level: ThinkingLevel | None) -> dict[str, Any]:
    """Thoughts are always asked for, except where there are none. Without a level the model's own default holds."""
    if dialect.thinking_style == "none":
        return {}
    if level is None:
        return {"includeThoughts": True}
    if dialect.thinking_style == "level":
        known = nearest_level(level, dialect.thinking_levels)
        return {"includeThoughts": level != "off", "thinkingLevel": known.upper()}
    fewest, most = dialect.thinking_budgets
    budget = min(max(BUDGETS.get(level, most), fewest), most)
    return {"includeThoughts": True, "thinkingBudget": budget} if budget and level != "off" else {"thinkingBudget": budget}
