"""/search: where something was said, in this session and all others."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from wolo.commands.command import CommandContext, Outcome, ShowText
from wolo.errors import UsageError
from wolo.places import find_places
from wolo.sessions.search import index_update
from wolo.sessions.search.search import Hit, parse, plain, search
from wolo.sessions.store import Store
from wolo.sessions.timestamps import age

HERE = "--here"
MOST = 20
FILTERS = ("tool:", "path:", "model:", "role:", "cwd:", "since:", "until:")


async def run(desk: CommandContext, rest: str) -> Outcome:
    words = [word for word in rest.split(" ") if word != HERE]
    wanted = " ".join(words).strip()
    if not wanted:
        raise UsageError("What is to be found?", hint='/search WORDS; "phrases", beginnings* and since:7d work, too.')
    cwd = desk.conversation.cwd if HERE in rest.split() else None
    hits = await asyncio.to_thread(_find, wanted, cwd)
    if not hits:
        return ShowText("Nothing was found.")
    return ShowText("\n".join([*_told(hits, desk.conversation.session_id), "", "/resume ID goes on with one."]))


def arguments(desk: CommandContext) -> list[tuple[str, str]]:
    return [(HERE, "in the sessions of this directory only"), *((each, "only there") for each in FILTERS)]


def _find(words: str, cwd: Path | None) -> list[Hit]:
    query = parse(words, time.time())
    with Store.open(find_places().data) as store:
        sessions = store.list()
        return index_update.ask(store, lambda index: search(index, sessions, query, cwd=cwd, limit=MOST))


def _told(hits: list[Hit], here: str) -> list[str]:
    lines: list[str] = []
    session = ""
    for hit in hits:
        info = hit.session
        if info.id != session:
            session = info.id
            lines.append(f"{'*' if info.id == here else ' '} {info.id}  {age(hit.at)}  {info.name or info.title}")
        lines.append(f"    {plain(hit.tool) or hit.role}: {plain(hit.snippet)}")
    return lines
