"""Encode part of a conversation as one cached block of text."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from wolo.formats.encoding.pairing import arguments_object, result_text, visible_message
from wolo.formats.tolerant_json import read_object
from wolo.messages.message import CACHE, Message
from wolo.messages.parts import MediaPart, TextPart

if TYPE_CHECKING:
    from wolo.messages.roles import AgentMessage

EMBEDDED = "Tool: {"
"""Start of a tool result written as text."""

_SPEAKERS = {"user": "User", "assistant": "Assistant"}


def format_conversation_for_cache(messages: Sequence[Message | AgentMessage]) -> Message:
    """Convert messages to one plain-text user message, to be placed after the system message.

    Formats that support cache marks add one. Raises ValueError for a result without an open call before it.
    """
    own = tuple(each for each in messages if isinstance(each, Message))
    if len(own) < len(messages):
        from wolo.messages.roles import to_messages  # noqa: PLC0415  # only API users pass role messages

        own = to_messages(messages)
    text = "\n\n".join(line for message in own for line in _message_lines(message))
    return Message(role="user", parts=(TextPart(text=text),), finished=True, metadata={CACHE: True})


def is_cached_block(message: Message | AgentMessage | Mapping[str, Any]) -> bool:
    """Checks our metadata; on the wire, a content list with `cache_control`."""
    if not isinstance(message, Mapping):
        return bool(message.metadata.get(CACHE))
    content = message.get("content")
    return isinstance(content, list) and any(isinstance(part, dict) and part.get("cache_control") for part in content)


def without_embedded_results(messages: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Remove user messages that are tool results written as text without a matching call.

    For Chat Completions messages of other systems. Cached blocks may contain such text and stay.
    """
    kept: list[Mapping[str, Any]] = []
    called: set[str] = set()
    for message in messages:
        if is_cached_block(message) or not _is_stray_result(message, called):
            kept.append(message)
        calls = message.get("tool_calls")
        ids = (call.get("id") for call in calls if isinstance(call, dict)) if isinstance(calls, list) else ()
        called.update(call_id for call_id in ids if isinstance(call_id, str))
    return kept


def _message_lines(message: Message) -> Iterator[str]:
    visible = visible_message(message, set())
    if visible is None or message.role == "system":
        return
    attached = (f"[{part.type} {part.media_type}]" for part in visible.parts if isinstance(part, MediaPart))
    if text := "\n".join(filter(None, (visible.text.strip(), *attached))):
        yield f"{_SPEAKERS[visible.role]}: {text}"
    for call in visible.calls:
        told = {"name": call.tool, "arguments": arguments_object(call), "result": result_text(call)}
        yield f"Tool: {json.dumps(told, ensure_ascii=False)}"


def _is_stray_result(message: Mapping[str, Any], called: set[str]) -> bool:
    content = message.get("content")
    if isinstance(content, list):
        content = "".join(part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str))
    text = content.lstrip() if isinstance(content, str) else ""
    if message.get("role") != "user" or not text.startswith(EMBEDDED):
        return False
    result = read_object(text.removeprefix("Tool:").encode("utf-8", "surrogatepass")) or {}
    return result.get("tool_call_id") not in called
