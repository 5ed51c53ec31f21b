"""A message: who spoke, in which parts, and what it cost."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

import msgspec
from msgspec import Struct, StructMeta, ValidationError, convert, field
from msgspec.structs import replace

from wolo.messages.parts import TASK, AnyPart, Part, TextPart, ThinkingPart, ToolPart, new_id
from wolo.messages.unicode import whole_throughout

Role = Literal["system", "user", "assistant", "custom", "branch_summary", "compaction_summary"]
"""The last three are session-only: a summary becomes a user message at the wire border, a custom message never leaves."""

FinishReason = Literal["", "stop", "length", "tool_calls", "paused", "refused", "overflow", "error", "interrupted"]
"""`paused`: the provider wants to be asked again with the answer so far, unchanged (Anthropic's `pause_turn`)."""

NUDGE = "nudge"
"""Under this name the metadata of a user message say that the loop spoke, and why."""
EMPTY_ANSWER = "empty_answer"
JOB_ENDED = "job_ended"
MCP_INSTRUCTIONS = "mcp_instructions"
"""MCP servers say how their tools are used."""
SENT_BACK = "sent_back"
"""A hook did not let the model stop."""
STEERED = "steered"
"""It is the person's word after all, said while the turn ran."""

OPENED = "opened"
"""Under this name the metadata of the first prompt to a conversation say how it was opened: what files it had seen, and where its
commands ran, begins anew there."""

P = TypeVar("P", bound=Part)


class UsageCost(Struct, frozen=True, omit_defaults=True):
    """US dollars."""

    input: float = 0.0
    output: float = 0.0
    cache_read: float = 0.0
    cache_write: float = 0.0
    total: float = 0.0


class Usage(Struct, frozen=True, omit_defaults=True):
    """Tokens of one answer. The four counts do not overlap; `reasoning_tokens` is a part of `output_tokens`."""

    input_tokens: int = 0
    """Fresh prompt tokens: cache reads and writes excluded."""
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    cost: UsageCost | None = None
    """None: the price is not known (never 0 for unknown)."""
    estimated: bool = False
    """True when the provider reported nothing and these are our own guess."""

    @property
    def context_tokens(self) -> int:
        """How much of the window the next request starts from."""
        return self.input_tokens + self.cache_read_tokens + self.cache_write_tokens + self.output_tokens


def task_usage(part: ToolPart) -> Usage | None:
    """What another agent has used, where the call gave it a task and is over."""
    told = part.metadata.get(TASK)
    if not isinstance(told, dict) or "usage" not in told:
        return None
    try:
        return convert(told["usage"], Usage)
    except ValidationError:
        return None


class Producer(Struct, frozen=True, omit_defaults=True):
    """Who wrote an assistant message: opaque blobs go back to the same three only."""

    provider: str = ""
    format: str = ""
    model: str = ""


class _MessageMeta(StructMeta):
    """Accepts `reasoning_content=` on construction and keeps it as a ThinkingPart: one place for reasoning."""

    def __call__(cls, *args: Any, reasoning_content: str = "", **fields: Any) -> Any:
        if reasoning_content:
            fields["parts"] = (ThinkingPart(text=reasoning_content), *fields.get("parts", ()))
        elif "parts" in fields:
            fields["parts"] = tuple(fields["parts"])
        return super().__call__(*args, **fields)


class Message(Struct, frozen=True, kw_only=True, omit_defaults=True, metaclass=_MessageMeta):
    id: str = field(default_factory=lambda: new_id("msg"))
    role: Role
    parts: tuple[AnyPart, ...] = ()
    timestamp: float = field(default_factory=time.time)
    finished: bool = False
    finish_reason: FinishReason = ""
    usage: Usage | None = None
    producer: Producer | None = None
    error: str = ""
    """Why an assistant message ended badly, in words for people."""
    custom_type: str = ""
    """What an extension calls its `custom` message."""
    metadata: dict[str, Any] = field(default_factory=dict)
    """Compaction, display and extensions' own; never sent."""

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            role: Role,
            id: str = "",
            parts: Iterable[AnyPart] = (),
            timestamp: float = 0.0,
            finished: bool = False,
            finish_reason: FinishReason = "",
            usage: Usage | None = None,
            producer: Producer | None = None,
            error: str = "",
            custom_type: str = "",
            metadata: dict[str, Any] | None = None,
            reasoning_content: str = "",
        ) -> None: ...

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.parts if isinstance(part, TextPart))

    @property
    def reasoning_content(self) -> str:
        return "".join(part.text for part in self.parts if isinstance(part, ThinkingPart))

    @property
    def is_prompt(self) -> bool:
        """The beginning of a turn, not a word of the loop in the middle of one."""
        return self.role == "user" and NUDGE not in self.metadata

    @property
    def is_from_user(self) -> bool:
        """A person's own words, wherever they stand."""
        return self.role == "user" and self.metadata.get(NUDGE, STEERED) == STEERED

    @property
    def calls(self) -> tuple[ToolPart, ...]:
        return self.of(ToolPart)

    def of(self, kind: type[P]) -> tuple[P, ...]:
        return tuple(part for part in self.parts if isinstance(part, kind))

    def with_parts(self, changed: Iterable[ToolPart]) -> Message:
        """The same message with the tool parts of equal id replaced."""
        by_id = {part.id: part for part in changed}
        return replace(self, parts=tuple(by_id.get(part.id, part) for part in self.parts))


def user(text: str, *more: AnyPart) -> Message:
    return Message(role="user", parts=(TextPart(text=text), *more), finished=True)


def nudge(text: str, why: str, **more: Any) -> Message:
    """A word of the loop's own; `more` joins its metadata."""
    return Message(role="user", parts=(TextPart(text=text),), finished=True, metadata={NUDGE: why, **more})


def system(text: str) -> Message:
    return Message(role="system", parts=(TextPart(text=text),), finished=True)


def custom(custom_type: str, text: str, *more: AnyPart, metadata: dict[str, Any] | None = None) -> Message:
    """A message that stays in the session and is never sent; `custom_type` says whose it is."""
    parts = (TextPart(text=text), *more)
    return Message(role="custom", custom_type=custom_type, parts=parts, finished=True, metadata=metadata or {})


T = TypeVar("T")

VERSION = 1
"""Raised, together with a migration of the store, when the meaning of a field changes. A new optional field does not raise
it: an older wolo ignores what it does not know."""


class Codec(Generic[T]):
    """Between values of one type and JSON bytes. What was encoded decodes to an equal value."""

    def __init__(self, kind: Any) -> None:
        """`kind` is the type T, or a union of tagged structs."""
        # What metadata holds is up to hooks and extensions; a value that JSON does not know is kept as its text.
        self._encoder = msgspec.json.Encoder(enc_hook=str)
        self._decoder: msgspec.json.Decoder[T] = msgspec.json.Decoder(kind)

    def encode(self, value: T) -> bytes:
        try:
            return self._encoder.encode(value)
        except UnicodeEncodeError:
            # Half a surrogate pair has no UTF-8: models and file names produce it. Better one mark than no entry.
            return self._encoder.encode(whole_throughout(msgspec.to_builtins(value, enc_hook=str)))

    def decode(self, data: bytes) -> T:
        """Raises msgspec.MsgspecError, RecursionError or UnicodeDecodeError for what is not such a value."""
        return self._decoder.decode(data)


MESSAGES: Codec[Message] = Codec(Message)
