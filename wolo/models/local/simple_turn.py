"""Where a turn of simple mode stands, read off the messages: what was asked, what has been done, what comes next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from msgspec import Struct

from wolo.messages.message import Message
from wolo.messages.parts import AudioPart, FilePart, ImagePart, TextPart, ToolPart
from wolo.models.local.local_chat import Turn

Plan = Literal["", "change", "project"]
"""Why a file or listing was looked at: to write the file anew, or to say what the project is. Else to answer about it."""

PLAN_KEY: Final = "simple_mode"
"""Under this name the plan stands in the metadata of the message that makes the call."""
ATTACHED: Final = "\n\n<stdin>\n"
MAX_EARLIER_CHARS: Final = 400


class SimpleTurn(Struct, frozen=True, kw_only=True):
    request: str
    """All the text of the user's last message."""
    question: str
    """The same without what was attached or piped in."""
    has_media: bool = False
    calls: tuple[ToolPart, ...] = ()
    """Made since, oldest first."""
    plan: Plan = ""
    """Of the last call."""
    recent_path: str = ""
    """The file that was written last in this conversation."""
    earlier: tuple[Turn, ...] = ()
    """The exchange before this turn, cut short."""

    @property
    def has_attachment(self) -> bool:
        return len(self.request) > len(self.question)


def read_turn(messages: Sequence[Message]) -> SimpleTurn:
    begins = max((at for at, message in enumerate(messages) if message.is_prompt), default=-1)
    asked = messages[begins] if begins >= 0 else None
    since = [message for message in messages[begins + 1 :] if message.role == "assistant"]
    texts = [part.text for part in asked.of(TextPart)] if asked else []
    question = (texts[0] if texts else "").partition(ATTACHED)[0].strip()
    calls = tuple(part for message in since for part in message.calls if part.status in ("completed", "failed"))
    return SimpleTurn(
        request="\n\n".join(texts).strip(),
        question=question,
        has_media=asked is not None and any(isinstance(part, ImagePart | AudioPart | FilePart) for part in asked.parts),
        calls=calls,
        plan=_plan(since),
        recent_path=_recent_path(messages),
        earlier=_earlier(messages[: max(begins, 0)]),
    )


def _plan(since: Sequence[Message]) -> Plan:
    match next((message.metadata.get(PLAN_KEY) for message in reversed(since) if message.calls), ""):
        case "change":
            return "change"
        case "project":
            return "project"
        case _:
            return ""


def _recent_path(messages: Sequence[Message]) -> str:
    for message in reversed(messages):
        for call in reversed(message.calls):
            path = call.input.get("path")
            if call.tool in ("write", "edit") and call.status == "completed" and isinstance(path, str):
                return path
    return ""


def _earlier(messages: Sequence[Message]) -> tuple[Turn, ...]:
    """One exchange is all a tiny model can make use of."""
    for at in range(len(messages) - 1, -1, -1):
        if messages[at].is_prompt:
            answer = "".join(message.text for message in messages[at + 1 :] if message.role == "assistant")
            if answer:
                return (("user", messages[at].text[:MAX_EARLIER_CHARS]), ("assistant", answer[:MAX_EARLIER_CHARS]))
            break
    return ()
