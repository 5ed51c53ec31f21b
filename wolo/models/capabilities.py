"""Checks what a model supports: thinking levels and attachments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from wolo.errors import UsageError
from wolo.formats.encoding.attachments import NOT_SUPPORTED
from wolo.formats.encoding.thinking_levels import LEVELS, always_thinks, glm_level, nearest_level
from wolo.formats.format import Request, ThinkingLevel
from wolo.messages.message import Message, user
from wolo.messages.parts import AudioPart, ImagePart, MediaPart
from wolo.models.format_selection import format_of
from wolo.models.protocol import MUST_BE_SENT, Question, has_media, producer_of, request_for
from wolo.models.provider import MEDIA, Ability, Choice

P = TypeVar("P", bound=Message)

LOCAL = "local"
"""Provider of embedded models, which read only text and do not think."""
WITHOUT_ATTACHMENTS = "Choose a model that takes it (`wolo models list`), or send the prompt without it: --ignore-unsupported."
_SINGULAR = {"images": "image", "audio": "audio file", "files": "document"}


def no_effect_notice(choice: Choice) -> str:
    """Notice when the thinking level has no effect; empty otherwise."""
    level = choice.thinking
    if level is None or _thinking_counts(choice, level):
        return ""
    return f"Thinking level {level} has no effect: wolo cannot set it for {choice.label}."


def unsupported_media(choice: Choice, message: Message) -> dict[Ability, int]:
    """Attachments of a prompt that the model does not support, counted by kind."""
    media = [part for part in message.parts if isinstance(part, MediaPart)]
    found = Counter(_kind(part) for part in media if not _is_sent(choice, part))
    return {kind: found[kind] for kind in MEDIA if kind in found}


def describe_unsupported(not_taken: Mapping[Ability, int], label: str) -> str:
    """`custom/x does not take images: 1 image is not sent.`"""
    counted = [f"{count} {_SINGULAR[kind]}{'' if count == 1 else 's'}" for kind, count in not_taken.items()]
    is_or_are = "is" if sum(not_taken.values()) == 1 else "are"
    return f"{label} does not take {' or '.join(not_taken)}: {' and '.join(counted)} {is_or_are} not sent."


def require_attachments(choice: Choice, prompt: P) -> P:
    """Mark attachments as required. Raises UsageError for unsupported ones."""
    if not_taken := unsupported_media(choice, prompt):
        raise UsageError(describe_unsupported(not_taken, choice.label), hint=WITHOUT_ATTACHMENTS)
    return replace(prompt, metadata={**prompt.metadata, MUST_BE_SENT: True})


class AttachmentNotices:
    """Notifies the user once about each attachment that is not sent."""

    def __init__(self) -> None:
        self._known: set[str] = set()

    def notice(self, choice: Choice, messages: Sequence[Message]) -> str:
        """Notice about messages not seen before; empty if all attachments are sent."""
        found: Counter[Ability] = Counter()
        for message in messages:
            if message.role == "user" and message.id not in self._known and has_media(message):
                self._known.add(message.id)
                found.update(unsupported_media(choice, message))
        return describe_unsupported({kind: found[kind] for kind in MEDIA if kind in found}, choice.label) if found else ""


def _thinking_counts(choice: Choice, level: ThinkingLevel) -> bool:
    if choice.provider.name == LOCAL:
        return False
    sent = _encoded(choice, level)
    return sent != _encoded(choice, None) or any(sent != _encoded(choice, other) for other in LEVELS if other != level)


def _encoded(choice: Choice, level: ThinkingLevel | None) -> bytes:
    return format_of(choice).encode(_request(choice, user("hello"), level))


def _is_sent(choice: Choice, part: MediaPart) -> bool:
    if choice.provider.name == LOCAL:
        return False
    small = replace(part, data=part.data[:1]) if part.data else part
    body = format_of(choice).encode(_request(choice, user("hello", small), None))
    return NOT_SUPPORTED.encode() not in body


def _request(choice: Choice, message: Message, level: ThinkingLevel | None) -> Request:
    question = Question(messages=(message,))
    return request_for(replace(choice, thinking=level), producer_of(choice, choice.format), question)


def _kind(part: MediaPart) -> Ability:
    return "images" if isinstance(part, ImagePart) else "audio" if isinstance(part, AudioPart) else "files"


def effective_level(choice: Choice, level: ThinkingLevel) -> ThinkingLevel:
    """The nearest supported level, by the flags of the dialect."""
    flags: dict[str, Any] = {**choice.provider.dialect, **choice.model.dialect}
    if known := flags.get("thinking_levels"):
        level = nearest_level(level, msgspec.convert(known, tuple[ThinkingLevel, ...]))
    style = flags.get("thinking_param_style", "")
    if style == "glm":
        return glm_level(choice.model.id, level)
    if level == "off" and (always_thinks(style, choice.model.id) or flags.get("thinking_off") == "refused"):
        return "low"
    return level


def always_on_notice(choice: Choice) -> str:
    """Notice when thinking cannot be turned off; empty otherwise."""
    wanted = choice.thinking
    if wanted != "off" or (used := effective_level(choice, wanted)) == "off":
        return ""
    return f"{choice.label} always thinks; level {used} is used instead of off."
