"""How servers of Ollama's own API and their models differ, as flags."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from wolo.formats.format import ThinkingLevel

ThinkStyle = Literal["auto", "bool", "levels", "none"]


class OllamaDialect(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The defaults fit a server of today and a model nothing is known about."""

    num_ctx: Annotated[int, Meta(ge=1)] = 65_536
    """The window in tokens that is asked for, unless the model's own is smaller; by itself a server may give only 4,096."""
    refuse_overflow: bool = True
    """Ask for an error where the server would cut off the beginning of what is too long; old servers cut it all the same."""
    keep_alive: str = ""
    """How long the model stays loaded after an answer, such as `30m` or `-1m` for ever; empty: as the server is set up."""

    think: ThinkStyle = "auto"
    """`think` is true or false, or the name of a level; `none`: it is not sent. `auto`: levels for gpt-oss, which knows nothing
    else, true or false for all others."""
    thinking_levels: tuple[ThinkingLevel, ...] = ("low", "medium", "high")
    """The levels the model knows. Others become the nearest one above, or the highest; off is the lowest."""
    thinking_replay: bool = True
    """Reasoning goes back to the model that wrote it."""

    images: bool = True
    call_ids: bool = False
    """Calls and results carry ids; otherwise the server pairs them by their order."""

    think_tags: bool = True
    """Text that opens with a think tag is reasoning up to the closing tag."""
    leaked_calls: bool = True
    """A call of an offered tool that was written as text, at the end and alone, counts as a call when there is no other. False
    for hosted providers of the catalogue, unless `models probe` found that theirs come so."""
