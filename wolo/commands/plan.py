"""/plan: only read from now on, and think of a plan."""

from __future__ import annotations

from wolo.commands import mode
from wolo.commands.command import CommandContext, Outcome, SendPrompt, ShowText

PLAN = "Make a plan for this. Read what you need; change nothing, and do not begin with it before I say so.\n\n"


async def run(desk: CommandContext, rest: str) -> Outcome:
    """With a task it is also the prompt that asks for its plan."""
    said = mode.enter(desk.conversation, "plan")
    return SendPrompt(f"{PLAN}{rest}") if rest else ShowText(f"{said}\n/mode NAME goes on in another one.")
