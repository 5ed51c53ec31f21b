"""A message of ours as AgentPress thread rows: one for what was said, one for each result."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from wolo.formats.encoding.attachments import base64_text, data_url
from wolo.formats.encoding.pairing import SUMMARIES, arguments_text, result_text
from wolo.messages.message import Message
from wolo.messages.parts import AudioPart, ImagePart, MediaPart, TextPart, ThinkingPart, ToolPart
from wolo.sessions.exchange.text_export import timestamp

Row = dict[str, Any]

TRUNCATED_CHARS = 400
HINT = '... (truncated)\n\nmessage_id "{id}"\nUse expand-message tool to see full content'
"""How a compressed content ends: a model that wants the rest knows what to ask for."""
OWN = "wolo"
"""Under this name the metadata hold what a row cannot say."""
STATUS_TYPES = ("status", "llm_response_end")
STATUS = "agentpress.status"
"""What a message is called that keeps a row which is not for the model."""
ROW = "row"


def rows_of(message: Message, thread_id: str, compressed: bool) -> Iterator[Row]:
    """The results of a compressed message are compressed; of one without results its own text is."""
    if message.custom_type == STATUS and isinstance(kept := message.metadata.get(ROW), dict):
        yield dict(kept)
        return
    results = [call for call in message.calls if call.status in ("completed", "failed") and call.outcome != "never_started"]
    yield _row(message.id, thread_id, _type(message), _said(message), message.timestamp, compressed=compressed and not results)
    for call in results:
        row = _row(call.id, thread_id, "tool", _result(call), call.end_time or message.timestamp, compressed=compressed)
        row["metadata"]["tool_call_id"] = call.wire_id
        yield row


def _type(message: Message) -> str:
    if message.role in SUMMARIES:
        return "user"
    return "status" if message.role == "custom" else message.role


def _row(id: str, thread_id: str, type: str, content: Any, then: float, *, compressed: bool) -> Row:
    metadata: dict[str, Any] = {}
    if compressed and len(text := _text(content)) > TRUNCATED_CHARS:
        content = text[:TRUNCATED_CHARS] + HINT.format(id=id)
        metadata |= {"compressed": True, "compressed_content": content}
    elif type not in ("tool", *STATUS_TYPES):
        content = json.dumps(content, ensure_ascii=False)
    at = timestamp(then)
    return {
        "message_id": id,
        "thread_id": thread_id,
        "type": type,
        "content": content,
        "is_llm_message": type not in STATUS_TYPES,
        "metadata": metadata,
        "agent_id": None,
        "agent_version_id": None,
        "created_at": at,
        "updated_at": at,
    }


def _text(content: dict[str, Any]) -> str:
    spoken = content.get("content")
    return spoken if isinstance(spoken, str) else "".join(item.get("text", "") for item in spoken or ())


def _said(message: Message) -> dict[str, Any]:
    if message.role == "custom":
        return {"status_type": message.custom_type or "custom", "text": message.text}
    said: dict[str, Any] = {"role": _type(message), "content": _content(message)}
    for part in message.of(ThinkingPart):
        said["reasoning_content"] = said.get("reasoning_content", "") + part.text
    if message.calls:
        said["tool_calls"] = [
            {"id": call.wire_id, "type": "function", "function": {"name": call.tool, "arguments": arguments_text(call)}}
            for call in message.calls
        ]
    return said


def _result(call: ToolPart) -> dict[str, Any]:
    text = result_text(call)
    attached = [_attached(part) for part in call.output_parts]
    content = [{"type": "text", "text": text}, *attached] if attached else text
    return {"role": "tool", "tool_call_id": call.wire_id, "name": call.tool, "content": content}


def _content(message: Message) -> Any:
    spoken = [part for part in message.parts if not isinstance(part, ThinkingPart | ToolPart)]
    if len(spoken) == 1 and isinstance(spoken[0], TextPart):
        return spoken[0].text
    return [_item(part) for part in spoken] if spoken else ""


def _item(part: TextPart | MediaPart) -> dict[str, Any]:
    return {"type": "text", "text": part.text} if isinstance(part, TextPart) else _attached(part)


def _attached(part: MediaPart) -> dict[str, Any]:
    if isinstance(part, ImagePart):
        url = data_url(part.media_type or "image/png", part.data) if part.data else part.url
        return {"type": "image_url", "image_url": {"url": url}}
    if isinstance(part, AudioPart):
        kind = part.media_type.removeprefix("audio/") or "wav"
        return {"type": "input_audio", "input_audio": {"data": base64_text(part.data), "format": kind}}
    file = {"filename": part.name, "file_data": data_url(part.media_type or "application/pdf", part.data)}
    return {"type": "file", "file": file}
