"""Defines the entries of a session."""

# No `from __future__ import annotations`: msgspec would compile the text of each annotation at every start.

from collections.abc import Iterable
from typing import Any

from msgspec import Struct, field, to_builtins

from wolo.messages.message import Message, Usage
from wolo.messages.parts import ToolPart


class Entry(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind"):
    pass


class MessageEntry(Entry, frozen=True, kw_only=True, omit_defaults=True, tag="message"):
    message: Message


class ResultsEntry(Entry, frozen=True, kw_only=True, omit_defaults=True, tag="results"):
    """Replaces calls of an earlier assistant message by parts of the same id: they started, ended or were decided."""

    message_id: str
    parts: tuple[ToolPart, ...]


class PartialEntry(Entry, frozen=True, kw_only=True, omit_defaults=True, tag="partial"):
    """A piece of a streaming answer; the pieces of one id form its text so far.

    Superseded by the next assistant message or attempt. An empty piece discards the earlier ones.
    """

    message_id: str
    text: str


class SettingEntry(Entry, frozen=True, kw_only=True, omit_defaults=True, tag="setting"):
    """Changes the model, the mode, the name or the title."""

    name: str
    value: str


class BranchEntry(Entry, frozen=True, kw_only=True, omit_defaults=True, tag="branch"):
    """Continues the conversation after an earlier entry, its parent."""

    left: int
    """The previous head; the entries in between stay on their own branch."""
    summary: Message | None = None
    """Summary of the branch that was left, of role `branch_summary`."""


class LabelEntry(Entry, frozen=True, kw_only=True, omit_defaults=True, tag="label"):
    """A label set by the user; the last one of a message counts, an empty one removes it."""

    message_id: str
    label: str


class CompactionEntry(Entry, frozen=True, kw_only=True, omit_defaults=True, tag="compaction"):
    """Sends less of the conversation from here on. The last one counts; an empty one reverts the earlier ones."""

    summary: Message | None = None
    """Replaces the messages left out; of role `compaction_summary`."""
    shortened: tuple[str, ...] = ()
    """Ids of messages whose tool outputs are sent shortened."""
    left_out: tuple[str, ...] = ()
    """Ids of messages that are not sent."""
    sent_from: str = ""
    """Id of the oldest message that is still sent; empty: unknown, or nothing is left out."""
    reason: str = ""
    tokens_before: int = 0
    tokens_after: int = 0
    usage: Usage | None = None
    """Usage of the request for the summary."""


class CustomEntry(Entry, frozen=True, kw_only=True, omit_defaults=True, tag="custom"):
    """Data of an extension; never sent."""

    custom_type: str
    data: dict[str, Any] = field(default_factory=dict)


SIDE_QUESTION = "aside"
"""`custom_type` of a side question; only its usage is stored."""


def side_question_entry(usage: Usage) -> CustomEntry:
    return CustomEntry(custom_type=SIDE_QUESTION, data={"usage": to_builtins(usage)})


STEERING = "steering"
"""`custom_type` of words for a running turn; the turn saves them again as a message when the model gets them."""


def unsent_steering(entries: "Iterable[AnyEntry]") -> tuple[str, ...]:
    """Words that were accepted for a turn which was killed before the model got them."""
    unsent: list[str] = []
    for entry in entries:
        if isinstance(entry, CustomEntry) and entry.custom_type == STEERING:
            unsent.append(str(entry.data.get("text", "")))
        elif isinstance(entry, MessageEntry) and entry.message.role == "user":
            unsent = [text for text in unsent if text not in entry.message.text]
    return tuple(unsent)


GOAL_ENTRY = "goal"
"""`custom_type` of the state of a session's goal; the last one counts."""


AnyEntry = MessageEntry | ResultsEntry | PartialEntry | SettingEntry | BranchEntry | LabelEntry | CompactionEntry | CustomEntry
