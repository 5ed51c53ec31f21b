"""Which session a conversation goes on with."""

from __future__ import annotations

import os
from pathlib import Path

from wolo.config.cli_options import Given, text
from wolo.conversation.resources.session_info import Change
from wolo.errors import SessionError, UsageError
from wolo.sessions.listing import SessionInfo
from wolo.sessions.store import Store


def find_session(store: Store, given: Given, change: Change | None, cwd: Path) -> SessionInfo | None:
    """None: a new one. Raises SessionError when the one that was named is not there."""
    if change is not None:
        named = store.find(change.session, cwd) if change.session else None
        return store.fork(named.id) if named and change.fork else named
    ways = [f"--{name}" for name in ("continue", "resume", "session") if name in given]
    if len(ways) > 1:
        raise UsageError(f"{' and '.join(ways)} name two sessions; there can be one.")
    if given.get("fork") and not ways:
        raise UsageError("--fork needs a session to copy.", hint="Name it with -c, -r or -s.")
    session: SessionInfo | None = None
    if "resume" in given:
        if not given["resume"]:
            raise UsageError("-r needs the id, name or title of a session here.", hint="`wolo sessions list` shows them.")
        session = store.find(text(given, "resume"), cwd)
    elif given.get("continue"):
        session = store.latest(cwd)
        if session is None:
            raise SessionError(
                "There is no session of this directory to go on with.", hint="`wolo sessions list --all` shows others."
            )
    elif name := text(given, "session"):
        session = store.named(name)
    return store.fork(session.id) if session and given.get("fork") else session


def moved_notice(session: SessionInfo | None, cwd: Path) -> tuple[str, ...]:
    if session is None or os.path.realpath(session.cwd) == os.path.realpath(cwd):
        return ()
    gone = "" if Path(session.cwd).is_dir() else ", which is gone"
    return (f"This session was begun in {session.cwd}{gone}; it goes on in {cwd}.",)
