"""Opening the store for a subcommand, and finding the session it is about."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wolo.errors import SessionError
from wolo.frontends.streams import say

if TYPE_CHECKING:
    from wolo.sessions.listing import SessionInfo
    from wolo.sessions.loading import Loaded
    from wolo.sessions.store import Store

QUIET_S = 1.0
"""Before that nobody wonders."""

SessionSpec = Annotated[
    str, typer.Argument(metavar="[ID]", show_default=False, help="The latest of this directory if not given.")
]


def open_store(*, only_to_read: bool = False) -> Store:
    """`only_to_read`: also where nothing may be written."""
    from wolo.places import find_places
    from wolo.sessions.store import Store

    data = find_places().data
    store = Store.open_to_read(data) if only_to_read else Store.open(data)
    for warning in store.warnings:
        say(warning)
    store.on_rescue = say
    return store


def require_session(store: Store, spec: str) -> SessionInfo:
    """By id, name, beginning of an id or words of the title; empty: the latest of this directory. Raises SessionError."""
    info = store.find(spec, Path.cwd()) if spec else store.latest(Path.cwd())
    if info is None:
        raise SessionError("There is no session of this directory.", hint="`wolo sessions list --all` shows others.")
    return info


def load_session(spec: str, *, most_bytes: int | None = None) -> Loaded:
    """As `require_session` finds it, and `Store.load` reads it."""
    with open_store(only_to_read=True) as store:
        return store.load(require_session(store, spec).id, most_bytes=most_bytes)


def reading_progress() -> Callable[[int, int], None] | None:
    """Tells people why the first search in many or huge sessions takes a while; nothing where stderr is no terminal."""
    if not sys.stderr.isatty():
        return None
    began = time.monotonic()

    def show(done: int, total: int) -> None:
        if time.monotonic() - began > QUIET_S:
            what = f"{done:,} of {total:,} sessions are ready to be searched …"
            print(f"\r{what if done < total else ' ' * len(what)}", end="\r", file=sys.stderr, flush=True)

    return show
