"""What is added to a session while another process works on it, told from the store alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from msgspec import Struct

from wolo.messages.call_arguments import SOME, call_line
from wolo.messages.message import Message
from wolo.messages.parts import ToolPart
from wolo.sessions.entries import AnyEntry, BranchEntry, CompactionEntry, MessageEntry, PartialEntry, ResultsEntry

Kind = Literal["prompt", "text", "more", "thinking", "call", "result", "note"]


class Line(Struct, frozen=True):
    """One thing that happened; `more` goes on where the text before it ended."""

    kind: Kind
    text: str


class Follower:
    """Turns entries into lines. A text is told as it grows, and not again when it is whole."""

    def __init__(self) -> None:
        self._told = ""
        """The part of an answer that was told while it grew."""
        self._calls: dict[str, str] = {}
        """The outcome of each call that was told."""

    def lines(self, entries: Iterable[AnyEntry]) -> Iterator[Line]:
        for entry in entries:
            match entry:
                case PartialEntry(text=""):
                    yield from self._take_back()
                case PartialEntry(text=text):
                    yield Line("more" if self._told else "text", text)
                    self._told += text
                case MessageEntry(message=message):
                    yield from self._message(message)
                case ResultsEntry(parts=parts):
                    yield from self._results(parts)
                case BranchEntry():
                    yield Line("note", "The conversation goes on from an earlier place.")
                case CompactionEntry():
                    yield Line("note", "Old parts of the conversation are sent shortened from here on.")

    def _take_back(self) -> Iterator[Line]:
        if self._told:
            self._told = ""
            yield Line("note", "The answer broke off and is asked for again.")

    def _message(self, message: Message) -> Iterator[Line]:
        if message.role != "assistant":
            yield Line("prompt" if message.is_persons else "note", message.text.strip())
            return
        if message.reasoning_content.strip():
            yield Line("thinking", message.reasoning_content.strip())
        told, self._told = self._told, ""
        if told and message.text.startswith(told):
            if rest := message.text[len(told) :]:
                yield Line("more", rest)
        elif message.text.strip():
            yield Line("text", message.text.strip())
        for call in message.calls:
            yield Line("call", call_line(call, most_of_change=SOME))
        yield from self._results(message.calls)

    def _results(self, parts: Iterable[ToolPart]) -> Iterator[Line]:
        for part in parts:
            if part.outcome is not None and self._calls.get(part.id) != part.outcome:
                self._calls[part.id] = part.outcome
                yield Line("result", part.output if part.outcome == "ok" else f"{part.outcome}: {part.output}".rstrip(": "))
