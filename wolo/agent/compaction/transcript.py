"""A conversation as text to be summarised, in as many pieces as it takes for each to fit into one request."""

from __future__ import annotations

import json
from collections.abc import Sequence

from wolo.messages.message import Message
from wolo.messages.parts import AnyPart, TextPart, ThinkingPart, ToolPart
from wolo.messages.unicode import clean
from wolo.models.tokens import estimate_text

CLIPS_CHARS = (4_000, 1_000, 300)
"""How much of each text and output is told: the first with which all of it fits."""
MOST_PIECES = 3
LEFT_OUT = "[… {count} messages in between are not told here …]"


def pieces(messages: Sequence[Message], most_tokens: int) -> list[str]:
    """Each of at most so many tokens; when they would be too many, the middle is not told."""
    for clip in CLIPS_CHARS:
        told, end = _filled(messages, clip, most_tokens)
        if end == len(messages):
            return ["\n\n".join(told)]
    packed: list[list[str]] = []
    begin = 0
    while begin < len(messages) and len(packed) < MOST_PIECES:
        told, count = _filled(messages[begin:], CLIPS_CHARS[-1], most_tokens)
        packed.append(told)
        begin += count
    if begin < len(messages):
        packed = _both_ends(messages, packed[0], most_tokens)
    return ["\n\n".join(piece) for piece in packed]


def _both_ends(messages: Sequence[Message], first: list[str], most_tokens: int) -> list[list[str]]:
    """The newest messages tell more than those in the middle."""
    packed: list[list[str]] = []
    end = len(messages)
    while len(packed) < MOST_PIECES - 1 and end > len(first):
        told, count = _filled(messages[len(first) : end][::-1], CLIPS_CHARS[-1], most_tokens)
        packed.insert(0, told[::-1])
        end -= count
    packed[0] = [LEFT_OUT.format(count=end - len(first)), *packed[0]]
    return [first, *packed]


def _filled(messages: Sequence[Message], clip_chars: int, most_tokens: int) -> tuple[list[str], int]:
    """As many as there is room for, and their number; one at least."""
    filled: list[str] = []
    for message in messages:
        told = _told(message, clip_chars)
        most_tokens -= _size(told)
        if most_tokens < 0 and filled:
            break
        if most_tokens < 0 and clip_chars > CLIPS_CHARS[-1]:
            return [], 0
        filled.append(told if most_tokens >= 0 else _clipped(told, max(most_tokens + _size(told), 1)))
    return filled, len(filled)


def _size(told: str) -> int:
    return estimate_text(told) + 1


def _told(message: Message, clip_chars: int) -> str:
    who = {"assistant": "assistant", "user": "user"}.get(message.role, "note")
    said = [clean(line) for part in message.parts if (line := _part(part, clip_chars))]
    return f"## {who}\n" + ("\n".join(said) or "(nothing)")


def _part(part: AnyPart, clip_chars: int) -> str:
    match part:
        case TextPart():
            return _clipped(part.text.strip(), clip_chars * 2)
        case ThinkingPart():
            return ""
        case ToolPart():
            arguments = _clipped(json.dumps(part.input, ensure_ascii=False), clip_chars // 2)
            ended = "failed" if part.is_error else part.outcome or part.status
            return f"called {part.tool} {arguments}\n{ended}: {_clipped(part.output.strip(), clip_chars)}"
        case _:
            return f"[{part.type}]"


def _clipped(text: str, most_chars: int) -> str:
    if len(text) <= most_chars:
        return text
    end = most_chars // 2
    return f"{text[:end]}\n[… {len(text) - 2 * end:,} characters …]\n{text[len(text) - end :]}"
