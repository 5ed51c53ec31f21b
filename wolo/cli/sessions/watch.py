"""`wolo sessions watch`: follow a session that another process works on, from the store alone."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from wolo.cli.as_json import AsJson
from wolo.cli.sessions.lookup import SessionSpec, open_store, require_session
from wolo.frontends.streams import as_json, flush, say, tell, tell_json
from wolo.messages.terminal_text import counted

if TYPE_CHECKING:
    from wolo.sessions.entries import AnyEntry
    from wolo.sessions.session_text import EntryLine
    from wolo.sessions.store import Store

POLL_S = 0.25
PAGE_BYTES = 1 << 20
RESULT_LINES = 5
MARKS = {"prompt": "› ", "call": "● ", "note": "— ", "thinking": "  "}


def watch(
    id: SessionSpec = "",
    from_start: Annotated[bool, typer.Option("--from-start", help="With all that was said before.")] = False,
    as_json: AsJson = False,
) -> None:
    """Follow a running session, read-only, until it ends. Ctrl-C leaves; the session does not notice."""
    from wolo.sessions.session_text import EntryFollower

    with open_store() as store:
        info = require_session(store, id)
        after = 0 if from_start else store.head(info.id)
        say(f"Following {info.id} ({info.title or 'no title'}).")
        follower = EntryFollower()
        for seq, entries in _growing(store, info.id, after):
            for line in follower.lines(entries):
                _print_json(seq, line) if as_json else _print(line)
            flush()
        tell("" if as_json else "\n", end="")
        say("Nobody works on it any more.")


def _growing(store: Store, session_id: str, after: int) -> Iterator[tuple[int, list[AnyEntry]]]:
    """What was added since, in pages; it ends when nobody has the session open and all of it was told."""
    while True:
        is_live = store.is_live(session_id)
        placed, mark = store.read_after(session_id, after, PAGE_BYTES)
        if mark is not None:
            after = mark.seq
            yield after, [entry for _, _, entry in placed]
        elif not is_live:
            return
        else:
            time.sleep(POLL_S)


def _print(line: EntryLine) -> None:
    text = line.text
    if line.kind == "result":
        shown = text.rstrip().split("\n")
        more = [f"… {counted(len(shown) - RESULT_LINES, 'more line')}"] if len(shown) > RESULT_LINES else []
        text = "\n".join(f"  {each}" for each in [*shown[:RESULT_LINES], *more])
    begin = "" if line.kind == "more" else f"\n{MARKS.get(line.kind, '')}"
    tell(f"{begin}{text}", end="")


def _print_json(seq: int, line: EntryLine) -> None:
    tell_json(as_json({"entry": seq, "type": line.kind, "text": line.text}))
