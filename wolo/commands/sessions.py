"""/new, /resume, /sessions, /title, /fork, /search, /export, /import, /exit: start, open, find, copy and leave sessions."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from wolo.commands.arguments import words
from wolo.commands.command import Command, CommandContext, Exit, Outcome, ShowText, SwitchConversation
from wolo.conversation.resources.startup import ConversationChange
from wolo.errors import UsageError
from wolo.places import find_places
from wolo.sessions.listing import age
from wolo.sessions.search import index_update
from wolo.sessions.search.passage_search import Hit, parse, plain, search
from wolo.sessions.store import Store

MOST_LISTED = 20
TITLE_CHARS = 80


async def _new(context: CommandContext, rest: str) -> Outcome:
    return SwitchConversation(await context.conversation.reopen(ConversationChange(session=None)), draft=rest)


async def _resume(context: CommandContext, rest: str) -> Outcome:
    if not rest:
        return await _list(context, rest)
    return SwitchConversation(await context.conversation.reopen(ConversationChange(session=rest)))


def _resume_arguments(context: CommandContext) -> list[tuple[str, str]]:
    here = context.conversation.info.session_id
    return [(info.id, info.name or info.title) for info in context.conversation.session.list_here() if info.id != here]


async def _list(context: CommandContext, rest: str) -> Outcome:
    if not (sessions := context.conversation.session.list_here()):
        return ShowText("No saved sessions of this directory yet.")
    here = context.conversation.info.session_id
    lines = [
        f"{'*' if info.id == here else ' '} {info.id}  {(info.name or info.title or '-')[:TITLE_CHARS]}"
        for info in sessions[:MOST_LISTED]
    ]
    if len(sessions) > MOST_LISTED:
        lines.append(f"  and {len(sessions) - MOST_LISTED} older ones: `wolo sessions list`")
    return ShowText("\n".join([*lines, "", "/resume ID opens one; * is the current session."]))


async def _title(context: CommandContext, rest: str) -> Outcome:
    if not rest:
        raise UsageError("/title needs a title.", hint="/title NAME")
    context.conversation.session.set_title(rest)
    return ShowText(f"Title: {rest}")


async def _fork(context: CommandContext, rest: str) -> Outcome:
    conversation = context.conversation
    if not conversation.info.saves_session or not conversation.history:
        raise UsageError("There is nothing to copy yet.", hint="Send a prompt first; --no-session saves nothing.")
    original = conversation.info.session_id
    opened = await conversation.reopen(ConversationChange(session=original, fork=True))
    if rest:
        opened.session.set_title(rest)
    return SwitchConversation(
        opened, text=f"Continuing in a copy, {opened.info.session_id}. /resume {original} goes back to the original."
    )


HERE = "--here"
MOST_HITS = 20
FILTERS = ("tool:", "path:", "model:", "role:", "cwd:", "since:", "until:")


async def _search(context: CommandContext, rest: str) -> Outcome:
    words = [word for word in rest.split(" ") if word != HERE]
    if not (wanted := " ".join(words).strip()):
        raise UsageError("/search needs a query.", hint='/search WORDS; also "phrases", prefixes* and since:7d.')
    cwd = context.conversation.info.cwd if HERE in rest.split() else None
    if not (hits := await asyncio.to_thread(_find_hits, wanted, cwd)):
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


def _search_arguments(context: CommandContext) -> list[tuple[str, str]]:
    return [(HERE, "only sessions of this directory"), *((each, "filter") for each in FILTERS)]


def _find_hits(text: str, cwd: Path | None) -> list[Hit]:
    query = parse(text, time.time())
    with Store.open(find_places().data) as store:
        sessions = store.list()
        return index_update.ask(store, lambda index: search(index, sessions, query, cwd=cwd, limit=MOST_HITS))


ENDS = {
    "markdown": ".md",
    "html": ".html",
    "jsonl": ".jsonl",
    "openai": ".json",
    "rows": ".rows.jsonl",
    "atif": ".atif.json",
    "claude-code": ".claude-code.jsonl",
    "codex": ".codex.jsonl",
    "opencode": ".opencode.json",
    "pi": ".pi.jsonl",
    "kimi": ".kimi.jsonl",
}
"""File suffix by format, the more specific ones last."""


async def _export(context: CommandContext, rest: str) -> Outcome:
    """`/export [FORMAT] [FILE]`: the suffix of FILE selects the format too."""
    facts = context.conversation.info
    first, _, others = rest.partition(" ")
    named = first in ENDS
    file = (others if named else rest).strip()
    fitting = [format for format, end in ENDS.items() if file.casefold().endswith(end)]
    if not named and file and not fitting:
        raise UsageError(f"The name {file} selects no format.", hint=f"/export FORMAT FILE; formats are {', '.join(ENDS)}.")
    format = first if named else fitting[-1] if fitting else "markdown"
    path = await asyncio.to_thread(
        _write_export, facts.session_id, format, facts.cwd, file or f"{facts.session_id}{ENDS[format]}"
    )
    return ShowText(f"Exported to {path}\nKnown secrets were removed; review the file before you share it.")


def _write_export(session_id: str, format: str, cwd: Path, file: str) -> Path:
    from wolo.conversation.resources.secrets import redactor  # noqa: PLC0415  # 15 ms with all the formats
    from wolo.sessions.exchange.export_stream import write_file  # noqa: PLC0415  # the same
    from wolo.sessions.exchange.format_table import export  # noqa: PLC0415  # the same

    path, secrets = cwd / Path(file).expanduser(), redactor()
    if path.exists():
        raise UsageError(f"{path} exists already.", hint="/export [FORMAT] FILE chooses another file.")
    with Store.open(find_places().data) as store:
        info = next((info for info in store.list() if info.id == session_id), None)
        if info is None:
            raise UsageError("This conversation has not been saved.", hint="Send a prompt first; --no-session saves nothing.")
        write_file(path, lambda out: export(store, info, format, out, secrets))
    return path


async def _import(context: CommandContext, rest: str) -> Outcome:
    named = words(rest)
    if len(named) != 1:
        raise UsageError(
            "/import takes one file; quote a name with blanks.", hint="/import FILE; `wolo sessions import --from AGENT` lists."
        )
    session_id, report = await asyncio.to_thread(_read_session, named[0], context.conversation.info.cwd)
    return SwitchConversation(await context.conversation.reopen(ConversationChange(session=session_id)), text=report)


def _read_session(name: str, cwd: Path) -> tuple[str, str]:
    """The id of the session, and a report."""
    from wolo.sessions.exchange.importer import import_session, read  # noqa: PLC0415  # all the formats, which few sessions need

    source = read(cwd / Path(name).expanduser())
    with Store.open(find_places().data) as store:
        report = import_session(store, source, str(cwd))
    if report.was_there:
        return report.info.id, f"This was imported before, as {report.info.id}."
    count = "1 entry" if report.entries == 1 else f"{report.entries:,} entries"
    lost = f" Skipped as unreadable: {report.skipped:,}." if report.skipped else ""
    return report.info.id, "\n".join([f"Imported {source.label} with {count} as {report.info.id}.{lost}", *report.notices])


async def _exit(context: CommandContext, rest: str) -> Outcome:
    return Exit()


COMMANDS = (
    Command(
        "new",
        "start a new session; this one is saved",
        _new,
        aliases=("clear",),
        usage="[WORDS]",
        more="WORDS are put into the input of the new session.",
        doing="starting a new session",
        group="Sessions",
    ),
    Command(
        "resume",
        "continue another session",
        _resume,
        doing="opening the session",
        usage="[ID]",
        more="By id, prefix of an id, name, or words of the title.",
        group="Sessions",
        arguments=_resume_arguments,
    ),
    Command(
        "sessions", "list the sessions of this directory", _list, doing="listing sessions", group="Sessions", while_working=True
    ),
    Command("title", "set the title of this session", _title, usage="NAME", group="Sessions", while_working=True),
    Command(
        "fork",
        "continue in a copy of this session",
        _fork,
        doing="copying the session",
        usage="[TITLE]",
        more="The original does not change; /resume goes back to it.",
        group="Sessions",
    ),
    Command(
        "search",
        "search all sessions",
        _search,
        doing="searching all sessions",
        usage='WORDS "phrase" prefix* -without [FILTERS] [--here]',
        more="Filters: tool:shell path:src/x.py model:glm role:user cwd:project since:7d until:2026-11-01.",
        group="Sessions",
        arguments=_search_arguments,
        while_working=True,
    ),
    Command(
        "export",
        "write this session to a file",
        _export,
        doing="writing the file",
        usage="[FORMAT] [FILE]",
        more="markdown, html, jsonl, openai, rows, atif, or the format of claude-code, codex, opencode, pi or kimi; the suffix "
        "of FILE selects it too. Secrets are removed.",
        group="Sessions",
        arguments=lambda _: [(format, f"a {ENDS[format]} file") for format in ENDS],
        while_working=True,
    ),
    Command(
        "import",
        "import a session from a file",
        _import,
        doing="reading the file",
        usage="FILE",
        more="Accepts exports and the sessions of other agents; the format is detected. The conversation continues in it.",
        group="Sessions",
    ),
    Command("exit", "quit; the session is saved", _exit, aliases=("quit", "q")),
)
