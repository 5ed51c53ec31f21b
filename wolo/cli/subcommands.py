"""The Typer application: subcommands and the page of `wolo --help`."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperGroup

from wolo.cli.options import OPTIONS, SUBCOMMANDS, Option
from wolo.errors import UsageError, WoloError
from wolo.frontends.streams import print_line, print_message

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


class Subcommand(NamedTuple):
    module: str
    """Below `wolo.cli`; imported when the subcommand is used."""
    entry: str
    """`app` for a group, else the function."""
    help: str


TABLE = {
    "sessions": Subcommand("sessions.session_commands", "app", "Saved sessions: list, search, show, export, import, delete …"),
    "models": Subcommand("models", "app", "Models: list, show, probe, pull."),
    "permissions": Subcommand("permissions", "app", "Rules: list, test and explain what they decide, remove."),
    "config": Subcommand("settings", "app", "Settings: show, get, set, edit, path."),
    "auth": Subcommand("auth", "app", "Saved API keys: login, logout, status."),
    "mcp": Subcommand("extensions.mcp", "app", "MCP servers: list, add, import, remove, test, login …"),
    "tools": Subcommand("extensions.tools", "app", "Custom tools: list, test, allow."),
    "extensions": Subcommand("extensions.python_extensions", "app", "Extensions: list, new, test, allow."),
    "hooks": Subcommand("extensions.hooks", "app", "Hooks: list, test, allow."),
    "import-config": Subcommand("extensions.import_config", "import_config", "Take over settings of other coding agents."),
    "skills": Subcommand("extensions.skills", "app", "Skills: list, show, add, remove."),
    "plugin": Subcommand("extensions.plugin", "app", "Plugins: add, list, update, remove, allow, search …"),
    "batch": Subcommand("fleet.batch", "app", "Many tasks: run, resume, status, retry, apply …"),
    "race": Subcommand("fleet.race", "race", "One task by several models or tries; the best is applied."),
    "eval": Subcommand("fleet.evaluate", "evaluate", "A data set with several models: pass@k, intervals, cost."),
    "worktree": Subcommand("sessions.worktree_commands", "app", "Worktrees of sessions: list, merge, patch, remove."),
    "completion": Subcommand("completion.install", "completion", "Print the completion script for bash, zsh or fish."),
    "stats": Subcommand("stats", "stats", "Show tokens, cache, cost and tool calls of all sessions."),
    "replay": Subcommand("replay", "replay", "Run a saved session again, without a model, and compare."),
    "acp": Subcommand("acp", "acp", "Serve editors: the Agent Client Protocol on stdin and stdout."),
    "app-server": Subcommand(
        "protocols.codex_app_server", "app_server", "Serve clients of Codex's app server on stdin and stdout."
    ),
    "trust": Subcommand("trust", "trust", "Show whether this folder is trusted, and what it contains."),
    "undo": Subcommand("undo", "undo", "Undo the last turns, conversation and files together."),
    "redo": Subcommand("undo", "redo", "Redo what was undone last."),
    "serve": Subcommand("serve", "serve", "Serve a web page and an HTTP API on this machine."),
    "attach": Subcommand("serve", "attach", "Follow and steer a session of `wolo serve` from a terminal."),
    "ps": Subcommand("sessions.background", "ps", "Sessions in the background: what each does, and waits for."),
    "logs": Subcommand("sessions.background", "logs", "Print a session in the background; -f follows it."),
    "stop": Subcommand("sessions.background", "stop", "Interrupt a session in the background."),
    "doctor": Subcommand("doctor", "doctor", "Check what works here and what does not."),
    "audit": Subcommand("sessions.audit_log", "app", "The record of all sessions of this machine: export, verify."),
    "purge": Subcommand("sessions.audit_log", "purge", "Delete everything that wolo has saved about a project."),
    "login": Subcommand("auth", "login", "Save the API key of a provider; same as `auth login`."),
    "logout": Subcommand("auth", "logout", "Remove a saved API key; same as `auth logout`."),
    "update": Subcommand("subcommands", "update", "Update wolo the way it was installed, after a yes."),
    "help": Subcommand("subcommands", "show_help", "Show this help, or the help of a subcommand."),
}


def run_subcommand(argv: list[str]) -> int:
    """Raises UsageError for arguments that Typer rejects."""
    name = argv[0] if argv and argv[0] in TABLE else ""
    if len(argv) == 1 and name and TABLE[name].entry == "app":
        argv = [*argv, "--help"]
    try:
        result = build_app(name, for_page=not name)(argv, prog_name="wolo", standalone_mode=False)
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


def build_app(only: str = "", *, for_page: bool = False) -> typer.Typer:
    """Registers one subcommand, or all of them; Typer takes a third of a millisecond for each command it is given.

    `for_page`: only names and sentences, which load no module.
    """
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
    for name, row in TABLE.items():
        if for_page:
            app.command(name=name, help=row.help)(_without_subcommand)
        elif only in ("", name):
            module = import_module(f"wolo.cli.{row.module}")
            found = getattr(module, row.entry)
            if isinstance(found, typer.Typer):
                app.add_typer(found, name=name, help=row.help, cls=GroupPage)
            else:
                app.command(name=name, help=row.help, cls=getattr(module, "PAGE", None))(found)
    return app


def show_help(names: Annotated[list[str] | None, typer.Argument(metavar="[SUBCOMMAND]...", show_default=False)] = None) -> None:
    """Show the help of wolo or of a subcommand."""
    raise typer.Exit(run_subcommand([*(names or ()), "--help"]))


def _without_subcommand() -> None:
    """Runs for `--help`; prompts are handled before Typer."""


OPTION_GROUPS: dict[str, tuple[str, ...]] = {
    "Prompt and output": (
        *("print", "interactive", "bg", "file", "no_mentions", "ignore_unsupported", "output_format", "json", "partial"),
        *("json_schema", "input_format", "output_last_message", "plain", "verbose"),
    ),
    "Sessions": ("continue", "resume", "session", "fork", "worktree", "from", "no_session"),
    "Model": ("model", "thinking", "fallback_model", "base_url", "api_key", "account", "api", "drive", "debug_wire"),
    "Agent": (
        *("agent", "system_prompt", "append_system_prompt", "name", "tools", "disallow_tools"),
        *("mcp_config", "strict_mcp_config", "verify", "goal", "until"),
    ),
    "Permissions": ("mode", "yolo", "allow", "deny", "add_dir", "cd", "sandbox", "trust", "safe_mode"),
    "Budgets": ("max_turns", "max_cost", "max_tokens", "max_seconds", "budget", "wait_for_reset"),
    "Settings and help": ("set", "version", "help"),
}
"""Headings with the names of their options."""
OTHERS = "Other options"


class GroupPage(TyperGroup):
    """A group of subcommands, each with a sentence that is wrapped, never cut."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        commands = [(name, self.commands[name]) for name in self.list_commands(ctx)]
        rows = [
            (name, " ".join((command.short_help or command.help or "").strip().partition("\n\n")[0].split()))
            for name, command in commands
            if not command.hidden
        ]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


class HelpPage(GroupPage):
    """The top-level command; lists subcommands before options."""

    def list_commands(self, ctx: Any) -> list[str]:
        """In the order of the table, groups and single commands alike."""
        return [name for name in SUBCOMMANDS if name in self.commands]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        self.format_commands(ctx, formatter)
        for heading, options in option_groups():
            with formatter.section(heading):
                formatter.write_dl([option_line(option) for option in options])


def option_line(option: Option) -> tuple[str, str]:
    return f"{', '.join(option.spellings)} {option.metavar}".replace(" [=", "[=").rstrip(), option.help


def option_groups() -> list[tuple[str, list[Option]]]:
    """Every option under its heading; options without one are in the last group."""
    by_name = {option.name: option for option in OPTIONS}
    found = [(heading, [by_name.pop(name) for name in names if name in by_name]) for heading, names in OPTION_GROUPS.items()]
    return [*found, (OTHERS, list(by_name.values()))] if by_name else found


def update(yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False) -> None:
    """Update wolo the way it was installed, after a yes.

    Without a terminal and without --yes only the command is printed.
    """
    import subprocess
    import sys

    from wolo import __version__
    from wolo.config.layers import load
    from wolo.diagnostics.folder_update import find_release, replace_folder
    from wolo.diagnostics.installation import plan_update, this_installation
    from wolo.frontends.streams import confirm
    from wolo.workspace.root import find_site

    plan = plan_update(this_installation())
    asks = not yes and sys.stdin is not None and sys.stdin.isatty()
    if not (yes or asks) or (not plan.steps and plan.folder is None):
        print_message(f"This is wolo {__version__} ({plan.way}). To update it, run:")
        print_line(plan.text)
        raise typer.Exit(1 if yes else 0)
    release = find_release(plan.folder, load(find_site()).settings.update.signers) if plan.folder is not None else None
    if plan.folder is not None and release is None:
        print_line(f"wolo {__version__} is the newest release.")
        return
    print_message(f"This is wolo {__version__} ({plan.way}). To update it, wolo")
    print_message(f"replaces {plan.folder} by {release.name}." if release else f"runs: {plan.text}")
    if asks and not confirm("Update now?"):
        print_message("Nothing was changed.")
        return
    if plan.folder is not None and release is not None:
        replace_folder(plan.folder, release)
        print_line(f"{plan.folder} is {release.name} now.")
        return
    for step in plan.steps:
        try:
            code = subprocess.run(step, check=False).returncode
        except OSError as error:
            raise WoloError(
                f"{step[0]} cannot be started: {error.strerror}.", hint=f"To update wolo, run: {plan.text}"
            ) from error
        if code:
            raise WoloError(f"{step[0]} failed with exit code {code}; wolo is not updated.", hint="Its own message is above.")
    print_line("wolo is up to date.")
