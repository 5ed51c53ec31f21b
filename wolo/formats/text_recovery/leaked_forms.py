"""The forms in which model families write calls: how each opens, what it holds, and what may close it.

A form opens with a row of steps. They are matched one by one, so that of text which is still streaming it can be said whether it
may yet become that form.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Literal, NamedTuple

NEVER, NOT_YET = -1, -2


class Maybe(NamedTuple):
    """A text that may be missing."""

    text: str


class Before(NamedTuple):
    """One of these texts follows; it is not taken."""

    texts: tuple[str, ...]


class Run(NamedTuple):
    """As many characters as match."""

    pattern: re.Pattern[str]


class Values(NamedTuple):
    """Arguments in markup, up to `end`. An end may also stand in a value: it counts behind the last one only."""

    end: str
    body: re.Pattern[str]
    """Values in its first group, and the end."""
    value: re.Pattern[str]
    mark: re.Pattern[str]
    """Begins a value. One that stands in another was not ended."""


class _Tool:
    """The name of a tool that is offered."""


Step = str | Maybe | Before | Run | _Tool
TOOL = _Tool()
SPACE = Run(re.compile(r"\s{0,1000}"))  # no run is without end: a model that has lost itself writes blanks, or digits, for ever

Content = Literal["call", "arguments"] | Values
"""A JSON object with name and arguments, one with the arguments of the tool that was named, or markup."""


class Form(NamedTuple):
    steps: tuple[Step, ...]
    content: Content = "arguments"
    closers: tuple[str, ...] = ()


class Opening(NamedTuple):
    """Where a form was found."""

    form: Form
    tool: str
    """Empty where the content says it."""
    end: int


_NAME = re.compile(r"[\w.-]{0,200}")


def _between(open_value: str, close_value: str, again: str, end: str, mark: str) -> Values:
    """Values that stand between two marks; behind one comes the next, or the end. `mark` tells one however it is spelled."""
    body = re.compile(rf"(|.*?{close_value})\s*{end}", re.DOTALL)
    value = re.compile(rf"\s*{open_value}(.*?){close_value}(?=\s*(?:{again}|{end}))", re.DOTALL)
    return Values(end.replace("\\", ""), body, value, re.compile(mark, re.IGNORECASE))


_TAG, _END_TAG = "<tool_call>", "</tool_call>"
_QWEN = _between(r"<parameter=([^>\s]+)>", "</parameter>", "<parameter=", "</function>", r"<\s*parameter\s*=")
_GLM = _between(r"<arg_key>(.*?)</arg_key>\s*<arg_value>", "</arg_value>", "<arg_key>", _END_TAG, r"<\s*arg_(?:key|value)\s*>")


def _claude(space: str) -> Form:
    mark = f"{space}parameter"
    values = _between(
        rf'<{mark}\s+name="([^"]+)"[^>]*>', f"</{mark}>", rf"<{mark}\s", f"</{space}invoke>", r"<\s*(?:antml:)?parameter\s"
    )
    opens = (Maybe(f"<{space}function_calls>"), SPACE, f"<{space}invoke", SPACE, 'name="', TOOL, '"', SPACE, ">")
    return Form(opens, values, (f"</{space}function_calls>",))


_KIMI_CLOSERS = ("<|tool_call_end|>", "<|tool_calls_section_end|>")
_KIMI_CALL: tuple[Step, ...] = (
    *("<|tool_call_begin|>", SPACE, Maybe("functions."), TOOL, Run(re.compile(r"[:\d]{0,40}")), SPACE),
    *("<|tool_call_argument_begin|>", SPACE),
)
_HARMONY_CLOSERS = ("<|call|>", "<|end|>")
_HARMONY_CALL: tuple[Step, ...] = ("to=functions.", TOOL, Run(re.compile(r"[^{}]{0,120}")))
_CHANNEL: tuple[Step, ...] = (Maybe("commentary"), Maybe("analysis"), Maybe("final"), SPACE)

FORMS: tuple[Form, ...] = (
    Form((_TAG, SPACE), "call", (_END_TAG,)),  # Hermes, Qwen
    Form((Maybe(_TAG), SPACE, "<function=", TOOL, SPACE, ">"), _QWEN, (_END_TAG,)),
    Form((_TAG, SPACE, TOOL, SPACE, Before(("<arg_key>", _END_TAG))), _GLM, (_END_TAG,)),
    *map(_claude, ("", "antml:")),
    Form(("[TOOL_CALLS]", SPACE, Maybe("["), SPACE), "call", (",", "]", "</s>")),  # Mistral
    Form(("[TOOL_CALLS]", SPACE, TOOL, Maybe("[CALL_ID]"), Run(_NAME), Maybe("[ARGS]"), SPACE), closers=("</s>",)),
    Form(("<|tool_calls_section_begin|>", SPACE, *_KIMI_CALL), closers=_KIMI_CLOSERS),
    Form(_KIMI_CALL, closers=_KIMI_CLOSERS),
    Form(("<|start|>assistant", SPACE, Maybe("<|channel|>"), *_CHANNEL, *_HARMONY_CALL), closers=_HARMONY_CLOSERS),
    Form(("<|channel|>", *_CHANNEL, *_HARMONY_CALL), closers=_HARMONY_CLOSERS),
    Form(_HARMONY_CALL, closers=_HARMONY_CLOSERS),
    Form(("<|python_tag|>", SPACE), "call", (";", "<|eom_id|>", "<|eot_id|>")),  # Llama
)
END_MARKS = ("</s>", "<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|endoftext|>", "<end_of_turn>")
"""A server that leaves calls in the text may leave the mark behind them that ends an answer, whatever the form."""
BARE = Form((), "call", (_END_TAG,))
"""A JSON object without anything around it."""

MAY_OPEN, MAY_OPEN_AT_END = "{`~<[=", "to"
"""Text without any of these letters, and none of those at its end, holds the beginning of no form."""
CANDIDATE = re.compile(r'\{(?=\s{0,1000}(?:"|\Z))|`(?=``|`?\Z)|~(?=~~|~?\Z)|<(?=[tfia|]|\Z)|\[(?=T|\Z)|t(?=o=|o?\Z)')


def find_form(text: str, at: int, offered: Collection[str]) -> Opening | int:
    """What opens here and stands right before its content; NEVER, or NOT_YET while more text must tell."""
    answer = NEVER
    for found in _tried(text, at, offered):
        if isinstance(found, Opening):
            return found
        if found == NOT_YET:
            answer = NOT_YET
    return answer


def _tried(text: str, at: int, offered: Collection[str]) -> Iterator[Opening | int]:
    for form in FORMS:
        found = _walk(form, text, at, offered)
        if isinstance(found, int) or isinstance(form.content, Values) or text.startswith("{", found.end):
            yield found


def _walk(form: Form, text: str, at: int, offered: Collection[str]) -> Opening | int:
    tool = ""
    for step in form.steps:
        if isinstance(step, Run | _Tool):
            found = (step.pattern if isinstance(step, Run) else _NAME).match(text, at)
            assert found is not None  # it may be empty
            at = found.end()
            if isinstance(step, _Tool):
                tool = found[0]
                if not (tool in offered if at < len(text) else any(name.startswith(tool) for name in offered)):
                    return NEVER
            if at == len(text):
                return NOT_YET
            continue
        texts = step.texts if isinstance(step, Before) else (step.text if isinstance(step, Maybe) else step,)
        taken = next((each for each in texts if text.startswith(each, at)), None)
        if taken is None and any(each.startswith(text[at:]) for each in texts):
            return NOT_YET
        if taken is None and not isinstance(step, Maybe):
            return NEVER
        if taken is not None and not isinstance(step, Before):
            at += len(taken)
    return Opening(form, tool, at)
