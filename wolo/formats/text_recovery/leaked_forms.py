"""The forms in which model families write tool calls as text, and how their arguments are read."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Literal, NamedTuple

NEVER, NOT_YET = -1, -2


class Maybe(NamedTuple):
    """Optional text."""

    text: str


class Before(NamedTuple):
    """Lookahead for one of these texts."""

    texts: tuple[str, ...]


class CharacterRun(NamedTuple):
    """Characters matching a pattern."""

    pattern: re.Pattern[str]


class Values(NamedTuple):
    """Arguments in markup up to `end`, which may also occur in a value: only the last one counts."""

    end: str
    body: re.Pattern[str]
    """Values in group 1, then the end."""
    value: re.Pattern[str]
    mark: re.Pattern[str]
    """Start of a value. Inside another value it means that one was not closed."""


class _Tool:
    """The name of an offered tool."""


Step = str | Maybe | Before | CharacterRun | _Tool
TOOL = _Tool()
SPACE = CharacterRun(re.compile(r"\s{0,1000}"))  # bounded, because degenerate output repeats blanks or digits endlessly

Content = Literal["call", "arguments"] | Values
"""A JSON object with name and arguments, a JSON object with the named tool's arguments, or markup."""


class CallForm(NamedTuple):
    steps: tuple[Step, ...]
    content: Content = "arguments"
    closers: tuple[str, ...] = ()


class Opening(NamedTuple):
    """A form found in the text."""

    form: CallForm
    tool: str
    """Empty if the content names the tool."""
    end: int


_NAME = re.compile(r"[\w.-]{0,200}")


def _between(open_value: str, close_value: str, again: str, end: str, mark: str) -> Values:
    """Values between two marks, followed by the next value or the end. `mark` matches the opening in any spelling."""
    body = re.compile(rf"(|.*?{close_value})\s*{end}", re.DOTALL)
    value = re.compile(rf"\s*{open_value}(.*?){close_value}(?=\s*(?:{again}|{end}))", re.DOTALL)
    return Values(end.replace("\\", ""), body, value, re.compile(mark, re.IGNORECASE))


_TAG, _END_TAG = "<tool_call>", "</tool_call>"
_QWEN = _between(r"<parameter=([^>\s]+)>", "</parameter>", "<parameter=", "</function>", r"<\s*parameter\s*=")
_GLM = _between(r"<arg_key>(.*?)</arg_key>\s*<arg_value>", "</arg_value>", "<arg_key>", _END_TAG, r"<\s*arg_(?:key|value)\s*>")


def _claude(space: str) -> CallForm:
    mark = f"{space}parameter"
    values = _between(
        rf'<{mark}\s+name="([^"]+)"[^>]*>', f"</{mark}>", rf"<{mark}\s", f"</{space}invoke>", r"<\s*(?:antml:)?parameter\s"
    )
    opens = (Maybe(f"<{space}function_calls>"), SPACE, f"<{space}invoke", SPACE, 'name="', TOOL, '"', SPACE, ">")
    return CallForm(opens, values, (f"</{space}function_calls>",))


_KIMI_CLOSERS = ("<|tool_call_end|>", "<|tool_calls_section_end|>")
_KIMI_CALL: tuple[Step, ...] = (
    *("<|tool_call_begin|>", SPACE, Maybe("functions."), TOOL, CharacterRun(re.compile(r"[:\d]{0,40}")), SPACE),
    *("<|tool_call_argument_begin|>", SPACE),
)
_HARMONY_CLOSERS = ("<|call|>", "<|end|>")
_HARMONY_CALL: tuple[Step, ...] = ("to=functions.", TOOL, CharacterRun(re.compile(r"[^{}]{0,120}")))
_CHANNEL: tuple[Step, ...] = (Maybe("commentary"), Maybe("analysis"), Maybe("final"), SPACE)

FORMS: tuple[CallForm, ...] = (
    CallForm((_TAG, SPACE), "call", (_END_TAG,)),  # Hermes, Qwen
    CallForm((Maybe(_TAG), SPACE, "<function=", TOOL, SPACE, ">"), _QWEN, (_END_TAG,)),
    CallForm((_TAG, SPACE, TOOL, SPACE, Before(("<arg_key>", _END_TAG))), _GLM, (_END_TAG,)),
    *map(_claude, ("", "antml:")),
    CallForm(("[TOOL_CALLS]", SPACE, Maybe("["), SPACE), "call", (",", "]", "</s>")),  # Mistral
    CallForm(("[TOOL_CALLS]", SPACE, TOOL, Maybe("[CALL_ID]"), CharacterRun(_NAME), Maybe("[ARGS]"), SPACE), closers=("</s>",)),
    CallForm(("<|tool_calls_section_begin|>", SPACE, *_KIMI_CALL), closers=_KIMI_CLOSERS),
    CallForm(_KIMI_CALL, closers=_KIMI_CLOSERS),
    CallForm(("<|start|>assistant", SPACE, Maybe("<|channel|>"), *_CHANNEL, *_HARMONY_CALL), closers=_HARMONY_CLOSERS),
    CallForm(("<|channel|>", *_CHANNEL, *_HARMONY_CALL), closers=_HARMONY_CLOSERS),
    CallForm(_HARMONY_CALL, closers=_HARMONY_CLOSERS),
    CallForm(("<|python_tag|>", SPACE), "call", (";", "<|eom_id|>", "<|eot_id|>")),  # Llama
)
END_MARKS = ("</s>", "<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|endoftext|>", "<end_of_turn>")
"""End-of-turn marks that may follow a call of any form."""
BARE = CallForm((), "call", (_END_TAG,))
"""A JSON object without markup."""

CANDIDATE = re.compile(r'\{(?=\s{0,1000}(?:"|\Z))|`(?=``|`?\Z)|~(?=~~|~?\Z)|<(?=[tfia|]|\Z)|\[(?=T|\Z)|t(?=o=|o?\Z)')


def find_form(text: str, at: int, offered: Collection[str]) -> Opening | int:
    """Opening directly before its content; NEVER, or NOT_YET if more text is needed."""
    answer = NEVER
    for form in FORMS:
        opening = _walk(form, text, at, offered)
        if isinstance(opening, int):
            answer = NOT_YET if opening == NOT_YET else answer
        elif isinstance(form.content, Values) or text.startswith("{", opening.end):
            return opening
    return answer


def _walk(form: CallForm, text: str, at: int, offered: Collection[str]) -> Opening | int:
    tool = ""
    for step in form.steps:
        if isinstance(step, CharacterRun | _Tool):
            found = (step.pattern if isinstance(step, CharacterRun) else _NAME).match(text, at)
            assert found is not None  # may match the empty string
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


SWALLOWED = (
    "The value of `{key}` holds the mark of another argument: the mark that ends it seems to be missing. Nothing was run. "
    "Send the call again with every argument between its own marks."
)
TWICE = "The argument `{key}` is given twice. Nothing was run. Send the call again with each argument once."
MOST_ENDS = 200
"""More end marks are not a call: each costs a scan of the whole text."""
MOST_DEPTH = 20
"""Limit for recursive schemas."""
_SIGNS = {"properties": "object", "additionalProperties": "object", "items": "array"}
"""Keywords that imply a type."""
_PYTHON = {"None": None, "True": True, "False": False}


class Markup:
    """Arguments being read, up to their end mark."""

    def __init__(self, values: Values, schema: Mapping[str, Any]) -> None:
        """`schema` describes the tool's arguments."""
        self.arguments: str | None = None
        """JSON, once complete."""
        self.problem = ""
        """Reason why the arguments are unusable, for the model."""
        self._values, self._schema = values, schema
        self._fragments: list[str] = []
        self._ends = 0
        """Number of end marks read."""
        self._tail = ""
        """End of the text read, since an end mark may be split."""

    @property
    def text(self) -> str:
        return "".join(self._fragments)

    def take(self, text: str) -> str | None:
        """Return the text after the call, or None while it continues. No `arguments`: it was not a call."""
        self._fragments.append(text)
        end = self._values.end
        fresh = self._tail + text
        self._tail = fresh[-len(end) + 1 :]
        if end not in fresh:
            return None
        self._ends += fresh.count(end)
        if self._ends > MOST_ENDS:
            return ""
        everything = self.text
        body = self._values.body.match(everything)
        if body is None or (arguments := self._read(everything, body.end(1))) is None:
            return None
        self.arguments = json.dumps(arguments, ensure_ascii=False)
        self._fragments = [body[0]]
        return everything[body.end() :]

    def _read(self, text: str, end: int) -> dict[str, Any] | None:
        properties = self._schema.get("properties", {})
        arguments: dict[str, Any] = {}
        self.problem = ""
        at = 0
        while value := self._values.value.match(text, at):
            key, value_text = value[1].strip(), value[2].removeprefix("\n").removesuffix("\n")
            if self._values.mark.search(value[1] + "\n" + value[2]):
                self.problem = SWALLOWED.format(key=self._values.mark.split(key, maxsplit=1)[0].strip())
            elif key in arguments:
                self.problem = self.problem or TWICE.format(key=key)
            kinds = frozenset(_named_kinds(properties.get(key), self._schema, MOST_DEPTH))
            arguments[key] = _convert(value_text, kinds | {"integer"} if "number" in kinds else kinds)
            at = value.end()
        return arguments if not text[at:end].strip() else None


def _convert(text: str, kinds: frozenset[str]) -> Any:
    """Convert text to the type in the schema. Values that may only be strings stay strings."""
    if not kinds - {"string"}:
        return text
    if text.strip() in _PYTHON and "string" not in kinds:
        return _PYTHON[text.strip()]
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if isinstance(value, float) and not math.isfinite(value):
        return text
    if isinstance(value, float) and value.is_integer() and "integer" in kinds and "number" not in kinds:
        value = int(value)
    return value if _kind_of(value) in kinds or "string" not in kinds else text


def _kind_of(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case _:
            return "array" if isinstance(value, list) else "object"


def _named_kinds(schema: Any, root: Mapping[str, Any], depth: int) -> Iterator[str]:
    """Possible types by all branches of the schema; none when unspecified."""
    if not isinstance(schema, Mapping) or not depth:
        return
    named = schema.get("type", ())
    listed = [named] if isinstance(named, str) else _as_list(named)
    yield from (each for each in listed if isinstance(each, str))
    constants = [*_as_list(schema.get("enum")), *([schema["const"]] if "const" in schema else [])]
    if not named:
        yield from map(_kind_of, constants)
        yield from (kind for word, kind in _SIGNS.items() if word in schema)
    if schema.get("nullable") is True:
        yield "null"
    for word in ("anyOf", "oneOf", "allOf"):
        for branch in _as_list(schema.get(word)):
            yield from _named_kinds(branch, root, depth - 1)
    if isinstance(reference := schema.get("$ref"), str):
        target: Any = root
        for name in reference.removeprefix("#/").split("/"):
            target = target.get(name.replace("~1", "/").replace("~0", "~")) if isinstance(target, Mapping) else None
        yield from _named_kinds(target, root, depth - 1)


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else []
