"""Writes MCP servers where a user wants them: all projects, this project for oneself, or this project for everybody."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from wolo.config import dotted_keys, project, settings_writer
from wolo.config.files import change_document, read_toml
from wolo.errors import ConfigError
from wolo.mcp.server import Server, check
from wolo.operating_system import os
from wolo.places import Notices, Places
from wolo.workspace.files.unfinished import replacing

Scope = Literal["local", "user", "project"]
FILE: Final = "mcp_servers.toml"
"""Servers of single projects, by their real path; next to `config.toml`."""
PROJECT_FILE: Final = ".mcp.json"


class LocalServers(Struct, frozen=True):
    servers: Mapping[str, Server]
    disabled: frozenset[str]
    """Servers of the project's own files that this user does not want."""


def read_local(places: Places, root: Path, notices: Notices) -> LocalServers:
    """Invalid entries are reported and skipped. Raises ConfigError for an unreadable file."""
    path = places.config / FILE
    _, document = read_toml(path, notices)
    table = document.get(str(root), {})
    servers = {}
    for name, entry in table.get("servers", {}).items():
        try:
            server = msgspec.convert(entry, Server)
            check(name, server, str(path))
            servers[name] = server
        except msgspec.ValidationError as error:
            notices.add(f"{path}: the MCP server {name}: {error}.")
        except ConfigError as error:
            notices.add(error.message)
    return LocalServers(servers, frozenset(table.get("disabled", ())))


def save_server(places: Places, root: Path, scope: Scope, name: str, server: Server) -> Path:
    """Returns the changed file. Raises ConfigError; then nothing has changed."""
    if scope == "user":
        settings_writer.set_table(places, "mcp_servers", name, server)
        return places.config / "config.toml"
    if scope == "local":
        with change_document(places.config / FILE) as document:
            _table(document, str(root), "servers")[name] = settings_writer.changed_fields(server)
        return places.config / FILE
    path = root / PROJECT_FILE
    content = _read_project(path, root)
    entries = content.setdefault("mcpServers", {})
    if not isinstance(entries, dict):
        raise ConfigError(f"{path}: mcpServers is not a JSON object, so nothing is added.")
    entries[name] = project_entry(server)
    _write_project(path, content)
    return path


def remove_server(places: Places, root: Path, scope: Scope, name: str) -> bool:
    """Returns False if it is not there. Raises ConfigError."""
    if scope == "user":
        return settings_writer.remove_table(places, "mcp_servers", name)
    if scope == "local":
        with change_document(places.config / FILE) as document:
            return document.get(str(root), {}).get("servers", {}).pop(name, None) is not None
    path = root / PROJECT_FILE
    content = _read_project(path, root)
    entries = content.get("mcpServers", {})
    if not isinstance(entries, dict) or name not in entries:
        return False
    del entries[name]
    _write_project(path, content)
    return True


def enable_server(places: Places, root: Path, scope: Scope | Literal["other"], name: str, *, enabled: bool) -> None:
    """Servers that others wrote are switched off for this user only. Raises ConfigError."""
    if scope == "user":
        settings_writer.set_value(places, dotted_keys.join_key(("mcp_servers", name, "enabled")), "true" if enabled else "false")
        return
    with change_document(places.config / FILE) as document:
        if scope == "local":
            _table(document, str(root), "servers", name)["enabled"] = enabled
        else:
            table = _table(document, str(root))
            others = [each for each in table.get("disabled", []) if each != name]
            table["disabled"] = others if enabled else [*others, name]


def project_entry(server: Server) -> dict[str, Any]:
    """As Claude Code writes it, so that other programs read it too."""
    kind = "stdio" if server.command else "sse" if server.transport == "sse" else "http"
    entry = {"type": kind, **settings_writer.changed_fields(server)}
    entry.pop("transport", None)
    return entry


def _table(document: Any, *names: str) -> Any:
    for name in names:
        document = document.setdefault(name, {})
    return document


def _read_project(path: Path, root: Path) -> dict[str, Any]:
    if not os.path.lexists(path):
        return {}
    try:
        content = json.loads(project.read_file(path, root).decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is no JSON, so it is not changed: {error}.") from error
    if not isinstance(content, dict):
        raise ConfigError(f"{path} is not a JSON object, so it is not changed.")
    return content


def _write_project(path: Path, content: Mapping[str, Any]) -> None:
    """The file keeps its mode: it belongs to everybody who works on the project."""
    real = Path(os.path.realpath(path))
    text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
    try:
        with replacing(real, mode=0o666) as file:
            file.write(text.encode())
            if real.exists():
                os.fchmod(file.fileno(), real.stat().st_mode & 0o777)
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}.", hint="The file is unchanged.") from error
