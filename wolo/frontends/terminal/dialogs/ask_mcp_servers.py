"""Asking whether the MCP servers that a trusted project brings along may be started, one by one and once each."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from rich.text import Text

from wolo.config import project
from wolo.config.cli_options import Given
from wolo.config.configured_servers import keep_consent, open_ones
from wolo.config.consents import trust_in
from wolo.conversation.resources.mcp_servers import servers_here
from wolo.frontends.terminal.dialogs.ask_trust import Wording, ask_once, keep_answer, whole
from wolo.frontends.terminal.display.terminal import Terminal
from wolo.mcp.server import ConfiguredServer, describe_server
from wolo.messages.terminal_text import clean_line
from wolo.places import find_places
from wolo.workspace.root import find_root

LOCAL = "It runs with all your rights, outside any sandbox."
REMOTE = "It learns what the model's calls of its tools say."


async def ask_servers(given: Given, terminal: Terminal) -> None:
    """Whatever is not a yes leaves a server where it is. Raises Dismissed for Ctrl-C, ConfigError for settings that are wrong."""
    root, places = find_root(), find_places()
    if not any(each.kind == project.MCP_SERVERS.name for each in project.find(root, Path.cwd())):
        return
    if given.get("trust") != str(root) and trust_in(places, root, []) != "trusted":
        return
    for wanted in _open_ones(given, root):
        await _ask(wanted, root, terminal)


def _open_ones(given: Given, root: Path) -> list[ConfiguredServer]:
    return open_ones(servers_here(given, []), find_places(), root)


async def _ask(wanted: ConfiguredServer, root: Path, terminal: Terminal) -> None:
    answer = await ask_once(_shown(wanted), _wording(wanted), terminal)
    if answer in ("y", "yes", "never"):
        keep_answer(partial(keep_consent, find_places(), root, wanted, allowed=answer != "never"), terminal)


def _wording(wanted: ConfiguredServer) -> Wording:
    about = f"the MCP server {clean_line(wanted.name)}"
    if wanted.server.url:
        return Wording("Use it?", "Yes, use it", about, "used", "used")
    return Wording("Start it?", "Yes, start it", about, "started", "started")


def _shown(wanted: ConfiguredServer) -> list[Text]:
    lines = [Text.assemble(("? ", "bold warning"), ("This project brings an MCP server: ", "bold"), whole(wanted.name))]
    for called, value in describe_server(wanted.server):
        lines.append(Text.assemble((f"  {called:<11} ", "dim"), whole(value)))
    return [
        *lines,
        Text.assemble(("  from        ", "dim"), whole(wanted.source)),
        Text(f"  {REMOTE if wanted.server.url else LOCAL}", "dim"),
        Text("  If anything of this changes, you are asked again.", "dim"),
    ]
