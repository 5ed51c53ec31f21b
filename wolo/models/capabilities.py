"""Check what a model supports: thinking levels and attachments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

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

LOCAL = "local"
"""The provider whose models run in a process of wolo: they read text, and do not think."""
WITHOUT_ATTACHMENTS = "Choose a model that takes it (`wolo models list`), or send the prompt without it: --ignore-unsupported."
_SINGULAR = {"images": "image", "audio": "audio file", "files": "document"}


def no_effect_notice(choice: Choice) -> str:
    """For the user, when the thinking level of this choice changes nothing; empty: it has an effect."""
    level = choice.thinking
    if level is None or _thinking_counts(choice, level):
        return ""
    return f"Thinking level {level} has no effect: wolo knows no way to tell {choice.label} how much to think."


def unsupported_media(choice: Choice, message: Message) -> dict[Ability, int]:
    """The attachments of a prompt that this model does not take, by kind."""
    media = [part for part in message.parts if isinstance(part, MediaPart)]
    found = Counter(_kind(part) for part in media if not _is_sent(choice, part))
    return {kind: found[kind] for kind in MEDIA if kind in found}


def describe_unsupported(not_taken: Mapping[Ability, int], label: str) -> str:
    """`custom/x does not take images: 1 image is not sent.`"""
    counted = [f"{count} {_SINGULAR[kind]}{'' if count == 1 else 's'}" for kind, count in not_taken.items()]
    is_or_are = "is" if sum(not_taken.values()) == 1 else "are"
    return f"{label} does not take {' or '.join(not_taken)}: {' and '.join(counted)} {is_or_are} not sent."


def require_attachments(choice: Choice, prompt: Message) -> Message:
    """The prompt, whose attachments must reach the model. Raises UsageError for those that the model does not take."""
    if not_taken := unsupported_media(choice, prompt):
        raise UsageError(describe_unsupported(not_taken, choice.label), hint=WITHOUT_ATTACHMENTS)
    return replace(prompt, metadata={**prompt.metadata, MUST_BE_SENT: True})


class AttachmentNotices:
    """Tells the user once of each attachment that does not reach the model."""

    def __init__(self) -> None:
        self._known: set[str] = set()

    def notice(self, choice: Choice, messages: Sequence[Message]) -> str:
        """About the messages it was not asked about before; empty: all of their attachments are sent."""
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
    """The nearest one that this model knows. What a model answers to a level is told by the flags of its dialect."""
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
    """A word to a person who turned thinking off where it cannot be; empty: there is nothing to say."""
    wanted = choice.thinking
    if wanted != "off" or (used := effective_level(choice, wanted)) == "off":
        return ""
    return f"{choice.label} always thinks; level {used} is used instead of off."
