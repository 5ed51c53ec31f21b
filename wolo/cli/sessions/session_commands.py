"""Registers the commands of `wolo sessions`."""

from __future__ import annotations

import typer

from wolo.cli.sessions.delete import clean_sessions, delete_session, fork_session, rename_session
from wolo.cli.sessions.inspect import lint_session, print_wire, show_cache
from wolo.cli.sessions.list import list_sessions, search_sessions
from wolo.cli.sessions.show import print_tree, show_session, watch
from wolo.cli.sessions.transfer import export_session, import_session, verify_session

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
