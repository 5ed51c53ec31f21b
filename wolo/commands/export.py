"""/export: this session as a file, for others to read or for another machine."""

from __future__ import annotations

import asyncio
from pathlib import Path

from wolo.commands.command import CommandContext, Outcome, ShowText
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
"""How a file of each format ends, the more telling ones last."""


async def run(desk: CommandContext, rest: str) -> Outcome:
    """`/export [FORMAT] [FILE]`: a file alone says by its ending what it is."""
    facts = desk.conversation.facts
    first, _, others = rest.partition(" ")
    named = first in ENDS
    file = (others if named else rest).strip()
    format = first if named else _format_of(file)
    path = await asyncio.to_thread(_write, facts.session_id, format, facts.cwd, file or f"{facts.session_id}{ENDS[format]}")
    return ShowText(f"Written: {path}\nSecrets that wolo knows were taken out; look through it before you hand it on.")


def arguments(desk: CommandContext) -> list[tuple[str, str]]:
    return [(format, f"a file that ends with {ENDS[format]}") for format in ENDS]


def _format_of(file: str) -> str:
    if not file:
        return "markdown"
    fitting = [format for format, end in ENDS.items() if file.casefold().endswith(end)]
    if not fitting:
        raise UsageError(f"{file} does not say in which format.", hint=f"/export FORMAT FILE; formats are {', '.join(ENDS)}.")
    return fitting[-1]


def _write(session_id: str, format: str, cwd: Path, file: str) -> Path:
    from wolo.conversation.resources.known_secrets import redactor  # noqa: PLC0415  # 15 ms with all the formats
    from wolo.sessions.exchange.exporter import export  # noqa: PLC0415  # the same
    from wolo.sessions.exchange.output_file import write_file  # noqa: PLC0415  # the same

    path, secrets = cwd / Path(file).expanduser(), redactor()
    if path.exists():
        raise UsageError(f"{path} is there already.", hint="/export [FORMAT] FILE names another one.")
    with Store.open(find_places().data) as store:
        info = next((info for info in store.list() if info.id == session_id), None)
        if info is None:
            raise UsageError("Nothing of this conversation is kept.", hint="Say something first; --no-session keeps nothing.")
        write_file(path, lambda out: export(store, info, format, out, secrets))
    return path
