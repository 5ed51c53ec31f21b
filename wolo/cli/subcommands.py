"""The Typer application: the subcommands and the text above the help page."""

from __future__ import annotations

from typing import Annotated

import typer

from wolo.cli import auth, doctor, hooks, mcp, models, permissions, replay, settings, stats, trust, undo, update
from wolo.cli.completion import install
from wolo.cli.help_page import HelpPage
from wolo.cli.sessions import app as sessions
from wolo.errors import UsageError

# \b keeps Typer from filling the lines up to a paragraph.
ABOUT = """Wolo, a terminal coding agent.

\b
wolo                          interactive session
wolo "create a calculator"    run one task, then exit
wolo -p "…"                   headless: print only the answer
cmd | wolo "…"                add the output of cmd to the prompt
wolo --resume ID              continue a session
wolo COMMAND --help           help of a command
"""


GROUPS = {
    "sessions": sessions.app,
    "models": models.app,
    "permissions": permissions.app,
    "config": settings.app,
    "auth": auth.app,
    "mcp": mcp.app,
    "hooks": hooks.app,
}


def run_subcommand(argv: list[str]) -> int:
    """Raises UsageError for what Typer refuses."""
    if len(argv) == 1 and argv[0] in GROUPS:
        argv = [*argv, "--help"]
    try:
        result = build_app()(argv, prog_name="wolo", standalone_mode=False)
    except typer.Exit as done:
        return int(done.exit_code)
    except typer.Abort:
        return 130
    except Exception as error:
        if hasattr(error, "format_message"):  # Typer's own usage errors share no public base class
            about = getattr(getattr(error, "ctx", None), "command_path", "wolo")
            raise UsageError(error.format_message(), hint=f"`{about} --help` shows how.") from error
        raise
    return result if isinstance(result, int) else 0


def build_app() -> typer.Typer:
    app = typer.Typer(
        cls=HelpPage,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        add_completion=False,
        help=ABOUT,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
        subcommand_metavar="[PROMPT]... | COMMAND",
    )
    app.callback(invoke_without_command=True)(_without_subcommand)
    app.add_typer(sessions.app, name="sessions", help="Saved sessions: list, search, show, export, import, delete …")
    app.add_typer(models.app, name="models", help="Models: list, show, probe, pull.")
    app.add_typer(permissions.app, name="permissions", help="Rules: list, test and explain what they decide, remove.")
    app.add_typer(settings.app, name="config", help="Settings: show, set, edit, path.")
    app.add_typer(auth.app, name="auth", help="Saved API keys: login, logout, status.")
    app.add_typer(mcp.app, name="mcp", help="MCP servers: list, add, remove, test, allow.")
    app.add_typer(hooks.app, name="hooks", help="Hooks: list, test, allow.")
    app.command(name="completion", help="Print the completion script for bash, zsh or fish.")(install.completion)
    app.command(name="stats", help="Show tokens, cache, cost and tool calls of all sessions.")(stats.stats)
    app.command(name="replay", help="Run a saved session again, without a model, and compare.")(replay.replay)
    app.command(name="trust", help="Show whether this folder is trusted, and what it contains.")(trust.trust)
    app.command(name="undo", help="Undo the last turns, conversation and files together.")(undo.undo)
    app.command(name="redo", help="Redo what was undone last.")(undo.redo)
    app.command(name="doctor", help="Check what works here and what does not.")(doctor.doctor)
    app.command(name="login", help="Save the API key of a provider; same as `auth login`.")(auth.login)
    app.command(name="logout", help="Remove a saved API key; same as `auth logout`.")(auth.logout)
    app.command(name="update", help="Print the command that updates wolo.")(update.update)
    app.command(name="help", help="Show this help, or the help of a subcommand.")(show_help)
    return app


def show_help(names: Annotated[list[str] | None, typer.Argument(metavar="[SUBCOMMAND]...", show_default=False)] = None) -> None:
    """Show the help of wolo or of a subcommand."""
    raise typer.Exit(run_subcommand([*(names or ()), "--help"]))


def _without_subcommand() -> None:
    """Every prompt is read before Typer; only `--help` comes here."""
