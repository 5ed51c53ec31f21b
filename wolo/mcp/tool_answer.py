"""Answers of servers as text, media and files; an item that cannot be read costs only itself."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from wolo.messages.media import HEAD_BYTES, audio_type, image_type
from wolo.messages.parts import AudioPart, ImagePart, MediaPart

MOST_MEDIA_BYTES = 20 * 1024 * 1024
_LONGEST_FILE_NAME = 80


class BinaryFile(Struct, frozen=True):
    """Contents that no model reads; they are saved to a file."""

    label: str
    """The resource or the kind, for the note that names the file."""
    name: str
    data: bytes


Item = str | MediaPart | BinaryFile


class ToolAnswer(Struct, frozen=True):
    items: tuple[Item, ...]
    is_error: bool = False

    @property
    def media(self) -> tuple[MediaPart, ...]:
        return tuple(item for item in self.items if not isinstance(item, str | BinaryFile))

    def text(self, save: Callable[[str, bytes], Path]) -> str:
        """Saves binary contents, and names the files."""
        return "\n".join(_text(item, save) for item in self.items if isinstance(item, str | BinaryFile))


def _text(item: str | BinaryFile, save: Callable[[str, bytes], Path]) -> str:
    if isinstance(item, str):
        return item
    try:
        return f"[{item.label}: {len(item.data):,} bytes, saved to {save(item.name, item.data)}]"
    except OSError as error:
        return f"[{item.label}: {len(item.data):,} bytes, which could not be saved: {error.strerror or error}]"


def read_answer(result: Mapping[str, Any], complaint: str = "") -> ToolAnswer:
    """Structured content is used only without text, since servers repeat it in both. `complaint` is added as a note."""
    items = read_items(_as_list(result.get("content")))
    structured = result.get("structuredContent")
    if structured is not None and not any(isinstance(item, str) and item.strip() for item in items):
        items.append(json.dumps(structured, ensure_ascii=False, indent=1))
    if complaint:
        items.append(f"[{complaint}]")
    return ToolAnswer(tuple(items), bool(result.get("isError")))


def read_items(blocks: Sequence[object]) -> list[Item]:
    """Content blocks of a tool's result or of a prompt."""
    return [item for block in blocks for item in _read(block)]


def read_contents(contents: object) -> list[Item]:
    """Contents of a resource."""
    return [item for each in _as_list(contents) for item in _resource(each)]


def _as_list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _read(block: object) -> Iterator[Item]:
    if not isinstance(block, Mapping):
        yield "[a part that cannot be read]"
        return
    match block.get("type"):
        case "text":
            yield str(block.get("text", ""))
        case "image" | "audio" as kind:
            yield _medium(kind, str(block.get("data", "")), str(block.get("mimeType", "")))
        case "resource":
            yield from _resource(block.get("resource"))
        case "resource_link":
            named = " ".join(str(block[key]) for key in ("title", "name", "description") if block.get(key))
            yield f"[a link to {block.get('uri', '')} {named}]"
        case other:
            yield f"[a part of the kind {other}, which is not understood]"


def _resource(resource: object) -> Iterator[Item]:
    if not isinstance(resource, Mapping):
        yield "[a resource that cannot be read]"
        return
    uri, kind = str(resource.get("uri", "")), str(resource.get("mimeType") or "")
    if isinstance(text := resource.get("text"), str):
        yield f"[{uri}]\n{text}"
    elif kind.startswith(("image/", "audio/")):
        yield _medium(kind.partition("/")[0], str(resource.get("blob", "")), kind, uri)
    else:
        yield _binary(str(resource.get("blob", "")), kind, uri)


def _medium(kind: str, data: str, media_type: str, uri: str = "") -> Item:
    """Only contents that really are an image or a recording go to the model; a provider would refuse the whole request."""
    label = f"{kind} {uri}".rstrip()
    if len(data) * 3 // 4 > MOST_MEDIA_BYTES:
        return f"[{label} of more than {MOST_MEDIA_BYTES // 1024 // 1024} MB, not shown]"
    try:
        packed = f"data:{media_type};base64,{data}"
        part = ImagePart.of(packed) if kind == "image" else AudioPart.of(packed)
    except ValueError:
        return f"[{label} that cannot be read]"
    if not part.data:
        return f"[{label} that holds nothing]"
    known = image_type(part.data[:HEAD_BYTES]) if kind == "image" else audio_type(part.data[:HEAD_BYTES]) or media_type
    return replace(part, name=uri) if known else _binary(data, media_type, uri or kind)


def _binary(data: str, media_type: str, uri: str) -> Item:
    label = f"{uri}: {media_type or 'binary'}"
    if len(data) * 3 // 4 > MOST_MEDIA_BYTES:
        return f"[{label}, more than {MOST_MEDIA_BYTES // 1024 // 1024} MB, not saved]"
    try:
        found = base64.b64decode("".join(data.split()), validate=True)
    except (binascii.Error, ValueError):
        return f"[{label}, which cannot be read]"
    return BinaryFile(label, _file_name(uri, media_type), found) if found else f"[{label}, which holds nothing]"


def _file_name(uri: str, media_type: str) -> str:
    import mimetypes  # noqa: PLC0415  # few results hold files

    stem = re.sub(r"[^A-Za-z0-9._-]+", "_", uri.rstrip("/").rpartition("/")[2])[-_LONGEST_FILE_NAME:].strip("._") or "resource"
    extension = "" if "." in stem else mimetypes.guess_extension(media_type.partition(";")[0].strip()) or ".bin"
    return f"{stem}{extension}"


_LONGEST_VIOLATION = 300


class UnusableSchema(Exception):
    """The schema is invalid, or refers to something outside itself."""


def first_violation(schema: Mapping[str, Any], value: object) -> str:
    """Empty where the value follows the schema. Loads nothing that the schema refers to. Raises UnusableSchema."""
    from jsonschema.validators import validator_for  # noqa: PLC0415  # few servers need it
    from referencing import Registry  # noqa: PLC0415  # the same

    try:
        error = next(iter(validator_for(schema)(schema, registry=Registry()).iter_errors(value)), None)
    except Exception as problem:  # whatever a server's schema makes the validator raise
        raise UnusableSchema((str(problem).splitlines() or [type(problem).__name__])[0][:_LONGEST_VIOLATION]) from problem
    return "" if error is None else error.message[:_LONGEST_VIOLATION]
