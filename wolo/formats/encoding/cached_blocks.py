"""Encode part of a conversation as one cached block of text."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast, overload

from msgspec.structs import replace

from wolo.formats.encoding.encoder import visible_message
from wolo.formats.encoding.wire_forms import arguments_object, result_text
from wolo.formats.tolerant_json import list_at, read_object
from wolo.messages.call_arguments import Unreadable, read_arguments
from wolo.messages.message import CACHE, Message
from wolo.messages.parts import MediaPart, TextPart, ToolPart

if TYPE_CHECKING:
    from wolo.messages.roles import AgentMessage

EMBEDDED = "Tool: {"
"""Start of a tool result written as text."""

_SPEAKERS = {"user": "User", "assistant": "Assistant"}


@overload
def format_conversation_for_cache(messages: Sequence[Message | AgentMessage]) -> Message: ...


@overload
def format_conversation_for_cache(messages: Sequence[Mapping[str, Any]]) -> dict[str, Any]: ...


def format_conversation_for_cache(
    messages: Sequence[Message | AgentMessage] | Sequence[Mapping[str, Any]],
) -> Message | dict[str, Any]:
    """Convert messages to one plain-text user message, to be placed after the system message.

    Of values it makes a value, to which formats that support cache marks add one; of Chat Completions messages it makes such a
    message with its mark. Raises ValueError for a value that is a result without an open call before it, for another role than
    those of Chat Completions, and for a mixture of both forms.
    """
    on_wire = [each for each in messages if isinstance(each, Mapping)]
    own = tuple(_wire_messages(on_wire) if on_wire else (each for each in messages if isinstance(each, Message)))
    if on_wire and len(on_wire) < len(messages):
        raise ValueError("The messages are either all values or all dicts.")
    if len(own) < len(messages) and not on_wire:
        from wolo.messages.roles import to_messages  # noqa: PLC0415  # only API users pass role messages

        own = to_messages(cast("Sequence[Message | AgentMessage]", messages))
    text = "\n\n".join(line for message in own for line in _message_lines(message))
    if on_wire:
        return {"role": "user", "content": [{"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}]}
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


def _wire_messages(messages: Sequence[Mapping[str, Any]]) -> Iterator[Message]:
    """Results join their calls; one without a call stands alone. Only texts and the kinds of attachments are read."""
    results: dict[str, list[Mapping[str, Any]]] = {}
    for message in messages:
        if message.get("role") == "tool":
            results.setdefault(str(message.get("tool_call_id")), []).append(message)
    for at, message in enumerate(messages):
        role, parts = message.get("role"), [TextPart(text=_wire_text(message.get("content")))]
        match role:
            case "system" | "user":
                yield Message(role=role, parts=parts)
            case "assistant":
                calls = [_wire_call(call, results) for call in list_at(message, "tool_calls", Mapping)]
                yield Message(role=role, parts=(*parts, *calls))
            case "tool":
                if any(each is message for each in results[str(message.get("tool_call_id"))]):
                    alone = ToolPart(tool=str(message.get("name") or ""), status="completed", output=parts[0].text)
                    yield Message(role="assistant", parts=(alone,))
            case _:
                raise ValueError(f"messages[{at}] has the role {role!r}, which is not one of system, user, assistant and tool.")


def _wire_call(call: Mapping[str, Any], results: Mapping[str, list[Mapping[str, Any]]]) -> ToolPart:
    """The call with the first of its results, which is taken out of `results`."""
    function = call.get("function")
    function = function if isinstance(function, Mapping) else {}
    arguments = function.get("arguments")
    if isinstance(arguments, str):
        with contextlib.suppress(Unreadable):
            arguments = read_arguments(arguments)
    part = ToolPart(
        tool=str(function.get("name") or ""),
        call_id=str(call.get("id") or ""),
        input=dict(arguments) if isinstance(arguments, Mapping) else {},
    )
    answers = results.get(part.call_id)
    return replace(part, status="completed", output=_wire_text(answers.pop(0).get("content"))) if answers else part


def _wire_text(content: Any) -> str:
    if isinstance(content, list):
        pieces = (each if isinstance(each, Mapping) else {"text": each} for each in content)
        return "".join(str(each["text"]) if "text" in each else f"[{each.get('type')}]" for each in pieces)
    return (
        content if isinstance(content, str) else "" if content is None else json.dumps(content, ensure_ascii=False, default=str)
    )


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
