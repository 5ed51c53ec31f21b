"""`wolo sessions show`, `tree` and `watch`: print one session."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from wolo.cli.listing import AsJson, print_json
from wolo.cli.sessions.list import shown_title
from wolo.cli.sessions.lookup import SessionSpec, open_store, require_session
from wolo.errors import UsageError
from wolo.frontends.streams import as_json, flush, print_json_text, print_line, print_lines, print_message
from wolo.messages.terminal_text import quantity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wolo.messages.message import Message
    from wolo.sessions.entries import AnyEntry
    from wolo.sessions.loading import Loaded
    from wolo.sessions.session_text import EntryLine
    from wolo.sessions.store import Store

OUTPUT_CHARS = 200
"""Number of characters shown of the output of a call."""
AROUND = 2
"""Number of messages before and after the one of `--around`."""
TAIL_BYTES = 1_000_000
"""Size of the last entries that `--tail` reads first."""


def show_session(
    id: Annotated[str, typer.Argument(metavar="ID")],
    as_json: AsJson = False,
    tail: Annotated[int | None, typer.Option("--tail", "-n", metavar="N", help="Only the last N messages.")] = None,
    around: Annotated[
        int | None,
        typer.Option("--around", metavar="ENTRY", help="Only the messages around this entry; a search prints its number."),
    ] = None,
) -> None:
    """Print the messages and tool calls of one session."""
    import json
    from pathlib import Path

    from wolo.sessions.replay_entries import messages

    if tail is not None and tail < 1:
        raise UsageError(f"--tail {tail} shows nothing.", hint="Give a number above 0.")
    if tail is not None and around is not None:
        raise UsageError("--tail and --around exclude each other.")
    with open_store(only_to_read=True) as store:
        info = store.find(id, Path.cwd())
        loaded = _load(store, info.id, tail)
    history = messages(loaded.entries)
    shown = history[-tail:] if tail else history if around is None else _around(history, loaded, around)
    if as_json:
        from wolo.messages.message import MESSAGES, VERSION

        spelled = [json.loads(MESSAGES.encode(message)) for message in shown]
        from wolo.sessions.listing import row

        print_json({**row(info), "version": VERSION, "messages": spelled, "skipped_entries": loaded.skipped})
        return
    if loaded.warning:
        print_message(loaded.warning)
    print_line(f"{info.id}  {shown_title(info)}\n{info.cwd} · {info.model} · {quantity(info.turns, 'turn')}\n")
    if len(shown) < len(history) or loaded.unread:
        print_line(f"… {'earlier messages' if around is None else 'other messages'} omitted\n")
    for message in shown:
        _show(message)


def _load(store: Store, session_id: str, tail: int | None) -> Loaded:
    """Loads the session, or enough of its end for `tail` messages."""
    from wolo.sessions.replay_entries import messages

    most_bytes = TAIL_BYTES
    while tail is not None:
        loaded = store.load(session_id, most_bytes=most_bytes)
        if not loaded.unread or len(messages(loaded.entries)) > tail + 1:
            return loaded
        most_bytes *= 4
    return store.load(session_id)


def _around(history: Sequence[Message], loaded: Loaded, seq: int) -> Sequence[Message]:
    """Raises UsageError for an entry without a message on the current branch."""
    from wolo.sessions.entries import BranchEntry, CompactionEntry, MessageEntry, PartialEntry, ResultsEntry

    entry = next((entry for entry, place in zip(loaded.entries, loaded.seqs, strict=True) if place == seq), None)
    message_id = ""
    if isinstance(entry, MessageEntry):
        message_id = entry.message.id
    elif isinstance(entry, ResultsEntry | PartialEntry):
        message_id = entry.message_id
    elif isinstance(entry, BranchEntry | CompactionEntry) and entry.summary is not None:
        message_id = entry.summary.id
    at = next((at for at, message in enumerate(history) if message.id == message_id), None)
    if at is not None:
        return history[max(at - AROUND, 0) : at + AROUND + 1]
    if isinstance(entry, CompactionEntry) and entry.summary is not None:
        return (entry.summary,)
    raise UsageError(f"Entry {seq} holds no message of the current branch.", hint="`wolo sessions tree` shows the branches.")


def _show(message: Message) -> None:
    print_line(f"{message.role}: {message.text.strip()}".rstrip())
    from textwrap import indent

    from wolo.messages.call_arguments import SOME, call_line, shorten

    for part in message.calls:
        print_line(f"  ● {call_line(part, most_of_change=SOME)}")
        print_line(indent(f"{part.status}: {shorten(part.output.strip(), OUTPUT_CHARS)}", "    "))


def print_tree(id: SessionSpec = "", as_json: AsJson = False) -> None:
    """Draw the prompts and branches of a session."""
    import msgspec

    from wolo.sessions.session_text import draw, outline

    with open_store(only_to_read=True) as store:
        info = require_session(store, id)
        places = outline(store.nodes(info.id), store.head(info.id))
    if as_json:
        rows = [msgspec.to_builtins(place) for place in places]
        print_json([row | {"at": datetime.fromtimestamp(row["at"], UTC).isoformat(timespec="seconds")} for row in rows])
        return
    print_line(f"{info.id}  {info.name or info.title}")
    print_lines(draw(places))
    if not places:
        print_line("There are no prompts yet.")


POLL_S = 0.25
PAGE_BYTES = 1 << 20
RESULT_LINES = 5
MARKS = {"prompt": "› ", "call": "● ", "note": "— ", "thinking": "  "}


def watch(
    id: SessionSpec = "",
    from_start: Annotated[bool, typer.Option("--from-start", help="Start with the first message.")] = False,
    as_json: AsJson = False,
) -> None:
    """Follow a running session, read-only, until it ends. Ctrl-C stops watching."""
    from wolo.sessions.session_text import EntryFollower

    with open_store() as store:
        info = require_session(store, id)
        after = 0 if from_start else store.head(info.id)
        print_message(f"Following {info.id} ({info.title or 'no title'}).")
        follower = EntryFollower()
        for seq, entries in _growing(store, info.id, after):
            for line in follower.lines(entries):
                _print_json(seq, line) if as_json else _print(line)
            flush()
        print_line("" if as_json else "\n", end="")
        print_message("The session is no longer active.")


def _growing(store: Store, session_id: str, after: int) -> Iterator[tuple[int, list[AnyEntry]]]:
    """Yields new entries in pages, until the session is closed and complete."""
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
        more = [f"… {quantity(len(shown) - RESULT_LINES, 'more line')}"] if len(shown) > RESULT_LINES else []
        text = "\n".join(f"  {each}" for each in [*shown[:RESULT_LINES], *more])
    begin = "" if line.kind == "more" else f"\n{MARKS.get(line.kind, '')}"
    print_line(f"{begin}{text}", end="")


def _print_json(seq: int, line: EntryLine) -> None:
    print_json_text(as_json({"entry": seq, "type": line.kind, "text": line.text}))
