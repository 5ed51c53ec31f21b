"""/lsp: shows the language servers that check edits, and their states."""

from __future__ import annotations

import asyncio

from wolo.commands.command import Command, CommandContext, Outcome, ShowText
from wolo.conversation.resources.edit_checks import find_installed
from wolo.lsp.language_servers import LanguageServers
from wolo.messages.terminal_text import clean_line
from wolo.places import Notices, find_places


async def _run(context: CommandContext, rest: str) -> Outcome:
    permissions, shell = context.conversation.permissions, context.conversation.files.services.shell
    if not permissions.config.settings.lsp.enabled:
        return ShowText("Edits are not checked: lsp.enabled is false.")
    problems = Notices()
    installed = await asyncio.to_thread(find_installed, permissions.config, permissions.workspace, find_places(), problems)
    servers = shell.language_servers
    states = servers.states() if isinstance(servers, LanguageServers) else {}
    if not installed:
        none = "No language server is installed, so edits are not checked. `lsp.servers` in the settings adds one."
        return ShowText("\n".join((none, *problems)))
    width = max(len(each.name) for each in installed)
    known = {name: clean_line(state) for name, state in states.items() if state}
    lines = [
        f"{each.name:<{width}}  {known.get(each.name, 'starts at the first edit')}  {' '.join(each.extensions)}"
        for each in installed
    ]
    return ShowText("\n".join((*lines, *problems)))


COMMANDS = (Command("lsp", "language servers that check edits", _run, group="Extensions", while_working=True),)
