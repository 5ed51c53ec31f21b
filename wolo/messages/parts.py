"""The typed pieces a message is made of."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, Literal

from msgspec import Struct, field

ToolStatus = Literal["pending", "running", "completed", "failed"]

Outcome = Literal["ok", "error", "denied_by_person", "denied_by_rule", "interrupted", "never_started", "cut_off", "invalid"]
"""How a call ended. `interrupted` may have had effects; `never_started` had none; `cut_off` came from an answer that hit
the output limit; `invalid` had arguments that could not be read."""

ToolKind = Literal["read", "edit", "delete", "move", "search", "execute", "think", "fetch", "other"]
"""The kinds of tools of the Agent Client Protocol."""

TASK = "task"
"""Under this name the metadata of a call say which agent worked for it, in which session, and what that used."""

IN_FENCE = "in_fence"
"""Under this name the metadata of a call say that it was written in a code fence behind other text: a person must approve it."""


def new_id(prefix: str) -> str:
    return f"{prefix}_{os.urandom(10).hex()}"


class Blob(Struct, frozen=True, omit_defaults=True):
    """Something opaque that only its producer understands and that must go back byte for byte."""

    kind: str
    """`anthropic.signature`, `anthropic.redacted`, `openai.encrypted`, `gemini.thoughtSignature`, …"""
    data: str


def blob_of(blobs: Iterable[Blob], kind: str) -> str:
    """The first of this kind; empty when there is none."""
    return next((blob.data for blob in blobs if blob.kind == kind), "")


class Part(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type"):
    id: str = field(default_factory=lambda: new_id("part"))
    """Ours; never the wire's."""
    item_id: str = ""
    """The wire's id of this item where the format has one (OpenAI Responses `rs_…`, `fc_…`, `msg_…`)."""
    blobs: tuple[Blob, ...] = ()

    @property
    def type(self) -> str:
        return str(self.__struct_config__.tag)


class TextPart(Part, frozen=True, kw_only=True, omit_defaults=True, tag="text"):
    text: str = ""
    phase: Literal["", "commentary", "final_answer"] = ""


class ThinkingPart(Part, frozen=True, kw_only=True, omit_defaults=True, tag="thinking"):
    """Reasoning, kept byte for byte: a leading newline is part of it."""

    text: str = ""
    field: str = "reasoning_content"
    """The name it came under on the wire; it goes back under the same name."""


class ImagePart(Part, frozen=True, kw_only=True, omit_defaults=True, tag="image"):
    """Either `data` (raw bytes, with `media_type`) or `url`."""

    media_type: str = ""
    data: bytes = b""
    url: str = ""
    detail: str = "auto"


class AudioPart(Part, frozen=True, kw_only=True, omit_defaults=True, tag="audio"):
    media_type: str = ""
    data: bytes = b""


class FilePart(Part, frozen=True, kw_only=True, omit_defaults=True, tag="file"):
    """A document such as a PDF."""

    name: str = ""
    media_type: str = ""
    data: bytes = b""
    url: str = ""


class ToolPart(Part, frozen=True, kw_only=True, omit_defaults=True, tag="tool"):
    """A tool call, its life cycle and its result in one: `pending → running → completed | failed`."""

    tool: str
    input: dict[str, Any] = field(default_factory=dict)
    """Parsed arguments; `{}` when the model's text could not be read."""
    raw_input: str = ""
    """The argument text as the model wrote it (key order matters to caches); evidence when it did not parse."""
    call_id: str = ""
    """The wire's id of the call; empty means `id` serves."""
    kind: ToolKind | None = None
    """A hint for user interfaces; never sent."""
    status: ToolStatus = "pending"
    outcome: Outcome | None = None
    """None while the call is pending or running."""
    output: str = ""
    """What the model reads as the result; the error text when the call failed."""
    output_parts: tuple[ImagePart | AudioPart | FilePart, ...] = ()
    start_time: float = 0.0
    end_time: float = 0.0
    terminate: bool = False
    """The result asks the loop to stop without another request; never sent."""
    metadata: dict[str, Any] = field(default_factory=dict)
    """For hooks, logs and views; never sent."""

    @property
    def is_error(self) -> bool:
        return self.status == "failed"

    @property
    def wire_id(self) -> str:
        return self.call_id or self.id


MediaPart = ImagePart | AudioPart | FilePart
AnyPart = TextPart | ThinkingPart | ImagePart | AudioPart | FilePart | ToolPart
