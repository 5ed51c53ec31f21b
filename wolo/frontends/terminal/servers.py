"""Asking whether the MCP servers that a trusted project brings along may be started, one by one and once each."""

from __future__ import annotations

from pathlib import Path

from rich.text import Text

from wolo.config import project
from wolo.config.given import Given
from wolo.config.servers import keep_consent, open_ones
from wolo.config.trust import answer_for
from wolo.conversation.servers import servers_here
from wolo.errors import ConfigError
from wolo.frontends.terminal.terminal import Terminal
from wolo.frontends.terminal.trust import Wording, ask_once
from wolo.mcp.server import Wanted, described
from wolo.messages.terminal_text import spelled_out
from wolo.places import find_places
from wolo.workspace.root import find_root

START = Wording("Start it?", "Yes, start it", "this MCP server", "started", "started")


async def ask_servers(given: Given, terminal: Terminal) -> None:
    """Whatever is not a yes leaves a server where it is. Raises Dismissed for Ctrl-C, ConfigError for settings that are wrong."""
    root, places = find_root(), find_places()
    if not any(each.kind == project.MCP_SERVERS.name for each in project.find(root, Path.cwd())):
        return
    if given.get("trust") != str(root) and answer_for(places, root, []) != "trusted":
        return
    for wanted in _open_ones(given, root):
        await _ask(wanted, root, terminal)


def _open_ones(given: Given, root: Path) -> list[Wanted]:
    return open_ones(servers_here(given, []), find_places(), root)


async def _ask(wanted: Wanted, root: Path, terminal: Terminal) -> None:
    match await ask_once(_shown(wanted), START, terminal):
        case "y" | "yes":
            _keep(wanted, root, terminal, allowed=True)
        case "never":
            _keep(wanted, root, terminal, allowed=False)


def _shown(wanted: Wanted) -> list[Text]:
    lines = [Text.assemble(("? ", "bold yellow"), ("This project brings an MCP server: ", "bold"), _spelled_out(wanted.name))]
    for called, value in described(wanted.server):
        lines.append(Text.assemble((f"  {called:<11} ", "dim"), _spelled_out(value)))
    return [
        *lines,
        Text.assemble(("  from        ", "dim"), _spelled_out(wanted.source)),
        Text("  It runs with all your rights, outside any sandbox. If anything of this changes, you are asked again.", "dim"),
    ]


def _keep(wanted: Wanted, root: Path, terminal: Terminal, *, allowed: bool) -> None:
    try:
        keep_consent(find_places(), root, wanted, allowed=allowed)
    except ConfigError as error:
        terminal.screen.say(f"Your answer could not be kept: {error.message}", "yellow")


def _spelled_out(value: str) -> Text:
    """The whole of it, on one line."""
    text = Text()
    for piece, is_escape in spelled_out(value):
        text.append(piece.replace("\n", "\\n"), "reverse" if is_escape or "\n" in piece else "cyan")
    return text
