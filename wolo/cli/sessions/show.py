"""`wolo sessions show`, `tree` and `watch`: print one session."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from wolo.cli.listing import AsJson, print_json
from wolo.cli.sessions.list import called, row
from wolo.cli.sessions.lookup import SessionSpec, open_store, require_session
from wolo.errors import UsageError
from wolo.frontends.streams import as_json, flush, say, tell, tell_json
from wolo.messages.terminal_text import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wolo.messages.message import Message
    from wolo.sessions.entries import AnyEntry
    from wolo.sessions.loading import Loaded
    from wolo.sessions.session_text import EntryLine
    from wolo.sessions.store import Store

OUTPUT_CHARS = 200
"""Of the output of a call that are shown."""
AROUND = 2
"""Messages before and after the one that `--around` names."""
TAIL_BYTES = 1_000_000
"""Of the last entries that are read at first for `--tail`."""


def show_session(
    id: Annotated[str, typer.Argument(metavar="ID")],
    as_json: AsJson = False,
    tail: Annotated[int | None, typer.Option("--tail", "-n", metavar="N", help="Only the last N messages.")] = None,
    around: Annotated[
        int | None, typer.Option("--around", metavar="ENTRY", help="Only what was said around this entry, as a search names it.")
    ] = None,
) -> None:
    """One session: what was said, and what the tools did."""
    import json
    from pathlib import Path

    from wolo.sessions.replay_entries import messages

    if tail is not None and tail < 1:
        raise UsageError(f"--tail {tail} shows nothing.", hint="Give a number above 0.")
    if tail is not None and around is not None:
        raise UsageError("--tail and --around name two places; there can be one.")
    with open_store(only_to_read=True) as store:
        info = store.find(id, Path.cwd())
        loaded = _load(store, info.id, tail)
    said = messages(loaded.entries)
    shown = said[-tail:] if tail else said if around is None else _around(said, loaded, around)
    if as_json:
        from wolo.messages.message import MESSAGES, VERSION

        spelled = [json.loads(MESSAGES.encode(message)) for message in shown]
        print_json({**row(info), "version": VERSION, "messages": spelled, "skipped_entries": loaded.skipped})
        return
    if loaded.warning:
        say(loaded.warning)
    tell(f"{info.id}  {called(info)}\n{info.cwd} · {info.model} · {counted(info.turns, 'turn')}\n")
    if len(shown) < len(said) or loaded.unread:
        tell(f"… {'what was said before' if around is None else 'the rest'} is left out\n")
    for message in shown:
        _show(message)


def _load(store: Store, session_id: str, tail: int | None) -> Loaded:
    """All of it, or as much of its end as holds so many messages."""
    from wolo.sessions.replay_entries import messages

    most_bytes = TAIL_BYTES
    while tail is not None:
        loaded = store.load(session_id, most_bytes=most_bytes)
        if not loaded.unread or len(messages(loaded.entries)) > tail + 1:
            return loaded
        most_bytes *= 4
    return store.load(session_id)


def _around(said: Sequence[Message], loaded: Loaded, seq: int) -> Sequence[Message]:
    """Raises UsageError for a place that is not on the way to where the session stands."""
    from wolo.sessions.entries import BranchEntry, CompactionEntry, MessageEntry, PartialEntry, ResultsEntry

    entry = next((entry for entry, place in zip(loaded.entries, loaded.seqs, strict=True) if place == seq), None)
    message_id = ""
    if isinstance(entry, MessageEntry):
        message_id = entry.message.id
    elif isinstance(entry, ResultsEntry | PartialEntry):
        message_id = entry.message_id
    elif isinstance(entry, BranchEntry | CompactionEntry) and entry.summary is not None:
        message_id = entry.summary.id
    at = next((at for at, message in enumerate(said) if message.id == message_id), None)
    if at is not None:
        return said[max(at - AROUND, 0) : at + AROUND + 1]
    if isinstance(entry, CompactionEntry) and entry.summary is not None:
        return (entry.summary,)
    raise UsageError(
        f"Nothing was said in entry {seq}, or it is on another branch.", hint="`wolo sessions tree` draws the branches."
    )


def _show(message: Message) -> None:
    tell(f"{message.role}: {message.text.strip()}".rstrip())
    from textwrap import indent

    from wolo.messages.call_arguments import SOME, call_line, shortened

    for part in message.calls:
        tell(f"  ● {call_line(part, most_of_change=SOME)}")
        tell(indent(f"{part.status}: {shortened(part.output.strip(), OUTPUT_CHARS)}", "    "))


def print_tree(id: SessionSpec = "", as_json: AsJson = False) -> None:
    """Draw the tree of a session.

    Its prompts, its branches, and where it stands.
    """
    import msgspec

    from wolo.sessions.session_text import draw, outline

    with open_store(only_to_read=True) as store:
        info = require_session(store, id)
        places = outline(store.nodes(info.id), store.head(info.id))
    if as_json:
        rows = [msgspec.to_builtins(place) for place in places]
        print_json([row | {"at": datetime.fromtimestamp(row["at"], UTC).isoformat(timespec="seconds")} for row in rows])
        return
    tell(f"{info.id}  {info.name or info.title}")
    for line in draw(places):
        tell(line)
    if not places:
        tell("Nothing was said yet.")


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
