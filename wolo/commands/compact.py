"""/compact: make room in the model's window now, or show what that would do."""

from __future__ import annotations

from wolo.agent.compaction.context_usage import Filling, Preview
from wolo.agent.compaction_run import NOTHING_TO_COMPACT
from wolo.commands.command import CommandContext, Outcome, RunEvents, ShowText
from wolo.commands.context import table
from wolo.errors import UsageError

PREVIEW = "--preview"


async def run(desk: CommandContext, rest: str) -> Outcome:
    """What is not an option is what the summary is to pay attention to."""
    options = [word for word in rest.split() if word.startswith("--")]
    if unknown := next((word for word in options if word != PREVIEW), ""):
        raise UsageError(f"/compact has no option {unknown}.", hint=f"/compact [WHAT MATTERS], or /compact {PREVIEW}.")
    if options:
        return ShowText(_preview(desk.conversation.preview()))
    return RunEvents(desk.conversation.compact(rest))


def _preview(preview: Preview) -> str:
    before, after = preview.before, preview.after
    if after.total >= before.total and not preview.requests:
        return NOTHING_TO_COMPACT
    requests = f"in {preview.requests} requests" if preview.requests > 1 else "in a request of its own"
    asked = f"The model would sum them up {requests}, in at most {preview.summary_tokens:,} tokens more."
    return "\n".join(
        [
            *table({"now": before, "then": after}),
            "",
            _moved(before, after),
            asked if preview.requests else "The model would not be asked for a summary.",
            "Nothing was changed; /compact does it.",
        ]
    )


def _moved(before: Filling, after: Filling) -> str:
    outputs, messages = after.shortened - before.shortened, after.left_out - before.left_out
    return f"Answers whose outputs would be shortened: {max(outputs, 0)}. Messages that would be left out: {max(messages, 0)}."


def arguments(desk: CommandContext) -> list[tuple[str, str]]:
    return [(PREVIEW, "only show what it would do")]
