"""Reads prompts that come as JSON lines on stdin, in the form of Claude Code."""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
import os
from collections.abc import Callable
from typing import Any

from wolo.errors import UsageError
from wolo.messages.message import UserPrompt
from wolo.messages.parts import AnyPart, ImagePart, TextPart

MAX_LINE_BYTES = 32 * 1024 * 1024


def read_prompt(line: bytes) -> UserPrompt:
    """The prompt of a line in the form of Claude Code; a program wrote it. Raises UsageError."""
    try:
        said = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"A line on stdin is no JSON: {error}.") from error
    return to_prompt(said)


def to_prompt(line: Any) -> UserPrompt:
    """The prompt of a message in the form of Claude Code. Raises UsageError."""
    message = line.get("message") if isinstance(line, dict) and line.get("type") == "user" else None
    content = message.get("content") if isinstance(message, dict) and message.get("role", "user") == "user" else None
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    if not isinstance(content, list):
        raise UsageError(
            "A line on stdin is no prompt of a user.", hint='{"type":"user","message":{"role":"user","content":"…"}}'
        )
    parts = tuple(map(_part, content))
    if not any(not isinstance(part, TextPart) or part.text.strip() for part in parts):
        raise UsageError("A line on stdin has an empty prompt.")
    return UserPrompt(role="user", parts=parts, finished=True, origin="file")


def _part(block: Any) -> AnyPart:
    match block:
        case {"type": "text", "text": str(text)}:
            return TextPart(text=text)
        case {"type": "image", "source": {"type": "base64", "media_type": str(media_type), "data": str(data)}}:
            try:
                return ImagePart(media_type=media_type, data=base64.b64decode(data, validate=True))
            except binascii.Error as error:
                raise UsageError(f"An image on stdin is no base64: {error}.") from error
    kind = block.get("type") if isinstance(block, dict) else block
    raise UsageError(f"A prompt on stdin contains {kind!r}.", hint="It may contain text, and images as base64.")


def read_lines(descriptor: int, loop: asyncio.AbstractEventLoop, take: Callable[[bytes | None], None]) -> None:
    """Hands each line to `take`, then None. Reads without the buffer of `sys.stdin`, which Python would wait for at its end."""
    rest = b""
    while True:
        try:
            piece = os.read(descriptor, 1 << 20)
        except OSError:
            piece = b""
        *lines, rest = (rest + piece).split(b"\n")
        if not piece or len(rest) > MAX_LINE_BYTES:
            lines.append(rest)
            piece = b""
        try:
            for line in lines:
                loop.call_soon_threadsafe(take, line)
            if not piece:
                loop.call_soon_threadsafe(take, None)
                return
        except RuntimeError:  # the loop has ended
            return
