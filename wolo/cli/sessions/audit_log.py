"""`wolo audit` and `wolo purge`: the record of all sessions, and the end of what is saved about a project."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wolo.cli.sessions.lookup import may_delete, open_store
from wolo.errors import ConfigError, SessionError, UsageError
from wolo.frontends.streams import print_line, print_messages, stdout_bytes
from wolo.sessions.exchange.audit import audit_lines, check_audit

if TYPE_CHECKING:
    from wolo.sessions.store import Store

app = typer.Typer(rich_markup_mode=None)


@app.command("export")
def export(
    since: Annotated[
        str, typer.Option("--since", metavar="TIME", help="From then on: 30d, 8w, 12h or 2026-11-01.", show_default=False)
    ] = "",
    runs: Annotated[
        list[Path] | None,
        typer.Option("--run", metavar="RUN", help="Also the attempts of this run of `wolo batch`.", show_default=False),
    ] = None,
) -> None:
    """Print the record of all sessions as JSON lines, without secrets: who, where, model, commands, domains, approvals, hashes.

    Prompts and outputs are hashes there. Each line has the hash of itself and all before it; `wolo audit verify` checks them.
    """
    import time

    from wolo.conversation.resources.secrets import redactor
    from wolo.sessions.search.passage_search import moment

    start = moment("--since", since, time.time()) if since else 0.0
    secrets = redactor()
    attempts = [database for run in runs or () for database in _attempts(run.resolve())]
    with open_store() as store, stdout_bytes() as write:
        for line in audit_lines(_stores(store, attempts), start, secrets):
            write(line)


def _attempts(run: Path) -> list[Path]:
    """The databases of a run, ATTEMPTS/TASK/ATTEMPT/session/wolo.db. Raises UsageError where there are none."""
    if not (databases := sorted(run.glob("attempts/*/[!.]*/session/wolo.db"))):
        raise UsageError(f"{run} has no attempts with sessions.", hint="`wolo batch run --out RUN` makes such a folder.")
    return databases


def _stores(own: Store, attempts: Sequence[Path]) -> Iterator[tuple[dict[str, str], Store]]:
    from wolo.sessions.store import Store

    yield {}, own
    for database in attempts:
        run, _, task, attempt, _, _ = (os.fsencode(name).decode(errors="backslashreplace") for name in database.parts[-6:])
        try:
            store = Store.open_unchanged(database.parent)
        except SessionError as error:
            print_messages((error.message,))
            continue
        with store:
            yield {"run": run, "task": task, "attempt": attempt}, store


@app.command("verify")
def verify(file: Annotated[Path, typer.Argument(metavar="FILE", help="Output of `wolo audit export`.")]) -> None:
    """Check that no line of an exported record was changed, added or removed."""
    try:
        with file.open("rb") as lines:
            problem = check_audit(lines)
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}.") from error
    if problem:
        raise SessionError(f"{file} is not as it was exported: {problem}.")
    print_line(f"{file}: every line is as it was exported.")


def purge(
    directory: Annotated[str, typer.Argument(metavar="[DIR]", help="Any directory of the project; else this one.")] = "",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Delete everything that wolo has saved about a project: sessions, prompts, undo data, trust, consents, rules and notes.

    Its files stay as they are. The record of deletions names the sessions (`wolo audit export`).
    """
    from wolo.messages.terminal_text import quantity
    from wolo.workspace.root import find_root, find_site, origin_of

    site = find_site(Path(directory).expanduser()) if directory else find_site()
    places, root = site.places, origin_of(site.places.worktrees, site.root)
    with open_store() as store:
        # Sessions in worktrees of the project are its own.
        sessions = [
            info
            for info in store.list()
            if (cwd := Path(info.cwd)).is_relative_to(root) or origin_of(places.worktrees, find_root(cwd)) == root
        ]
        if live := next((info for info in sessions if info.live), None):
            raise SessionError(f"Session {live.id} of {root} is open, so nothing was deleted.", hint="Quit it first.")
        what = f"everything about {root} ({quantity(len(sessions), 'session')})"
        if not yes and not may_delete(f"Delete {what} permanently?", what):
            return
        for info in sessions:
            store.delete(info.id, "purged")
    remains = _remove_settings(root, {root, *(Path(info.cwd) for info in sessions)})
    print_messages(remains)
    print_line(f"Deleted {what}, from {places.data} and {places.config}.")
    if remains:
        raise typer.Exit(1)


def _remove_settings(root: Path, directories: set[Path]) -> list[str]:
    """Undo data, trust, consents, rules, servers, notes, and prompts of the directories. Returns what could not be removed."""
    from wolo.config import consents
    from wolo.config.files import change_document
    from wolo.config.server_scopes import FILE
    from wolo.conversation.resources.file_tracking import checkpoints_folder
    from wolo.conversation.resources.request_prefix import notes_files
    from wolo.frontends.terminal.composer.prompt_storage import files_of
    from wolo.places import find_places
    from wolo.workspace.checkpoints.checkpoint_store import store_path

    places, problems = find_places(), list[str]()
    try:
        consents.forget(places, root)
        for name in ("permissions.toml", FILE):
            with change_document(places.config / name) as document:
                document.pop(str(root), None)
    except ConfigError as error:
        problems.append(error.message)
    undo = store_path(checkpoints_folder(places), root)
    for path in (
        *(undo.with_name(f"{undo.name}{ending}") for ending in ("", "-wal", "-shm", "-journal")),
        notes_files(places, root)[1],
        *(file for directory in directories for file in files_of(places.state, directory)),
    ):
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            problems.append(f"{path} cannot be removed: {error.strerror}.")
    return problems
