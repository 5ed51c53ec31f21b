"""Messages: role, parts, usage and cost; and their JSON codec."""

# No `from __future__ import annotations`: msgspec would compile the text of each annotation at every start.

import contextlib
import time
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

import msgspec
from msgspec import Struct, StructMeta, ValidationError, convert, field
from msgspec.structs import asdict, replace

from wolo.messages.parts import SEARCH, TASK, AnyPart, Part, TextPart, ThinkingPart, ToolPart, new_id
from wolo.messages.unicode import whole_throughout

Role = Literal["system", "user", "assistant", "custom", "branch_summary", "compaction_summary"]
"""The last three exist only in sessions: summaries are sent as user messages, custom messages never."""

FinishReason = Literal["", "stop", "length", "tool_calls", "paused", "refused", "overflow", "error", "interrupted"]
"""`paused`: the provider expects the response so far back unchanged (Anthropic's `pause_turn`)."""

CACHE = "cache"
"""Metadata key of user messages whose text should be cached."""
NUDGE = "nudge"
"""Metadata key of user messages written by the agent loop, holding the reason."""
EMPTY_ANSWER = "empty_answer"
JOB_ENDED = "job_ended"
TASK_ENDED = "task_ended"
"""The result of a background task."""
MCP_INSTRUCTIONS = "mcp_instructions"
"""Instructions of MCP servers for their tools."""
BUDGET = "budget"
"""Tells what is left of the limits."""
HOOK_OUTPUT = "hook_output"
"""Output of a hook that nothing waited for."""
INSTRUCTIONS = "instructions"
"""Instructions that changed on disk; also the metadata key of their texts by name, in messages and calls."""
RESPONSE_ID, RESPONSE_MODEL = "response_id", "response_model"
"""Metadata key of the provider's id of the response."""
NAMED_MODE = "named_mode"
"""Names the permission mode; also the metadata key of its name, in messages and calls."""
GOAL = "goal"
"""Names the goal of the session, or says why it is not reached yet."""
UNCHECKED = "unchecked"
"""The finish check asked about work that no check followed."""
SENT_BACK = "sent_back"
"""A hook kept the model from stopping."""
STEERED = "steered"
"""Written by the user while the turn ran."""

WOKEN = "woken"
"""Metadata key of prompts that lines of background jobs make."""
RESOURCES = "resources"
"""Metadata key of the resources that a prompt mentions: pairs of server and URI."""
OPENED = "opened"
"""Metadata key of the first prompt after a conversation was opened: knowledge of read files and the working directory of
commands start anew there."""

Origin = Literal["keyboard", "command line", "file", "network", "job"]
"""`keyboard`: a person wrote it at an input line, or as an argument at a terminal. `command line`: an argument where no terminal
is. `file`: stdin, or a task file. `network`: a program, by the Python API, HTTP or MCP. `job`: lines of a background job.
"""

P = TypeVar("P", bound=Part)


class UsageCost(Struct, frozen=True, omit_defaults=True):
    """US dollars."""

    input: float = 0.0
    output: float = 0.0
    cache_read: float = 0.0
    cache_write: float = 0.0
    total: float = 0.0


class Usage(Struct, frozen=True, omit_defaults=True):
    """Token counts of one response. The four counts do not overlap; `reasoning_tokens` is part of `output_tokens`."""

    input_tokens: int = 0
    """Prompt tokens without cache reads and writes."""
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    cost: UsageCost | None = None
    """None: unknown price."""
    estimated: bool = False
    """Our own estimate because the provider reported nothing."""

    @property
    def prompt_tokens(self) -> int:
        return self.input_tokens + self.cache_read_tokens + self.cache_write_tokens

    @property
    def context_tokens(self) -> int:
        """Window already used when the next request starts."""
        return self.prompt_tokens + self.output_tokens


def task_usage(part: ToolPart) -> Usage | None:
    """Usage of a subagent, or of a search by the provider, from a finished call."""
    told = part.metadata.get(TASK) or part.metadata.get(SEARCH)
    if not isinstance(told, dict) or "usage" not in told:
        return None
    try:
        return convert(told["usage"], Usage)
    except ValidationError:
        return None


class Producer(Struct, frozen=True, omit_defaults=True):
    """Producer of an assistant message; opaque blobs are only replayed to the same one."""

    provider: str = ""
    format: str = ""
    model: str = ""


class _MessageMeta(StructMeta):
    """Converts `reasoning_content=` into a ThinkingPart on construction."""

    def __call__(cls, *args: Any, reasoning_content: str = "", **fields: Any) -> Any:
        if reasoning_content:
            fields["parts"] = (ThinkingPart(text=reasoning_content), *fields.get("parts", ()))
        elif "parts" in fields:
            fields["parts"] = tuple(fields["parts"])
        return super().__call__(*args, **fields)


class Message(Struct, frozen=True, kw_only=True, omit_defaults=True, metaclass=_MessageMeta):
    """One entry of a conversation, as it is saved. Frozen: `with_parts` and `msgspec.structs.replace` make changed copies."""

    id: str = field(default_factory=lambda: new_id("msg"))
    role: Role
    parts: tuple[AnyPart, ...] = ()
    timestamp: float = field(default_factory=time.time)
    finished: bool = False
    finish_reason: FinishReason = ""
    usage: Usage | None = None
    producer: Producer | None = None
    error: str = ""
    """Reason why an assistant message failed, for the user."""
    custom_type: str = ""
    """Type name that an extension gives its `custom` message."""
    metadata: dict[str, Any] = field(default_factory=dict)
    """Data for compaction, display and extensions; never sent."""

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
        """Without notices to the model."""
        return "".join(part.text for part in self.parts if isinstance(part, TextPart) and not part.is_notice)

    @property
    def reasoning_content(self) -> str:
        return "".join(part.text for part in self.parts if isinstance(part, ThinkingPart))

    @property
    def is_cached_block(self) -> bool:
        """Holds text that the provider should cache."""
        return bool(self.metadata.get(CACHE))

    @property
    def is_prompt(self) -> bool:
        """Starts a turn; messages of the agent loop do not."""
        return self.role == "user" and NUDGE not in self.metadata

    @property
    def is_from_user(self) -> bool:
        """Written by the user, including steering during a turn."""
        return self.role == "user" and self.metadata.get(NUDGE, STEERED) == STEERED and WOKEN not in self.metadata

    @property
    def calls(self) -> tuple[ToolPart, ...]:
        return self.of(ToolPart)

    def of(self, kind: type[P]) -> tuple[P, ...]:
        return tuple(part for part in self.parts if isinstance(part, kind))

    def with_parts(self, changed: Iterable[ToolPart]) -> "Message":
        """Replace tool parts with the same id."""
        by_id = {part.id: part for part in changed}
        return replace(self, parts=tuple(by_id.get(part.id, part) for part in self.parts))


class UserPrompt(Message, frozen=True, kw_only=True, omit_defaults=True):
    """A user message that cannot be made without its origin; a saved one is a message again."""

    origin: Origin

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            origin: Origin,
            role: Literal["user"] = "user",
            parts: Iterable[AnyPart] = (),
            finished: bool = True,
            metadata: dict[str, Any] | None = None,
        ) -> None: ...

    @classmethod
    def from_message(cls, message: Message, origin: Origin) -> "UserPrompt":
        """The same message, with the same id."""
        return cls(**{**asdict(message), "origin": origin})


def is_typed(origin: Origin) -> bool:
    """Slash commands count, and mentions of agents and resources; elsewhere only mentions of files do."""
    return origin in ("keyboard", "command line")


def reaches_out(origin: Origin) -> bool:
    """Mentions attach any file; elsewhere only what lies in the workspace and may be read without asking."""
    return origin == "keyboard"


def common_prefix_length(known: tuple[Message, ...], messages: Sequence[Message]) -> int:
    """Number of leading messages that are the same. Fast for a history that only grew: identical objects are equal."""
    with contextlib.suppress(TypeError):  # messages have no order: only if all of `known` are equal, the lengths decide
        if known <= tuple(messages):
            return len(known)
    return next((at for at, (one, other) in enumerate(zip(known, messages, strict=False)) if one is not other), len(messages))


def named_mode(messages: Sequence[Message], left_out: Collection[str] = ()) -> str:
    """The mode that the messages name last, except those with an id that was left out; empty: none is named."""
    for message in reversed(messages):
        if message.id not in left_out:
            calls = (part for part in reversed(message.parts) if isinstance(part, ToolPart))
            name = next((part.metadata[NAMED_MODE] for part in calls if NAMED_MODE in part.metadata), "")
            if name := name or message.metadata.get(NAMED_MODE, ""):
                return str(name)
    return ""


def user(text: str, *more: AnyPart) -> Message:
    return Message(role="user", parts=(TextPart(text=text), *more), finished=True)


def nudge(text: str, why: str, **more: Any) -> Message:
    """A message from the agent loop; `more` is added to its metadata."""
    return Message(role="user", parts=(TextPart(text=text),), finished=True, metadata={NUDGE: why, **more})


def system(text: str) -> Message:
    return Message(role="system", parts=(TextPart(text=text),), finished=True)


def custom(custom_type: str, text: str, *more: AnyPart, metadata: dict[str, Any] | None = None) -> Message:
    """A message that is saved but never sent; `custom_type` names its owner."""
    parts = (TextPart(text=text), *more)
    return Message(role="custom", custom_type=custom_type, parts=parts, finished=True, metadata=metadata or {})


T = TypeVar("T")

VERSION = 1
"""Increased with a store migration when a field changes meaning. New optional fields do not increase it: older versions ignore
them."""


class Codec(Generic[T]):
    """JSON codec for one type; values round-trip."""

    def __init__(self, kind: Any) -> None:
        """`kind` is the type T, or a union of tagged structs."""
        # Hooks and extensions may put any value into metadata; values unknown to JSON are stored as text.
        self._encoder = msgspec.json.Encoder(enc_hook=str)
        self._decoder: msgspec.json.Decoder[T] = msgspec.json.Decoder(kind)

    def encode(self, value: T) -> bytes:
        try:
            return self._encoder.encode(value)
        except UnicodeEncodeError:
            # Lone surrogates from models or file names have no UTF-8; replace them rather than lose the entry.
            return self._encoder.encode(whole_throughout(msgspec.to_builtins(value, enc_hook=str)))

    def decode(self, data: bytes) -> T:
        """Raises msgspec.MsgspecError, RecursionError or UnicodeDecodeError for what is not such a value."""
        return self._decoder.decode(data)


MESSAGES: Codec[Message] = Codec(Message)
