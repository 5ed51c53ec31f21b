"""What a hook has said: its exit status, its stderr, and the JSON on its stdout, as one answer."""

from __future__ import annotations

import codecs
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from wolo.extensions.hooks.claude_results import replacement_output
from wolo.messages.call_arguments import Unreadable, check_usable
from wolo.messages.terminal_text import clean

Word = Literal["", "allow", "ask", "deny"]
_RANK: Mapping[Word, int] = {"": 0, "allow": 1, "ask": 2, "deny": 3}

BLOCKS = 2
"""The exit status that says no."""
TEXT_IS_CONTEXT = frozenset(("SessionStart", "UserPromptSubmit", "SubagentStart"))
"""There the model is told what a hook prints, be it JSON or not."""
_AFTER_THE_CALL = frozenset(("PostToolUse", "PostToolUseFailure"))
WHEN_DONE = frozenset(("Stop", "SubagentStop"))
"""There the turn ends anyway."""
_MOST_CHARS = 16_000
NO_REASON = "No reason given."


class Answer(Struct, frozen=True, kw_only=True):
    """Of one hook, or of all that an event had."""

    decision: Word = ""
    """`deny` also says: this prompt is not sent, the model must go on, the conversation is not summed up."""
    reason: str = ""
    context: str = ""
    """For the model."""
    updated_input: Mapping[str, Any] | None = None
    """The arguments a call is to have instead."""
    updated_output: str | None = None
    """What the model reads as the result of a call instead."""
    stops: bool = False
    """The turn ends here, with `stop_reason` for the person."""
    stop_reason: str = ""
    notices: tuple[str, ...] = ()
    """For the person."""


NOTHING = Answer()


class _Decision(Struct, frozen=True):
    behavior: Literal["allow", "deny", "ask"]
    message: str = ""
    interrupt: bool = False
    updatedInput: dict[str, Any] | None = None
    updatedPermissions: Any = None


class _Specific(Struct, frozen=True):
    permissionDecision: Literal["allow", "deny", "ask", "defer"] | None = None
    permissionDecisionReason: str | None = None
    updatedInput: dict[str, Any] | None = None
    updatedToolOutput: Any = None
    updatedMCPToolOutput: Any = None
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
    stdout = stdout.strip().removeprefix(codecs.BOM_UTF8)
    said, complained = _text(stdout), _text(stderr)
    if exit_code == BLOCKS:
        return Answer(decision="deny", reason=complained or said or NO_REASON)
    if exit_code != 0:
        how = f"ended with status {exit_code}" if exit_code > 0 else f"was ended by signal {-exit_code}"
        return f"{how}: {complained or said}".rstrip(": ")
    if not said.startswith("{"):
        return Answer(context=said) if event in TEXT_IS_CONTEXT else NOTHING
    try:
        answer = _meant(event, msgspec.json.decode(stdout, type=_Said))
        check_usable(answer.updated_input, said)
        return answer
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError, Unreadable) as error:
        return f"printed JSON that cannot be understood: {clean(str(error))}"


def restricted(answer: Answer) -> Answer:
    """What counts of the word of somebody who may not loosen anything."""
    decision = "" if answer.decision == "allow" else answer.decision
    return replace(answer, decision=decision, updated_input=None, updated_output=None)


def combined(answers: Sequence[Answer]) -> Answer:
    """Deny beats ask beats allow, whoever spoke first; of several changes of the arguments the last one counts."""
    strictest: Word = max((each.decision for each in answers), key=_RANK.__getitem__, default="")
    reasons = (each.reason for each in answers if each.decision == strictest and each.reason)
    changes = [each.updated_input for each in answers if each.updated_input is not None]
    outputs = [each.updated_output for each in answers if each.updated_output is not None]
    return Answer(
        decision=strictest,
        reason="\n".join(dict.fromkeys(reasons)) if strictest else "",
        context="\n\n".join(dict.fromkeys(each.context for each in answers if each.context)),
        updated_input=changes[-1] if changes else None,
        updated_output=outputs[-1] if outputs else None,
        stops=any(each.stops for each in answers),
        stop_reason="\n".join(dict.fromkeys(each.stop_reason for each in answers if each.stop_reason)),
        notices=tuple(dict.fromkeys(notice for each in answers for notice in each.notices)),
    )


def _meant(event: str, said: _Said) -> Answer:
    specific = said.hookSpecificOutput or _Specific()
    decided = specific.decision
    decision: Word = ""
    if decided is not None:
        decision = decided.behavior
    elif specific.permissionDecision is not None:
        decision = _DECISIONS[specific.permissionDecision]
    elif said.decision is not None:
        decision = _DECISIONS[said.decision]
    reason = specific.permissionDecisionReason or (decided.message if decided else "") or said.reason or ""
    stops = said.proceed is False or (decided is not None and decided.interrupt and decision == "deny")
    if said.proceed is False:
        # Who wants all of it to stop does not want the model to continue.
        decision, reason = ("", "") if event in WHEN_DONE else ("deny", said.stopReason or reason)
    notices = [said.systemMessage] if said.systemMessage else []
    if decided is not None and decided.updatedPermissions:
        notices.append(f"A {event} hook wants to change permissions (updatedPermissions); no hook can.")
    output, complaint = _output(event, specific)
    changed = decided.updatedInput if decided and decided.updatedInput is not None else specific.updatedInput
    return Answer(
        decision=decision,
        reason=_short(reason) or (NO_REASON if decision == "deny" else ""),
        context=_short(specific.additionalContext or said.additionalContext or ""),
        updated_input=changed,
        updated_output=output,
        stops=stops and event not in WHEN_DONE,
        stop_reason=_short(said.stopReason or reason) if stops else "",
        notices=tuple(map(_short, [*notices, *complaint])),
    )


def _output(event: str, specific: _Specific) -> tuple[str | None, list[str]]:
    value = specific.updatedMCPToolOutput if specific.updatedToolOutput is None else specific.updatedToolOutput
    if value is None or event not in _AFTER_THE_CALL:
        return None, []
    text = replacement_output(value)
    return text, [] if text is not None else [f"The updatedToolOutput of a {event} hook has no text; the result stays as it was."]


_DECISIONS: Mapping[str, Word] = {
    "approve": "allow",
    "allow": "allow",
    "block": "deny",
    "deny": "deny",
    "ask": "ask",
    "defer": "ask",  # a person decides later: at the keyboard now, and headless nobody can
}


def _text(data: bytes) -> str:
    return _short(data.decode("utf-8", "replace"))


def _short(text: str) -> str:
    text = clean(text[: _MOST_CHARS * 2]).strip()
    return text if len(text) <= _MOST_CHARS else f"{text[:_MOST_CHARS]}… (cut)"
