"""Reads MCP servers as `.mcp.json` and the files of other programs write them."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from wolo.errors import ConfigError
from wolo.mcp.server import OAuth, Server, check
from wolo.messages.terminal_text import clean_line
from wolo.places import Notices

_EXAMPLE = '{"mcpServers": {"name": {"command": "…"}}}'
_TRANSPORTS = {
    **{"stdio": "stdio", "local": "stdio", "http": "http", "streamable-http": "http", "streamable_http": "http"},
    **{"streamablehttp": "http", "remote": "http", "sse": "sse"},
}
_NAMES = {
    **{"serverUrl": "url", "httpUrl": "url", "environment": "env", "http_headers": "headers", "workingDirectory": "cwd"},
    **{"startup_timeout_sec": "startup_timeout_s", "tool_timeout_sec": "tool_timeout_s", "enabledTools": "enabled_tools"},
    **{"includeTools": "enabled_tools", "disabledTools": "disabled_tools", "excludeTools": "disabled_tools", "auth": "oauth"},
}
"""Names of other programs for our fields."""
_OAUTH_NAMES = {
    **{"clientId": "client_id", "CLIENT_ID": "client_id", "clientSecret": "client_secret", "CLIENT_SECRET": "client_secret"},
    **{"clientMetadataUrl": "client_metadata_url", "redirectUri": "redirect_uri", "scope": "scopes"},
}
_READ_BELOW = frozenset(("type", "transport", "disabled", "timeout", "bearer_token_env_var", "env_http_headers", "env_vars"))
_READ_BELOW |= {"startup_timeout_ms", "scopes", "tools"}
_ABOUT = frozenset(("description", "name", "displayName", "title", "icon", "version", "note", "comment", "$schema", "source"))
"""Fields for readers, without an effect anywhere."""
_OURS = frozenset(Server.__struct_fields__)
_MILLISECONDS_FROM = 1000
"""Timeouts of other programs are in milliseconds, or in seconds if they are shorter than this."""
_PLACES = {"workspaceFolder": "CLAUDE_PROJECT_DIR", "workspaceRoot": "CLAUDE_PROJECT_DIR", "userHome": "HOME"}


class ServerInput(Struct, frozen=True):
    """A value that the user types for a server."""

    name: str
    question: str
    is_secret: bool = False
    default: str = ""
    options: tuple[str, ...] = ()


def read_inputs(document: object) -> dict[str, ServerInput]:
    """Those of VS Code that can be typed, by name."""
    table = document if isinstance(document, dict) else {}
    nested = table["mcp"] if isinstance(table.get("mcp"), dict) else {}
    entries = table.get("inputs", nested.get("inputs"))
    inputs = {}
    for each in entries if isinstance(entries, list) else []:
        if (
            isinstance(each, dict)
            and isinstance(name := each.get("id"), str)
            and each.get("type") in ("promptString", "pickString")
        ):
            options = tuple(map(str, given)) if isinstance(given := each.get("options"), list) else ()
            question = clean_line(str(each.get("description") or name))
            inputs[name] = ServerInput(name, question, each.get("password") is True, str(each.get("default") or ""), options)
    return inputs


def read_servers(data: bytes, where: str, notices: Notices) -> Iterator[tuple[str, Server]]:
    """Invalid entries are reported and skipped. Raises ConfigError for other forms of file."""
    document = _document(data, where)
    yield from read_entries(entries_of(document, where), where, notices, read_inputs(document))


def read_entries(
    entries: Mapping[str, Any], where: str, notices: Notices, inputs: Container[str] = ()
) -> Iterator[tuple[str, Server]]:
    """Invalid entries and unknown fields are reported. `inputs`: names of values that the user can be asked for."""
    for name, entry in entries.items():
        about = f"{where}: the MCP server {clean_line(name)}"
        try:
            server, ignored = read_entry(entry, inputs)
            check(name, server, where)
        except ConfigError as error:
            notices.add(error.message)
        except (msgspec.ValidationError, RecursionError, UnicodeError) as error:
            notices.add(f"{about}: {error}.")
        else:
            if ignored:
                notices.add(f"{about}: ignored: {', '.join(map(clean_line, ignored))}.")
            yield name, server


def entries_of(document: object, where: str) -> Mapping[str, Any]:
    """Servers by name, under the key that a program uses. Raises ConfigError."""
    if not isinstance(document, dict):
        raise ConfigError(f"{where} is not a JSON object.", hint=_EXAMPLE)
    nested = document["mcp"] if isinstance(document.get("mcp"), dict) else {}
    own = (("context_servers", document), ("amp.mcpServers", document))  # Zed, Amp
    for key, found in (("mcpServers", document), ("mcp_servers", document), ("servers", document), ("servers", nested), *own):
        if key in found:
            entries = found[key]
            break
    else:
        entries = {name: each for name, each in nested.items() if isinstance(each, dict)}  # OpenCode, beside other settings
    if isinstance(entries, list):  # Continue
        entries = {str(each.get("name") if isinstance(each, dict) else at): each for at, each in enumerate(entries)}
    if not isinstance(entries, dict):
        raise ConfigError(f"{where}: mcpServers is not a JSON object.", hint=_EXAMPLE)
    return entries


def read_entry(entry: object, inputs: Container[str] = ()) -> tuple[Server, list[str]]:
    """Returns the names of fields without an effect too. Raises ValidationError."""
    if not isinstance(entry, dict):
        raise msgspec.ValidationError("it is not a JSON object")
    if "{file:" in str(entry):  # OpenCode
        raise msgspec.ValidationError("a value comes from a file")
    entry = {name: _with_our_references(value) for name, value in entry.items() if value is not None}
    renamed = {_NAMES.get(name, name): value for name, value in entry.items()}
    fields = {name: value for name, value in renamed.items() if name in _OURS - _READ_BELOW}
    ignored = [name for name in entry if _NAMES.get(name, name) not in _OURS | _READ_BELOW | _ABOUT and name[:1] != "_"]
    if isinstance(command := fields.get("command"), list) and command:
        fields |= {"command": command[0], "args": [*command[1:], *fields.get("args", ())]}
    if isinstance(command := fields.get("command"), dict):  # Zed's older form
        fields |= {"command": command.get("path", ""), "args": command.get("args", []), "env": command.get("env") or {}}
    if isinstance(tools := entry.get("tools"), list) and tools != ["*"]:  # Copilot
        fields.setdefault("enabled_tools", tools)
    if entry.get("disabled") is True:
        fields["enabled"] = False
    transport = entry.get("type", entry.get("transport"))
    if transport is not None:
        if not isinstance(transport, str) or transport.lower() not in _TRANSPORTS:
            raise msgspec.ValidationError(f"there is no transport {transport!r}")
        fields["transport"] = _TRANSPORTS[transport.lower()]
    timeout, startup_ms = entry.get("timeout"), entry.get("startup_timeout_ms")
    if isinstance(timeout, int | float):
        fields.setdefault("tool_timeout_s", timeout / 1000 if timeout >= _MILLISECONDS_FROM else timeout)
    if isinstance(startup_ms, int | float):
        fields.setdefault("startup_timeout_s", startup_ms / 1000)
    # Names of variables become references to them
    headers = {}
    if token := entry.get("bearer_token_env_var"):
        headers["Authorization"] = f"Bearer ${{{token}}}"
    if isinstance(named := entry.get("env_http_headers"), dict):
        headers |= {header: f"${{{variable}}}" for header, variable in named.items()}
    if headers:
        fields["headers"] = {**fields.get("headers", {}), **headers}
    passed = entry.get("env_vars")
    if isinstance(passed, list) and all(isinstance(each, str) for each in passed):
        fields["env"] = {**{name: f"${{{name}}}" for name in passed}, **fields.get("env", {})}
    ignored += _read_oauth(entry, fields)
    server = msgspec.convert(fields, Server)
    if unknown := [name for name in server.inputs if name not in inputs]:
        raise msgspec.ValidationError(f"it asks for input ({unknown[0]}); write ${{NAME}} for an environment variable instead")
    return server, ignored


def _read_oauth(entry: Mapping[str, Any], fields: dict[str, Any]) -> list[str]:
    """Returns the names of fields without an effect."""
    given = fields.pop("oauth", None)
    table = dict(given) if isinstance(given, dict) else {}
    if given not in (None, True, False, "oauth") and not isinstance(given, dict):
        raise msgspec.ValidationError("oauth is not an object")
    if (scopes := entry.get("scopes")) is not None:
        table.setdefault("scopes", scopes)
    oauth: dict[str, Any] = {}
    ignored = []
    for name, value in table.items():
        ours = _OAUTH_NAMES.get(name, name)
        if ours == "callbackPort" and isinstance(value, int):
            oauth["redirect_uri"] = f"http://localhost:{value}/callback"
        elif ours == "scopes" and isinstance(value, str):
            oauth["scopes"] = value.split()
        elif ours in OAuth.__struct_fields__:
            oauth[ours] = value
        elif name != "enabled":
            ignored.append(f"oauth.{name}")
    if oauth:
        fields["oauth"] = oauth
    return ignored


def _with_our_references(value: Any) -> Any:
    """Rewrites `${env:NAME}`, `{env:NAME}`, `${userHome}` and `${workspaceFolder}`."""
    if isinstance(value, dict):
        return {name: _with_our_references(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_with_our_references(each) for each in value]
    if not isinstance(value, str) or "{" not in value:
        return value
    value = re.sub(r"\$\{\{ *(?:secrets|inputs)\.([A-Za-z_]\w*) *\}\}", r"${\1}", value)  # Continue
    value = re.sub(r"\$?\{env:([A-Za-z_]\w*)\}", r"${\1}", value)
    return re.sub(r"\$\{(workspaceFolder|workspaceRoot|userHome)\}", lambda found: f"${{{_PLACES[found[1]]}}}", value)


def _document(data: bytes, where: str) -> object:
    try:
        return msgspec.json.decode(data.removeprefix(b"\xef\xbb\xbf"))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(f"{where} is no JSON: {error}.") from error
