"""What a session is made of: append-only entries."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field

from wolo.messages.message import Message
from wolo.messages.parts import ToolPart


class Entry(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind"):
    pass


class MessageEntry(Entry, frozen=True, kw_only=True, omit_defaults=True, tag="message"):
    message: Message


class ResultsEntry(Entry, frozen=True, kw_only=True, omit_defaults=True, tag="results"):
    """Calls of an earlier assistant message have ended (or started, or were decided): its parts of equal id are replaced."""

    message_id: str
    parts: tuple[ToolPart, ...]


class PartialEntry(Entry, frozen=True, kw_only=True, omit_defaults=True, tag="partial"):
    """A further piece of an answer that was still streaming; the pieces of one id make its text so far.

    Superseded by the assistant message, or the next attempt, that follows; an empty piece takes all earlier ones back.
    """

    message_id: str
    text: str


class SettingEntry(Entry, frozen=True, kw_only=True, omit_defaults=True, tag="setting"):
    """The model, the mode or the name changed from here on."""

    name: str
    value: str


class CustomEntry(Entry, frozen=True, kw_only=True, omit_defaults=True, tag="custom"):
    """What an extension keeps; never sent."""

    custom_type: str
    data: dict[str, Any] = field(default_factory=dict)


AnyEntry = MessageEntry | ResultsEntry | PartialEntry | SettingEntry | CustomEntry
