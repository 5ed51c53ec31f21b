"""Runs the server on a loopback port until a signal ends it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import uvicorn

from wolo.errors import ConfigError, UsageError
from wolo.frontends.running_servers import RunningServer, list_server, remove_redirect, write_redirect
from wolo.frontends.server.application import make_application
from wolo.frontends.server.session_hub import SessionHub
from wolo.frontends.streams import print_message, write
from wolo.places import find_places

GRACE_S = 1
"""Time for running requests after a signal."""
REDIRECT_S = 60.0
"""Time for a browser to start and read the page that leads it to the server."""


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leaves signals to `serve`."""
        yield


async def serve(
    port: int, exit_codes: Mapping[signal.Signals, int], open_page: Callable[[str], object] | None, runs: Sequence[Path] = ()
) -> int:
    """Returns the exit code. Port 0: a free one. Raises UsageError for a port in use, and a folder in `runs` without a run."""
    shown = None
    if runs:
        from wolo.frontends.server.batch_runs import BatchRuns  # noqa: PLC0415  # few servers show batches

        shown = BatchRuns([folder.absolute() for folder in runs])
    listener = _listen(port)
    port = listener.getsockname()[1]
    running = RunningServer(port, secrets.token_urlsafe(24), os.getpid())
    hub = SessionHub(Path.cwd(), runs=shown)
    application = make_application(hub, running.token, port)
    config = uvicorn.Config(
        application,
        log_config=None,
        access_log=False,
        lifespan="off",
        ws="none",
        server_header=False,
        timeout_graceful_shutdown=GRACE_S,
    )
    server, ended_by = _Server(config), list[int]()
    closing: list[asyncio.Task[None]] = []

    def stop(number: signal.Signals) -> None:
        if ended_by:
            hub.kill()
            os._exit(exit_codes[number])
        ended_by.append(exit_codes[number])
        closing.append(asyncio.get_running_loop().create_task(_close(hub, server)))

    for number in exit_codes:
        asyncio.get_running_loop().add_signal_handler(number, stop, number)
    with _announce(running, open_page):
        idle = asyncio.create_task(hub.let_go_of_idle())
        await server.serve(sockets=[listener])
        idle.cancel()
        await asyncio.gather(*closing)
    return ended_by[0] if ended_by else 0


@contextlib.contextmanager
def _announce(running: RunningServer, open_page: Callable[[str], object] | None) -> Iterator[None]:
    """Prints the address, lists the server for `wolo attach`, and opens the page."""
    data = find_places().data
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(list_server(data, running))
        except (ConfigError, OSError) as error:
            print_message(f"Cannot save the token for `wolo attach`: {error}", hint="Give it the whole address.")
        write(f"{running.address}\n")
        if open_page is not None:
            _open(data, running, open_page)
        yield


def _open(data: Path, running: RunningServer, open_page: Callable[[str], object]) -> None:
    try:
        redirect = write_redirect(data, running)
    except OSError as error:
        print_message(f"Cannot open the page: {data} cannot be written: {error.strerror}.", hint="Open the printed address.")
        return
    threading.Thread(target=open_page, args=(redirect.as_uri(),), daemon=True).start()  # some browsers stay in the foreground
    asyncio.get_running_loop().call_later(REDIRECT_S, remove_redirect, redirect)


async def _close(hub: SessionHub, server: uvicorn.Server) -> None:
    try:
        await hub.close()
    finally:
        server.should_exit = True


def _listen(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
    except OSError as error:
        listener.close()
        raise UsageError(f"Port {port} cannot be used: {error.strerror}.", hint="Without --port a free one is chosen.") from error
    listener.listen(128)
    return listener
