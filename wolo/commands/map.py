"""/map: the symbols of a folder that are used most, as the model's `repo_map` shows them."""

from __future__ import annotations

from wolo.commands.command import Command, CommandContext, Outcome, ShowText
from wolo.errors import ToolError, UsageError
from wolo.tools.search.repo_map import DEFAULT_TOKENS, draw_map


async def _run(context: CommandContext, rest: str) -> Outcome:
    services = context.conversation.files.services
    try:
        text, _ = await draw_map(services.workspace.resolve(rest.strip() or "."), DEFAULT_TOKENS, services)
    except ToolError as error:
        raise UsageError(str(error)) from error
    return ShowText(services.secrets.hide(text))


COMMANDS = (
    Command(
        "map", "the symbols of a folder that are used most", _run, usage="[PATH]", doing="reading symbols", while_working=True
    ),
)
