"""Names of models as servers list them, kept on disk for a day."""

from __future__ import annotations

import contextlib
import hashlib
import time
from pathlib import Path

import msgspec
from msgspec import Struct

from wolo.models import probe_cache
from wolo.models.address import display_url, is_near
from wolo.models.provider import ModelChoice

FRESH_S = 86400.0
MOST_IDS = 2_000
MOST_CHARS = 200


class ModelList(Struct, frozen=True):
    base_url: str
    """Without credentials and query."""
    at: float
    """POSIX time."""
    ids: tuple[str, ...]


def place_of(cache: Path, base_url: str) -> Path:
    mark = hashlib.sha256(display_url(base_url).encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return cache / "models" / f"{mark}.json"


def read_list(cache: Path, base_url: str) -> ModelList | None:
    """None if the server was never asked, or the file is unreadable. Of any age; asks nobody."""
    saved = probe_cache.read_kept(place_of(cache, base_url), ModelList)
    return saved if saved and saved.base_url == display_url(base_url) else None


def list_ids(cache: Path, choice: ModelChoice, now: float | None = None) -> tuple[str, ...]:
    """A list of today, else the server's, else the last one. A server on this machine is asked each time. Blocks."""
    from wolo.models.http.server_lookup import served_models  # noqa: PLC0415  # completion asks nobody

    now = time.time() if now is None else now
    saved = read_list(cache, choice.base_url)
    if saved is not None and 0 <= now - saved.at < FRESH_S and not is_near(choice.base_url):
        return saved.ids
    served = (each for each in served_models(choice) if each.isprintable() and len(each) <= MOST_CHARS)
    if not (ids := tuple(dict.fromkeys(served))[:MOST_IDS]):
        return saved.ids if saved is not None else ()
    with contextlib.suppress(OSError):  # a read-only cache
        listed = ModelList(display_url(choice.base_url), now, ids)
        probe_cache.keep(place_of(cache, choice.base_url), msgspec.json.encode(listed))
    return ids
