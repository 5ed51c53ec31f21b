"""What the writers of other agents' sessions have in common."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from typing import NamedTuple

from wolo.formats.encoding.attachments import data_url
from wolo.messages.parts import AudioPart, FilePart, ImagePart, MediaPart
from wolo.messages.roles import AgentMessage, BranchSummaryMessage, CompactionSummaryMessage, UserMessage
from wolo.sessions.exchange.importers.producers import KNOWN
from wolo.sessions.exchange.redaction import Redactor
from wolo.sessions.exchange.sniff import END_OF_TIME
from wolo.sessions.listing import SessionInfo

_SPACE = uuid.UUID("8f6a4f5e-9a0f-5a3b-9d4c-77a1c0c0de00")

KNOWN_AS = {ours: theirs for theirs, (ours, _) in KNOWN.items()}
"""What wolo calls a provider → what other agents call it."""


class About(NamedTuple):
    """A session, without secrets."""

    id: str
    title: str
    cwd: str
    model: str
    created: float
    updated: float


def about(info: SessionInfo, redactor: Redactor | None) -> About:
    title, cwd, model = (
        redactor.text(each) if redactor else each for each in (info.title or info.name or "", info.cwd, info.model)
    )
    return About(info.id, title, cwd, model, info.created, info.updated)


def stable_uuid(*names: str) -> str:
    """The same for the same names."""
    return str(uuid.uuid5(_SPACE, "\0".join(names)))


def iso(then: float) -> str:
    known = then if 0 < then < END_OF_TIME else 0.0
    return datetime.fromtimestamp(known, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def milliseconds(then: float) -> int:
    return int(then * 1000) if 0 < then < END_OF_TIME else 0


def is_said_by_user(spoken: AgentMessage) -> bool:
    """Summaries are the user's there."""
    return isinstance(spoken, UserMessage | BranchSummaryMessage | CompactionSummaryMessage)


def address(part: MediaPart) -> str:
    """An address or a data URL."""
    if not part.data and isinstance(part, ImagePart | FilePart):
        return part.url
    default = {ImagePart: "image/png", AudioPart: "audio/mpeg", FilePart: "application/pdf"}[type(part)]
    return data_url(part.media_type or default, part.data)


def provider_name(provider: str) -> str:
    return KNOWN_AS.get(provider, provider)
