"""`wolo --bg`, `ps`, `logs` and `stop`: sessions that run without a terminal, on a server that ends by itself."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Annotated

import typer

from wolo.cli.listing import AsJson
from wolo.config.cli_options import Flags
from wolo.errors import UsageError, WoloError
from wolo.frontends.background_sessions import background_server, find_background, print_sessions
from wolo.frontends.streams import print_line
from wolo.places import find_places

OF_PROCESS = {"interactive", "output_format", "partial", "json_schema", "input_format", "output_last_message", "file", "plain"}
"""Options that need a process which waits for the answer."""
OF_COMMAND_LINE = {"bg", "print", "verbose", "cd", "ignore_unsupported"}
"""Options that no session needs to know."""
Spec = Annotated[str, typer.Argument(metavar="ID", help="Id, or the beginning or end of one.", show_default=False)]


def start_in_background(flags: Flags, prompt: tuple[str, str, str]) -> int:
    """`prompt`: the text, what was piped, and its origin. Raises WoloError."""
    if refused := sorted((OF_PROCESS | {"continue", "resume", "fork", "no_session"}) & {*flags}):
        raise UsageError(f"--bg does not go with --{refused[0].replace('_', '-')}.", hint="`wolo attach ID` follows the session.")
    text = "\n\n".join(each for each in prompt[:2] if each.strip()) or str(flags.get("goal", ""))
    if not text.strip():
        raise UsageError("No prompt was given.", hint='wolo --bg "create a calculator"')
    options = {name: value for name, value in flags.items() if name not in OF_COMMAND_LINE}
    if "trust" in options:
        from wolo.workspace.root import find_root

        options["trust"] = str(find_root())
    if "add_dir" in options:
        options["add_dir"] = [os.path.abspath(Path(each).expanduser()) for each in flags.get("add_dir", [])]  # type: ignore[union-attr]  # noqa: PTH100
    print_line(asyncio.run(_send(options, text, typed=prompt[2] != "file" and "no_mentions" not in flags)))
    return 0


async def _send(options: Flags, text: str, *, typed: bool) -> str:
    """The id of the session, whose prompt is saved."""
    from wolo.frontends.attach.server_client import ServerClient, path_of

    running = await asyncio.to_thread(background_server)
    async with ServerClient(running.origin, running.token) as server:
        body = {"cwd": str(Path.cwd()), "background": True, "options": dict(options), "title": text[:80]}
        session_id = str((await server.ask("POST", "/v1/sessions", body))["id"])
        await server.ask("POST", path_of(session_id, "prompt"), {"text": text, "typed": typed})
    return session_id


def ps(as_json: AsJson = False) -> None:
    """List the sessions in the background: what each does, and what it waits for.

    `wolo attach ID` follows one and answers what it asks.
    """
    print_sessions(in_json=as_json)


def logs(id: Spec, follow: Annotated[bool, typer.Option("-f", "--follow", help="Until the session is closed.")] = False) -> None:
    """Print the messages of a session in the background."""
    from wolo.cli.sessions.show import show_session, watch

    session = find_background(find_places().data, id)
    if follow:
        watch(session.id, from_start=True)
    else:
        show_session(session.id)


def stop(id: Spec) -> None:
    """Interrupt the turn of a session in the background; the session stays, and `wolo attach ID` continues it."""
    from wolo.frontends.attach.server_client import ServerClient, path_of
    from wolo.frontends.running_servers import running_servers

    data = find_places().data
    session = find_background(data, id)
    running = next((each for each in running_servers(data) if each.port == session.port), None)

    async def interrupt() -> bool:
        assert running is not None
        async with ServerClient(running.origin, running.token) as server:
            return bool((await server.ask("POST", path_of(session.id, "interrupt")))["interrupted"])

    try:
        is_stopped = running is not None and session.state in ("working", "waiting") and asyncio.run(interrupt())
    except (KeyError, TypeError) as error:
        raise WoloError("The server's answer cannot be read.") from error
    print_line(f"Stopped {session.id}." if is_stopped else f"{session.id} is not working.")
