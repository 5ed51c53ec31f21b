"""The arguments and results of calls as they are sent: every call has exactly one result."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from wolo.formats.tolerant_json import read_json
from wolo.messages.parts import Outcome, ToolPart
from wolo.messages.unicode import clean, whole

OPENINGS: Mapping[Outcome, str] = {
    "denied_by_person": "The user denied this call. It was not run and had no effects.",
    "denied_by_rule": "A permission rule denied this call. It was not run and had no effects.",
    "interrupted": "This call was interrupted while it was running. It may have had effects; check before you repeat it.",
    "never_started": "The turn was interrupted before this call. It was never started and had no effects.",
    "cut_off": "The answer was cut off at the output limit, so this call was not run. Split the work into smaller steps.",
    "invalid": "The arguments of this call could not be read, so it was not run.",
    "error": "The call failed without an error message.",
}
"""Explanation for the model when the result gives none; each outcome has its own text."""

_SAYS_SO: Mapping[Outcome, str] = {
    "denied_by_person": "denied",
    "denied_by_rule": "denied",
    "interrupted": "interrupted",
    "never_started": "never started",
    "cut_off": "cut off",
}
_LOOKED_AT_CHARACTERS = 200
EMPTY = "(no output)"
BLANK = "(blank output)"


def result_text(part: ToolPart, notes: Iterable[str] = ()) -> str:
    """The result as the model reads it, with notes; never blank."""
    text = "\n".join([clean(_result_body(part)), *notes])
    return text if text.strip() else BLANK


def outcome_of(part: ToolPart) -> Outcome:
    """Calls still pending or running when sent belong to an aborted turn."""
    if part.status == "pending":
        return "never_started"
    if part.status == "running":
        return "interrupted"
    return part.outcome or ("error" if part.status == "failed" else "ok")


def _result_body(part: ToolPart) -> str:
    outcome = outcome_of(part)
    opening = OPENINGS.get(outcome)
    if opening is None:
        return part.output or EMPTY
    if not part.output:
        return opening
    word = _SAYS_SO.get(outcome)  # the output may state the outcome at its start or end; errors always do
    ends = f"{part.output[:_LOOKED_AT_CHARACTERS]}\n{part.output[-_LOOKED_AT_CHARACTERS:]}".lower()
    if word is None or word in ends:
        return part.output
    between = "Output until then:" if outcome == "interrupted" else "Details:"
    return f"{opening}\n{between}\n{part.output}"


def arguments_text(call: ToolPart) -> str:
    """The model's own text if it is JSON with the same meaning, otherwise the parsed arguments."""
    if call.raw_input and read_json(call.raw_input) == call.input:
        return call.raw_input
    return _dump_arguments(call.input) if call.input else "{}"


def arguments_object(call: ToolPart) -> dict[str, Any]:
    """Arguments as an object in the model's key order; always strict JSON."""
    arguments = read_json(arguments_text(call))
    return arguments if isinstance(arguments, dict) else {}


def _dump_arguments(arguments: Mapping[str, Any]) -> str:
    """JSON with blanks after commas and colons, as models write it."""
    try:
        return json.dumps(msgspec.json.decode(msgspec.json.encode(arguments)), ensure_ascii=False)
    except UnicodeEncodeError:  # lone surrogates, possible only in arguments no model wrote
        return whole(json.dumps(arguments, ensure_ascii=False, default=str))
