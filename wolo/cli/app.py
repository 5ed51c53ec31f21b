"""Entry point of the command line: dispatches it and reports errors."""

from __future__ import annotations

import errno
import gc
import importlib
import re
import sys
import time
import typing
from collections.abc import Callable
from types import FunctionType, ModuleType, SimpleNamespace
from typing import Any, cast

from wolo.cli.options import CommandLine, asks_for_json, parse
from wolo.cli.signals import InterruptedBySignal, leave_on_signals, note_signals
from wolo.errors import UsageError, WoloError
from wolo.frontends.streams import OutputLost, abandon, flush, print_message, show_error

LATE = (
    *("inspect", "ipaddress", "linecache", "locale", "textwrap", "ssl", "asyncio.sslproto"),
    *("msgspec.inspect", "msgspec.msgpack", "msgspec.toml", "msgspec.yaml"),
)
CO_COROUTINE = 0x80
"""The flag of `async def`, as in `inspect`."""
compile_pattern = re.compile


def main(argv: list[str]) -> int:
    """Runs one command line; returns the exit status."""
    began = time.time()
    gc.disable()  # start-up produces no garbage worth collecting; run.py enables it again
    came, line = note_signals(), CommandLine({}, ())
    serve = _protocol_server(argv)
    try:
        line = line if serve else parse(argv)
    except UsageError as error:
        show_error(error)
        return _end_in_json(argv, error)
    try:
        leave_on_signals(came)
        return serve(argv) if serve else _dispatch(line)
    except SystemExit as left:  # a signal before the turn began
        code = int(left.code or 0)
        return code if serve or line.subcommand else _end_in_json(argv, InterruptedBySignal(code))
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


def _protocol_server(argv: list[str]) -> Callable[[list[str]], int] | None:
    """Serves a program that was written for another agent; None for wolo's own command lines."""
    if argv[:1] == ["app-server"] and not {"-h", "--help"} & {*argv}:
        from wolo.cli.protocols.codex_app_server import serve as serve_threads

        return serve_threads
    if argv[:1] == ["exec"] and "--experimental-json" in argv:
        from wolo.cli.protocols.codex_start import serve as serve_codex

        return serve_codex
    if any("stream-json" in word for word in argv):
        from wolo.cli.protocols.detection import speaks_claude

        if speaks_claude(argv):
            from wolo.cli.protocols.claude_start import serve

            return serve
    return None


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
    came = note_signals()
    _import_libraries()
    from wolo.cli.run import run

    leave_on_signals(came)
    return run(line)


class _LatePattern:
    """A pattern of a library that is compiled when it is used."""

    def __init__(self, *pattern: Any) -> None:
        self._pattern = pattern

    def __getattr__(self, name: str) -> Any:
        return getattr(compile_pattern(*self._pattern), name)


class _LateModule(ModuleType):
    """Stands in for a module until one of its names is used; whoever imports it meanwhile has this object for good."""

    def __getattr__(self, name: str) -> Any:
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(importlib.import_module(self.__name__), name)


def _import_libraries() -> None:
    """Without what they load for rare cases, or for other Pythons and systems; that takes longer than to read the settings.

    msgspec asks typing_extensions first for what `typing` has, and knows two types that nothing here encodes.
    `compile` would make a class of each kind of syntax first, for annotations that `eval` reads as text as well.
    `json` stays hidden: modules of wolo import it for what few turns need.
    """
    late = {name: _LateModule(name) for name in LATE}
    late["inspect"].__dict__["iscoroutinefunction"] = _is_coroutine_function
    late["ssl"].__dict__["SSLSocket"] = ()  # no socket is an instance of it
    uuid = SimpleNamespace(UUID=type("UUID", (), {}), SafeUUID=SimpleNamespace(unknown=None))
    decimal = SimpleNamespace(Decimal=type("Decimal", (), {}))
    stand_ins = {"typing_extensions": None, "uuid": uuid, "decimal": decimal, **late}
    is_first = sys.platform == "linux" and "asyncio" not in sys.modules
    missing = {name: module for name, module in stand_ins.items() if is_first and name not in sys.modules}
    sys.modules.update(cast("dict[str, ModuleType]", missing))
    if is_first:
        sys.modules.setdefault("json", _LateModule("json"))
    if is_first:
        vars(typing)["compile"] = lambda text, *_: text
        vars(re)["compile"] = _LatePattern
    try:
        import asyncio  # noqa: F401
        import urllib.parse  # noqa: F401

        import msgspec  # noqa: F401
    finally:
        vars(re)["compile"] = compile_pattern
        for name, module in missing.items():
            if sys.modules.get(name) is module:
                del sys.modules[name]


def _is_coroutine_function(function: object) -> bool:
    """The loop asks it about the callback of a signal, in every turn."""
    if isinstance(function, FunctionType) and not function.__dict__:  # nothing wrapped or marked
        return bool(function.__code__.co_flags & CO_COROUTINE)
    return bool(importlib.import_module("inspect").iscoroutinefunction(function))


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
