"""Finds MCP servers in the settings of other agents and editors."""

from __future__ import annotations

import json
import os
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from wolo.errors import ConfigError, UsageError
from wolo.mcp.server import Server
from wolo.mcp.server_entries import entries_of, read_entries
from wolo.places import Site, find_home

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
        if source in ("", file.agent) and file.path.is_file():
            try:
                for each in _read(file, site):
                    if each.name not in seen:
                        seen.add(each.name)
                        yield each
            except ConfigError as error:
                site.notices.add(error.message)


def _files(root: Path) -> Iterator[_ServerFile]:
    """The nearest first."""
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
    """Raises ConfigError."""
    source = str(file.path)
    try:
        if file.path.stat().st_size > MAX_BYTES:
            raise ConfigError(f"{file.path} is not read: it is larger than {MAX_BYTES // 1024 // 1024} MiB.")
        text = file.path.read_text(encoding="utf-8-sig")
        document = tomllib.loads(text) if file.path.suffix == ".toml" else json.loads(without_comments(text))
    except OSError as error:
        raise ConfigError(f"{file.path} cannot be read: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{file.path} cannot be read: {error}.") from error
    if not isinstance(document, dict):
        raise ConfigError(f"{file.path} is not an object.")
    groups = [(file.scope, _entries(document, source))]
    if isinstance(projects := document.get("projects"), dict) and isinstance(here := projects.get(str(site.root)), dict):
        groups.insert(0, ("local", _entries(here, source)))  # Claude Code's local scope
    for scope, entries in groups:
        # Names of other programs may hold blanks and slashes
        fitted = {re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip("-")[:64]: entry for name, entry in entries.items()}
        for name, server in read_entries(fitted, source, site.notices):
            fixed = replace(server, transport="sse") if file.agent == "gemini" and _is_gemini_sse(entries, name) else server
            yield ForeignServer(name, fixed, source, scope)


def _entries(document: Mapping[str, Any], source: str) -> Mapping[str, Any]:
    found = entries_of(document, source)
    return {name: entry for name, entry in found.items() if isinstance(entry, dict)}


def _is_gemini_sse(entries: Mapping[str, Any], name: str) -> bool:
    """Gemini CLI means SSE by `url`, and streamable HTTP by `httpUrl`."""
    entry = entries.get(name, {})
    return "url" in entry and "type" not in entry


def without_comments(text: str) -> str:
    """JSON without `//` and `/* */` comments and without commas before a closing bracket."""
    text = re.sub(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', lambda found: found[1] or " ", text, flags=re.DOTALL)
    return re.sub(r'("(?:\\.|[^"\\])*")|,(\s*[}\]])', lambda found: found[1] or found[2], text)
