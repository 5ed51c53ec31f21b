"""Encode a conversation without native tools: calls, results and tool descriptions become text."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from msgspec.structs import replace

from wolo.formats import format, tolerant_json
from wolo.formats.encoding import encoder, wire_forms
from wolo.formats.xml_tools.call_blocks import ERROR, OPEN, RESULT, CallBlock, format_call, split_name
from wolo.formats.xml_tools.decode import BRACKETS, in_brackets
from wolo.messages import call_arguments, unicode
from wolo.messages.message import Message, Producer, common_prefix_length
from wolo.messages.parts import AnyPart, Blob, TextPart, ThinkingPart, ToolPart, blob_of

BLOCK = "xml.block"
"""Blob kind for the text a model wrote around the arguments of a call."""
QUOTED_OPEN = "&lt;tool>"
"""Escaped tag, so that quoted text does not look like a call."""


class ConvertedMessage(NamedTuple):
    """A message and what it was converted to."""

    message: Message
    became: tuple[Message, ...]
    call_ids: tuple[str, ...]


class PlainHistory:
    """Caches conversions while the history only grows."""

    def __init__(self) -> None:
        self._producer: Producer | None = None
        self._kept: list[ConvertedMessage] = []
        self._seen: set[str] = set()

    def of(self, messages: Sequence[Message], producer: Producer) -> tuple[Message, ...]:
        if producer != self._producer:
            self._producer, self._kept, self._seen = producer, [], set()
        keep = common_prefix_length(tuple(kept.message for kept in self._kept), messages)
        while len(self._kept) > keep:
            self._seen.difference_update(self._kept.pop().call_ids)
        for message in messages[keep:]:
            calls = message.calls if message.role == "assistant" else ()
            call_ids = tuple(call.id for call in calls if call.id not in self._seen)
            visible = encoder.visible_message(message, self._seen)
            became = tuple(_plain(visible, producer)) if visible is not None else ()
            self._kept.append(ConvertedMessage(message, became, call_ids))
        return tuple(each for kept in self._kept for each in kept.became)


def raw_blobs(written: CallBlock) -> tuple[Blob, ...]:
    """The original text around the arguments, saved so that the call is replayed as written."""
    if written.begin < 0:
        return (Blob(BLOCK, json.dumps([written.raw])),)
    before, after = written.raw[: written.begin], written.raw[written.begin + len(written.arguments) :]
    return (Blob(BLOCK, json.dumps([before, after])),)


def _plain(message: Message, producer: Producer) -> Iterator[Message]:
    if message.role != "assistant":  # later system messages become user messages
        quoted = (replace(part, text=_quote(part.text)) if isinstance(part, TextPart) else part for part in message.parts)
        is_quoted = any(isinstance(part, TextPart) and OPEN in part.text for part in message.parts)
        message = replace(message, role="user") if message.role == "system" else message
        yield replace(message, parts=tuple(quoted)) if is_quoted else message
        return
    calls = message.calls
    if not calls and not any(_is_bracketed(part, message, producer) for part in message.parts):
        yield message
        return
    is_own = message.producer == producer
    text, others = "", []
    for part in message.parts:
        if isinstance(part, TextPart):
            text += part.text
        elif isinstance(part, ToolPart):
            raw = _raw(part) if is_own else ""
            text = text + raw if raw else f"{_on_new_line(text)}{format_call(part.tool, wire_forms.arguments_text(part))}\n"
        elif _is_bracketed(part, message, producer) and isinstance(part, ThinkingPart):
            text = f"{_on_new_line(text)}{in_brackets(part.text)}"
        else:
            others.append(part)
    yield replace(message, parts=(*others, TextPart(text=text)))
    if calls:
        names = (" ".join(split_name(call.tool)[1].split()) or "(no name)" for call in calls)
        results = "\n\n".join(f"{RESULT}{name}\n{_result(call)}" for name, call in zip(names, calls, strict=True))
        media = tuple(part for call in calls for part in call.output_parts)
        parts = (TextPart(text=_quote(results)), *media)
        yield Message(id=f"{message.id}_results", role="user", parts=parts, timestamp=message.timestamp, finished=True)


def _quote(text: str) -> str:
    return text.replace(OPEN, QUOTED_OPEN)


def _is_bracketed(part: AnyPart, message: Message, producer: Producer) -> bool:
    return isinstance(part, ThinkingPart) and part.field == BRACKETS and message.producer == producer


def _on_new_line(text: str) -> str:
    return text if not text or text.endswith("\n") else f"{text}\n"


def _raw(call: ToolPart) -> str:
    """The call as originally written, if its arguments are unchanged."""
    if not (frame := tolerant_json.read_json(blob_of(call.blobs, BLOCK))):
        return ""
    arguments = tolerant_json.read_json(call.raw_input) if call.input else {}
    if arguments != call.input:
        with suppress(call_arguments.Unreadable):
            arguments = call_arguments.read_arguments(call.raw_input)
    return call.raw_input.join(frame) if arguments == call.input else ""


def _result(call: ToolPart) -> str:
    text = wire_forms.result_text(call)
    return text if wire_forms.outcome_of(call) == "ok" or text.startswith(ERROR) else f"{ERROR}{text}"


_EXAMPLE = format_call("NAME", "{…}")
_RULES = f"""\
# Calling tools

You call a tool by writing a block like this in your answer, on a line of its own:

{_EXAMPLE}

- `tool_name` and `arguments` must be there; `server_name` is the one given with the tool. `arguments` is a JSON object as the
  schema of the tool describes it.
- Between the tags stands exactly one JSON object: line breaks in texts are written as \\n, quotation marks as \\". Anything may
  stand in a text, tags included.
- You may write several blocks in one answer, and words around them. They are carried out in order once your answer has ended.
  Then their results come as a message of the user: `Tool: ` and the name, and below it what came of the call, or `Error: ` and
  why nothing did.
- Never write a result yourself: end your answer behind the last block and wait.
- A block in a code fence or between backticks is only shown and not carried out. So never put a fence around one that you mean.
- In what the user and the tools say `&lt;tool>` stands for the opening tag."""
_COMPLETION = (
    "- An answer without a block ends the task. So does `task_completion`, whose `result` is your last word to the user."
)
_LAST = "- An answer without a block ends the task."
_BRACKETS = "- Think in lines of their own between square brackets: [like this]. The user sees such lines as your thoughts."


def describe_tools(tools: Sequence[format.ToolSpec], *, brackets: bool) -> str:
    """Rules and tool descriptions; empty when there is nothing to describe."""
    rules = [_RULES, _COMPLETION if any(tool.name == "task_completion" for tool in tools) else _LAST] if tools else []
    rules += [_BRACKETS] if brackets else []
    return "\n\n".join(["\n".join(rules), *map(_describe, tools)])


def _describe(tool: format.ToolSpec) -> str:
    server, name = split_name(tool.name)
    schema = json.dumps(wire_forms.adapt_schema(tool.parameters), ensure_ascii=False)
    told = (f"## {name}", f"server_name: {server}", unicode.clean(tool.description).strip(), f"Schema of the arguments: {schema}")
    return "\n\n".join(text for text in told if text)
