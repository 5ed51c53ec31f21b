"""Opens the session store for subcommands, and finds sessions."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wolo.errors import SessionError, UsageError
from wolo.frontends.streams import print_line, print_message, print_messages

if TYPE_CHECKING:
    from wolo.sessions.listing import SessionInfo
    from wolo.sessions.loading import Loaded
    from wolo.sessions.store import Store

QUIET_S = 1.0
"""Delay before progress is shown."""

SessionSpec = Annotated[
    str, typer.Argument(metavar="[ID]", show_default=False, help="Session; the latest of this directory if not given.")
]


def open_store(*, only_to_read: bool = False) -> Store:
    """Opens the store; `only_to_read` also works on a read-only file system."""
    from wolo.places import find_places
    from wolo.sessions.store import Store

    data = find_places().data
    store = Store.open_to_read(data) if only_to_read else Store.open(data)
    print_messages(store.warnings)
    store.rescue_listeners.append(print_message)
    return store


def require_session(store: Store, spec: str) -> SessionInfo:
    """Finds a session by id, name, id prefix or title words; empty means the latest here. Raises SessionError."""
    info = store.find(spec, Path.cwd()) if spec else store.latest(Path.cwd())
    if info is None:
        raise SessionError("There is no session of this directory.", hint="`wolo sessions list --all` shows others.")
    return info


def may_delete(question: str, what: str) -> bool:
    """Asks before something is deleted. Raises UsageError without a terminal."""
    if not sys.stdin.isatty():
        raise UsageError(f"Deleting {what} needs a confirmation.", hint="Add --yes.")
    if typer.confirm(question):
        return True
    print_line("Nothing was deleted.")
    return False


def load_session(spec: str, *, most_bytes: int | None = None) -> Loaded:
    with open_store(only_to_read=True) as store:
        return store.load(require_session(store, spec).id, most_bytes=most_bytes)


def reading_progress() -> Callable[[int, int], None] | None:
    """Shows the progress of indexing on stderr; None without a terminal."""
    if not sys.stderr.isatty():
        return None
    began = time.monotonic()

    def show(done: int, total: int) -> None:
        if time.monotonic() - began > QUIET_S:
            what = f"{done:,} of {total:,} sessions indexed …"
            print(f"\r{what if done < total else ' ' * len(what)}", end="\r", file=sys.stderr, flush=True)

    return show
