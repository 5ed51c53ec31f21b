"""`wolo undo` and `wolo redo`: undo and redo turns, conversation and files together."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wolo.cli.listing import AsJson, print_json
from wolo.cli.sessions.lookup import open_store, require_session
from wolo.frontends.streams import print_lines
from wolo.places import find_places

if TYPE_CHECKING:
    from wolo.conversation.history.turn_undo import Kind, PreparedUndo, Report, Undoing
    from wolo.sessions.listing import SessionInfo
    from wolo.sessions.locks import SessionInUse
    from wolo.sessions.store import Store

DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would happen.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask about conflicts.")]
Session = Annotated[
    str, typer.Option("--session", help="Session; the latest of this directory if not given.", metavar="ID", show_default=False)
]


def undo(
    what: Annotated[
        list[str] | None, typer.Argument(metavar="[N] [PATH]...", show_default=False, help="Number of turns (1) and files (all).")
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option("--only", help="Only this file or folder.", metavar="PATH", show_default=False)
    ] = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
    yes: Yes = False,
    session: Session = "",
) -> None:
    """Undo the last turns: the conversation and the changes to files.

    A file that was changed since is left alone; the exit status is then 1.
    """
    words = list(what or ())
    count = int(words.pop(0)) if words and words[0].isdecimal() else 1
    paths = [Path.cwd() / word for word in (*words, *(only or ()))]
    asked = {"count": count, "paths": [str(path) for path in paths]}
    _run("undo", asked, lambda undoing: undoing.undo(count, paths), session, dry_run=dry_run, as_json=as_json, yes=yes)


def redo(dry_run: DryRun = False, as_json: AsJson = False, yes: Yes = False, session: Session = "") -> None:
    """Redo what was undone last, unless the conversation has continued."""
    _run("redo", {}, lambda undoing: undoing.redo(), session, dry_run=dry_run, as_json=as_json, yes=yes)


def _run(
    kind: Kind,
    asked: dict[str, Any],
    plan: Callable[[Undoing], PreparedUndo],
    spec: str,
    *,
    dry_run: bool,
    as_json: bool,
    yes: bool,
) -> None:
    """`asked` is the same request for a server that has the session open."""
    from wolo.conversation.history.turn_undo import Undoing, as_row
    from wolo.conversation.resources.file_tracking import open_tracker
    from wolo.sessions.locks import SessionInUse
    from wolo.workspace.root import Workspace, find_root

    def agrees(planned: Report) -> bool:
        return not dry_run and (yes or as_json or not planned.conflicts or _confirm(planned))

    with open_store() as store:
        info = require_session(store, spec)
        try:
            with store.lock(info.id):
                places, cwd = find_places(), Path(info.cwd)
                root = find_root(cwd) if cwd.is_dir() else cwd
                watch = open_tracker(places, Workspace(root, (), cwd), info.id)
                watch.recover_killed()
                undoing = Undoing(watch, places.state / "file-locks", store.nodes(info.id), store.head(info.id), (), Path.cwd())
                planned = plan(undoing)
                report = _do(store, info, undoing, planned) if agrees(planned.report) else planned.report
        except SessionInUse as held:
            report = _through_server(held, kind, asked, agrees)
    if as_json:
        print_json(as_row(report))
    else:
        _print(report)
    raise typer.Exit(1 if report.conflicts else 0)


def _do(store: Store, info: SessionInfo, undoing: Undoing, planned: PreparedUndo) -> Report:
    from wolo.sessions.entries import AnyEntry, BranchEntry

    done = undoing.carry_out(planned)
    change = done.change
    entries: list[AnyEntry] = [
        BranchEntry(left=store.head(info.id), summary=change.summary),
        *([change.record] if change.record else []),
    ]
    store.append(info.id, entries, behind=change.after_entry)
    undoing.finish(done)
    return done.report


def _through_server(held: SessionInUse, kind: Kind, asked: dict[str, Any], agrees: Callable[[Report], bool]) -> Report:
    """Asks the `wolo serve` that has the session open. Raises SessionInUse if another process has it."""
    import asyncio

    from wolo.conversation.history.turn_undo import report_of
    from wolo.frontends.attach.server_client import ServerClient, path_of
    from wolo.frontends.running_servers import running_servers

    server = next((each for each in running_servers(find_places().data) if str(each.pid) == held.holder), None)
    if server is None:
        held.hint = f"Type /{kind} there, or quit it first."
        raise held

    async def ask() -> Report:
        async with ServerClient(server.origin, server.token) as client:
            path = path_of(held.session_id, kind)
            planned = report_of(await client.ask("POST", path, {**asked, "preview": True}))
            return report_of(await client.ask("POST", path, {**asked, "anyway": True})) if agrees(planned) else planned

    return asyncio.run(ask())


def _confirm(report: Report) -> bool:
    """Asks at a terminal: files left alone may not match the restored ones."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return True
    _print(report)
    print("Continue with the rest? [y/N] ", end="", flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _print(report: Report) -> None:
    from wolo.conversation.history.turn_undo import lines

    print_lines(lines(report))
    if report.is_preview:
        print("Nothing was changed.")
