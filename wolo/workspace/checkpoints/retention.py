"""Keeps what undo needs within bounds: what is old goes, and the oldest first where it is much."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress

from wolo.workspace.checkpoints.directory_cache import Listing, hashes
from wolo.workspace.checkpoints.store import Store

MAX_STORE_BYTES = 2 << 30
_PRUNED = "pruned"
_PRUNE_EVERY_S = 24 * 3600.0
_KEPT_S = 30 * 24 * 3600.0


def prune(store: Store, listings: Mapping[str, Listing]) -> None:
    """Once a day, or when it is large. `listings` are those of the last look. Raises ToolError."""
    now, pruned = time.time(), store.fact(_PRUNED)
    if pruned and now - float(pruned) < _PRUNE_EVERY_S and store.size_bytes() < MAX_STORE_BYTES:
        return
    store.drop_changes_before(now - _KEPT_S)
    listed = [key for listing in listings.values() for key in hashes(listing)]
    store.drop_contents(listed)
    while store.size_bytes() > MAX_STORE_BYTES and (oldest := store.oldest_change()):
        store.drop_changes_before(oldest + (now - oldest) / 2 + 1)
        store.drop_contents(listed)
    with store.writing():
        store.put_fact(_PRUNED, str(now))
    for mark in store.path.parent.glob("killed-*"):
        with suppress(OSError):
            if now - mark.stat().st_mtime > _KEPT_S:
                mark.unlink()
