"""What a hook has said: its exit status, its stderr, and the JSON on its stdout, as one answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from wolo.messages.arguments import Unreadable, check_usable
from wolo.messages.terminal_text import clean

Word = Literal["", "allow", "ask", "deny"]
_RANK: Mapping[Word, int] = {"": 0, "allow": 1, "ask": 2, "deny": 3}

BLOCKS = 2
"""The exit status that says no."""
TEXT_IS_CONTEXT = frozenset(("SessionStart", "UserPromptSubmit", "SubagentStart"))
"""There the model is told what a hook prints, be it JSON or not."""
_MOST_CHARS = 16_000
NO_REASON = "It gave no reason."


class Answer(Struct, frozen=True, kw_only=True):
    """Of one hook, or of all that an event had."""

    decision: Word = ""
    """`deny` also says: this prompt is not sent, the model must go on, the conversation is not summed up."""
    reason: str = ""
    context: str = ""
    """For the model."""
    updated_input: Mapping[str, Any] | None = None
    """The arguments a call is to have instead."""
    notices: tuple[str, ...] = ()
    """For the person."""


NOTHING = Answer()


class _Decision(Struct, frozen=True):
    behavior: Literal["allow", "deny", "ask"]
    message: str = ""
    updatedInput: dict[str, Any] | None = None


class _Specific(Struct, frozen=True):
    permissionDecision: Literal["allow", "deny", "ask"] | None = None
    permissionDecisionReason: str | None = None
    updatedInput: dict[str, Any] | None = None
    additionalContext: str | None = None
    decision: _Decision | None = None


class _Said(Struct, frozen=True):
    proceed: bool | None = msgspec.field(default=None, name="continue")
    stopReason: str | None = None
    decision: Literal["approve", "allow", "block", "deny", "ask"] | None = None
    reason: str | None = None
    systemMessage: str | None = None
    additionalContext: str | None = None
    hookSpecificOutput: _Specific | None = None


def read_answer(event: str, exit_code: int, stdout: bytes, stderr: bytes) -> Answer | str:
    """What a hook said that has ended; or, as a text, what was wrong with it."""
    said, complained = _text(stdout), _text(stderr)
    if exit_code == BLOCKS:
        return Answer(decision="deny", reason=complained or said or NO_REASON)
    if exit_code != 0:
        how = f"ended with status {exit_code}" if exit_code > 0 else f"was ended by signal {-exit_code}"
        return f"{how}: {complained or said}".rstrip(": ")
    if not said.startswith("{"):
        return Answer(context=said) if event in TEXT_IS_CONTEXT else NOTHING
    try:
        answer = _meant(event, msgspec.json.decode(stdout.strip(), type=_Said))
        check_usable(answer.updated_input, said)
        return answer
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError, Unreadable) as error:
        return f"printed JSON that cannot be understood: {clean(str(error))}"


def tightening(answer: Answer) -> Answer:
    """What counts of the word of somebody who may not loosen anything."""
    return replace(answer, decision="" if answer.decision == "allow" else answer.decision, updated_input=None)


def together(answers: Sequence[Answer]) -> Answer:
    """Deny beats ask beats allow, whoever spoke first; of several changes of the arguments the last one counts."""
    strictest: Word = max((each.decision for each in answers), key=_RANK.__getitem__, default="")
    reasons = (each.reason for each in answers if each.decision == strictest and each.reason)
    changes = [each.updated_input for each in answers if each.updated_input is not None]
    return Answer(
        decision=strictest,
        reason="\n".join(dict.fromkeys(reasons)) if strictest else "",
        context="\n\n".join(dict.fromkeys(each.context for each in answers if each.context)),
        updated_input=changes[-1] if changes else None,
        notices=tuple(dict.fromkeys(notice for each in answers for notice in each.notices)),
    )


def _meant(event: str, said: _Said) -> Answer:
    specific = said.hookSpecificOutput or _Specific()
    decided = specific.decision
    decision: Word = ""
    if decided is not None:
        decision = decided.behavior
    elif specific.permissionDecision is not None:
        decision = specific.permissionDecision
    elif said.decision is not None:
        decision = _DECISIONS[said.decision]
    reason = specific.permissionDecisionReason or (decided.message if decided else "") or said.reason or ""
    if said.proceed is False:
        # Whoever wants all of it to stop does not want the model to go on.
        decision, reason = ("", "") if event in ("Stop", "SubagentStop") else ("deny", said.stopReason or reason)
    changed = decided.updatedInput if decided and decided.updatedInput is not None else specific.updatedInput
    return Answer(
        decision=decision,
        reason=_short(reason) or (NO_REASON if decision == "deny" else ""),
        context=_short(specific.additionalContext or said.additionalContext or ""),
        updated_input=changed,
        notices=(_short(said.systemMessage),) if said.systemMessage else (),
    )


_DECISIONS: Mapping[str, Word] = {"approve": "allow", "allow": "allow", "block": "deny", "deny": "deny", "ask": "ask"}


def _text(data: bytes) -> str:
    return _short(data.decode("utf-8", "replace"))


def _short(text: str) -> str:
    text = clean(text[: _MOST_CHARS * 2]).strip()
    return text if len(text) <= _MOST_CHARS else f"{text[:_MOST_CHARS]}… (cut)"
