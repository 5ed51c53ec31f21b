"""Streamed pieces of a response, and their assembly into a message."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from wolo.messages.call_arguments import Unreadable, read_arguments
from wolo.messages.message import RESPONSE_ID, RESPONSE_MODEL, FinishReason, Message, Producer, Usage
from wolo.messages.parts import IN_FENCE, AnyPart, Blob, Outcome, TextPart, ThinkingPart, ToolPart, new_id
from wolo.messages.unicode import is_whole, whole


class TextDelta(Struct, frozen=True):
    text: str


class TextMark(Struct, frozen=True, omit_defaults=True):
    """Wire data for the current text part; creates an empty part if there is none."""

    item_id: str = ""
    phase: Literal["", "commentary", "final_answer"] = ""
    blobs: tuple[Blob, ...] = ()


class ThinkingDelta(Struct, frozen=True):
    text: str
    field: str = "reasoning_content"
    blobs: tuple[Blob, ...] = ()
    takes_text: bool = False
    """All text so far was thinking: its closing tag has just arrived."""
    item_id: str = ""


class BreakDelta(Struct, frozen=True):
    """End the current part, even if the next one has the same kind."""


class CallDelta(Struct, frozen=True, omit_defaults=True):
    """A fragment of a tool call; `slot` identifies the call within this response.

    `arguments` fragments are concatenated and parsed once at the end of the stream.
    """

    slot: int
    call_id: str = ""
    tool: str = ""
    arguments: str = ""
    item_id: str = ""
    blobs: tuple[Blob, ...] = ()
    problem: str = ""
    """Reason why the call cannot run, for the model, if the format could not read it."""
    replaces: bool = False
    """The arguments are complete and replace earlier fragments."""
    in_fence: bool = False
    """Written in a code fence, so it may be an example: requires the user's approval."""
    part_id: str = ""
    """Id of the call's part, set with `Assembler.named`."""


class UsageDelta(Struct, frozen=True):
    """Token counts so far; the last delta wins. Cost is added later."""

    usage: Usage


class FinishDelta(Struct, frozen=True):
    """The provider reported a complete response. Without it the stream ended early."""

    reason: FinishReason
    raw: str = ""
    """The provider's own finish reason."""
    explanation: str = ""
    """The provider's explanation of a refusal."""
    response_id: str = ""
    """The provider's id of the response; empty: it has none."""
    model: str = ""
    """The model that answered, as the provider names it; empty: it names none."""


Delta = TextDelta | TextMark | ThinkingDelta | BreakDelta | CallDelta | UsageDelta | FinishDelta


def size_of(deltas: Iterable[Delta]) -> int:
    """Bytes of text, reasoning and calls."""
    size = 0
    for delta in deltas:
        match delta:
            case TextDelta(text):
                size += _bytes(text)
            case ThinkingDelta(text, blobs=blobs):
                size += _bytes(text) + sum(len(blob.data) for blob in blobs)
            case CallDelta():
                size += _bytes(delta.call_id) + _bytes(delta.tool) + _bytes(delta.arguments)
                size += sum(len(blob.data) for blob in delta.blobs)
            case TextMark(blobs=blobs):
                size += sum(len(blob.data) for blob in blobs)
    return size


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def join(deltas: Sequence[Delta]) -> list[Delta]:
    """The same deltas, with neighbouring fragments of one text, reasoning or call as one."""
    if len(deltas) < 2:
        return list(deltas)
    merged: list[Delta] = []
    fragments: list[str] = []
    """What continues the last merged delta."""
    for delta in deltas:
        last = merged[-1] if merged else None
        match delta:
            case TextDelta(text) if type(last) is TextDelta:
                fragments.append(text)
            case ThinkingDelta(text) if type(last) is ThinkingDelta and delta == ThinkingDelta(text, last.field):
                fragments.append(text)
            case CallDelta() if type(last) is CallDelta and delta == CallDelta(last.slot, arguments=delta.arguments):
                fragments.append(delta.arguments)
            case _:
                _extend(merged, fragments)
                merged.append(delta)
    _extend(merged, fragments)
    return merged


def _extend(merged: list[Delta], fragments: list[str]) -> None:
    if fragments:
        last = merged[-1]
        if isinstance(last, CallDelta):
            merged[-1] = replace(last, arguments=last.arguments + "".join(fragments))
        elif isinstance(last, TextDelta | ThinkingDelta):
            merged[-1] = replace(last, text=last.text + "".join(fragments))
        fragments.clear()


NEVER_STARTED = "The answer ended before this call was complete. It was never started and had no effects."
REFUSED = "The provider's content filter stopped the answer. This call was never started and had no effects."
CUT_OFF = "The answer was cut off at the output limit{limit}, so this call was not run. Split the work into smaller steps."


class Assembler:
    """Assembles the deltas of one attempt in order; `message` can be called at any time."""

    def __init__(self) -> None:
        self.usage: Usage | None = None
        self.finish: FinishDelta | None = None
        """None until the provider reports completion."""
        self._pieces: list[_StreamedText | _StreamedCall] = []
        self._calls: dict[int, _StreamedCall] = {}
        self._text: list[str] | None = None
        """Fragments of the current part if it is text."""
        self._is_broken = False
        """The last piece is complete; the next delta starts a new one."""

    def add(self, deltas: Iterable[Delta]) -> None:
        for delta in deltas:
            match delta:
                case TextDelta():
                    (self._begin_text() if self._text is None else self._text).append(delta.text)
                case ThinkingDelta():
                    self._add_thinking(delta)
                case TextMark():
                    if self._text is None:
                        self._begin_text()
                    piece = self._pieces[-1]
                    assert isinstance(piece, _StreamedText)  # the current piece is text
                    piece.item_id = delta.item_id or piece.item_id
                    piece.phase = delta.phase or piece.phase
                    piece.blobs.extend(delta.blobs)
                case BreakDelta():
                    self._text = None
                    self._is_broken = True
                case CallDelta():
                    if (call := self._calls.get(delta.slot)) is None:
                        call = self._calls[delta.slot] = _StreamedCall()
                        self._pieces.append(call)
                        self._text = None
                    call.call_id = delta.call_id or call.call_id
                    call.tool = delta.tool or call.tool
                    call.item_id = delta.item_id or call.item_id
                    if delta.replaces:
                        call.fragments.clear()
                    call.fragments.append(delta.arguments)
                    call.blobs.extend(delta.blobs)
                    call.problem = delta.problem or call.problem
                    call.in_fence = call.in_fence or delta.in_fence
                case UsageDelta():
                    self.usage = delta.usage
                case FinishDelta():
                    self.finish = delta

    def with_part_ids(self, deltas: Sequence[Delta]) -> Sequence[Delta]:
        """The same deltas, which were added before, with the ids of the parts that their calls become."""
        if not self._calls:
            return deltas
        return [replace(each, part_id=self._calls[each.slot].id) if isinstance(each, CallDelta) else each for each in deltas]

    def message(self, *, message_id: str = "", producer: Producer | None = None) -> Message:
        """The response so far; `finished` once the provider reported completion.

        Calls are pending, except those that must not run and have already failed: unreadable arguments (`invalid`), output limit
        reached (`cut_off`), response refused or incomplete (`never_started`).
        """
        calls = self._tool_parts()
        parts: list[AnyPart | None] = [
            calls.get(piece) if isinstance(piece, _StreamedCall) else piece.part() for piece in self._pieces
        ]
        facts: dict[str, Any] = {}
        if self.finish is not None:  # the model only where it is not the one that was asked
            is_other = producer is not None and self.finish.model not in ("", producer.model)
            facts = {RESPONSE_ID: self.finish.response_id, RESPONSE_MODEL: self.finish.model if is_other else ""}
        return Message(
            id=message_id or new_id("msg"),
            role="assistant",
            parts=[part for part in parts if part is not None],
            finished=self.finish is not None,
            finish_reason=self.finish.reason if self.finish else "",
            usage=self.usage,
            producer=producer,
            error=self.finish.explanation if self.finish else "",
            metadata={name: value for name, value in facts.items() if value},
        )

    def _begin_text(self) -> list[str]:
        piece = _StreamedText()
        self._pieces.append(piece)
        self._text = piece.fragments
        self._is_broken = False
        return piece.fragments

    def _add_thinking(self, delta: ThinkingDelta) -> None:
        self._text = None
        if delta.takes_text:
            for at, piece in enumerate(self._pieces):
                if isinstance(piece, _StreamedText) and not piece.field:
                    self._pieces[at] = thinking = _StreamedText(delta.field)
                    thinking.fragments = piece.fragments
        last = self._pieces[-1] if self._pieces and not self._is_broken else None
        self._is_broken = False
        if not isinstance(last, _StreamedText) or last.field != delta.field:
            last = _StreamedText(delta.field)
            self._pieces.append(last)
        last.fragments.append(delta.text)
        last.blobs.extend(delta.blobs)
        last.item_id = delta.item_id or last.item_id

    def _tool_parts(self) -> dict[_StreamedCall, ToolPart]:
        taken: set[str] = set()
        seen: set[tuple[str, str, str]] = set()
        parts: dict[_StreamedCall, ToolPart] = {}
        for call in self._calls.values():
            same = (call.call_id, call.tool, "".join(call.fragments))
            if call.call_id and same in seen:
                continue
            seen.add(same)
            call_id = wire_id = whole(call.call_id)
            number = 2
            while call_id and call_id in taken:  # empty ids stay empty; the part's own id is used then
                call_id = f"{wire_id}_{number}"
                number += 1
            taken.add(call_id)
            part = replace(call.part(), call_id=call_id)
            # Calls of an incomplete response fail for that reason, not for invalid arguments.
            if self.finish is None:
                part = _fail(part, "never_started", NEVER_STARTED)
            elif self.finish.reason == "length":
                limit = f" after {self.usage.output_tokens} tokens" if self.usage and self.usage.output_tokens else ""
                part = _fail(part, "cut_off", CUT_OFF.format(limit=limit))
            elif self.finish.reason == "refused":
                part = _fail(part, "never_started", REFUSED)
            parts[call] = part
        return parts


class _StreamedText:
    """Reasoning with the field of this name; without one, text."""

    def __init__(self, field: str = "") -> None:
        self.field = field
        self.fragments: list[str] = []
        self.item_id = ""
        self.phase: Literal["", "commentary", "final_answer"] = ""
        self.blobs: list[Blob] = []

    def part(self) -> TextPart | ThinkingPart | None:
        """None for empty text without data to replay."""
        text, blobs, item_id = whole("".join(self.fragments)), _whole_ones(self.blobs), whole(self.item_id)
        if not text and not blobs:
            return None
        if self.field:
            return ThinkingPart(text=text, field=self.field, item_id=item_id, blobs=blobs)
        return TextPart(text=text, item_id=item_id, phase=self.phase, blobs=blobs)


class _StreamedCall:
    def __init__(self) -> None:
        self.id = new_id("call")
        self.call_id = ""
        self.tool = ""
        self.item_id = ""
        self.fragments: list[str] = []
        self.blobs: list[Blob] = []
        self.problem = ""
        self.in_fence = False

    def part(self) -> ToolPart:
        raw = "".join(self.fragments)
        known: dict[str, Any] = {"id": self.id, "tool": whole(self.tool), "raw_input": whole(raw)}
        if self.in_fence:
            known["metadata"] = {IN_FENCE: True}
        part = ToolPart(**known, item_id=whole(self.item_id), blobs=_whole_ones(self.blobs))
        if self.problem:
            return _fail(part, "invalid", self.problem)
        try:
            return replace(part, input=read_arguments(raw))
        except Unreadable as reason:
            told = f"The arguments of {part.tool or 'a call without a tool name'} are {reason}."
            return _fail(part, "invalid", f"{told} Nothing was run. Send the call again with one complete JSON object.")


def _whole_ones(blobs: Iterable[Blob]) -> tuple[Blob, ...]:
    """Drop blobs with lone surrogates: they are damaged, and JSON cannot carry them."""
    return tuple(blob for blob in blobs if is_whole(blob.data))


def _fail(part: ToolPart, outcome: Outcome, output: str) -> ToolPart:
    return replace(part, status="failed", outcome=outcome, output=output)
