"""Formats messages and calls for Markdown and HTML exports."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from wolo.formats.encoding.wire_forms import arguments_object
from wolo.messages.message import Message
from wolo.messages.parts import AudioPart, FilePart, MediaPart, ToolPart
from wolo.messages.unicode import whole
from wolo.sessions.exchange.json_files import END_OF_TIME
from wolo.sessions.listing import SessionInfo

SUBJECTS = ("command", "path", "pattern", "url", "query", "id")
"""Arguments that describe a call best, in order of preference."""
SUBJECT_CHARACTERS = 120

SPEAKERS = {
    "user": "User",
    "assistant": "Assistant",
    "system": "System",
    "branch_summary": "Summary of another branch",
    "compaction_summary": "Summary of earlier messages",
}

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufffe\uffff]")


def plain(text: str) -> str:
    """Replaces control characters and marks that change the direction of text."""
    return _CONTROLS.sub("\ufffd", whole(text).replace("\r\n", "\n").replace("\r", "\n"))


def is_for_readers(message: Message) -> bool:
    return message.role in SPEAKERS and bool(message.parts or message.error)


def title(info: SessionInfo) -> str:
    return plain(info.name or info.title or info.id)


def when(then: float) -> str:
    """In UTC; empty when unknown."""
    return datetime.fromtimestamp(then, UTC).strftime("%Y-%m-%d %H:%M UTC") if 0 < then < END_OF_TIME else ""


def timestamp(then: float) -> str:
    """Returns ISO 8601; the Unix epoch when unknown."""
    return datetime.fromtimestamp(then if 0 < then < END_OF_TIME else 0.0, UTC).isoformat()


def subject(call: ToolPart) -> str:
    arguments = arguments_object(call)
    said = next((str(arguments[name]) for name in SUBJECTS if isinstance(arguments.get(name), str)), "")
    line = plain(said).strip().partition("\n")[0]
    return line if len(line) <= SUBJECT_CHARACTERS else f"{line[: SUBJECT_CHARACTERS - 1]}…"


def outcome(call: ToolPart) -> str:
    """Empty for a successful call."""
    if call.status == "completed":
        return ""
    return (call.outcome or call.status).replace("_", " ")


def describe(part: MediaPart) -> str:
    """Describes an attachment that cannot be shown."""
    kind = part.media_type or part.type
    if isinstance(part, FilePart) and part.name:
        kind = f"{part.name}, {kind}"
    where = "" if isinstance(part, AudioPart) or part.data else plain(part.url)
    return f"[{plain(kind)}{f', {len(part.data):,} bytes' if part.data else ''}{f': {where}' if where else ''}]"
