"""`wolo serve` and `wolo attach`: the HTTP server with its web page, and a terminal that follows one."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wolo.cli.signals import is_answered
from wolo.errors import UsageError
from wolo.frontends.background_sessions import find_background, list_sessions, server_of
from wolo.frontends.running_servers import running_servers
from wolo.frontends.streams import OutputLost, print_line, print_message
from wolo.operating_system import EXIT_BY_SIGNAL
from wolo.places import find_places

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from wolo.frontends.attach.server_client import ServerClient
    from wolo.frontends.background_sessions import BackgroundSession
    from wolo.frontends.running_servers import RunningServer

TOKEN = "WOLO_SERVER_TOKEN"


def serve(
    port: Annotated[int, typer.Option("--port", min=0, max=65535, metavar="N", help="Port; a free one if not given.")] = 0,
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    runs: Annotated[
        list[Path] | None, typer.Option("--run", help="Show this run of `wolo batch` too.", metavar="RUN", show_default=False)
    ] = None,
    end_idle: Annotated[
        float | None,
        typer.Option("--end-idle", min=1, metavar="SECONDS", help="End when unused for so long.", show_default=False),
    ] = None,
    yolo: Annotated[bool, typer.Option("--yolo", help="Let clients choose mode yolo, in which nothing asks.")] = False,
    openapi: Annotated[bool, typer.Option("--openapi", help="Only print the OpenAPI document of the API.")] = False,
) -> None:
    """Serve the web page and its HTTP API on this machine; the printed address holds the token."""
    if openapi:
        from wolo.frontends.server.openapi import document

        print_line(json.dumps(document(), indent=2))
        return
    import webbrowser

    from wolo.cli.crash_log import log_to_file
    from wolo.frontends.server.http_server import serve

    log_to_file()
    exit_codes = {number: code for number, code in EXIT_BY_SIGNAL.items() if is_answered(number)}
    page = webbrowser.open if open_page else None
    raise typer.Exit(asyncio.run(serve(port, exit_codes, page, runs or (), end_idle, has_yolo=yolo, options=_option_types())))


def _option_types() -> dict[str, type]:
    """The types of the options that a session can be opened with, by name; `trust` names the folder."""
    from wolo.cli.options import OPTIONS
    from wolo.cli.sessions.background import OF_COMMAND_LINE, OF_PROCESS

    others = OF_PROCESS | OF_COMMAND_LINE | {"worktree", "from", "version", "help"}
    options = (each for each in OPTIONS if each.name not in others and not each.means)
    return {each.name: {"flag": bool, "many": list}.get(each.kind, str) for each in options} | {"trust": str}


def attach(
    address: Annotated[
        str, typer.Argument(metavar="[ID|URL]", help="Session in the background, or address of `wolo serve`.", show_default=False)
    ] = "",
    session: Annotated[str, typer.Option("--session", metavar="ID", help="Session to follow; else you choose.")] = "",
    new: Annotated[bool, typer.Option("--new", help="Begin a session in this folder.")] = False,
) -> None:
    """Follow and steer a session in the background, or of a running `wolo serve`; without one, choose from the list.

    Lines are prompts, or steer the running turn. Ctrl-C interrupts it; Ctrl-C again, Ctrl-D or /quit leave the session running.
    """
    if session and new:
        raise UsageError("--session and --new exclude each other.", hint="--new begins another session.")
    raise typer.Exit(asyncio.run(_attach(address, session, new=new)))


async def _attach(address: str, session: str, *, new: bool) -> int:
    import getpass

    from wolo.frontends.attach.attached_session import choose_session, new_session, typed_lines
    from wolo.frontends.attach.server_client import ServerClient, split_address

    is_terminal = sys.stdin is not None and sys.stdin.isatty()
    if "://" not in address and (address or not (session or new)):
        data = find_places().data
        if session or new:
            raise UsageError("Name one session.", hint="wolo attach ID")
        if address:
            return await _follow_background(find_background(data, address), typed_lines(0))
        if is_terminal and list_sessions(data) and all(each.ends_idle for each in running_servers(data)):
            from wolo.frontends.attach.session_list import follow_sessions

            lines = typed_lines(0)
            return await follow_sessions(data, lines, lambda each: _follow_background(each, lines))
    origin, token = split_address(address) if address else ("", "")
    token = token or os.environ.get(TOKEN, "")
    if not (origin and token) and (running := _running(origin)):
        origin, token = running.origin, token or running.token
    token = token or (getpass.getpass("Token: ") if is_terminal else "")
    if not token:
        raise UsageError("The address has no token.", hint=f"Use the line that `wolo serve` printed, or set {TOKEN}.")
    async with ServerClient(origin, token.strip()) as server:
        await server.check()
        lines = typed_lines(0)
        if not session and not new:
            if (chosen := await choose_session(server, lines, is_terminal=is_terminal)) is None:
                if is_terminal:
                    return 0
                raise UsageError("No session was chosen.", hint="Choose one with --session ID, or begin one with --new.")
            session, new = chosen, not chosen
        if new:
            session = await new_session(server, str(Path.cwd()))
        return await _follow(server, session, lines)


async def _follow(server: ServerClient, session: str, lines: AsyncIterator[str]) -> int:
    from wolo.frontends.attach.attached_session import AttachedSession

    is_terminal = sys.stdin is not None and sys.stdin.isatty()
    exit_codes = {number: code for number, code in EXIT_BY_SIGNAL.items() if is_answered(number)}
    try:
        return await AttachedSession(server, session, is_terminal=is_terminal).run(lines, exit_codes)
    except OutputLost as lost:
        return lost.exit_code


async def _follow_background(session: BackgroundSession, lines: AsyncIterator[str]) -> int:
    from wolo.frontends.attach.server_client import ServerClient

    if session.state == "interrupted":
        print_message("Its server ended during a turn. Nothing is run again by itself; a prompt continues.")
    running = server_of(session)
    async with ServerClient(running.origin, running.token) as server:
        await server.check()
        return await _follow(server, session.id, lines)


def _running(origin: str) -> RunningServer | None:
    """The server at this address, or the only one that runs here. Raises UsageError."""
    servers = running_servers(find_places().data)
    servers = [each for each in servers if not each.ends_idle] or servers
    if origin:
        names = (origin, origin.replace("//localhost:", "//127.0.0.1:"))
        return next((each for each in servers if each.origin in names), None)
    if not servers:
        raise UsageError("No `wolo serve` of yours is running here.", hint="Start one, or give the address that it printed.")
    if len(servers) > 1:
        raise UsageError(
            f"{len(servers)} servers are running.", hint=f"Choose one: {', '.join(each.origin for each in servers)}."
        )
    return servers[0]
