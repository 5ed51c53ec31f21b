"""Streamed pieces of an answer, and the assembler that turns them into a message."""

from __future__ import annotations

from msgspec import Struct

from wolo.messages.message import FinishReason, Usage
from wolo.messages.parts import Blob


class TextDelta(Struct, frozen=True):
    text: str


class ThinkingDelta(Struct, frozen=True):
    text: str
    field: str = "reasoning_content"
    blobs: tuple[Blob, ...] = ()


class CallDelta(Struct, frozen=True, omit_defaults=True):
    """A fragment of a tool call. `slot` names the call within this answer; the format decides what is one call.

    `arguments` fragments are concatenated as text and parsed once, when the stream has ended.
    """

    slot: int
    call_id: str = ""
    tool: str = ""
    arguments: str = ""
    item_id: str = ""
    blobs: tuple[Blob, ...] = ()


class UsageDelta(Struct, frozen=True):
    """The counts so far; the last one wins. Cost is filled in above."""

    usage: Usage


class FinishDelta(Struct, frozen=True):
    """The provider said the answer is complete. Without one the stream ended early."""

    reason: FinishReason
    raw: str = ""
    """The provider's own word."""


Delta = TextDelta | ThinkingDelta | CallDelta | UsageDelta | FinishDelta
