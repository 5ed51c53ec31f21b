"""/tools: lists the tools that the model has."""

from __future__ import annotations

from wolo.commands.command import Command, CommandContext, Outcome, ShowText
from wolo.commands.two_columns import rows


async def _run(context: CommandContext, rest: str) -> Outcome:
    if not (tools := context.conversation.tools):
        return ShowText("The model has no tools.")
    return ShowText(
        "\n".join(
            rows([(tool.name, " ".join(tool.description.split()).split(". ")[0].rstrip(".")) for tool in tools], context.columns)
        )
    )


COMMANDS = (Command("tools", "tools of the model", _run, group="Extensions", while_working=True),)
