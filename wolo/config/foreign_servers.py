"""Reads MCP servers from the settings of other agents and editors, and from `--mcp-config`."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from wolo.config.project import read_file
from wolo.errors import ConfigError, ExtensionError, UsageError
from wolo.extensions.settings_documents import parse_settings
from wolo.mcp.server import Server
from wolo.mcp.server_entries import entries_of, read_entries, read_inputs, read_servers
from wolo.places import Notices, Site, find_home

_OPTION = "--mcp-config"
MAX_BYTES = 8 * 1024 * 1024
"""Claude Code keeps histories in the same file."""


class ForeignServer(Struct, frozen=True):
    name: str
    server: Server
    source: str
    scope: Literal["local", "user"]


class _ServerFile(Struct, frozen=True):
    agent: str
    path: Path
    scope: Literal["local", "user"]


def find_foreign(source: str, site: Site) -> Iterator[ForeignServer]:
    """`wanted`: an agent, a file, or empty for every agent; the first server of a name counts.

    Raises UsageError for an unknown agent, and ConfigError for a file that was named and cannot be read.
    """
    files = list(_files(site.root))
    agents = dict.fromkeys(file.agent for file in files)
    if source and source not in agents:
        path = site.cwd / Path(os.path.expanduser(source))  # noqa: PTH111  # Path.expanduser raises for unknown users
        if not path.is_file():
            raise UsageError(f"There is no agent and no file {source}.", hint=f"Agents: {', '.join(agents)}")
        yield from _read(_ServerFile("", path, "user"), site)
        return
    seen: set[str] = set()
    for file in files:
        if source in ("", file.agent) and os.path.lexists(file.path):
            try:
                for each in _read(file, site):
                    if each.name not in seen:
                        seen.add(each.name)
                        yield each
            except ConfigError as error:
                site.notices.add(error.message)


def _files(root: Path) -> Iterator[_ServerFile]:
    home = find_home()
    config = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
    desktop = home / "Library/Application Support" if sys.platform == "darwin" else config
    codex = Path(os.environ.get("CODEX_HOME") or home / ".codex")
    claude = (
        Path(os.environ["CLAUDE_CONFIG_DIR"], ".claude.json") if os.environ.get("CLAUDE_CONFIG_DIR") else home / ".claude.json"
    )
    yield _ServerFile("claude", claude, "user")
    yield _ServerFile("claude-desktop", desktop / "Claude/claude_desktop_config.json", "user")
    yield _ServerFile("codex", root / ".codex/config.toml", "local")
    yield _ServerFile("codex", codex / "config.toml", "user")
    for folder, scope in ((root, "local"), (root / ".opencode", "local"), (config / "opencode", "user")):
        for name in ("opencode.json", "opencode.jsonc"):
            yield _ServerFile("opencode", folder / name, "local" if scope == "local" else "user")
    yield _ServerFile("opencode", config / "opencode/config.json", "user")
    yield _ServerFile("gemini", root / ".gemini/settings.json", "local")
    yield _ServerFile("gemini", home / ".gemini/settings.json", "user")
    yield _ServerFile("cursor", root / ".cursor/mcp.json", "local")
    yield _ServerFile("cursor", home / ".cursor/mcp.json", "user")
    yield _ServerFile("vscode", root / ".vscode/mcp.json", "local")
    yield _ServerFile("vscode", desktop / "Code/User/mcp.json", "user")
    yield _ServerFile("vscode", desktop / "Code/User/settings.json", "user")
    yield _ServerFile("windsurf", home / ".codeium/windsurf/mcp_config.json", "user")
    yield _ServerFile("kimi", home / ".kimi/mcp.json", "user")


def _read(file: _ServerFile, site: Site) -> Iterator[ForeignServer]:
    source = str(file.path)
    try:
        within = site.root if file.scope == "local" and file.agent else Path("/")
        document = parse_settings(read_file(file.path, within, MAX_BYTES), source)
    except ExtensionError as error:
        raise ConfigError(error.message) from error
    groups = [(file.scope, entries_of(document, source))]
    if isinstance(projects := document.get("projects"), dict) and isinstance(here := projects.get(str(site.root)), dict):
        groups.insert(0, ("local", entries_of(here, source)))  # Claude Code's local scope
    for scope, entries in groups:
        for name, server in read_foreign_entries(entries, source, site.notices, is_gemini=file.agent == "gemini"):
            yield ForeignServer(name, server, source, scope)


def read_project_servers(data: bytes, where: str, notices: Notices) -> Iterator[tuple[str, Server]]:
    """Servers in a project's settings of any agent. Raises ConfigError."""
    try:
        document = parse_settings(data, where)
    except ExtensionError as error:
        raise ConfigError(error.message) from error
    if where.rpartition("/")[2] in ("mcp.json", ".mcp.json"):
        yield from read_entries(entries_of(document, where), where, notices, read_inputs(document))
        return
    limits = each if isinstance(each := document.get("mcp"), dict) else {}
    excluded = [*_names(limits, "excluded"), *_names(document, "excludeMCPServers")]
    allowed = _names(limits, "allowed") or _names(document, "allowMCPServers")
    entries = {
        name: entry
        for name, entry in entries_of(document, where).items()
        if name not in excluded and (not allowed or name in allowed)
    }
    yield from read_foreign_entries(
        entries, where, notices, is_gemini=where.endswith((".gemini/settings.json", ".qwen/settings.json"))
    )


def _names(table: Mapping[str, Any], key: str) -> list[str]:
    value = table.get(key)
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def read_foreign_entries(
    entries: Mapping[str, Any], source: str, notices: Notices, *, is_gemini: bool
) -> Iterator[tuple[str, Server]]:
    """Gemini CLI means SSE by `url`, and streamable HTTP by `httpUrl`."""
    # Names of other programs may hold blanks and slashes
    fitted = {re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip("-")[:64]: entry for name, entry in entries.items()}
    for name, server in read_entries(fitted, source, notices):
        is_sse = is_gemini and "url" in fitted[name] and "type" not in fitted[name]
        yield name, replace(server, transport="sse") if is_sse else server


def read_given(values: Iterable[str], notices: Notices) -> dict[str, Server]:
    """The last one of a name wins. Raises ConfigError: what was asked for on the command line is never skipped."""
    by_name: dict[str, Server] = {}
    for value in values:
        complaints = Notices()
        where, data = _read_given(value)
        servers = dict(read_servers(data, where, complaints))
        wrong = [each for each in complaints if ": ignored: " not in each]
        if wrong:
            raise ConfigError(wrong[0])
        # An empty list is legal: with `--strict-mcp-config` it means no server at all
        if not servers and (document := json.loads(data)) and not {"mcpServers", "servers"} & document.keys():
            raise ConfigError(f"{where} has no MCP server.", hint='{"mcpServers": {"name": {"command": "…"}}}')
        notices.extend(complaints)
        by_name |= servers
    return by_name


def _read_given(value: str) -> tuple[str, bytes]:
    if value.lstrip().startswith("{"):
        return _OPTION, value.encode()
    path = Path(os.path.expanduser(value))  # noqa: PTH111  # Path.expanduser raises for unknown users
    try:
        return f"{_OPTION} {value}", path.read_bytes()
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise ConfigError(f"{_OPTION}: {value} cannot be read: {why}.", hint=f"{_OPTION} FILE, or the JSON itself") from error
