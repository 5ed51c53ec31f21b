"""`wolo app-server`: threads for clients of Codex's app server, on stdin and stdout."""

from __future__ import annotations

import asyncio
import gc
import signal
from typing import Any

from wolo.cli.signals import answer_signals, stop_on_signals
from wolo.errors import UsageError


def app_server() -> None:
    """Serve clients of Codex's app server: JSON-RPC on stdin and stdout.

    -c KEY=VALUE sets one of Codex's settings for every thread.
    """
    serve(["app-server"])


def serve(argv: list[str]) -> int:
    """Returns the exit code. Raises UsageError for an option that wolo does not have."""
    from wolo.cli.crash_log import log_to_file
    from wolo.cli.protocols.codex_start import parse_setting

    settings: dict[str, Any] = {}
    rest = argv[1:]
    while rest:
        name, equals, value = rest.pop(0).partition("=")
        if name == "--stdio" and not equals:
            continue
        if name not in ("-c", "--config", "--listen"):
            raise UsageError(f"wolo app-server does not have {name}.", hint="It takes -c KEY=VALUE and --listen stdio://.")
        if not equals:
            if not rest:
                raise UsageError(f"{name} needs a value.")
            value = rest.pop(0)
        if name != "--listen":
            parse_setting(settings, value)
        elif value != "stdio://":
            raise UsageError(f"--listen {value} is not supported by wolo, only stdio://.")
    log_to_file()
    gc.enable()
    gc.freeze()
    try:
        return asyncio.run(_run(settings))
    finally:
        answer_signals(signal.SIG_IGN)  # the exit status is final


async def _run(settings: dict[str, Any]) -> int:
    from wolo.frontends.codex_protocol.app_server import AppServer

    server = AppServer(settings)
    stop_on_signals(server)
    await server.run()
    return server.stopped_by
