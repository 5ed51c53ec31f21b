"""Differences between Ollama servers and models, as flags."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from wolo.formats.format import ThinkingLevel

ThinkStyle = Literal["auto", "bool", "levels", "none"]


class OllamaDialect(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Defaults fit a current server and an unknown model."""

    num_ctx: Annotated[int, Meta(ge=1)] = 65_536
    """Requested context window in tokens, unless the model's is smaller; servers default to as little as 4,096."""
    refuse_overflow: bool = True
    """Ask for an error instead of silent truncation; old servers truncate anyway."""
    keep_alive: str = ""
    """Time the model stays loaded, such as `30m`, or `-1m` for ever; empty: server default."""

    think: ThinkStyle = "auto"
    """Send `think` as a boolean or a level name; `none`: omit it. `auto`: levels for gpt-oss, booleans otherwise."""
    thinking_levels: tuple[ThinkingLevel, ...] = ("low", "medium", "high")
    """Supported levels; others map to the next higher level, or the highest; off is the lowest."""
    thinking_replay: bool = True
    """Replay reasoning to the model that wrote it."""

    images: bool = True
    call_ids: bool = False
    """Calls and results carry ids; otherwise the server pairs them by order."""

    think_tags: bool = True
    """Text starting with a think tag is reasoning up to the closing tag."""
    leaked_calls: bool = True
    """Accept a call of an offered tool written as text, if it is alone at the end and there is no native call. False for hosted
    catalogue providers unless `models probe` found it necessary."""
