"""Entry point of the command line: dispatches it and reports errors."""

from __future__ import annotations

import errno
import gc
import sys
import time
from types import ModuleType, SimpleNamespace
from typing import cast

from wolo.cli.options import CommandLine, asks_for_json, parse
from wolo.cli.signals import InterruptedBySignal, answer_signals, hold, leave
from wolo.errors import UsageError, WoloError
from wolo.frontends.streams import OutputLost, abandon, flush, print_message, show_error


def main(argv: list[str]) -> int:
    """Runs one command line; returns the exit status."""
    began = time.time()
    gc.disable()  # start-up produces no garbage worth collecting; run.py enables it again
    answer_signals(leave)
    if argv[:1] == ["app-server"] and not {"-h", "--help"} & {*argv}:
        from wolo.cli.protocols.codex_app_server import serve as serve_threads

        try:
            return serve_threads(argv[1:])
        except WoloError as error:
            show_error(error)
            return error.exit_code
    if argv[:1] == ["exec"] and "--experimental-json" in argv:
        from wolo.cli.protocols.codex_start import serve as serve_codex

        return serve_codex(argv)
    if any("stream-json" in word for word in argv):
        from wolo.cli.protocols.detection import speaks_claude

        if speaks_claude(argv):
            from wolo.cli.protocols.claude_start import serve

            return serve(argv)
    try:
        line = parse(argv)
    except UsageError as error:
        show_error(error)
        return _end_in_json(argv, error)
    try:
        return _dispatch(line)
    except SystemExit as left:  # a signal before the turn began
        return int(left.code or 0) if line.subcommand else _end_in_json(argv, InterruptedBySignal(int(left.code or 0)))
    except WoloError as error:
        show_error(error)
        return error.exit_code
    except OutputLost as lost:
        return lost.exit_code
    except OSError as error:
        if error.errno not in (errno.EPIPE, errno.ENOSPC, errno.EBADF):
            return _report(error, began)
        abandon(sys.stdout)  # the reader of a listing is gone, or the disk is full
        if error.errno == errno.EPIPE:
            return 1
        print_message(f"Cannot write output: {error.strerror}.")
        return 3
    except Exception as error:  # the outermost handler: a user sees a sentence, never a traceback
        return _report(error, began)


def _dispatch(line: CommandLine) -> int:
    if line.subcommand[:1] == ("acp",) and "help" not in line.values:
        from wolo.cli.acp import serve

        return serve(line)
    if line.subcommand in (("ps",), ("ps", "--json")):  # Typer takes longer than the rest of it
        from wolo.frontends.background_sessions import print_sessions

        print_sessions(in_json="--json" in line.subcommand)
        flush()
        return 0
    if line.subcommand or line.values.get("help"):
        from wolo.cli.subcommands import run_subcommand

        exit_code = run_subcommand(list(line.subcommand) or ["--help"])
        flush()
        return exit_code
    if line.values.get("version"):
        from wolo import __version__

        print(f"wolo {__version__}")
        return 0
    with hold():
        _import_msgspec()
        from wolo.cli.run import run
    return run(line)


def _import_msgspec() -> None:
    """Without two modules that it needs under other Pythons and systems; to load them takes as long as to read the settings.

    msgspec asks typing_extensions first for what `typing` has, and uuid asks platform for the name of the system.
    """
    stand_ins = {"typing_extensions": None, "platform": SimpleNamespace(system=lambda: "Linux")}
    is_first = sys.platform == "linux" and "msgspec" not in sys.modules
    missing = {name: module for name, module in stand_ins.items() if is_first and name not in sys.modules}
    sys.modules.update(cast("dict[str, ModuleType]", missing))
    try:
        import msgspec  # noqa: F401  # loads uuid
    finally:
        for name in missing:
            del sys.modules[name]


def _end_in_json(argv: list[str], error: WoloError) -> int:
    """Prints the JSON result of a command line that is invalid but asks for JSON."""
    if not asks_for_json(argv):
        return error.exit_code
    from wolo.cli.run import fail_in_json

    return fail_in_json(error)


def _report(error: Exception, began_at: float) -> int:
    from wolo.cli.crash_log import report

    report(error, began_at)
    return 1
