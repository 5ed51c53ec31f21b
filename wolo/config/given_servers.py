"""Reads `--mcp-config`: a file of MCP servers, or the JSON itself."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path

from wolo.errors import ConfigError
from wolo.mcp.server import Server
from wolo.mcp.server_entries import read_servers
from wolo.places import Notices

OPTION = "--mcp-config"


def read_given(values: Iterable[str], notices: Notices) -> dict[str, Server]:
    """The last one of a name wins. Raises ConfigError: what was asked for on the command line is never skipped."""
    by_name: dict[str, Server] = {}
    for value in values:
        complaints = Notices()
        where, data = _read(value)
        servers = dict(read_servers(data, where, complaints))
        wrong = [each for each in complaints if ": ignored: " not in each]
        if wrong:
            raise ConfigError(wrong[0])
        if not servers and not _is_empty(data):
            raise ConfigError(f"{where} has no MCP server.", hint='{"mcpServers": {"name": {"command": "…"}}}')
        notices.extend(complaints)
        by_name |= servers
    return by_name


def _is_empty(data: bytes) -> bool:
    """An empty list is legal: with `--strict-mcp-config` it means no server at all."""
    document = json.loads(data)
    return not document or bool({"mcpServers", "servers"} & document.keys())


def _read(value: str) -> tuple[str, bytes]:
    if value.lstrip().startswith("{"):
        return OPTION, value.encode()
    path = Path(os.path.expanduser(value))  # noqa: PTH111  # Path.expanduser raises for unknown users
    try:
        return f"{OPTION} {value}", path.read_bytes()
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise ConfigError(f"{OPTION}: {value} cannot be read: {why}.", hint=f"{OPTION} FILE, or the JSON itself") from error
