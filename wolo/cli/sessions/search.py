"""`wolo sessions search`: where something was said, in all sessions."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wolo.cli.as_json import AsJson, print_json
from wolo.cli.sessions.list import called
from wolo.cli.sessions.lookup import open_store, reading_progress
from wolo.errors import UsageError
from wolo.frontends.streams import tell, visible
from wolo.sessions.timestamps import age, iso

if TYPE_CHECKING:
    from wolo.sessions.search.passage_search import Hit


def search_sessions(
    words: Annotated[list[str], typer.Argument(metavar="WORDS", help='Words, "phrases", beginnings* and filters.')],
    as_json: AsJson = False,
    here: Annotated[bool, typer.Option("--here/--all", help="Of this directory only.")] = False,
    limit: Annotated[int, typer.Option("--limit", "-n", metavar="N", help="At most so many places.", show_default=True)] = 20,
) -> None:
    """Where something was said, in all sessions.

    Filters: tool:shell path:src/x.py model:glm role:user cwd:project since:7d until:2026-11-01; -word leaves out.
    """
    import time
    from pathlib import Path

    from wolo.sessions.search import index_update
    from wolo.sessions.search.passage_search import parse, search

    if limit < 1:
        raise UsageError(f"--limit {limit} shows nothing.", hint="Give a number above 0.")
    query = parse(_joined(words), time.time())
    cwd = Path.cwd() if here else None
    with open_store(only_to_read=True) as store:
        sessions = store.list()
        hits = index_update.ask(store, lambda index: search(index, sessions, query, cwd=cwd, limit=limit), reading_progress())
    if as_json:
        print_json([_row(hit) for hit in hits])
    else:
        _show(hits)


def _joined(words: list[str]) -> str:
    """One argument is the query as it was typed; of several, one with blanks in it was quoted, so it is a phrase."""
    if len(words) == 1:
        return words[0]
    return " ".join(_requoted(word) if " " in word and '"' not in word else word for word in words)


def _requoted(word: str) -> str:
    name, colon, value = word.partition(":")
    return f'{name}:"{value}"' if colon and " " not in name else f'"{word}"'


def _row(hit: Hit) -> dict[str, Any]:
    from wolo.sessions.search.passage_search import plain

    info = hit.session
    return {"id": info.id, "title": info.title, "entry": hit.seq, "snippet": plain(hit.snippet), "at": iso(hit.at)}


def _show(hits: list[Hit]) -> None:
    from wolo.sessions.search.passage_search import plain

    if not hits:
        tell("Nothing was found.")
    session = ""
    for hit in hits:
        info = hit.session
        if info.id != session:
            session = info.id
            tell(f"{info.id}  {age(hit.at)}  {called(info)}")
        print(f"  {hit.seq:>6}  {visible(plain(hit.tool)) or hit.role}: {_painted(hit.snippet)}")


def _painted(snippet: str) -> str:
    """What was searched for in bold, on a terminal that shows it."""
    from wolo.messages.terminal_text import clean
    from wolo.sessions.search.passage_search import BEGIN, END, plain

    if not sys.stdout.isatty():
        return visible(plain(snippet))
    pieces = [clean(piece) for piece in snippet.replace(END, BEGIN).split(BEGIN)]
    bold, normal = ("\x1b[1m", "\x1b[22m") if _takes_bold() else ("", "")
    return "".join(f"{bold}{piece}{normal}" if at % 2 else piece for at, piece in enumerate(pieces))


def _takes_bold() -> bool:
    import os

    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
