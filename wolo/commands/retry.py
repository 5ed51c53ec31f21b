"""/retry: reverts the last turn and sends its prompt again, with other words or to another model."""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from wolo.commands.command import Command, CommandContext, Outcome, SendPrompt, ShowText, SwitchConversation
from wolo.commands.undo import ANYWAY, carry_out
from wolo.conversation.history.turn_undo import Undoing, lines
from wolo.errors import UsageError

MODEL = "--model"


async def _retry(context: CommandContext, rest: str) -> Outcome:
    parts, model = rest.split(), ""
    is_forced = ANYWAY in parts
    parts = [word for word in parts if word != ANYWAY]
    if MODEL in parts:
        at = parts.index(MODEL)
        if at + 1 == len(parts):
            raise UsageError(f"{MODEL} needs a model.", hint=f"/retry [WORDS] [{MODEL} PROVIDER/MODEL]")
        model = parts[at + 1]
        del parts[at : at + 2]
    undoing = Undoing.of(context.conversation)
    undo = await asyncio.to_thread(undoing.undo, 1)
    words = " ".join(parts) or undo.draft
    if not words:
        raise UsageError("The last turn has no words of yours to send again.", hint="/retry WORDS, or /undo.")
    if undo.report.conflicts and not is_forced:
        again = f"/retry {rest} {ANYWAY}".replace("  ", " ")
        return ShowText("\n".join([*lines(undo.report), "", f"Nothing was changed or sent; {again} does it."]))
    following = await carry_out(context, undoing, undo)
    assert isinstance(following, SwitchConversation)  # it reopens the conversation
    return replace(following, draft="", sends=SendPrompt(words, model=model))


COMMANDS = (
    Command(
        "retry",
        "revert the last turn and ask again",
        _retry,
        doing="reverting",
        usage="[WORDS] [--model PROVIDER/MODEL]",
        more="Files are reverted as by /undo, then the last prompt is sent again, or WORDS instead of it. With --model that "
        "model answers this once. --anyway skips files that were changed since.",
        group="History",
    ),
)
