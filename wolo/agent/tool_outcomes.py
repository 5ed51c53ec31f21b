"""What the model reads about a call that did not run, or not to its end."""

from __future__ import annotations

import time
from typing import Literal

from msgspec.structs import replace

from wolo.messages.message import Message
from wolo.messages.parts import Outcome, ToolPart

NEVER_STARTED = "Never started: the turn was interrupted before this call began. It had no effect."
SET_ASIDE = "Not run: the user said something in the meantime, which comes next. It had no effect."
INTERRUPTED = "The call was interrupted while it was running. It may have had effects; look before you repeat it."
DENIED_BY_RULE = "Denied, so it was not run. {reason} Do not try to get the same effect another way."
MAY_BE_EXAMPLE = "The answer ends with this call in a code fence behind other text: it may be meant as an example."
NOT_CONFIRMED = "Not run. {reason} If you mean it, make the call itself, without a fence and without other text behind it."
DENIED_BY_PERSON = "Denied by the user, so it was not run: {reason}. Do not try to get the same effect another way."
NO_REASON = "no reason given"
"""Stands for the reason of a person who gave none."""
DENIED_BY_HOOK = "Denied by a hook of the user's, so it was not run: {reason}"
CHANGED_BY_HOOK = "[A hook of the user's has changed the arguments of this call; it ran with {arguments}]"
WRONGLY_CHANGED = (
    "A hook of the user's has changed the arguments of this call so that they make no sense; it was not run. {reason}"
)
FROM_HOOK = "[A hook of the user's says: {text}]"
BROKEN_OFF = "Not run: the answer did not come to a proper end ({reason})."
GOING_IN_CIRCLES = "Not run: the same call was made {times} times in a row."


def end(part: ToolPart, outcome: Outcome, output: str) -> ToolPart:
    """The part as it stands in the history from now on."""
    status: Literal["completed", "failed"] = "completed" if outcome == "ok" else "failed"
    return replace(part, status=status, outcome=outcome, output=output, end_time=time.time())


def refuse_all(answer: Message, outcome: Outcome, output: str) -> tuple[ToolPart, ...]:
    """The calls of an answer of which none may run. One that has failed already keeps its own story."""
    return tuple(end(part, outcome, output) if part.status == "pending" else part for part in answer.calls)


def crashed(tool: str, error: Exception) -> str:
    return f"The tool {tool} failed inside ({type(error).__name__}: {error}). This is not your mistake; try another way."
