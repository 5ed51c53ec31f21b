"""`wolo mcp`: lists, tests, allows MCP servers, logs in to them, is one; `mcp_changes.py` changes which there are."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wolo.cli.extensions import mcp_changes
from wolo.cli.listing import AsJson, Trust, print_described, print_json
from wolo.errors import UsageError
from wolo.frontends.streams import confirm, print_line, print_message, print_messages
from wolo.messages.terminal_text import clean_line, escaped_line, quantity
from wolo.places import find_places
from wolo.workspace.root import find_root, find_site

if TYPE_CHECKING:
    from wolo.config.cli_options import Flags
    from wolo.mcp.logins import LoginStore
    from wolo.mcp.server import ConfiguredServer
    from wolo.places import Site

app = typer.Typer(rich_markup_mode=None)
app.command("add", cls=mcp_changes.AddCommand)(mcp_changes.add)
app.command("add-json")(mcp_changes.add_json)
app.command("import")(mcp_changes.import_servers)
app.command("remove")(mcp_changes.remove)
app.command("enable")(mcp_changes.enable)
app.command("disable")(mcp_changes.disable)

Name = Annotated[str, typer.Argument(metavar="NAME")]


@app.command("list")
def show(trust: Trust = False, as_json: AsJson = False) -> None:
    """List the servers configured for this directory; none is started."""
    from wolo.config.configured_servers import untrusted_servers

    site = find_site()
    found = _all_servers(trust, site)
    waiting = [] if trust else untrusted_servers(site)
    rows = [_row(each) for each in sorted(found, key=lambda each: each.name)]
    rows += [{**_row(each), "state": "needs trust"} for each in sorted(waiting, key=lambda each: each.name)]
    print_messages(site.notices)
    if as_json:
        print_json(rows)
        return
    if not rows:
        print_message("There are no MCP servers.", hint="wolo mcp add NAME -- COMMAND [ARGUMENT …]")
    width = max((len(row["name"]) for row in rows), default=0)
    for row in rows:
        tools = "" if row["tools"] is None else f"{quantity(len(row['tools']), 'tool')}, "
        print_line(f"{row['name']:<{width}}  {row['state']:<16}  {tools}{row['reached']}  ({row['source']})")
        if row["error"]:
            print_line(f"{'':<{width}}  {row['error']}")


@app.command("get")
def show_one(name: Name, trust: Trust = False, as_json: AsJson = False) -> None:
    """Show the configuration of a server; secrets are hidden."""
    from wolo.cli.extensions.mcp_display import details

    wanted = _find(name, trust)
    found = details(wanted)
    if as_json:
        print_json(found)
        return
    for key, value in found.items():
        if value not in (None, "", [], {}):
            value = {True: "yes", False: "no"}.get(value, value) if isinstance(value, bool) else value
            shown = value if isinstance(value, str) else ", ".join(value) if isinstance(value, list) else str(value)
            shown = (
                "\n             ".join(f"{each}: {text}" for each, text in value.items()) if isinstance(value, dict) else shown
            )
            print_line(f"{key + ':':<12} {shown}")


@app.command("serve")
def serve(
    http: Annotated[bool, typer.Option("--http", help="Serve HTTP on this machine instead of stdin and stdout.")] = False,
    port: Annotated[
        int | None, typer.Option("--port", metavar="N", min=0, max=65535, help="Port of --http; else any free.")
    ] = None,
    mode: Annotated[
        str, typer.Option("--mode", metavar="MODE", help="Mode of tasks, and the loosest that a client may ask for.")
    ] = "",
    model: Annotated[str, typer.Option("-m", "--model", metavar="PROVIDER/MODEL", help="Model of the tasks.")] = "",
) -> int:
    """Serve wolo as an MCP server: tasks, sessions, approvals."""
    from wolo.cli.crash_log import log_to_file

    if port is not None and not http:
        raise UsageError("--port needs --http.")
    log_to_file()
    from wolo.frontends.mcp_server.server import serve_http, serve_stdio
    from wolo.frontends.mcp_server.tasks import ServerTasks

    tasks = ServerTasks(mode=mode, model=model)
    return asyncio.run(serve_http(tasks, port or 0) if http else serve_stdio(tasks))


@app.command("test")
def try_one(name: Name, trust: Trust = False, as_json: AsJson = False) -> None:
    """Start a server, list its tools, and stop it."""
    from wolo.conversation.resources.mcp_servers import try_server

    wanted = _find(name, trust)
    if not wanted.is_allowed:
        raise UsageError(f"{name} is not started: it needs your consent.", hint=f"wolo mcp allow {name}")
    trial = asyncio.run(try_server(wanted))
    if as_json:
        tools = [{"name": tool, "description": about} for tool, about in trial.tools]
        print_json({"name": trial.name, "state": trial.state, "error": trial.why or None, "tools": tools})
    if trial.state != "ready":
        print_message(f"The MCP server {name} cannot be used: {trial.why}.")
        raise typer.Exit(1)
    if not as_json:
        for tool, about in trial.tools:
            print_line(f"{tool}  {clean_line(' '.join(about.split()))[:80]}")
        print_line(f"{name} works: {quantity(len(trial.tools), 'tool')}.")


@app.command("allow")
def allow(name: Name, trust: Trust = False) -> None:
    """Allow a server of this project; its command is shown first."""
    from wolo.config.configured_servers import save_server_consent
    from wolo.mcp.server import describe_server

    server = _find(name, trust)
    if server.is_allowed:
        print_line(f"{name} needs no consent: it is defined in {server.source}, or already allowed.")
        _ask_inputs(server)
        return
    print_line(f"{name}, from {server.source}:")
    print_described(describe_server(server.server), "  ")
    if sys.stdin.isatty() and not confirm("Allow this server to run, with your permissions?"):
        print_line("Not allowed.")
        return
    save_server_consent(find_places(), find_root(), server, allowed=True)
    print_line(f"{name} is allowed until its definition changes.")
    _ask_inputs(server)


def _ask_inputs(server: ConfiguredServer) -> None:
    from wolo.frontends.terminal.dialogs.project_consent import ask_inputs
    from wolo.frontends.terminal.display.line_prompt import Dismissed
    from wolo.frontends.terminal.display.terminal import hold_terminal

    async def ask() -> None:
        if not sys.stdin.isatty() or not sys.stdout.isatty():
            return await ask_inputs(server, None)
        with hold_terminal() as terminal:
            return await ask_inputs(server, terminal)

    try:
        asyncio.run(ask())
    except Dismissed:
        raise typer.Exit(130) from None


@app.command("login")
def login(
    name: Name,
    no_keyring: Annotated[bool, typer.Option("--no-keyring", help="Save it in a file, not in the keyring.")] = False,
    trust: Trust = False,
) -> None:
    """Log in to a remote server with OAuth, in your browser.

    The address to open is printed too, alone on a line. wolo waits up to 300 s for the answer.
    """
    from wolo.config.mcp_logins import MCPLogins

    wanted = _remote(name, trust)
    if not wanted.is_allowed:
        raise UsageError(f"{name} is not contacted: it needs your consent.", hint=f"wolo mcp allow {name}")
    raise typer.Exit(asyncio.run(_log_in(wanted, MCPLogins(find_places(), in_keyring=not no_keyring))))


@app.command("logout")
def logout(name: Name, trust: Trust = False) -> None:
    """Remove the login of a remote server; its tokens are revoked where the server offers that."""
    from wolo.config.mcp_logins import MCPLogins
    from wolo.mcp.oauth.login import log_out

    wanted = _remote(name, trust)
    removed = asyncio.run(log_out(name, wanted.server, MCPLogins(find_places()), os.environ))
    print_line(f"Logged out of {name}." if removed else f"There is no login for {name}.")


async def _log_in(server: ConfiguredServer, store: LoginStore) -> int:
    from wolo.conversation.resources.mcp_servers import remember_listing
    from wolo.mcp.oauth.callback import Callback, LoginFailed, open_browser, read_pasted
    from wolo.mcp.oauth.login import log_in

    name, stops = server.name, list[Any]()

    def show(address: str) -> None:
        print_message(f"Open this address to log in to {name}:")
        print_line(address)
        sys.stdout.flush()
        open_browser(address, os.environ)

    def listen(callback: Callback) -> None:
        if sys.stdin.isatty():
            print_message("If the browser runs on another machine, paste the address it ends at here.")
            stops.append(read_pasted(callback, lambda: print_message("This is not the answer to this login.")))

    try:
        listing = await log_in(name, server.server, store, os.environ, show, listen)
    except LoginFailed as error:
        print_message(f"The login to {name} failed: {error}.")
        return 1
    finally:
        for stop in stops:
            stop()
    if listing is None:
        print_line(f"{name} needs no login.")
        return 0
    remember_listing(server, listing)
    print_line(f"Logged in to {name}: {quantity(len(listing.tools), 'tool')}.")
    return 0


def _remote(name: str, trust: bool) -> ConfiguredServer:
    server = _find(name, trust)
    if not server.server.url:
        raise UsageError(f"{name} is a program: only remote servers have a login.")
    return server


def _all_servers(trust: bool, site: Site) -> tuple[ConfiguredServer, ...]:
    from wolo.conversation.resources.mcp_servers import servers_here

    given: Flags = {"trust": str(site.root)} if trust else {}
    return servers_here(given, site)


def _find(name: str, trust: bool) -> ConfiguredServer:
    site = find_site()
    found = {each.name: each for each in _all_servers(trust, site)}
    if name in found:
        return found[name]
    print_messages(site.notices)
    raise UsageError(f"There is no MCP server {name} here.", hint="`wolo mcp list` lists them.")


def _row(configured: ConfiguredServer) -> dict[str, Any]:
    """Shows names of variables and headers only: their values may be secrets."""
    from wolo.cli.extensions.mcp_display import address_of
    from wolo.conversation.resources.mcp_servers import last_known

    server, known = configured.server, last_known(configured)
    return {
        "name": configured.name,
        "state": known.state,
        "scope": configured.scope,
        "source": clean_line(configured.source),
        "reached": address_of(server),
        "env": sorted(server.env),
        "headers": sorted(server.headers),
        "tools": None if known.tools is None else list(known.tools),
        "error": escaped_line(known.why) or None,
    }
