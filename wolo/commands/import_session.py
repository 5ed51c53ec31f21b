"""/import: imports a session from a file and continues in it."""

from __future__ import annotations

import asyncio
from pathlib import Path

from wolo.commands.arguments import words
from wolo.commands.command import Command, CommandContext, Outcome, SwitchConversation
from wolo.conversation.resources.startup import ConversationChange
from wolo.errors import UsageError
from wolo.places import find_places
from wolo.sessions.store import Store


async def _run(context: CommandContext, rest: str) -> Outcome:
    named = words(rest)
    if len(named) != 1:
        raise UsageError(
            "/import takes one file; quote a name with blanks.", hint="/import FILE; `wolo sessions import --from AGENT` lists."
        )
    session_id, report = await asyncio.to_thread(_import, named[0], context.conversation.info.cwd)
    return SwitchConversation(await context.conversation.reopen(ConversationChange(session=session_id)), text=report)


def _import(name: str, cwd: Path) -> tuple[str, str]:
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


COMMANDS = (
    Command(
        "import",
        "import a session from a file",
        _run,
        doing="reading the file",
        usage="FILE",
        more="Accepts exports and the sessions of other agents; the format is detected. The conversation continues in it.",
        group="Sessions",
    ),
)
