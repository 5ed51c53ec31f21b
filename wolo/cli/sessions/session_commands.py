"""`wolo sessions`: registers its commands; `fork`, `rename`, `delete` and `clean` change whole sessions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wolo.cli.listing import AsJson, print_json
from wolo.cli.sessions.inspect import lint_session, print_wire, show_cache
from wolo.cli.sessions.list import list_sessions, search_sessions, shown_title
from wolo.cli.sessions.lookup import SessionSpec, may_delete, open_store, require_session
from wolo.cli.sessions.show import print_tree, show_session, watch
from wolo.cli.sessions.transfer import export_session, import_session, verify_session
from wolo.errors import SessionError, UsageError
from wolo.frontends.streams import print_line, print_message
from wolo.messages.terminal_text import quantity

if TYPE_CHECKING:
    from wolo.sessions.listing import SessionInfo

SHOWN = 10
"""Number of sessions listed before the question."""

Id = Annotated[str, typer.Argument(metavar="ID")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


def rename_session(
    id: Id,
    title: Annotated[list[str] | None, typer.Argument(metavar="TITLE", show_default=False)] = None,
    name: Annotated[
        str, typer.Option("--name", metavar="NAME", help="Also set the name for -s and -r.", show_default=False)
    ] = "",
) -> None:
    """Change the title or name of a session."""
    from wolo.sessions.session_rows import title_of

    words = title_of(" ".join(title or ()))
    if not words and not name:
        raise UsageError("No title was given.", hint="wolo sessions rename ID TITLE, or --name NAME.")
    with open_store() as store:
        info = store.find(id, Path.cwd())
        if words and (other := store.exactly(words)) and other.id != info.id:
            raise SessionError(f"Session {other.id} is already named {words}.", hint="Choose another title.")
        store.rename(info.id, name or None, title=words)
        print_line(f"{info.id}  {shown_title(store.find(info.id))}")


def fork_session(
    id: SessionSpec = "",
    name: Annotated[str, typer.Option("--name", metavar="NAME", help="Name of the copy.", show_default=False)] = "",
    as_json: AsJson = False,
) -> None:
    """Copy a session."""
    with open_store() as store:
        original = require_session(store, id)
        if name and (other := store.exactly(name)):
            raise SessionError(f"Session {other.id} is already named {name}.", hint="Choose another name.")
        fork = store.fork(original.id)
        if name:
            store.rename(fork.id, name)
    if as_json:
        print_json({"id": fork.id, "from": original.id, "name": name or None})
        return
    print_line(fork.id)
    print_message(f"A copy of {original.id}.", hint=f"wolo --resume {fork.id}")


def delete_session(id: Id, yes: Yes = False) -> None:
    """Delete a session permanently."""
    with open_store() as store:
        info = store.find(id, Path.cwd())
        if not yes and not may_delete(f"Delete {info.id} ({shown_title(info)})?", info.id):
            return
        store.delete(info.id)
    print_line(f"Deleted {info.id}.")


def clean_sessions(
    older_than: Annotated[str, typer.Option("--older-than", metavar="AGE", help="30d, 8w, 12h or 2026-11-01.")],
    here: Annotated[bool, typer.Option("--here/--all", help="Sessions of this directory only, or all.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only list what would be deleted.")] = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Delete sessions that have not been used for a time.

    Named and open sessions are not deleted.
    """
    import time

    from wolo.sessions.search.passage_search import moment

    before = moment("--older-than", older_than, time.time())
    with open_store() as store:
        old = [info for info in store.list(Path.cwd() if here else None) if info.updated < before]
        going = [info for info in old if not info.name and not info.live]
        if not as_json:
            _announce(going, len(old) - len(going))
        deleted: list[str] = []
        count = quantity(len(going), "session")
        if going and not dry_run and (yes or may_delete(f"Delete {count} permanently?", count)):
            for info in going:
                try:
                    store.delete(info.id, "cleaned")
                    deleted.append(info.id)
                except SessionError as error:  # opened, or deleted by another process, since we looked
                    print_message(error.message)
    if as_json:
        print_json({"would_delete" if dry_run else "deleted": [info.id for info in going] if dry_run else deleted})
    elif deleted:
        print_line(f"Deleted {quantity(len(deleted), 'session')}.")


def _announce(going: list[SessionInfo], staying: int) -> None:
    from wolo.sessions.listing import age

    for info in going[:SHOWN]:
        print_line(f"{info.id}  {age(info.updated):>6}  {shown_title(info)}")
    if len(going) > SHOWN:
        print_line(f"… and {len(going) - SHOWN:,} more")
    if not going:
        print_line("No session is that old." if not staying else "No session that old can be deleted.")
    if staying:
        print_line(f"Not deleted: {quantity(staying, 'session')} that old, named or open.")


app = typer.Typer(rich_markup_mode=None)

app.command("list")(list_sessions)
app.command("show")(show_session)
app.command("search")(search_sessions)
app.command("tree")(print_tree)
app.command("watch")(watch)
app.command("wire")(print_wire)
app.command("lint")(lint_session)
app.command("cache")(show_cache)
app.command("export")(export_session)
app.command("import")(import_session)
app.command("verify")(verify_session)
app.command("fork")(fork_session)
app.command("rename")(rename_session)
app.command("delete")(delete_session)
app.command("clean")(clean_sessions)
