"""`wolo mcp add`, `add-json`, `import`, `remove`, `enable`, `disable`: changes which MCP servers there are."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import typer
from msgspec.structs import replace
from typer.core import TyperCommand

from wolo.cli.extensions.mcp_display import address_of
from wolo.cli.listing import print_untrusted
from wolo.config import configured_servers, layers
from wolo.config.foreign_servers import find_foreign
from wolo.config.server_scopes import PROJECT_FILE, Scope, enable_server, project_entry, read_local, remove_server, save_server
from wolo.conversation.resources.mcp_servers import servers_here
from wolo.errors import ConfigError, UsageError
from wolo.frontends.streams import confirm, print_line, print_message, print_messages
from wolo.mcp.server import ConfiguredServer, OAuth, Server, check
from wolo.mcp.server_entries import entries_of, read_entry
from wolo.messages.terminal_text import clean_line
from wolo.places import find_places
from wolo.workspace.root import find_root, find_site

_SCOPES = ("local", "user", "project")
_WITH_VALUE = frozenset(
    (
        *("-s", "--scope", "-t", "--transport", "-e", "--env", "-H", "--header", "--url", "--bearer-token-env-var"),
        *("--client-id", "--client-secret", "--client-metadata-url", "--grant", "--callback-port", "--oauth-scope"),
    )
)
_LONG = {"-s": "--scope", "--scope": "-s", "-t": "--transport", "--transport": "-t"}
_SECRET, _SECRET_VARIABLE = "--client-secret", "${MCP_CLIENT_SECRET}"
"""Without a value, other agents read the secret from this variable."""
_ENV = ("-e", "--env")
_ASSIGNMENT = r"[A-Za-z_]\w*=.*"

Name = Annotated[str, typer.Argument(metavar="NAME")]
ScopeOption = Annotated[
    str, typer.Option("-s", "--scope", help="local: this project, you only; user: all projects; project: .mcp.json.")
]
AnyScope = Annotated[str, typer.Option("-s", "--scope", help="Only there: local, user or project.")]


class AddCommand(TyperCommand):
    """Words after the command belong to it, with and without `--`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, separate_command(args))


def separate_command(args: list[str]) -> list[str]:
    """Puts `--` in front of the command of the server, if the user did not."""
    before: list[str] = []
    rest = list(args)
    words = 0
    is_remote = any(each == "--url" or each.startswith("--url=") for each in args)
    while rest:
        word = rest.pop(0)
        if word == "--":
            return [*before, word, *rest]
        if word == _SECRET and (not rest or rest[0].startswith("-") or _is_address(rest[0])):
            before += [word, _SECRET_VARIABLE]
        elif word in _WITH_VALUE and rest:
            before += [word, rest.pop(0)]
            is_remote = is_remote or (word in ("-t", "--transport") and before[-1] != "stdio")
            while word in _ENV and rest and re.fullmatch(_ASSIGNMENT, rest[0]):
                before += [word, rest.pop(0)]  # `-e A=1 B=2`
        elif word.startswith("-") and len(word) > 1:
            before.append(word)
        elif words == 1 and not is_remote and not _is_address(word):
            own, command = _own_options([word, *rest], before)
            return [*before, *own, "--", *command]
        else:
            words += 1
            before.append(word)
    return before


def _own_options(words: list[str], before: list[str]) -> tuple[list[str], list[str]]:
    """Takes a scope and a transport that were not given `before` out of a command line: few programs take these values."""
    own: list[str] = []
    command: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        values = _SCOPES if word in ("-s", "--scope") else ("stdio",) if word in ("-t", "--transport") else ()
        if rest and rest[0] in values and not {word, _LONG.get(word, word)} & {*before}:
            own += [word, rest.pop(0)]
        else:
            command.append(word)
    return own, command


def add(
    name: Name,
    what: Annotated[list[str] | None, typer.Argument(metavar="URL | [--] COMMAND [ARGUMENT]...", show_default=False)] = None,
    scope: ScopeOption = "user",
    transport: Annotated[str, typer.Option("-t", "--transport", help="stdio, http, or sse for old servers.")] = "",
    env: Annotated[
        list[str] | None, typer.Option("-e", "--env", help="Environment variable of the server.", metavar="NAME=VALUE")
    ] = None,
    header: Annotated[
        list[str] | None, typer.Option("-H", "--header", help="HTTP header, with a URL.", metavar="NAME: VALUE")
    ] = None,
    url: Annotated[str, typer.Option("--url", help="Address of a remote server.", metavar="URL")] = "",
    bearer: Annotated[
        str, typer.Option("--bearer-token-env-var", help="Variable that holds a bearer token.", metavar="VAR")
    ] = "",
    client_id: Annotated[str, typer.Option("--client-id", help="OAuth client.", metavar="ID")] = "",
    client_secret: Annotated[
        str, typer.Option("--client-secret", help="Its secret; without a value: ${MCP_CLIENT_SECRET}.", metavar="SECRET")
    ] = "",
    client_metadata_url: Annotated[
        str, typer.Option("--client-metadata-url", help="URL of the client's metadata, as client id.", metavar="URL")
    ] = "",
    grant: Annotated[
        str, typer.Option("--grant", help="authorization_code or client_credentials.", metavar="GRANT")
    ] = "authorization_code",
    callback_port: Annotated[
        int, typer.Option("--callback-port", help="Registered loopback port of the login.", metavar="PORT", show_default=False)
    ] = 0,
    oauth_scope: Annotated[list[str] | None, typer.Option("--oauth-scope", help="Scope to request.", metavar="SCOPE")] = None,
) -> None:
    """Add a server. `${NAME}` in a value is an environment variable.

    \b
    wolo mcp add files -- npx -y @modelcontextprotocol/server-filesystem ~/notes
    wolo mcp add -e API_KEY='${MY_KEY}' tracker -- uvx tracker-mcp
    wolo mcp add -t http docs https://docs.example/mcp -H 'Authorization: Bearer ${TOKEN}'
    """
    words = list(what or ())
    if url:
        words = [url, *words]
    if not words:
        raise UsageError("What is the server: a command, or a URL?", hint=f"wolo mcp add {name} -- COMMAND [ARGUMENT …]")
    login = _oauth(client_id, client_secret, client_metadata_url, grant, callback_port, oauth_scope or [])
    server = _server(words, transport, env or [], header or [], bearer, login)
    _save(name, server, _scope(scope))


def add_json(name: Name, text: Annotated[str, typer.Argument(metavar="JSON")], scope: ScopeOption = "user") -> None:
    """Add a server as other programs write it: {"command": …} or {"url": …}."""
    try:
        entry: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"This is no JSON: {error}.", hint=f'wolo mcp add-json {name} \'{{"command": "npx"}}\'') from error
    if isinstance(entry, dict) and not {"command", "url", "serverUrl", "httpUrl"} & entry.keys():
        entries = entries_of(entry, "The JSON") or entry
        if name in entries or len(entries) == 1:
            entry = entries.get(name, next(iter(entries.values())))
    try:
        server, ignored = read_entry(entry)
    except msgspec.ValidationError as error:
        raise UsageError(f"This is no MCP server: {error}.") from error
    if ignored:
        print_message(f"Ignored: {', '.join(ignored)}.")
    _save(name, server, _scope(scope))


def import_servers(
    source: Annotated[
        str, typer.Argument(metavar="[AGENT|FILE]", help="claude, claude-desktop, codex, opencode …; all.", show_default=False)
    ] = "",
    scope: Annotated[str, typer.Option("-s", "--scope", help="local, user or project; default: as it was there.")] = "",
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Copy servers from other agents' settings. They are shown first; without a terminal there is no question."""
    site = find_site()
    target = _scope(scope) if scope else None
    foreign = list(find_foreign(source, site))
    print_messages(site.notices)
    known = {each.name for each in servers_here({"trust": str(site.root)}, site)}
    new = [each for each in foreign if each.name not in known]
    for each in foreign:
        if each.name in known:
            print_message(f"{each.name} is skipped: there is a server of that name.")
    for each in new:
        where = target or each.scope
        print_line(f"{each.name}  {address_of(each.server)}  ({where}; from {clean_line(each.source)})")
    if not new:
        print_message("There is nothing to import.")
    elif not yes and sys.stdin.isatty() and not confirm("Add these servers? They run with your permissions."):
        print_line("Nothing was added.")
    else:
        for each in new:
            _save(each.name, each.server, target or each.scope, is_quiet=True)
        print_line("Added 1 server." if len(new) == 1 else f"Added {len(new)} servers.")


def remove(name: Name, scope: AnyScope = "") -> None:
    """Remove a server."""
    places, root = find_places(), find_root()
    scopes = [_scope(scope)] if scope else _scopes_with(name)
    if len(scopes) > 1:
        raise UsageError(
            f"There is a server {name} in several scopes: {', '.join(scopes)}.", hint=f"wolo mcp remove {name} -s {scopes[0]}"
        )
    if not scopes or not remove_server(places, root, scopes[0], name):
        where = f" in the scope {scope}" if scope else " to remove"
        raise UsageError(f"There is no MCP server {name}{where}.", hint="`wolo mcp list` shows where each one is defined.")
    print_line(f"Removed {name} ({scopes[0]}).")


def enable(name: Name) -> None:
    """Start a server again, and offer its tools."""
    _switch(name, enabled=True)


def disable(name: Name) -> None:
    """Do not start a server; its configuration stays."""
    _switch(name, enabled=False)


def _switch(name: str, *, enabled: bool) -> None:
    site = find_site()
    server = next((each for each in servers_here({"trust": str(site.root)}, site) if each.name == name), None)
    if server is None:
        raise UsageError(f"There is no MCP server {name} here.", hint="`wolo mcp list` lists them.")
    scope = server.scope if server.scope in ("user", "local") else "other"
    enable_server(site.places, site.root, scope, name, enabled=enabled)
    if enabled and scope == "other":
        servers = servers_here({"trust": str(site.root)}, find_site())
        if not any(each.server.enabled for each in servers if each.name == name):
            raise UsageError(f"{name} is switched off in {server.source}.", hint="Change it there.")
    print_line(f"{name} is {'enabled' if enabled else 'disabled'}.")


def _save(name: str, server: Server, scope: Scope, *, is_quiet: bool = False) -> None:
    places, root = find_places(), find_root()
    server = _with_fixed_paths(server) if scope == "user" else server
    try:
        check(name, server, "wolo mcp add")
    except ConfigError as error:
        raise UsageError(error.message, hint=error.hint) from error
    if scope in _scopes_with(name):
        raise UsageError(f"MCP server {name} already exists.", hint=f"wolo mcp remove {name} -s {scope}")
    if scope == "project":
        for option, value in (("--client-secret", server.oauth.client_secret), ("oauth.private_key", server.oauth.private_key)):
            if value and "${" not in value:
                raise UsageError(f"{option} would be in .mcp.json, which others read.", hint=f"{option} '${{VARIABLE}}'")
    path = save_server(places, root, scope, name, server)
    if scope == "project":
        # What the user just wrote needs no second consent; the folder still needs trust
        as_read, _ = read_entry(project_entry(server))
        brought = ConfiguredServer(name=name, server=as_read, source=PROJECT_FILE, folder=root, scope="project", is_allowed=False)
        configured_servers.save_server_consent(find_places(), root, brought, allowed=True)
        print_untrusted(find_site(), f"uses {PROJECT_FILE}")
    if not is_quiet:
        print_line(f"Added {name} to {path} ({scope}): {address_of(server)}")
        print_line(f"`wolo mcp test {name}` tests it.")


def _with_fixed_paths(server: Server) -> Server:
    """Relative names mean files of the current directory now, and must mean the same ones later."""
    cwd = Path.cwd()
    if not server.command or server.cwd:
        return server
    command = str(cwd / server.command) if "/" in server.command and server.command[0] not in "/~$" else server.command
    names_file = any(word[:1] not in "/-~$" and (cwd / word).is_file() for word in server.args if word and "\0" not in word)
    return replace(server, command=command, cwd=str(cwd) if names_file else "")


def _server(words: list[str], transport: str, env: list[str], header: list[str], bearer: str, oauth: OAuth) -> Server:
    if transport not in ("", "stdio", "http", "sse", "streamable-http"):
        raise UsageError(f"There is no transport {transport}.", hint="-t stdio, -t http or -t sse")
    kind: Literal["", "http", "sse"] = "sse" if transport == "sse" else "http" if transport.endswith("http") else ""
    if kind or (transport != "stdio" and (_is_address(words[0]) or bearer or header)):
        if len(words) > 1 or env:
            raise UsageError("A URL takes headers, not arguments or variables.", hint='--header "Authorization: Bearer ${TOKEN}"')
        headers = dict(_pair(each, ":") for each in header)
        if bearer:
            headers["Authorization"] = f"Bearer ${{{bearer}}}"
        return Server(url=words[0], headers=headers, transport="sse" if kind == "sse" else "", oauth=oauth)
    if _is_address(words[0]):
        raise UsageError("An address does not speak stdio.", hint="-t http or -t sse")
    if header or bearer or oauth != OAuth():
        raise UsageError("A program takes variables, not headers or a login.", hint="--env NAME=VALUE")
    return Server(command=words[0], args=tuple(words[1:]), env=dict(_pair(each, "=") for each in env))


def _oauth(client_id: str, secret: str, metadata_url: str, grant: str, port: int, scopes: list[str]) -> OAuth:
    if grant not in ("authorization_code", "client_credentials"):
        raise UsageError(f"There is no grant {grant}.", hint="--grant authorization_code or --grant client_credentials")
    return OAuth(
        client_id=client_id,
        client_secret=secret,
        client_metadata_url=metadata_url,
        grant=grant,  # type: ignore[arg-type]  # checked above
        redirect_uri=f"http://localhost:{port}/callback" if port else "",
        scopes=tuple(scope for each in scopes for scope in each.split()),
    )


def _is_address(word: str) -> bool:
    return word.startswith(("http://", "https://"))


def _pair(text: str, sign: str) -> tuple[str, str]:
    name, found, value = text.partition(sign)
    if not found or not name.strip():
        raise UsageError(f"{text} is not NAME{sign}VALUE.")
    return name.strip(), value.strip() if sign == ":" else value


def _scope(text: str) -> Scope:
    if text not in _SCOPES:
        raise UsageError(f"There is no scope {text}.", hint="-s local, -s user or -s project")
    return text  # type: ignore[return-value]  # checked


def _scopes_with(name: str) -> list[Scope]:
    """List the places that define a server of this name, the nearest first."""
    site = find_site()
    scopes: list[Scope] = ["local"] if name in read_local(site.places, site.root, site.notices).servers else []
    if name in layers.load(site).settings.mcp_servers:
        scopes.append("user")
    try:
        if name in entries_of(json.loads((site.root / PROJECT_FILE).read_bytes()), PROJECT_FILE):
            scopes.append("project")
    except (OSError, ValueError, ConfigError):
        pass  # no such file, or one that writing reports
    return scopes
