"""Checks what a model supports: thinking levels and attachments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from wolo.errors import UsageError
from wolo.formats.encoding.attachments import NOT_SENT, not_sent
from wolo.formats.encoding.thinking_levels import LEVELS, always_thinks, glm_level, nearest_level
from wolo.formats.format import Request, ThinkingLevel
from wolo.messages.message import Message, user
from wolo.messages.parts import AudioPart, ImagePart, MediaPart, ToolPart
from wolo.messages.terminal_text import escaped_line
from wolo.models.format_selection import format_of
from wolo.models.protocol import MUST_BE_SENT, ModelQuestion, producer_of, request_for
from wolo.models.provider import Ability, ModelChoice

P = TypeVar("P", bound=Message)

LOCAL = "local"
"""Provider of embedded models, which read only text and do not think."""
WITHOUT_ATTACHMENTS = "Choose a model that takes it (`wolo models list`), or send the prompt without it: --ignore-unsupported."
_SINGULAR = {"images": "image", "audio": "audio file", "files": "document"}
_MOST_NAMED = 5
_LONGEST_NAME = 120


def no_effect_notice(choice: ModelChoice) -> str:
    """Notice when the thinking level has no effect; empty otherwise."""
    if (level := choice.thinking) is None:
        return ""
    if choice.provider.name != LOCAL:
        sent, others = _encode_hello(choice, level), (each for each in (None, *LEVELS) if each != level)
        if any(sent != _encode_hello(choice, other) for other in others):
            return ""
    return f"Thinking level {level} has no effect: wolo cannot set it for {choice.label}."


class Unsent(Struct, frozen=True):
    name: str
    refused: str
    """See `_refusal`."""


def media_of(message: Message) -> Iterator[tuple[MediaPart, str]]:
    """Attachments, and those of results with the name of their tool."""
    for part in message.parts:
        if isinstance(part, MediaPart):
            yield part, ""
        elif isinstance(part, ToolPart):
            for each in part.output_parts:
                yield each, part.tool


def unsupported_media(choice: ModelChoice, message: Message) -> list[Unsent]:
    """Attachments that the model does not get, with the reason."""
    found = ((part, tool, _refusal(choice, part)) for part, tool in media_of(message))
    return [Unsent(_name(part, tool), refused) for part, tool, refused in found if refused]


def describe_unsupported(unsent: Sequence[Unsent], label: str) -> str:
    """`custom/x does not take images: dot.png is not sent.`"""
    refused = " or ".join(dict.fromkeys(each.refused for each in unsent))
    is_or_are = "is" if len(unsent) == 1 else "are"
    return f"{label} does not take {refused}: {join_names([each.name for each in unsent])} {is_or_are} not sent."


def join_names(names: Sequence[str]) -> str:
    """`a.png, b.png and 3 more`"""
    more = len(names) - _MOST_NAMED
    shown = [*names[:_MOST_NAMED], *([f"{more} more"] if more > 0 else [])]
    return " and ".join(filter(None, (", ".join(shown[:-1]), *shown[-1:])))


def names_of(messages: Iterable[Message], kind: str) -> list[str]:
    """Names of all attachments of a kind."""
    return [_name(part, tool) for message in messages for part, tool in media_of(message) if _kind(part) == kind]


def require_attachments(choice: ModelChoice, prompt: P) -> P:
    """Mark attachments as required. Raises UsageError for unsupported ones."""
    if unsent := unsupported_media(choice, prompt):
        raise UsageError(describe_unsupported(unsent, choice.label), hint=WITHOUT_ATTACHMENTS)
    return replace(prompt, metadata={**prompt.metadata, MUST_BE_SENT: True})


class AttachmentNotices:
    """Notifies the user once about each attachment that is not sent."""

    def __init__(self) -> None:
        self._known: set[str] = set()

    def notice(self, choice: ModelChoice, messages: Sequence[Message]) -> str:
        """Notice about attachments not seen before; empty if all are sent."""
        unsent: list[Unsent] = []
        for part, tool in (each for message in messages for each in media_of(message)):
            if part.id not in self._known:
                self._known.add(part.id)
                unsent += [Unsent(_name(part, tool), refused)] if (refused := _refusal(choice, part)) else []
        return describe_unsupported(unsent, choice.label) if unsent else ""


def _encode_hello(choice: ModelChoice, level: ThinkingLevel | None) -> bytes:
    return format_of(choice).encode(_request(choice, user("hello"), level))


def _refusal(choice: ModelChoice, part: MediaPart) -> str:
    """The kind, type or address that is not taken; empty: it is sent."""
    if choice.provider.name == LOCAL:
        return _kind(part)
    small = replace(part, name="", data=part.data[:1])
    body = format_of(choice).encode(_request(choice, user("hello", small), None))
    if NOT_SENT.encode() not in body:
        return ""
    if not_sent(small).encode() in body:
        return _kind(part)
    return part.media_type if part.data else "such addresses"


def _name(part: MediaPart, tool: str) -> str:
    """One line: the file, the address, or the kind."""
    address = "" if isinstance(part, AudioPart) or part.url.startswith("data:") else part.url
    name = escaped_line(part.name or address)[:_LONGEST_NAME] or f"1 {_SINGULAR[_kind(part)]}"
    return f"{name} ({tool})" if tool else name


def _request(choice: ModelChoice, message: Message, level: ThinkingLevel | None) -> Request:
    question = ModelQuestion(messages=(message,))
    return request_for(replace(choice, thinking=level), producer_of(choice, choice.format), question)


def _kind(part: MediaPart) -> Ability:
    return "images" if isinstance(part, ImagePart) else "audio" if isinstance(part, AudioPart) else "files"


def effective_level(choice: ModelChoice, level: ThinkingLevel) -> ThinkingLevel:
    """The nearest supported level, by the flags of the dialect."""
    flags: dict[str, Any] = {**choice.provider.dialect, **choice.model.dialect}
    if known := flags.get("thinking_levels"):
        level = nearest_level(level, msgspec.convert(known, tuple[ThinkingLevel, ...]))
    if (style := flags.get("thinking_param_style", "")) == "glm":
        return glm_level(choice.model.id, level)
    if level == "off" and (always_thinks(style, choice.model.id) or flags.get("thinking_off") == "refused"):
        return "low"
    return level


def always_on_notice(choice: ModelChoice) -> str:
    """Notice when thinking cannot be turned off; empty otherwise."""
    wanted = choice.thinking
    if wanted != "off" or (used := effective_level(choice, wanted)) == "off":
        return ""
    return f"{choice.label} always thinks; level {used} is used instead of off."
