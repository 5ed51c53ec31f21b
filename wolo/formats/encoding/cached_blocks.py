"""A stretch of conversation as one block of text that a provider keeps in its cache."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from wolo.formats.decoding.tolerant_json import read_object
from wolo.formats.encoding.pairing import arguments_object, result_text, visible_message
from wolo.messages.message import Message
from wolo.messages.parts import MediaPart, TextPart

if TYPE_CHECKING:
    from wolo.messages.roles import AgentMessage

CACHE = "cache"
"""Under this name the metadata of a user message say that its text is to be kept in the cache."""
CACHE_CONTROL = {"type": "ephemeral"}
EMBEDDED = "Tool: {"
"""How a tool's result begins that stands in the text."""

_SPEAKERS = {"user": "User", "assistant": "Assistant"}


def format_conversation_for_cache(messages: Sequence[Message | AgentMessage]) -> Message:
    """The whole stretch as one user message of plain text. Put it behind the system message and before what is new.

    Formats that know cache marks give it one; to others it is a message like any other. Raises ValueError for a result
    without an open call before it.
    """
    own = tuple(each for each in messages if isinstance(each, Message))
    if len(own) < len(messages):
        from wolo.messages.roles import to_messages  # noqa: PLC0415  # wolo itself has stored messages only

        own = to_messages(messages)
    text = "\n\n".join(line for message in own for line in _message_lines(message))
    return Message(role="user", parts=(TextPart(text=text),), finished=True, metadata={CACHE: True})


def is_cached_block(message: Message | AgentMessage | Mapping[str, Any]) -> bool:
    """Ours by its metadata; on the wire a message whose content list holds a part with `cache_control`."""
    if not isinstance(message, Mapping):
        return bool(message.metadata.get(CACHE))
    content = message.get("content")
    return isinstance(content, list) and any(isinstance(part, dict) and part.get("cache_control") for part in content)


def without_embedded_results(messages: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Without user messages that are a tool's result spelled as text and answer no call before them.

    For conversations of other systems, as messages of Chat Completions. A cached block holds such text rightly and stays.
    """
    kept: list[Mapping[str, Any]] = []
    called: set[str] = set()
    for message in messages:
        if is_cached_block(message) or not _is_stray_result(message, called):
            kept.append(message)
        called.update(_call_ids(message))
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
    text = _text_of(message.get("content"))
    if message.get("role") != "user" or not text.startswith(EMBEDDED):
        return False
    result = read_object(text.removeprefix("Tool:").encode("utf-8", "surrogatepass")) or {}
    return result.get("tool_call_id") not in called


def _text_of(content: Any) -> str:
    if isinstance(content, list):
        return "".join(part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str)).lstrip()
    return content.lstrip() if isinstance(content, str) else ""


def _call_ids(message: Mapping[str, Any]) -> Iterator[str]:
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        if isinstance(call, dict) and isinstance(call.get("id"), str):
            yield call["id"]
