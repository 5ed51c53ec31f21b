"""`wolo sessions list` and `search`."""

from __future__ import annotations

import os
import shutil
import sys
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from wolo.cli.listing import AsJson, cut, in_short, money, pad, print_json
from wolo.cli.sessions.lookup import open_store, reading_progress
from wolo.errors import UsageError
from wolo.frontends.streams import print_line, visible
from wolo.frontends.wrapping import cells

if TYPE_CHECKING:
    from wolo.sessions.listing import SessionInfo
    from wolo.sessions.search.passage_search import Hit

ONE_LINE_COLUMNS = 110
"""In a narrower terminal each session takes two lines."""
TITLE_COLUMNS = 30
MODEL_COLUMNS = 24
INDENT = " " * 12


class _Cells(NamedTuple):
    id: str
    age: str
    state: str
    turns: str
    tokens: str
    cost: str
    model: str
    directory: str
    title: str


HEADINGS = _Cells("ID", "AGE", "", "TURNS", "TOKENS", "COST", "MODEL", "DIRECTORY", "TITLE")
_TO_THE_RIGHT = ("age", "turns", "tokens", "cost")


def list_sessions(
    as_json: AsJson = False,
    every: Annotated[bool, typer.Option("--all", help="Sessions of all directories.")] = False,
    tasks: Annotated[bool, typer.Option("--tasks", help="Include sessions of subagents.")] = False,
) -> None:
    """List the sessions of this directory, newest first."""
    from pathlib import Path

    with open_store(only_to_read=True) as store:
        sessions = store.list(None if every else Path.cwd(), with_tasks=tasks)
    if as_json:
        from wolo.sessions.listing import row

        print_json([row(info) for info in sessions])
    elif sessions:
        print_line("\n".join(_lines(sessions, every)))
    else:
        print_line("There are no sessions." if every else "There are no sessions of this directory; --all shows others.")


def shown_title(info: SessionInfo) -> str:
    """Agent, name and title."""
    return " · ".join(filter(None, (info.agent, info.name, info.title))) or "(empty)"


def _lines(sessions: list[SessionInfo], every: bool) -> list[str]:
    on_terminal = sys.stdout.isatty()
    columns = shutil.get_terminal_size().columns
    rows = [_cells(info, short_id=on_terminal, with_directory=every) for info in sessions]
    if on_terminal and columns < ONE_LINE_COLUMNS:
        return [line for each in rows for line in _two_lines(each, columns)]
    return _table(rows, columns if on_terminal else None)


def _cells(info: SessionInfo, *, short_id: bool, with_directory: bool) -> _Cells:
    from wolo.sessions.listing import age

    asked = info.tokens > 0
    return _Cells(
        id=_short(info.id) if short_id else info.id,
        age=age(info.updated),
        state="live" if info.live else "",
        turns=str(info.turns),
        tokens=in_short(info.tokens) if asked else "-",
        cost=money(info.cost_usd) if asked else "-",
        model=_visible(info.model) or "-",
        directory=_visible(from_home(info.cwd)) if with_directory else "",
        title=shown_title(info),
    )


def _visible(text: str) -> str:
    """Replaces characters that are not printable, such as line breaks."""
    return text if text.isprintable() else "".join(each if each.isprintable() else "?" for each in text)


def _short(session_id: str) -> str:
    """Shortens an id to its random end, which `-r` accepts; foreign ids stay whole."""
    pieces = session_id.split("_")
    return pieces[2] if len(pieces) == 3 and pieces[0] == "session" and len(pieces[2]) >= 8 else session_id


def from_home(directory: str) -> str:
    home = os.path.expanduser("~")  # noqa: PTH111  # a text, as the directory is
    return f"~{directory[len(home) :]}" if directory == home or directory.startswith(f"{home}/") else directory


def _two_lines(cells: _Cells, columns: int) -> list[str]:
    end = f"  {cells.age}" + (f"  {cells.state}" if cells.state else "")
    room = columns - 1 - len(end)
    first = cut(f"{pad(cells.id, len(INDENT) - 2)}  {cells.title}", room)
    turns = f"{cells.turns} {'turn' if cells.turns == '1' else 'turns'}"
    tokens = f"{cells.tokens} tokens" if cells.tokens != "-" else ""
    facts = " · ".join(filter(None, (cells.model, turns, tokens, cells.cost if tokens else "", cells.directory)))
    return [f"{pad(first, room)}{end}", f"{INDENT}{cut(facts, columns - 1 - len(INDENT))}"]


def _table(rows: list[_Cells], columns: int | None) -> list[str]:
    """Nothing is shortened when `columns` is None."""
    table = [HEADINGS, *rows]
    if columns is not None:
        table = [each._replace(model=cut(each.model, MODEL_COLUMNS)) for each in table]
    shown = [name for name in HEADINGS._fields[:-1] if any(getattr(each, name) for each in rows)]
    widths = {name: max(cells(getattr(each, name)) for each in table) for name in shown}
    if columns is not None and "directory" in widths:
        free = columns - 1 - sum(width + 2 for name, width in widths.items() if name != "directory") - TITLE_COLUMNS
        widths["directory"] = max(min(widths["directory"], free), 10)
    return [_line(each, widths, columns) for each in table]


def _line(cells: _Cells, widths: dict[str, int], columns: int | None) -> str:
    pieces = []
    for name, width in widths.items():
        text = cut(getattr(cells, name), width, keep_end=name == "directory")
        pieces.append(pad(text, width, right=name in _TO_THE_RIGHT))
    line = "  ".join([*pieces, cells.title])
    return line if columns is None else cut(line, columns - 1)


def search_sessions(
    words: Annotated[list[str], typer.Argument(metavar="WORDS", help='Words, "phrases", prefixes* and filters.')],
    as_json: AsJson = False,
    here: Annotated[bool, typer.Option("--here/--all", help="Search this directory only, or all.")] = False,
    limit: Annotated[int, typer.Option("--limit", "-n", metavar="N", help="Maximum number of results.", show_default=True)] = 20,
) -> None:
    """Search the text of all sessions.

    Filters: tool:shell path:src/x.py model:glm role:user cwd:project since:7d until:2026-11-01; -word excludes.
    """
    import time
    from pathlib import Path

    from wolo.sessions.search import index_update
    from wolo.sessions.search.passage_search import hit_row, parse, search

    if limit < 1:
        raise UsageError(f"--limit {limit} shows nothing.", hint="Give a number above 0.")
    # Joins arguments to a query; of several, one with blanks is a phrase
    query = parse(
        words[0] if len(words) == 1 else " ".join(_requote(word) if " " in word and '"' not in word else word for word in words),
        time.time(),
    )
    cwd = Path.cwd() if here else None
    with open_store(only_to_read=True) as store:
        sessions = store.list()
        hits = index_update.ask(store, lambda index: search(index, sessions, query, cwd=cwd, limit=limit), reading_progress())
    if as_json:
        print_json([hit_row(hit) for hit in hits])
    else:
        _show(hits)


def _requote(word: str) -> str:
    name, colon, value = word.partition(":")
    return f'{name}:"{value}"' if colon and " " not in name else f'"{word}"'


def _show(hits: list[Hit]) -> None:
    from wolo.sessions.listing import age
    from wolo.sessions.search.passage_search import plain

    if not hits:
        print_line("No results.")
    session = ""
    for hit in hits:
        info = hit.session
        if info.id != session:
            session = info.id
            print_line(f"{info.id}  {age(hit.at)}  {shown_title(info)}")
        print(f"  {hit.seq:>6}  {visible(plain(hit.tool)) or hit.role}: {_paint(hit.snippet)}")


def _paint(snippet: str) -> str:
    """Prints matches in bold on a terminal."""
    from wolo.messages.terminal_text import clean
    from wolo.sessions.search.passage_search import BEGIN, END, plain

    if not sys.stdout.isatty():
        return visible(plain(snippet))
    pieces = [clean(piece) for piece in snippet.replace(END, BEGIN).split(BEGIN)]
    bold, normal = ("\x1b[1m", "\x1b[22m") if (not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb") else ("", "")
    return "".join(f"{bold}{piece}{normal}" if at % 2 else piece for at, piece in enumerate(pieces))
