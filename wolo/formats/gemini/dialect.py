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
"""Generation assumed for names without a number, such as `gemini-flash-latest`."""


class GeminiDialect(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`auto` follows the generation in the model name."""

    models_path: str = "/v1beta/models"
    """Path of models below the base URL; differs on Vertex AI."""
    thinking_style: Literal["auto", "budget", "level", "none"] = "auto"
    """Thinking is set in tokens (2.5) or in levels (since 3)."""
    thinking_levels: tuple[ThinkingLevel, ...] = ("low", "medium", "high")
    """Supported levels; others map to the next higher level, or the highest."""
    thinking_budgets: tuple[int, int] = (0, 24_576)
    """Minimum and maximum thinking tokens; a minimum of 0 means thinking can be disabled."""

    signatures: Literal["auto", "required", "optional"] = "auto"
    """`required`: the first call of each response must carry a thought signature or its placeholder."""
    result_media: Literal["auto", "native", "after"] = "auto"
    """Images of a result go into its function response, or after all responses of the batch."""
    call_ids: bool = True
    """Send back call ids that the server assigned."""
    system_instruction: bool = True
    """False: the system prompt becomes the first user message."""

    schema_field: Literal["parametersJsonSchema", "parameters"] = "parametersJsonSchema"
    """Field for tool schemas: JSON Schema, or the OpenAPI subset that all servers support."""
    tool_mode: Literal["AUTO", "VALIDATED", ""] = "AUTO"
    """Function calling mode; empty: omitted."""
    json_beside_tools: Literal["auto", "yes", "no"] = "auto"
    """A response schema may be combined with tools."""
    sampling: Literal["open", "fixed"] = "open"
    """`fixed`: temperature and topP are refused or ignored."""

    images: bool = True
    audio: bool = True
    files: bool = True
    """PDF, text and video."""
    file_addresses: bool = True
    """The server fetches file URLs."""


def resolve_dialect(dialect: GeminiDialect, model: str) -> GeminiDialect:
    """Replace every `auto`."""
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
    """`gemini-2.5-pro` is (2, 5); open Gemma models are (0, 0)."""
    if "gemma" in model.lower():
        return (0, 0)
    found = GENERATION.search(model)
    return (int(found[1]), int(found[2] or 0)) if found else NEWEST


BUDGETS: dict[ThinkingLevel, int] = {"off": 0, "minimal": 512, "low": 2_048, "medium": 8_192, "high": 16_384, "xhigh": 24_576}
"""Clamped to the model's limits; `max` means its maximum."""


def thinking_config(dialect: GeminiDialect, level: ThinkingLevel | None) -> dict[str, Any]:
    """Request thoughts unless thinking is off. Without a level the model's default applies."""
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
