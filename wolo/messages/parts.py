"""The typed parts of messages."""

# No `from __future__ import annotations`: msgspec would compile the text of each annotation at every start.

import base64
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct, field

from wolo.messages import media

ToolStatus = Literal["pending", "running", "completed", "failed"]

Outcome = Literal["ok", "error", "denied_by_person", "denied_by_rule", "interrupted", "never_started", "cut_off", "invalid"]
"""Outcome of a call. `interrupted` may have had effects; `never_started` had none; `cut_off` came from a response at the output
limit; `invalid` had unreadable arguments."""

ToolKind = Literal["read", "edit", "delete", "move", "search", "execute", "think", "fetch", "other"]
"""Tool kinds of the Agent Client Protocol."""

TASK = "task"
"""Metadata key of task calls: the subagent, its session and its usage."""

SEARCH = "search"
"""Metadata key of searches by the provider: their usage."""

FINISH = "finish"
"""Key in the metadata of a task: the report of the subagent's finish check."""

CHANGED = "changed_files"
"""Metadata key of the files that a call created and changed."""

EXIT_CODE = "exit_code"
"""Metadata key of a command's exit code; None: it did not end by itself, or not yet."""

IN_FENCE = "in_fence"
"""Metadata key of calls written in a code fence after other text: they require the user's approval."""


def new_id(prefix: str) -> str:
    return f"{prefix}_{os.urandom(10).hex()}"


class Blob(Struct, frozen=True, omit_defaults=True):
    """Opaque data that only its producer understands, replayed byte for byte."""

    kind: str
    """`anthropic.signature`, `anthropic.redacted`, `openai.encrypted`, `gemini.thoughtSignature`, …"""
    data: str


def blob_of(blobs: Iterable[Blob], kind: str) -> str:
    """The first blob of this kind, or empty."""
    return next((blob.data for blob in blobs if blob.kind == kind), "")


class Part(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type"):
    """One piece of a message: text, thinking, media, a call and its result."""

    id: str = field(default_factory=lambda: new_id("part"))
    """Our own id, never the wire's."""
    item_id: str = ""
    """Wire id of the item, in formats that have one (OpenAI Responses `rs_…`, `fc_…`, `msg_…`)."""
    blobs: tuple[Blob, ...] = ()

    @property
    def type(self) -> str:
        return str(self.__struct_config__.tag)


class TextPart(Part, frozen=True, kw_only=True, omit_defaults=True, tag="text"):
    """A text of the user or the model."""

    text: str = ""
    phase: Literal["", "commentary", "final_answer"] = ""
    is_notice: bool = False
    """Wolo's own words behind those of a prompt: sent with it, and not shown as the user's."""


class ThinkingPart(Part, frozen=True, kw_only=True, omit_defaults=True, tag="thinking"):
    """Reasoning, stored byte for byte, including a leading newline."""

    text: str = ""
    field: str = "reasoning_content"
    """Wire field name; used again for replay."""


class ImagePart(Part, frozen=True, kw_only=True, omit_defaults=True, tag="image"):
    """Either `data` (raw bytes, with `media_type`) or `url`."""

    media_type: str = ""
    data: bytes = b""
    url: str = ""
    detail: str = "auto"
    name: str = ""
    """Of its file or resource, for notices; never sent."""

    @classmethod
    def of(cls, source: str | bytes | media.Picture) -> "ImagePart":
        """`source`: an http address, which is not fetched, or what `media.image_bytes` takes. Raises ValueError otherwise."""
        if isinstance(source, str) and source.startswith(media.ADDRESSES):
            return cls(url=source)
        media_type, data = media.image_bytes(source)
        return cls(media_type=media_type, data=data)

    @classmethod
    def from_file(cls, path: str | Path) -> "ImagePart":
        """Raises OSError when the file cannot be read, ValueError when it is no image."""
        data, name = Path(path).read_bytes(), Path(path).name
        part = cls(media_type=media.image_type(data[: media.HEAD_BYTES]) or media.named_image_type(name), data=data, name=name)
        if not media.is_image(part.media_type, data):
            raise ValueError(f"{name!r} is no image. {media.IMAGES_ACCEPTED}")
        return part

    @classmethod
    def from_url(cls, url: str) -> "ImagePart":
        """Nothing is fetched. Raises ValueError unless it is an http address or a data URL."""
        if not url.startswith((*media.ADDRESSES, media.DATA)):
            shown = url[: media.SHOWN_CHARACTERS]
            raise ValueError(f"The address of an image begins with http://, https:// or data:, unlike {shown!r}")
        return cls.of(url)

    def to_base64(self) -> list[tuple[str, str]]:
        """Base64 data with its media type; an address stays as it is, without a type."""
        if self.url and not self.data:
            return [(self.url, "")]
        return [(base64.b64encode(self.data).decode(), self.media_type)]


class AudioPart(Part, frozen=True, kw_only=True, omit_defaults=True, tag="audio"):
    """A sound; `data` is raw bytes."""

    media_type: str = ""
    data: bytes = b""
    name: str = ""
    """Of its file or resource, for notices; never sent."""

    @classmethod
    def of(cls, source: str | bytes) -> "AudioPart":
        """`source`: bytes, base64, a data URL, or `file:` and a path.

        Raises ValueError for other text, OSError when the file cannot be read.
        """
        if isinstance(source, str) and source.startswith(media.FILE):
            return cls.from_file(source.removeprefix(media.FILE))
        media_type, data = media.audio_bytes(source)
        return cls(media_type=media_type, data=data)

    @classmethod
    def from_file(cls, path: str | Path) -> "AudioPart":
        """Raises OSError when the file cannot be read."""
        media_type, data = media.audio_bytes(Path(path).read_bytes())
        return cls(media_type=media_type, data=data, name=Path(path).name)

    @classmethod
    def from_base64(cls, data: str) -> "AudioPart":
        """`data` may be a data URL. Raises ValueError for other text."""
        media_type, decoded = media.audio_bytes(data)
        return cls(media_type=media_type, data=decoded)

    def to_base64(self) -> list[tuple[str, str]]:
        """Base64 data with its media type."""
        return [(base64.b64encode(self.data).decode(), self.media_type)]


class FilePart(Part, frozen=True, kw_only=True, omit_defaults=True, tag="file"):
    """A document such as a PDF."""

    name: str = ""
    media_type: str = ""
    data: bytes = b""
    url: str = ""


class ToolPart(Part, frozen=True, kw_only=True, omit_defaults=True, tag="tool"):
    """A tool call with its life cycle and result: `pending → running → completed | failed`."""

    tool: str
    input: dict[str, Any] = field(default_factory=dict)
    """Parsed arguments; `{}` when unreadable."""
    raw_input: str = ""
    """Arguments as the model wrote them; key order matters for caching."""
    call_id: str = ""
    """Wire id of the call; empty: `id` is used."""
    kind: ToolKind | None = None
    """Display hint; never sent."""
    status: ToolStatus = "pending"
    outcome: Outcome | None = None
    """None while pending or running."""
    output: str = ""
    """Result text for the model, or the error text."""
    output_parts: tuple[ImagePart | AudioPart | FilePart, ...] = ()
    start_time: float = 0.0
    end_time: float = 0.0
    terminate: bool = False
    """Ask the loop to stop without another request; never sent."""
    metadata: dict[str, Any] = field(default_factory=dict)
    """Data for hooks, logs and views; never sent."""

    @property
    def is_error(self) -> bool:
        return self.status == "failed"

    @property
    def wire_id(self) -> str:
        return self.call_id or self.id

    @property
    def was_allowed_at_once(self) -> bool:
        """The guard's verdict stored with the answer was "allow"."""
        verdict = self.metadata.get("verdict")
        return isinstance(verdict, dict) and verdict.get("decision") == "allow"


MediaPart = ImagePart | AudioPart | FilePart
AnyPart = TextPart | ThinkingPart | ImagePart | AudioPart | FilePart | ToolPart
