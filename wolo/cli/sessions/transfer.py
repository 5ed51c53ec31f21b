"""`wolo sessions export`, `import` and `fork`: sessions as files, and sessions of other agents."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wolo.cli.listing import AsJson, print_json
from wolo.cli.sessions.lookup import SessionSpec, open_store, require_session
from wolo.errors import SessionError, UsageError
from wolo.frontends.streams import print_line, print_lines, print_message, stdout_bytes
from wolo.messages.terminal_text import quantity

if TYPE_CHECKING:
    from wolo.sessions.exchange.export_stream import Write
    from wolo.sessions.exchange.foreign.discovery import FoundSession
    from wolo.sessions.exchange.importer import ImportReport, ImportSource

STDIN = "-"


def export_session(
    id: SessionSpec = "",
    format: Annotated[
        str,
        typer.Option(
            "--format",
            "-F",
            help="jsonl, rows, openai, markdown, html, atif, claude-code, codex, opencode, pi or kimi.",
            metavar="FORMAT",
        ),
    ] = "jsonl",
    output: Annotated[str, typer.Option("--output", "-o", help="Write to this file.", metavar="FILE", show_default=False)] = "",
    redact: Annotated[bool, typer.Option("--redact/--no-redact", help="Remove secrets; only jsonl may keep them.")] = True,
) -> None:
    """Export a session to a file or stdout."""
    from wolo.conversation.resources.secrets import redactor
    from wolo.sessions.exchange.export_stream import write_file
    from wolo.sessions.exchange.format_table import export

    with open_store(only_to_read=True) as store:
        info = require_session(store, id)
        secrets = redactor() if redact else None

        def write_to(out: Write) -> None:
            export(store, info, format, out, secrets)

        if output in ("", STDIN):
            with stdout_bytes() as out:
                write_to(out)
        else:
            write_file(Path(output), write_to)


def import_session(
    file: Annotated[
        str,
        typer.Argument(
            metavar="[FILE]", show_default=False, help="A file, the folder of a session, or - for stdin; with --from an ID."
        ),
    ] = "",
    as_json: AsJson = False,
    format: Annotated[
        str, typer.Option("--format", "-F", help="Format; detected if not given.", metavar="FORMAT", show_default=False)
    ] = "",
    agent: Annotated[
        str,
        typer.Option(
            "--from",
            help="claude-code, codex, opencode, kimi, pi or vibe: list its sessions of this directory, or import one.",
            metavar="AGENT",
            show_default=False,
        ),
    ] = "",
) -> None:
    """Import a session of another machine or agent.

    Then `wolo -c` continues it.
    """
    from wolo.sessions.exchange.importer import import_session, read

    if agent and not file:
        list_elsewhere(agent, as_json=as_json)
        return
    if not file:
        raise UsageError("Nothing to import.", hint="Name a file, or an agent on this machine: --from claude-code.")
    format = agent or format
    with _input_file(str(find_elsewhere(agent, file)) if agent else file) as path:
        source = read(path, format)
        with open_store() as store:
            report = import_session(store, source, _directory(source))
    if as_json:
        print_json(
            {
                "id": report.info.id,
                "title": report.info.title,
                "cwd": report.info.cwd,
                "format": report.format,
                "entries": report.entries,
                "skipped": report.skipped,
                "already_imported": report.was_there,
                "original_id": report.wanted_id or None,
                "notices": list(report.notices),
            }
        )
        return
    print_lines(_sentences(report, source))


def verify_session(id: SessionSpec = "", as_json: AsJson = False) -> None:
    """Verify the checksums of a session or an exported file."""
    from wolo.sessions.exchange.jsonl import check
    from wolo.sessions.exchange.jsonl_import import survey

    if id and Path(id).is_file():
        checked, name = survey(Path(id)).checked, id
    else:
        with open_store(only_to_read=True) as store:
            info = require_session(store, id)
            checked, name = check(store, info.id), info.id
    if as_json:
        broken = checked.broken
        print_json(
            {
                "session": name,
                "ok": broken is None,
                "entries": checked.entries,
                "redacted": checked.redacted,
                "broken": {"entry": broken.seq, "reason": broken.text} if broken else None,
            }
        )
    elif checked.broken is None:
        redacted = f"; secrets were removed from {checked.redacted}" if checked.redacted else ""
        print_line(f"{name}: {quantity(checked.entries, 'entry', 'entries')}, all unchanged{redacted}.")
    else:
        print_line(f"{name}: entry {checked.broken.seq} {checked.broken.text}.")
    raise typer.Exit(1 if checked.broken else 0)


@contextmanager
def _input_file(file: str) -> Iterator[Path]:
    """Copies stdin to a file, because the input is read twice."""
    if file != STDIN:
        yield Path(file)
        return
    import shutil

    from wolo.workspace.files.unfinished import unfinished_folder

    with unfinished_folder() as folder:
        copy = folder / "session"
        with copy.open("wb") as out:
            shutil.copyfileobj(sys.stdin.buffer, out)
        yield copy


def _directory(source: ImportSource) -> str:
    """The current directory, unless the user chooses the original one."""
    here, there = str(Path.cwd()), source.cwd
    if not there or not sys.stdin.isatty() or not sys.stderr.isatty():
        return here
    try:
        is_here, is_there = Path(there).resolve() == Path(here).resolve(), Path(there).is_dir()
    except (OSError, ValueError, RuntimeError):  # no path of this machine
        is_here, is_there = False, False
    if is_here:
        return here
    print_message(f"This session belongs to {there}.")
    if not is_there:
        print_message(f"That directory does not exist here; the session is saved for {here}.")
        return here
    return here if typer.confirm(f"Save it for {here} instead?", default=True, err=True) else there


def _sentences(report: ImportReport, source: ImportSource) -> Iterator[str]:
    info = report.info
    if report.was_there:
        yield f"Already imported as session {info.id} of {info.cwd}. Nothing was added."
        return
    size = quantity(report.entries, "entry", "entries")
    yield f"Imported {source.label} with {size} as {info.id}: {info.title or '(no title)'}"
    if report.wanted_id:
        yield f"Its id {report.wanted_id} is taken by another session; the new id is {info.id}."
    if report.skipped:
        lines = "1 line or record was" if report.skipped == 1 else f"{report.skipped} lines or records were"
        yield f"{lines} skipped because they cannot be read."
    yield from report.notices
    yield f"Continue it: wolo -r {info.id}"


TITLE_CHARACTERS = 80
CANDIDATES_SHOWN = 8


def list_elsewhere(agent: str, *, as_json: bool) -> None:
    from wolo.sessions.listing import age, iso

    sessions = _of_this_directory(agent)
    if as_json:
        rows = [{"id": each.id, "title": each.title, "updated": iso(each.updated), "file": str(each.source)} for each in sessions]
        print_json(rows)
        return
    for each in sessions:
        print_line(f"{each.id}  {age(each.updated):>8}  {_title(each)}")
    if sessions:
        print_line(f"To import one: wolo sessions import --from {agent} ID")
    else:
        print_line(f"{agent} has no session of this directory.")


def find_elsewhere(agent: str, spec: str) -> Path:
    """Finds a session by id, id prefix or title words. Raises SessionError unless one matches."""
    found = _of_this_directory(agent)
    exact = [each for each in found if each.id == spec]
    begun = [each for each in found if each.id.startswith(spec)]
    titled = [each for each in found if spec.lower() in each.title.lower()]
    matching = exact or begun or titled
    if len(matching) == 1:
        return matching[0].source
    if not matching:
        hint = f"`wolo sessions import --from {agent}` lists them; of another directory, name the file itself."
        raise SessionError(f"{agent} has no session {spec} of this directory.", hint=hint)
    listed = "".join(f"\n  {each.id}  {_title(each)}" for each in matching[:CANDIDATES_SHOWN])
    raise SessionError(f"{len(matching)} sessions of {agent} match {spec}:{listed}", hint="Give more characters of the id.")


def _of_this_directory(agent: str) -> list[FoundSession]:
    from wolo.sessions.exchange.format_table import AGENTS

    if agent not in AGENTS:
        raise UsageError(f"Unknown agent {agent}.", hint=f"Known agents: {', '.join(AGENTS)}.")
    return AGENTS[agent](Path.cwd(), os.environ)


def _title(session: FoundSession) -> str:
    title = " ".join(session.title.split())
    return title if len(title) <= TITLE_CHARACTERS else f"{title[: TITLE_CHARACTERS - 1]}…"
