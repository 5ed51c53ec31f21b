"""Cached probe results for one model at one address."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from wolo.models.address import display_url, is_near
from wolo.models.catalog_files import in_format
from wolo.models.provider import MEDIA, Ability, DriveMode, ModelChoice, ModelSettings, ProviderSettings
from wolo.places import make_private

T = TypeVar("T")

SIGNS = {True: "yes", False: "no", None: "?"}


class ProbeFinding(Struct, frozen=True):
    """One result line."""

    what: str
    works: bool | None
    """None: unknown."""
    words: str = ""


ServerKind = Literal["llama.cpp", "ollama", "lmstudio", "vllm", "other"]


class ServerFacts(Struct, frozen=True, kw_only=True):
    """Facts about one model at one server; equal facts mean the same model."""

    kind: ServerKind = "other"
    parameters: int | None = None
    tools: bool | None = None
    """Support of calls by server and chat template; None: not reported."""
    thinks: bool = False
    """The chat template can turn thinking on and off."""
    context: int | None = None
    quantization: str = ""


class ProbeResult(Struct, frozen=True, kw_only=True):
    base_url: str
    """Without credentials and query."""
    model: str
    probed: str
    """ISO 8601, UTC."""
    format: str = ""
    """Best wire format; empty: the one probed."""
    dialect: Mapping[str, Any] = field(default_factory=dict)
    """Flags that differ from the assumed ones."""
    abilities: tuple[Ability, ...] | None = None
    context: int | None = None
    """Window in tokens, if reported."""
    findings: tuple[ProbeFinding, ...] = ()
    facts: ServerFacts | None = None
    """As the server reported them then."""
    drive: DriveMode | None = None
    """Driving mode for this model."""


def place_of(cache: Path, base_url: str, model: str) -> Path:
    mark = hashlib.sha256(f"{display_url(base_url)}\0{model}".encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return cache / "probes" / f"{mark}.json"


def read(cache: Path, choice: ModelChoice) -> ProbeResult | None:
    """None if never probed there, or unreadable."""
    card = read_kept(place_of(cache, choice.base_url, choice.model.id), ProbeResult)
    return card if card and (card.base_url, card.model) == (display_url(choice.base_url), choice.model.id) else None


def write(cache: Path, card: ProbeResult) -> Path:
    """Raises OSError."""
    place = place_of(cache, card.base_url, card.model)
    keep(place, msgspec.json.format(msgspec.json.encode(card)))
    return place


def read_kept(place: Path, kind: type[T]) -> T | None:
    """What an earlier run kept; None: nothing, or unreadable."""
    try:
        return msgspec.json.decode(place.read_bytes(), type=kind)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None


def keep(place: Path, data: bytes) -> None:
    from wolo.workspace.files.unfinished import write_whole  # noqa: PLC0415  # few runs write here

    make_private(place.parent)
    write_whole(place, data, durable=False)


def remember(cache: Path, choice: ModelChoice, facts: ServerFacts | None) -> ServerFacts | None:
    """Keep what the server says about a model, or recall it if it says nothing now.

    When it says something else than before, it serves another model: a probe of the earlier one is removed.
    """
    place = place_of(cache, choice.base_url, choice.model.id)
    kept = place.with_suffix(".facts")
    known = read_kept(kept, ServerFacts)
    if facts is None or facts == known:
        return known
    with contextlib.suppress(OSError):  # a read-only cache
        keep(kept, msgspec.json.encode(facts))
        card = read(cache, choice)
        if card is not None and card.facts not in (None, facts):
            place.unlink()
    return facts


def apply_probe(choice: ModelChoice, card: ProbeResult, *, own: ProviderSettings, keeps_format: bool) -> ModelChoice:
    """Apply probe results to a choice; the user's settings (`own`) take precedence.

    `keeps_format`: the format was chosen for this run. The smaller of two known windows applies, unless the user set one.
    """
    model = choice.model
    row = next((each for each in own.models if each.id.lower() == model.id.lower()), ModelSettings(id=model.id))
    windows = [window for window in (model.context, card.context) if window]
    media = {} if row.abilities is None else {each: each in row.abilities for each in MEDIA}
    changed = replace(
        model,
        context=row.context or min(windows, default=None),
        dialect={**model.dialect, **card.dialect, **own.dialect, **media, **(row.dialect or {})},
        abilities=model.abilities if card.abilities is None or row.abilities is not None else card.abilities,
    )
    choice = replace(choice, drive=choice.drive or card.drive) if not is_near(choice.base_url) else choice
    keeps_format = keeps_format or choice.drive == "native"
    if not card.format or keeps_format or own.api is not None or row.format is not None or row.abilities is not None:
        return replace(choice, model=changed)
    return replace(choice, model=replace(changed, format=card.format), provider=in_format(choice.provider, card.format))
