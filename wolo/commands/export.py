"""/export: writes the session to a file."""

from __future__ import annotations

import asyncio
from pathlib import Path

from wolo.commands.command import Command, CommandContext, Outcome, ShowText
from wolo.errors import UsageError
from wolo.places import find_places
from wolo.sessions.store import Store

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


async def _run(context: CommandContext, rest: str) -> Outcome:
    """`/export [FORMAT] [FILE]`: the suffix of FILE selects the format too."""
    facts = context.conversation.info
    first, _, others = rest.partition(" ")
    named = first in ENDS
    file = (others if named else rest).strip()
    format = first if named else _format_of(file)
    path = await asyncio.to_thread(_write, facts.session_id, format, facts.cwd, file or f"{facts.session_id}{ENDS[format]}")
    return ShowText(f"Exported to {path}\nKnown secrets were removed; review the file before you share it.")


def _format_of(file: str) -> str:
    if not file:
        return "markdown"
    fitting = [format for format, end in ENDS.items() if file.casefold().endswith(end)]
    if not fitting:
        raise UsageError(f"The name {file} selects no format.", hint=f"/export FORMAT FILE; formats are {', '.join(ENDS)}.")
    return fitting[-1]


def _write(session_id: str, format: str, cwd: Path, file: str) -> Path:
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


COMMANDS = (
    Command(
        "export",
        "write this session to a file",
        _run,
        doing="writing the file",
        usage="[FORMAT] [FILE]",
        more="markdown, html, jsonl, openai, rows, atif, or the format of claude-code, codex, opencode, pi or kimi; the suffix "
        "of FILE selects it too. Secrets are removed.",
        group="Sessions",
        arguments=lambda _: [(format, f"a {ENDS[format]} file") for format in ENDS],
        while_working=True,
    ),
)
