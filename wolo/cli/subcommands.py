"""The Typer application: the help page, drawn from the table of options, and the subcommands."""

from __future__ import annotations

from inspect import Parameter, Signature
from typing import Annotated, Any

import typer

from wolo.cli import auth, completion, doctor, mcp, models, permissions, replay, sessions, settings, stats, trust, undo
from wolo.cli.options import OPTIONS, Option
from wolo.errors import UsageError

# \b keeps Typer from filling the lines up to a paragraph.
ABOUT = """Wolo, a terminal coding agent.

\b
wolo                          talk with it
wolo "create a calculator"    one task, then exit
wolo -p "…"                   headless: only the answer on stdout
cmd | wolo "…"                what cmd prints joins the prompt
wolo --resume ID              go on with a session
"""


GROUPS = {
    "sessions": sessions.app,
    "models": models.app,
    "permissions": permissions.app,
    "config": settings.app,
    "auth": auth.app,
    "mcp": mcp.app,
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
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        add_completion=False,
        help=ABOUT,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
        subcommand_metavar="[PROMPT]...",
    )
    app.callback(invoke_without_command=True)(_prompt_options())
    app.add_typer(sessions.app, name="sessions", help="Kept conversations: list, search, show, check, export, delete …")
    app.add_typer(models.app, name="models", help="Models: list, show, probe, pull.")
    app.add_typer(permissions.app, name="permissions", help="Rules: list, test and explain what they decide, remove.")
    app.add_typer(settings.app, name="config", help="Settings: show, set, edit, path.")
    app.add_typer(auth.app, name="auth", help="API keys that wolo keeps: login, logout, status.")
    app.add_typer(mcp.app, name="mcp", help="MCP servers: list, add, remove, test, allow.")
    app.command(name="completion", help="The script that lets bash, zsh or fish complete options and values.")(
        completion.completion
    )
    app.command(name="stats", help="What all sessions have used: tokens, cache, money, tools.")(stats.stats)
    app.command(name="replay", help="Run a kept session again, without a model, and compare.")(replay.replay)
    app.command(name="trust", help="Whether this folder is trusted, and what it brings along.")(trust.trust)
    app.command(name="undo", help="Take back the last turns: what was said, and what was done to files.")(undo.undo)
    app.command(name="redo", help="Bring back what was undone last.")(undo.redo)
    app.command(name="doctor", help="What works here and what does not.")(doctor.doctor)
    return app


def _prompt_options() -> Any:
    """A callback that does nothing: it lends Typer the options of the prompt for the help page."""

    def prompt(**values: object) -> None:
        del values

    shown = [option for option in OPTIONS if option.name != "help"]
    annotations = {f"{option.name}_": _annotation(option) for option in shown}  # `continue` is no name for a parameter
    prompt.__signature__ = Signature(  # type: ignore[attr-defined]  # how `inspect` lets a function declare its parameters
        [Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=kind) for name, kind in annotations.items()]
    )
    prompt.__annotations__ = annotations
    return prompt


def _annotation(option: Option) -> Any:
    kind = {"flag": bool, "many": list[str]}.get(option.kind, str)
    shown = typer.Option(*option.spellings, help=option.help, metavar=option.metavar or None, show_default=False)
    return Annotated[kind | None, shown]
