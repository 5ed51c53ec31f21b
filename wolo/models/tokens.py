"""Estimates tokens: a quarter of the bytes, plus a constant per message."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from wolo.formats.format import ToolSpec
from wolo.messages.message import Codec, Message, common_prefix_length
from wolo.messages.parts import AnyPart, AudioPart, FilePart, ImagePart, TextPart, ThinkingPart, ToolPart

if TYPE_CHECKING:
    from wolo.messages.roles import AgentMessage

BYTES_PER_TOKEN = 4
"""UTF-8 bytes: one token is four Latin letters, two Cyrillic ones, or 1⅓ Chinese characters."""
ROLE_TOKENS = 4
"""Overhead of a system, user or assistant message."""
TOOL_ROLE_TOKENS = 10
"""Overhead of a tool result and its call."""
TEXT_CALL_TOKENS = 10
"""Overhead of a call written in the text."""
TEXT_CALL_MARK = "<tool>"
IMAGE_TOKENS = 1_000
AUDIO_BYTES_PER_TOKEN = 500
"""About 25 tokens per second of compressed speech."""
FILE_BYTES_PER_TOKEN = 40
"""A PDF page has about 60 kB and 1,500 tokens."""

_json = msgspec.json.Encoder()
_arguments: Codec[dict[str, Any]] = Codec(dict)


def estimate_text(text: str) -> int:
    size_bytes = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    return size_bytes // BYTES_PER_TOKEN


def estimate_message(message: Message | AgentMessage) -> int:
    """Equal for both message forms: a result counts with its call, or in the message that contains it."""
    if not isinstance(message, Message):
        from wolo.messages.roles import ToolResult  # noqa: PLC0415  # only API users pass role messages

        parts = [part for part in message.contents if not isinstance(part, ToolResult)]
        results = [part for part in message.contents if isinstance(part, ToolResult)]
        tokens = sum(estimate_text(each.content) + sum(map(estimate_part, each.media)) for each in results)
        if parts or not results:
            tokens += ROLE_TOKENS + sum(map(estimate_part, parts))
        return tokens + TEXT_CALL_TOKENS if any(map(_holds_text_call, parts)) else tokens
    tokens = ROLE_TOKENS + sum(estimate_part(part) for part in message.parts)
    return tokens + TEXT_CALL_TOKENS if any(_holds_text_call(part) for part in message.parts) else tokens


def estimate_tools(tools: Sequence[ToolSpec]) -> int:
    return sum(len(_json.encode(tool)) for tool in tools) // BYTES_PER_TOKEN


class TokenEstimate:
    """Estimates a growing conversation, measuring each message and tool list once."""

    def __init__(self) -> None:
        self._measured: dict[str, tuple[Message, int]] = {}
        self._tools: tuple[tuple[ToolSpec, ...], int] = ((), 0)
        self._counted: tuple[tuple[Message, ...], int] = ((), 0)

    def message(self, message: Message) -> int:
        known = self._measured.get(message.id)
        if known is None or known[0] is not message:
            known = self._measured[message.id] = (message, estimate_message(message))
        return known[1]

    def request(self, messages: Sequence[Message], *, system: str = "", tools: tuple[ToolSpec, ...] = ()) -> int:
        """Estimate of system prompt, tools and messages."""
        if self._tools[0] is not tools:
            self._tools = (tools, estimate_tools(tools))
        prompt = estimate_text(system) + ROLE_TOKENS if system else 0
        counted, tokens = self._counted
        if common_prefix_length(counted, messages) < len(counted):
            counted, tokens = (), 0
        tokens += sum(map(self.message, messages[len(counted) :]))
        self._counted = (tuple(messages), tokens)
        return prompt + self._tools[1] + tokens


Stored = TypeVar("Stored", bound="Message | AgentMessage")


class ConversationMemory(Generic[Stored]):
    """Newest messages within a token limit; system messages are always kept.

    Results are removed together with their calls.
    """

    def __init__(self, limit_tokens: int) -> None:
        self.limit_tokens = limit_tokens
        self.tokens = 0
        """Estimate of the remembered messages; exceeds the limit only with system messages."""
        self._messages: list[Stored] = []

    @property
    def messages(self) -> tuple[Stored, ...]:
        return tuple(self._messages)

    def add(self, message: Stored) -> tuple[Stored, ...]:
        """Returns the removed messages, oldest first; an oversized message is removed itself."""
        self._messages.append(message)
        self.tokens += estimate_message(message)
        removed: list[Stored] = []
        for old in self._messages:
            if old.role == "system":
                continue
            if self.tokens <= self.limit_tokens and old.role != "tool":
                break
            removed.append(old)
            self.tokens -= estimate_message(old)
        if removed:
            gone = set(map(id, removed))
            self._messages = [each for each in self._messages if id(each) not in gone]
        return tuple(removed)


def estimate_part(part: AnyPart) -> int:
    match part:
        case TextPart() | ThinkingPart():
            return estimate_text(part.text)
        case ToolPart():
            arguments = len(part.raw_input) or len(_arguments.encode(part.input))
            media = sum(estimate_part(each) for each in part.output_parts)
            return TOOL_ROLE_TOKENS + (len(part.tool) + arguments) // BYTES_PER_TOKEN + estimate_text(part.output) + media
        case ImagePart():
            return IMAGE_TOKENS
        case AudioPart():
            return len(part.data) // AUDIO_BYTES_PER_TOKEN
        case FilePart():
            return len(part.data) // FILE_BYTES_PER_TOKEN


def _holds_text_call(part: AnyPart) -> bool:
    return isinstance(part, TextPart) and TEXT_CALL_MARK in part.text
