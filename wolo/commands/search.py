"""/search: full-text search in all sessions."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from wolo.commands.command import Command, CommandContext, Outcome, ShowText
from wolo.errors import UsageError
from wolo.places import find_places
from wolo.sessions.listing import age
from wolo.sessions.search import index_update
from wolo.sessions.search.passage_search import Hit, parse, plain, search
from wolo.sessions.store import Store

HERE = "--here"
MOST = 20
FILTERS = ("tool:", "path:", "model:", "role:", "cwd:", "since:", "until:")


async def _run(context: CommandContext, rest: str) -> Outcome:
    words = [word for word in rest.split(" ") if word != HERE]
    if not (wanted := " ".join(words).strip()):
        raise UsageError("/search needs a query.", hint='/search WORDS; also "phrases", prefixes* and since:7d.')
    cwd = context.conversation.info.cwd if HERE in rest.split() else None
    if not (hits := await asyncio.to_thread(_find, wanted, cwd)):
        return ShowText("No matches.")
    lines: list[str] = []
    session = ""
    for hit in hits:
        info = hit.session
        if info.id != session:
            session = info.id
            mark = "*" if info.id == context.conversation.info.session_id else " "
            lines.append(f"{mark} {info.id}  {age(hit.at)}  {info.name or info.title}")
        lines.append(f"    {plain(hit.tool) or hit.role}: {plain(hit.snippet)}")
    return ShowText("\n".join([*lines, "", "/resume ID opens one."]))


def _arguments(context: CommandContext) -> list[tuple[str, str]]:
    return [(HERE, "only sessions of this directory"), *((each, "filter") for each in FILTERS)]


def _find(text: str, cwd: Path | None) -> list[Hit]:
    query = parse(text, time.time())
    with Store.open(find_places().data) as store:
        sessions = store.list()
        return index_update.ask(store, lambda index: search(index, sessions, query, cwd=cwd, limit=MOST))


COMMANDS = (
    Command(
        "search",
        "search all sessions",
        _run,
        doing="searching all sessions",
        usage='WORDS "phrase" prefix* -without [FILTERS] [--here]',
        more="Filters: tool:shell path:src/x.py model:glm role:user cwd:project since:7d until:2026-11-01.",
        group="Sessions",
        arguments=_arguments,
        while_working=True,
    ),
)
