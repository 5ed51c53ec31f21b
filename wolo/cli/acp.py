"""`wolo acp`: an agent for editors, on stdin and stdout."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

from typer.core import TyperCommand

from wolo.cli.options import CommandLine, parse
from wolo.cli.signals import is_answered
from wolo.errors import UsageError
from wolo.operating_system import EXIT_BY_SIGNAL

USELESS = {
    "print": "-p",
    "continue": "-c",
    "resume": "-r",
    "session": "-s",
    "fork": "--fork",
    "file": "-f",
    "output_format": "--output-format",
    "input_format": "--input-format",
    "json_schema": "--json-schema",
    "partial": "--include-partial-messages",
    "output_last_message": "-o",
    "plain": "--plain",
    "interactive": "-i",
    "bg": "--bg",
    "goal": "--goal",
    "until": "--until",
}
"""Options of a single run or of a terminal."""
MISSING = "wolo acp needs the package agent-client-protocol."


class AcpPage(TyperCommand):
    """The help of `wolo acp`, with the options of `wolo` that it takes."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        from wolo.cli.subcommands import option_groups, option_line

        for heading, options in option_groups():
            if rows := [
                option_line(each) for each in options if not USELESS.keys() & {each.name, each.target} and each.name != "version"
            ]:
                with formatter.section(heading):
                    formatter.write_dl(rows)


PAGE = AcpPage


def acp() -> None:
    """Serve editors over the Agent Client Protocol, on stdin and stdout.

    Options such as -m, --mode, --add-dir and --set apply to every session.
    """
    serve(CommandLine({}, (), ("acp",)))


def serve(line: CommandLine) -> int:
    """Raises UsageError for options that have no effect here."""
    values = parse([token for token in line.subcommand if token != "acp"])
    if values.words:
        raise UsageError("wolo acp takes options only.", hint="The editor sends the prompts.")
    for name, spelling in USELESS.items():
        if name in values.values:
            raise UsageError(
                f"{spelling} has no effect with wolo acp.", hint="The editor chooses sessions and sends the prompts."
            )
    if "trust" in values.values:
        from wolo.workspace.root import find_root

        values.values["trust"] = str(find_root())
    try:
        from wolo.frontends.acp.acp_server import serve as run
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "acp":
            raise
        raise UsageError(MISSING, hint="Install it with: pip install 'wolo-cli[acp]'") from error
    from wolo.cli.crash_log import log_to_file

    log_to_file()
    gc.enable()
    gc.freeze()
    asyncio.run(run(values.values, {number: code for number, code in EXIT_BY_SIGNAL.items() if is_answered(number)}))
    return 0
