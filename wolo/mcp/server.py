"""Configuration of MCP servers: settings, checks and consent."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta, Struct, field, to_builtins

from wolo.errors import ConfigError
from wolo.messages.terminal_text import clean_line
from wolo.workspace.processes.process_runner import Processes
from wolo.workspace.root import Workspace

if TYPE_CHECKING:
    from wolo.mcp.hosted.hosted_server import Exchange
    from wolo.mcp.logins import LoginStore

NAME = r"[A-Za-z0-9_.-]{1,64}"
"""Used in rules and in tool names."""
Seconds = Annotated[float, Meta(gt=0)]
Transport = Literal["", "stdio", "http", "sse"]


class OAuth(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How wolo logs in to a remote server; without settings it finds out and registers itself."""

    client_id: str = ""
    """Client registered with the authorization server; empty: register dynamically."""
    client_secret: str = ""
    """Its secret; `${NAME}` refers to your environment."""
    client_metadata_url: str = ""
    """URL of a client metadata document, used as client id where the authorization server takes one."""
    grant: Literal["authorization_code", "client_credentials", "identity_assertion"] = "authorization_code"
    """`client_credentials`: log in as the client itself, without a browser. `identity_assertion`: with `id_token`."""
    id_token: str = ""
    """Token of your organisation's identity provider, for `identity_assertion`; `${NAME}` refers to your environment."""
    idp_token_endpoint: str = ""
    """Where the identity provider exchanges it; empty: it is sent to the authorization server as it is."""
    idp_client_id: str = ""
    """Client registered with the identity provider."""
    scopes: tuple[str, ...] = ()
    """Scopes to request; empty: those the server asks for."""
    issuer: str = ""
    """Authorization server the client belongs to: its secret is sent to no other."""
    auth_method: Literal["", "none", "client_secret_basic", "client_secret_post", "private_key_jwt"] = ""
    """How the client identifies itself at the token endpoint; empty: as the server supports it."""
    private_key: str = ""
    """For `private_key_jwt`: PEM text or the path of a PEM file; `${NAME}` refers to your environment."""
    redirect_uri: str = ""
    """Registered loopback address, such as http://localhost:8080/callback; empty: a free port of 127.0.0.1."""


class Server(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`mcp_servers.NAME` of the settings."""

    command: str = ""
    """Program to start, found on the PATH."""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    """Additional environment variables; `${NAME}` and `$NAME` refer to your environment."""
    cwd: str = ""
    """Directory to start it in; empty: the working directory."""
    url: str = ""
    """URL of a remote server; `${NAME}` refers to your environment."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Headers of every request; `${NAME}` and `$NAME` refer to your environment."""
    oauth: OAuth = OAuth()
    transport: Transport = ""
    """Empty: derived from `command` or `url`. `sse` is for old servers."""
    startup_timeout_s: Seconds = 30.0
    """Timeout until its tools are listed."""
    tool_timeout_s: Seconds = 120.0
    """Timeout of one call."""
    enabled_tools: tuple[str, ...] | None = None
    """Offer only these tools, by the server's own names."""
    disabled_tools: tuple[str, ...] = ()
    """Do not offer these tools."""
    enabled: bool = True
    """False: do not start it, and offer none of its tools."""
    sampling_tokens: Annotated[int, Meta(ge=0)] = 0
    """Tokens that it may use of your model in one conversation; 0: none."""
    elicitation: Literal["decline", "defaults"] = "decline"
    """For its forms where no user can be asked; `defaults`: accept those whose required fields all have defaults. Yours only.
    """

    @property
    def inputs(self) -> list[str]:
        """Names of the values that it asks the user for, as `${input:NAME}` in any text."""
        texts = (self.command, *self.args, *self.env.values(), self.cwd, self.url, *self.headers.values())
        return list(dict.fromkeys(name for text in texts for name in re.findall(r"\$\{input:([^}]*)\}", text)))

    def offers(self, tool: str) -> bool:
        """Check whether the model is offered this tool."""
        return tool not in self.disabled_tools and (self.enabled_tools is None or tool in self.enabled_tools)


class ConfiguredServer(Struct, frozen=True, kw_only=True):
    """A server from settings or a project file."""

    name: str
    server: Server
    source: str
    """Source of the configuration, for display."""
    folder: Path | None = None
    """Folder of the project that configures it, where it starts. None: the user's own server, started in the working directory.
    """
    named_in: Path | None = None
    """For user servers with a relative program: the folder of the file that names it, where it starts."""
    scope: Literal["user", "local", "project", "plugin", "run"] = "user"
    """`run`: from the command line."""
    variables: Mapping[str, str] = {}
    """What it may refer to besides the environment: settings of its plugin."""
    is_allowed: bool = True
    """False: configured by a project and not yet approved in this form."""

    @property
    def accepts_defaults(self) -> bool:
        """Answer its forms without the user; only the user's own settings can say so."""
        return self.server.elicitation == "defaults" and self.scope in ("user", "local")


def check(name: str, server: Server, where: str) -> None:
    """Raises ConfigError for an unusable configuration."""
    if complaint := _complaint(name, server):
        hint = _HINT if "a command nor a url" in complaint or "a command and a url" in complaint else ""
        raise ConfigError(f"{where}: the MCP server {clean_line(name)}: {complaint}.", hint=hint)


_HINT = 'It needs either `command` (with `args`) or `url`: command = "npx", args = ["-y", "some-server"].'


def _complaint(name: str, server: Server) -> str:
    if not re.fullmatch(NAME, name):
        return "only letters, digits and . _ - may be in its name, 64 at most"
    if bool(server.command.strip()) == bool(server.url.strip()):
        return "it has both a command and a url" if server.command.strip() else "it has neither a command nor a url"
    if server.command and server.transport not in ("", "stdio"):
        return f"a program speaks stdio, not {server.transport}"
    if server.url and server.transport == "stdio":
        return "an address does not speak stdio"
    if server.url and not (is_address(server.url) or server.url.strip().startswith("${")):
        return "its url must begin with http:// or https://, or with a variable ${NAME} that does"
    if server.oauth != OAuth() and (complaint := _oauth_complaint(server)):
        return complaint
    if any("\0" in text for text in (server.command, *server.args, server.cwd, *server.env, *server.env.values())):
        return "there is a NUL character in it"
    return ""


def _oauth_complaint(server: Server) -> str:
    oauth = server.oauth
    if not server.url:
        return "a program has no login: oauth needs a url"
    if oauth.grant == "client_credentials" and not (oauth.client_id and (oauth.client_secret or oauth.private_key)):
        return "the grant client_credentials needs oauth.client_id, and oauth.client_secret or oauth.private_key"
    if oauth.grant == "identity_assertion" and not (oauth.client_id and oauth.id_token):
        return "the grant identity_assertion needs oauth.client_id and oauth.id_token"
    if oauth.client_secret and not oauth.client_id:
        return "oauth.client_secret needs oauth.client_id"
    if oauth.client_metadata_url and not re.match(r"https://[^/\s]+/\S", oauth.client_metadata_url):
        return "oauth.client_metadata_url must begin with https:// and have a path"
    if oauth.redirect_uri and not re.match(r"http://(localhost|127\.0\.0\.1|\[::1\]):\d+(/|$)", oauth.redirect_uri):
        return "oauth.redirect_uri must be a loopback address with a port, such as http://localhost:8080/callback"
    if oauth.private_key and oauth.grant != "client_credentials":
        return "oauth.private_key needs the grant client_credentials"
    return ""


def is_address(url: str) -> bool:
    """Check that the URL starts with http:// or https:// and a host."""
    return re.match(r"https?://[^/\s]", url.strip()) is not None


def fingerprint(configured: ConfiguredServer) -> str:
    """Hash of everything that decides what is started or reached; consent and cached tools depend on it."""
    server = configured.server
    reached = {
        "name": configured.name,
        "folder": os.fspath(configured.folder or ""),
        "command": server.command,
        "args": server.args,
        "env": dict(sorted(server.env.items())),
        "cwd": server.cwd,
        "url": server.url,
        "headers": dict(sorted(server.headers.items())),
        "transport": server.transport,
        **({"sampling_tokens": server.sampling_tokens} if server.sampling_tokens else {}),
        **({"oauth": to_builtins(server.oauth)} if server.oauth != OAuth() else {}),
    }
    return hashlib.sha256(json.dumps(reached).encode()).hexdigest()


_LOGIN = ("client_id", "client_metadata_url", "issuer", "idp_token_endpoint", "idp_client_id", "grant", "scopes", "redirect_uri")
"""Settings of a login that are no secrets."""


def describe_server(server: Server) -> Iterator[tuple[str, str]]:
    """Describe a server for the consent question, with references unexpanded."""
    if server.command:
        yield "runs", " ".join(map(_word, (server.command, *server.args)))
    else:
        yield "connects to", server.url
    if server.cwd:
        yield "in", server.cwd
    if server.sampling_tokens:
        yield "may use", f"{server.sampling_tokens:,} tokens of your model in each conversation"
    for called, values in (("with", server.env), ("sending", server.headers)):
        for name, value in values.items():
            yield called, f"{name}={value}" if called == "with" else f"{name}: {value}"
    for name in _LOGIN if server.oauth != OAuth() else ():
        if value := getattr(server.oauth, name):
            yield "logs in", f"{name}={', '.join(value) if isinstance(value, tuple) else value}"


def _word(text: str) -> str:
    return text if re.fullmatch(r"[\w./:=@%+,-]+", text) else "'" + text.replace("'", "'\\''") + "'"


class ServerEnvironment(Struct, frozen=True):
    workspace: Workspace
    cwd: Path
    environ: Mapping[str, str]
    processes: Processes
    """Processes of MCP servers only; they outlive commands of a conversation."""
    logins: LoginStore | None = None
    hosted: Mapping[str, Exchange] = {}
    """Servers inside the embedding program, by name."""
    find_input: Callable[[str], str] | None = None
    """The saved value of an input; empty: there is none. Raises ConfigError."""
