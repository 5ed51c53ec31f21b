"""The command line: which subcommands there are, and how an error is shown."""

from __future__ import annotations

import gc
import os
import sys

from wolo.cli.complaint import show_error
from wolo.cli.options import Line, parse
from wolo.errors import WoloError


def main(argv: list[str]) -> int:
    """Runs one command line; the returned number is the exit status."""
    gc.disable()  # a start-up of some hundred modules makes no garbage worth collecting; run.py turns it on again
    try:
        return _dispatch(parse(argv))
    except WoloError as error:
        show_error(error)
        return error.exit_code
    except BrokenPipeError:
        _silence_stdout()
        return 1
    except Exception as error:  # the outermost handler: a person gets a sentence, never a traceback
        from wolo.cli.crash import report

        return report(error)


def _dispatch(line: Line) -> int:
    if line.subcommand or line.values.get("help"):
        from wolo.cli.subcommands import run_subcommand

        return run_subcommand(list(line.subcommand) or ["--help"])
    if line.values.get("version"):
        from wolo import __version__

        print(f"wolo {__version__}")
        return 0
    from wolo.cli.run import run

    return run(line)


def _silence_stdout() -> None:
    """The reader has gone; keep the interpreter from complaining when it flushes at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
