"""What a prompt carries besides its words: files named with `-f` or `@path`, and what was piped in."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from wolo.errors import UsageError
from wolo.messages.media_types import audio_type, image_type
from wolo.messages.message import Message
from wolo.messages.parts import AnyPart, AudioPart, FilePart, ImagePart, TextPart

MAX_TEXT_BYTES = 256 * 1024
MAX_MEDIA_BYTES = 20 * 1024 * 1024
HEAD_BYTES = 16
PDF = b"%PDF-"

_MENTION = re.compile(r"(?<![\w@])@(?:\"([^\"]+)\"|([^\s@\"]+))")


def compose(
    text: str, *, piped: str = "", files: tuple[Path, ...] = (), cwd: Path, attaching: Callable[[Path], None] = lambda path: None
) -> Message:
    """The user message of a prompt. Raises UsageError for a file that cannot be attached.

    `@path` in the text attaches the file when one of that name is there; otherwise it stays a word like any other.
    `attaching` hears of each before it is read.
    """
    parts: list[AnyPart] = [TextPart(text=_with_piped(text, piped))]
    for path in dict.fromkeys((*((cwd / file) for file in files), *_mentioned(text, cwd))):
        attaching(path)
        parts.append(_attach(path))
    return Message(role="user", parts=parts, finished=True)


def _with_piped(text: str, piped: str) -> str:
    if not piped:
        return text
    return f"{text}\n\n<stdin>\n{piped.rstrip(chr(10))}\n</stdin>"


def _mentioned(text: str, cwd: Path) -> list[Path]:
    found = []
    for quoted, plain in _MENTION.findall(text):
        for name in (quoted,) if quoted else (plain, plain.rstrip(".,;:!?)]}'")):
            if name and _is_file(cwd / name):
                found.append(cwd / name)
                break
    return found


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def _attach(path: Path) -> AnyPart:
    try:
        if not path.is_file():
            raise UsageError(f"{path} is not a file that can be attached.")
        size = path.stat().st_size
        if size > MAX_MEDIA_BYTES:
            raise UsageError(f"{path} is too large to attach ({size:,} bytes).", hint="Name it in the prompt; wolo can read it.")
        data = path.read_bytes()
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be attached: {error}.") from error
    return _media(path, data) or _text(path, data)


def _media(path: Path, data: bytes) -> AnyPart | None:
    if kind := image_type(data[:HEAD_BYTES]):
        return ImagePart(media_type=kind, data=data)
    if kind := audio_type(data[:HEAD_BYTES]):
        return AudioPart(media_type=kind, data=data)
    if data.startswith(PDF):
        return FilePart(name=path.name, media_type="application/pdf", data=data)
    return None


def _text(path: Path, data: bytes) -> TextPart:
    if b"\0" in data[:8192]:
        raise UsageError(f"{path} is binary; only text, images, audio and PDF documents can be attached.")
    if len(data) > MAX_TEXT_BYTES:
        raise UsageError(f"{path} is too large to attach ({len(data):,} bytes).", hint="Name it in the prompt; wolo can read it.")
    return TextPart(text=f'\n\n<file path="{path}">\n{data.decode("utf-8", "replace")}\n</file>')
