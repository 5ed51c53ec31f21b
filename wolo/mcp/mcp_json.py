"""The form in which tools share their lists of servers: `{"mcpServers": {"name": {"command" …} or {"url" …}}}`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from wolo.errors import ConfigError
from wolo.mcp.server import Server, check
from wolo.messages.terminal_text import clean_line

_TRANSPORTS = {
    "stdio": "stdio",
    "local": "stdio",
    "http": "http",
    "streamable-http": "http",
    "streamable_http": "http",
    "streamableHttp": "http",
    "remote": "http",
    "sse": "sse",
}
_SAME = ("command", "args", "env", "cwd", "url", "headers", "enabled", "enabled_tools", "disabled_tools", "startup_timeout_s")
_OURS = (*_SAME, "tool_timeout_s")
"""What is called the same with us. Whatever else other programs keep there is passed over."""
_ALSO = {"serverUrl": "url", "httpUrl": "url", "environment": "env", "startup_timeout_sec": "startup_timeout_s"}
_OTHER_NAMES = {**_ALSO, "tool_timeout_sec": "tool_timeout_s", "enabledTools": "enabled_tools", "disabledTools": "disabled_tools"}


def read_servers(data: bytes, where: str, complaints: list[str]) -> Iterator[tuple[str, Server]]:
    """One that makes no sense is complained about and costs no other. Raises ConfigError when it is not this form."""
    for name, entry in _entries(data, where).items():
        try:
            server = _read(entry)
            check(name, server, where)
        except ConfigError as error:
            complaints.append(error.message)
        except msgspec.ValidationError as error:
            complaints.append(f"{where}: the MCP server {clean_line(name)}: {error}.")
        else:
            yield name, server


def _entries(data: bytes, where: str) -> Mapping[str, Any]:
    try:
        document = msgspec.json.decode(data.removeprefix(b"\xef\xbb\xbf"))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(f"{where} is no JSON: {error}.") from error
    if not isinstance(document, dict):
        raise ConfigError(f"{where} is no JSON object.", hint='{"mcpServers": {"name": {"command": "…"}}}')
    entries = document.get("mcpServers", document.get("servers", {}))
    if not isinstance(entries, dict):
        raise ConfigError(f"{where}: mcpServers is no JSON object.", hint='{"mcpServers": {"name": {"command": "…"}}}')
    return entries


def _read(entry: object) -> Server:
    """Raises ValidationError."""
    if not isinstance(entry, dict):
        raise msgspec.ValidationError("it is no JSON object")
    named = {_OTHER_NAMES.get(name, name): value for name, value in entry.items() if value is not None}
    fields = {name: value for name, value in named.items() if name in _OURS}
    if isinstance(command := fields.get("command"), list) and command:
        fields |= {"command": command[0], "args": [*command[1:], *fields.get("args", ())]}
    if entry.get("disabled") is True:
        fields["enabled"] = False
    transport = entry.get("type", entry.get("transport"))
    if transport is not None:
        if transport not in _TRANSPORTS:
            raise msgspec.ValidationError(f"there is no transport {transport!r}")
        fields["transport"] = _TRANSPORTS[transport]
    return msgspec.convert(fields, Server)
