"""Turns the content blocks of a prompt into a message, and messages into content blocks."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from wolo.errors import UsageError
from wolo.frontends.acp.acp_sdk import helpers, schema
from wolo.messages.parts import AnyPart, AudioPart, FilePart, ImagePart, TextPart


class GivenPrompt(Struct, frozen=True, kw_only=True):
    text: str
    """With the names of linked files."""
    typed: str
    """Without them; `@path` in it attaches files."""
    files: tuple[Path, ...]
    """Linked files."""
    parts: tuple[AnyPart, ...]
    """Media and embedded texts."""


def read_prompt(blocks: Sequence[Any]) -> GivenPrompt:
    """Raises UsageError for a block that cannot be read, and for a prompt without content."""
    text: list[str] = []
    typed: list[str] = []
    files: list[Path] = []
    parts: list[AnyPart] = []
    for block in blocks:
        match block:
            case schema.TextContentBlock():
                text.append(block.text)
                typed.append(block.text)
            case schema.ResourceContentBlock():
                path = file_of(block.uri)
                if path is not None and path.is_file():
                    files.append(path)
                    text.append(f"[{block.name}]({path})")
                else:
                    text.append(f"[{block.name}]({path or block.uri})")
            case schema.EmbeddedResourceContentBlock():
                resource = block.resource
                if isinstance(resource, schema.TextResourceContents):
                    source = file_of(resource.uri) or resource.uri
                    parts.append(TextPart(text=f'\n\n<context source="{source}">\n{resource.text}\n</context>'))
                    continue
                data, media_type = _data(resource.blob, "resource"), resource.mime_type or ""
                part_type = ImagePart if media_type.startswith("image/") else FilePart
                parts.append(part_type(name=Path(urlsplit(resource.uri).path).name, media_type=media_type, data=data))
            case schema.ImageContentBlock():
                parts.append(
                    ImagePart(
                        name=Path(urlsplit(block.uri or "").path).name,
                        media_type=block.mime_type,
                        data=_data(block.data, "image"),
                    )
                )
            case schema.AudioContentBlock():
                parts.append(AudioPart(media_type=block.mime_type, data=_data(block.data, "audio")))
    if not parts and not "".join(text).strip():
        raise UsageError("The prompt is empty.")
    return GivenPrompt(text="".join(text), typed=" ".join(typed), files=tuple(files), parts=tuple(parts))


def _data(encoded: str, what: str) -> bytes:
    try:
        return base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError) as error:
        raise UsageError(f"The {what} of the prompt is not valid Base64: {error}.") from error


def file_of(uri: str) -> Path | None:
    """The path of a `file:` URI or of an absolute path; None for other URIs."""
    if uri.startswith("/"):
        return Path(uri)
    parts = urlsplit(uri)
    return Path(unquote(parts.path)) if parts.scheme == "file" and parts.path else None


def blocks_of(parts: Sequence[AnyPart]) -> Iterator[Any]:
    """Texts and media, in order."""
    for part in parts:
        match part:
            case TextPart() if part.text and not part.is_notice:
                yield helpers.text_block(part.text)
            case ImagePart() if part.data:
                yield helpers.image_block(base64.b64encode(part.data).decode("ascii"), part.media_type)
            case AudioPart() if part.data:
                yield helpers.audio_block(base64.b64encode(part.data).decode("ascii"), part.media_type)
            case _:
                pass


def readable(files: Sequence[Path], allow: Callable[[Path], None]) -> tuple[Path, ...]:
    """The linked files that may be attached; the model knows the names of the others."""
    paths: list[Path] = []
    for path in files:
        try:
            allow(path)
            if path.stat().st_size <= MOST_OF_LINK:
                paths.append(path)
        except (UsageError, OSError):
            continue
    return tuple(paths)


MOST_OF_LINK = 256 * 1024
"""Larger linked files are only named; the model reads what it needs of them."""
