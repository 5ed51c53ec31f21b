"""Interprets a hook's exit code, stderr and JSON output as one answer."""

from __future__ import annotations

import codecs
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from wolo.extensions.hooks.claude_results import replacement_output
from wolo.messages.call_arguments import Unreadable, check_usable
from wolo.messages.terminal_text import clean
from wolo.tools.tool_values import HookDecision, HookReply

_RANK: Mapping[HookDecision, int] = {"": 0, "allow": 1, "ask": 2, "deny": 3}

GUARD = "PreToolUse"
"""Its hooks check calls: without an understandable answer of theirs nothing is allowed."""
BLOCKS = 2
"""Exit code that denies."""
TEXT_IS_CONTEXT = frozenset(("SessionStart", "UserPromptSubmit", "UserPromptExpansion", "SubagentStart"))
"""For these events the output goes to the model, whether or not it is JSON."""
_AFTER_THE_CALL = frozenset(("PostToolUse", "PostToolUseFailure"))
WHEN_DONE = frozenset(("Stop", "SubagentStop"))
"""For these events the turn ends anyway."""
_MOST_CHARS = 16_000
NO_REASON = "No reason given."
RETRY = "You may try this call again."


NOTHING = HookReply()


class _Decision(Struct, frozen=True):
    behavior: str = ""
    message: str = ""
    interrupt: bool = False
    updatedInput: dict[str, Any] | None = None
    updatedPermissions: Any = None


class _Specific(Struct, frozen=True):
    permissionDecision: str | None = None
    permissionDecisionReason: str | None = None
    updatedInput: dict[str, Any] | None = None
    updatedToolOutput: Any = None
    updatedMCPToolOutput: Any = None
    additionalContext: str | None = None
    decision: dict[str, Any] | None = None
    retry: bool = False
    watchPaths: list[str] | None = None


class _HookOutput(Struct, frozen=True):
    proceed: bool | None = msgspec.field(default=None, name="continue")
    stopReason: str | None = None
    decision: str | None = None
    reason: str | None = None
    systemMessage: str | None = None
    additionalContext: str | None = None
    hookSpecificOutput: dict[str, Any] | None = None


_T = TypeVar("_T", bound=Struct)
_DECIDES = frozenset(("continue", "decision", "permissionDecision", "behavior", "hookSpecificOutput"))
"""A part of these names that cannot be understood may have been a denial."""


def read_answer(event: str, exit_code: int, stdout: bytes, stderr: bytes) -> HookReply | str:
    """The answer of a finished hook, or a text that describes what is wrong with it."""
    stdout = stdout.strip().removeprefix(codecs.BOM_UTF8)
    output, complained = _short(stdout.decode("utf-8", "replace")), _short(stderr.decode("utf-8", "replace"))
    if exit_code == BLOCKS:
        return HookReply(decision="deny", reason=complained or output or NO_REASON)
    if exit_code != 0:
        how = f"ended with status {exit_code}" if exit_code > 0 else f"was ended by signal {-exit_code}"
        return f"{how}: {complained or output}".rstrip(": ")
    if not output.startswith("{"):
        return HookReply(context=output) if event in TEXT_IS_CONTEXT else NOTHING
    try:
        answer = _reply(event, msgspec.json.decode(stdout, type=dict[str, Any]))
        check_usable(answer.updated_input, output)
        return answer
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError, Unreadable) as error:
        return f"printed JSON that cannot be understood: {clean(str(error))}"


def restrict(answer: HookReply) -> HookReply:
    """Removes what a hook may not loosen."""
    decision = "" if answer.decision == "allow" else answer.decision
    return replace(answer, decision=decision, updated_input=None, updated_output=None)


def combine(answers: Sequence[HookReply]) -> HookReply:
    """Deny beats ask beats allow. Of several changed arguments the last wins."""
    strictest: HookDecision = max((each.decision for each in answers), key=_RANK.__getitem__, default="")
    reasons = (each.reason for each in answers if each.decision == strictest and each.reason)
    changes = [each.updated_input for each in answers if each.updated_input is not None]
    outputs = [each.updated_output for each in answers if each.updated_output is not None]
    watched = [each.watch for each in answers if each.watch is not None]
    return HookReply(
        decision=strictest,
        reason="\n".join(dict.fromkeys(reasons)) if strictest else "",
        context="\n\n".join(dict.fromkeys(each.context for each in answers if each.context)),
        updated_input=changes[-1] if changes else None,
        updated_output=outputs[-1] if outputs else None,
        stops=any(each.stops for each in answers),
        stop_reason="\n".join(dict.fromkeys(each.stop_reason for each in answers if each.stop_reason)),
        watch=tuple(path for paths in watched for path in paths) if watched else None,
        notices=tuple(dict.fromkeys(notice for each in answers for notice in each.notices)),
    )


def when_late(answer: HookReply) -> HookReply:
    """The output of a hook that nothing waited for: it decides nothing, and the model reads what it says."""
    said = (answer.reason if answer.decision == "deny" else "", answer.context, *answer.notices)
    return HookReply(context="\n\n".join(dict.fromkeys(filter(None, said))), notices=answer.notices)


def _read_fields(table: Mapping[str, Any] | None, form: type[_T], unread: dict[str, Any]) -> _T:
    """Reads each field by itself: one that cannot be understood costs no other."""
    values: dict[str, Any] = {}
    for each in msgspec.structs.fields(form):
        if table is not None and each.encode_name in table:
            try:
                values[each.name] = msgspec.convert(table[each.encode_name], each.type)
            except msgspec.ValidationError:
                unread[each.encode_name] = table[each.encode_name]
    return form(**values)


def _reply(event: str, table: Mapping[str, Any]) -> HookReply:
    unread: dict[str, Any] = {}
    fields = _read_fields(table, _HookOutput, unread)
    specific = _read_fields(fields.hookSpecificOutput, _Specific, unread)
    decided = None if specific.decision is None else _read_fields(specific.decision, _Decision, unread)
    words = (("behavior", decided.behavior if decided else None), ("permissionDecision", specific.permissionDecision))
    # The first known word decides; unknown ones are collected
    known: list[HookDecision] = []
    for name, word in (*words, ("decision", fields.decision)):
        if word and word in _DECISIONS:
            known.append(_DECISIONS[word])
        elif word:
            unread[name] = word
    decision = known[0] if known else ""
    reason = specific.permissionDecisionReason or (decided.message if decided else "") or fields.reason or ""
    stops = fields.proceed is False or (decided is not None and decided.interrupt and decision == "deny")
    if fields.proceed is False:
        # `continue: false` must not make the model continue.
        decision, reason = ("", "") if event in WHEN_DONE else ("deny", fields.stopReason or reason)
    notices = [fields.systemMessage] if fields.systemMessage else []
    unclear = _short(", ".join(f"{name}: {json.dumps(value)}" for name, value in unread.items() if name in _DECIDES))
    if unread:
        parts = ", ".join(f"{name}: {json.dumps(value)}" for name, value in unread.items())
        notices.append(f"A {event} hook answered {parts}, which wolo does not understand.")
    decision, reason = _in_doubt(event, decision, reason, unclear)
    if decided is not None and decided.updatedPermissions:
        notices.append(f"A {event} hook wants to change permissions (updatedPermissions); no hook can.")
    output, complaint = _output(event, specific)
    context = specific.additionalContext or fields.additionalContext or ""
    if specific.retry and event == "PermissionDenied":
        context = "\n\n".join(filter(None, (RETRY, context)))
    changed = decided.updatedInput if decided and decided.updatedInput is not None else specific.updatedInput
    return HookReply(
        decision=decision,
        reason=_short(reason) or (NO_REASON if decision == "deny" else ""),
        context=_short(context),
        updated_input=changed,
        updated_output=output,
        stops=stops and event not in WHEN_DONE,
        stop_reason=_short(fields.stopReason or reason) if stops else "",
        watch=None if specific.watchPaths is None else tuple(map(Path, specific.watchPaths)),
        notices=tuple(map(_short, [*notices, *complaint])),
        unclear=unclear,
    )


def _in_doubt(event: str, decision: HookDecision, reason: str, unclear: str) -> tuple[HookDecision, str]:
    """A decision that cannot be understood allows nothing: the user is asked about the call."""
    if not unclear or decision in ("ask", "deny"):
        return decision, reason
    return (
        ("ask", f"A hook answered {unclear}, which wolo does not understand. {reason}".strip())
        if event == GUARD
        else ("", reason)
    )


def _output(event: str, specific: _Specific) -> tuple[str | None, list[str]]:
    value = specific.updatedMCPToolOutput if specific.updatedToolOutput is None else specific.updatedToolOutput
    if value is None or event not in _AFTER_THE_CALL:
        return None, []
    text = replacement_output(value)
    return text, [] if text is not None else [f"The updatedToolOutput of a {event} hook has no text; the result stays as it was."]


_DECISIONS: Mapping[str, HookDecision] = {
    "approve": "allow",
    "allow": "allow",
    "block": "deny",
    "deny": "deny",
    "ask": "ask",
    "defer": "ask",  # ask now; headless runs deny
}


def _short(text: str) -> str:
    text = clean(text[: _MOST_CHARS * 2]).strip()
    return text if len(text) <= _MOST_CHARS else f"{text[:_MOST_CHARS]}… (cut)"
