"""Messages with one class per role and separate results, for API users and other programs."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from wolo.messages.media import Picture
from wolo.messages.message import FinishReason, Message, Producer, Role, Usage
from wolo.messages.parts import AudioPart, FilePart, ImagePart, MediaPart, TextPart, ThinkingPart, ToolPart, new_id


class ToolResult(Struct, frozen=True, kw_only=True, tag_field="type", tag="tool_result"):
    """The result of one call."""

    id: str
    """The wire's id of the call."""
    content: str = ""
    is_error: bool = False
    media: tuple[MediaPart, ...] = ()
    terminate: bool = False
    """Stop the loop without another request; never sent."""
    metadata: dict[str, Any] = field(default_factory=dict)
    """Never sent."""


SystemContent = TextPart
UserContent = TextPart | ImagePart | AudioPart | FilePart
AssistantContent = TextPart | ThinkingPart | ImagePart | AudioPart | FilePart | ToolPart
ToolContent = ToolResult


class BaseMessage(Struct, frozen=True, kw_only=True, tag_field="role"):
    """Base of the messages by role."""

    id: str = field(default_factory=lambda: new_id("msg"))
    timestamp: float = field(default_factory=time.time)
    metadata: dict[str, Any] = field(default_factory=dict)
    """Never sent."""

    @property
    def role(self) -> str:
        return str(self.__struct_config__.tag)


class SystemMessage(BaseMessage, frozen=True, kw_only=True, tag="system"):
    """The system prompt."""

    contents: tuple[SystemContent, ...] = ()

    @classmethod
    def text(cls, text: str) -> SystemMessage:
        return cls(contents=(TextPart(text=text),))


class UserMessage(BaseMessage, frozen=True, kw_only=True, tag="user"):
    """A prompt; it may contain results, too."""

    contents: tuple[UserContent | ToolResult, ...] = ()

    @classmethod
    def text(cls, text: str) -> UserMessage:
        return cls(contents=(TextPart(text=text),))

    @classmethod
    def with_images(cls, text: str, images: Iterable[str | bytes | Picture]) -> UserMessage:
        """`images` as `ImagePart.of` takes them. Raises ValueError."""
        return cls(contents=(TextPart(text=text), *map(ImagePart.of, images)))

    @classmethod
    def with_audio(cls, text: str, audio: Iterable[str | bytes]) -> UserMessage:
        """`audio` as `AudioPart.of` takes it. Raises ValueError, and OSError for a file that cannot be read."""
        return cls(contents=(TextPart(text=text), *map(AudioPart.of, audio)))


class AssistantMessage(BaseMessage, frozen=True, kw_only=True, tag="assistant"):
    """An answer of the model, with its calls."""

    contents: tuple[AssistantContent, ...] = ()
    usage: Usage | None = None
    stop_reason: FinishReason = ""
    error: str = ""
    producer: Producer | None = None

    def text_content(self) -> str:
        return "".join(part.text for part in self.contents if isinstance(part, TextPart))

    def tool_calls(self) -> tuple[ToolPart, ...]:
        return tuple(part for part in self.contents if isinstance(part, ToolPart))

    def thinking(self) -> tuple[ThinkingPart, ...]:
        return tuple(part for part in self.contents if isinstance(part, ThinkingPart))


class ToolMessage(BaseMessage, frozen=True, kw_only=True, tag="tool"):
    """Results of one round of calls."""

    contents: tuple[ToolContent, ...] = ()

    @classmethod
    def from_results(cls, results: Iterable[ToolResult]) -> ToolMessage:
        return cls(contents=tuple(results))

    @classmethod
    def from_result(cls, result: ToolResult) -> ToolMessage:
        return cls(contents=(result,))


class CustomMessage(BaseMessage, frozen=True, kw_only=True, tag="custom"):
    """A message of an extension; saved but never sent."""

    contents: tuple[UserContent, ...] = ()
    custom_type: str = ""


class BranchSummaryMessage(BaseMessage, frozen=True, kw_only=True, tag="branch_summary"):
    """Summary of an abandoned branch; sent as a user message."""

    contents: tuple[TextPart, ...] = ()


class CompactionSummaryMessage(BaseMessage, frozen=True, kw_only=True, tag="compaction_summary"):
    """Summary of earlier messages; sent as a user message."""

    contents: tuple[TextPart, ...] = ()


LLMMessage = SystemMessage | UserMessage | AssistantMessage | ToolMessage
AgentMessage = LLMMessage | CustomMessage | BranchSummaryMessage | CompactionSummaryMessage


def to_messages(messages: Iterable[AgentMessage | Message]) -> tuple[Message, ...]:
    """Attach results to their calls; stored messages stay unchanged.

    Raises ValueError for a result without an open call, TypeError for what is no message, such as a dict.
    """
    built: list[Message] = []
    open_calls: dict[str, int] = {}
    for message in messages:
        if not isinstance(message, Message | BaseMessage):
            raise TypeError(
                f"A message is a Message or one of a role, such as UserMessage.text(…), not a {type(message).__name__}."
            )
        if isinstance(message, UserMessage | ToolMessage):
            for result in (part for part in message.contents if isinstance(part, ToolResult)):
                if result.id not in open_calls:
                    raise ValueError(f"The result {result.id!r} answers no open call before it.")
                at = open_calls.pop(result.id)
                call = next(call for call in built[at].calls if call.wire_id == result.id and call.status == "pending")
                ended = replace(
                    call,
                    status="failed" if result.is_error else "completed",
                    outcome="error" if result.is_error else "ok",
                    output=result.content,
                    output_parts=result.media,
                    end_time=message.timestamp,
                    terminate=result.terminate,
                    metadata={**call.metadata, **result.metadata},
                )
                built[at] = built[at].with_parts([ended])
        if isinstance(message, ToolMessage):
            continue
        if (converted := message if isinstance(message, Message) else _message(message)) is not None:
            built.append(converted)
            open_calls |= {call.wire_id: len(built) - 1 for call in converted.calls if call.status == "pending"}
    return tuple(built)


def by_role(messages: Iterable[Message]) -> Iterator[AgentMessage]:
    """Convert stored messages; the results of a response follow it in one message."""
    for message in messages:
        common: dict[str, Any] = {"id": message.id, "timestamp": message.timestamp, "metadata": message.metadata}
        parts: Any = message.parts
        match message.role:
            case "system":
                yield SystemMessage(contents=parts, **common)
            case "user":
                yield UserMessage(contents=parts, **common)
            case "custom":
                yield CustomMessage(contents=parts, custom_type=message.custom_type, **common)
            case "branch_summary":
                yield BranchSummaryMessage(contents=parts, **common)
            case "compaction_summary":
                yield CompactionSummaryMessage(contents=parts, **common)
            case "assistant":
                yield from _answer(message, common)


def _answer(message: Message, common: dict[str, Any]) -> Iterator[AgentMessage]:
    """The response with calls that have no result, and a message of all results."""
    no_result = {"outcome": None, "output": "", "output_parts": (), "start_time": 0.0, "end_time": 0.0, "terminate": False}
    yield AssistantMessage(
        contents=tuple(
            replace(part, status="pending", **no_result) if isinstance(part, ToolPart) else part for part in message.parts
        ),
        usage=message.usage,
        stop_reason=message.finish_reason,
        error=message.error,
        producer=message.producer,
        **common,
    )
    ended = [part for part in message.calls if part.status in ("completed", "failed")]
    if ended:
        results = tuple(
            ToolResult(
                id=part.wire_id, content=part.output, is_error=part.is_error, media=part.output_parts, terminate=part.terminate
            )
            for part in ended
        )
        timestamp = max(part.end_time for part in ended) or message.timestamp
        yield ToolMessage(id=f"{message.id}_results", timestamp=timestamp, contents=results)


def _message(message: AgentMessage) -> Message | None:
    """None for a user message that holds only results."""
    parts = tuple(part for part in message.contents if not isinstance(part, ToolResult))
    if not parts and message.contents:
        return None
    fields: dict[str, Any] = {}
    if isinstance(message, AssistantMessage):
        fields = {
            "usage": message.usage,
            "finish_reason": message.stop_reason,
            "error": message.error,
            "producer": message.producer,
        }
    elif isinstance(message, CustomMessage):
        fields = {"custom_type": message.custom_type}
    role: Role = message.role  # type: ignore[assignment]  # a tool's message does not come here
    return Message(
        id=message.id,
        role=role,
        parts=parts,
        timestamp=message.timestamp,
        finished=not (isinstance(message, AssistantMessage) and message.stop_reason in ("error", "interrupted")),
        metadata=message.metadata,
        **fields,
    )
