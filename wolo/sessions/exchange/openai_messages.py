"""Reads and writes Chat Completions messages as a JSON array."""

from __future__ import annotations

import base64
import binascii
import itertools
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from wolo.formats.encoding import cached_blocks, encoder
from wolo.formats.openai_chat.encode import ChatEncoder
from wolo.messages.call_arguments import Unreadable, read_arguments
from wolo.messages.message import CACHE, Message, Role
from wolo.messages.parts import AnyPart, AudioPart, FilePart, ImagePart, MediaPart, TextPart, ThinkingPart, ToolPart, new_id
from wolo.sessions.exchange import export_stream, json_files, redaction
from wolo.sessions.listing import SessionInfo
from wolo.sessions.store import Store

ROLES: Mapping[str, Role] = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}
RESULTS = ("tool", "function")
REASONING = ("reasoning_content", "reasoning", "reasoning_text", "thinking")
TEXTS = ("text", "input_text", "output_text", "refusal")


class ChatReader:
    """Reads messages in order and adds results to their calls. A result without a call is skipped and counted."""

    def __init__(self) -> None:
        self.skipped = 0
        self.answered = ""
        """Part id of the call of the last result."""
        self.messages: list[Message] = []
        self._waiting: dict[str, list[int]] = {}
        """Call id → indexes of messages with a call without a result, newest last."""

    def add(self, item: Any, *, id: str = "", timestamp: float = 0.0) -> int | None:
        """Returns the index of the message in `finish`, for a result that of its call; None when it was skipped."""
        if not isinstance(item, Mapping):
            self.skipped += 1
            return None
        if (role := str(item.get("role"))) in RESULTS:
            waiting = self._waiting.get(str(item.get("tool_call_id") or item.get("name") or ""))
            if not waiting:
                self.skipped += 1
                return None
            at = waiting.pop()
            message = self.messages[at]
            wanted = str(item.get("tool_call_id") or item.get("name"))
            call = next(call for call in message.calls if call.wire_id == wanted and call.status == "pending")
            self.answered = call.id
            parts = _content_parts(item.get("content"))
            attached = tuple(part for part in parts if isinstance(part, MediaPart))
            output = "".join(part.text for part in parts if isinstance(part, TextPart))
            self.messages[at] = message.with_parts(
                [replace(call, status="completed", outcome="ok", output=output, output_parts=attached, end_time=timestamp)]
            )
            return at
        if role not in ROLES:
            self.skipped += 1
            return None
        thoughts: list[AnyPart] = []
        for field in REASONING if role == "assistant" else ():
            if isinstance(text := item.get(field), str) and text:
                thoughts.append(ThinkingPart(text=text, field=field))
        parts = (*thoughts, *_content_parts(item.get("content")), *_calls(item))
        metadata = {CACHE: True} if cached_blocks.is_cached_block(item) else {}
        return self.add_message(
            Message(id=id or new_id("msg"), role=ROLES[role], parts=parts, timestamp=timestamp, finished=True, metadata=metadata)
        )

    def add_message(self, message: Message) -> int:
        self.messages.append(message)
        for call in message.calls:
            if call.status == "pending":
                self._waiting.setdefault(call.wire_id, []).append(len(self.messages) - 1)
        return len(self.messages) - 1

    def finish(self) -> tuple[Message, ...]:
        """Calls without a result are marked as interrupted: they may have run."""
        finished: list[Message] = []
        for message in self.messages:
            waiting = [call for call in message.calls if call.status == "pending"]
            finished.append(message.with_parts(replace(call, status="failed", outcome="interrupted") for call in waiting))
        return tuple(finished)


def text_of(content: Any) -> str:
    return "".join(part.text for part in _content_parts(content) if isinstance(part, TextPart))


def _content_parts(content: Any) -> tuple[AnyPart, ...]:
    """Content is a text, an item or a list of items."""
    if content is None or content == "":
        return ()
    if isinstance(content, str):
        return (TextPart(text=content),)
    if isinstance(content, Mapping):
        content = [content]
    if not isinstance(content, list):
        return (TextPart(text=json.dumps(content, ensure_ascii=False, default=str)),)
    return tuple(part for item in content for part in _item(item))


def _item(item: Any) -> Iterator[AnyPart]:
    if isinstance(item, str):
        yield TextPart(text=item)
        return
    if not isinstance(item, Mapping):
        return
    kind = item.get("type")
    text = next((item[name] for name in ("text", "refusal") if isinstance(item.get(name), str)), None)
    if kind in TEXTS or (kind is None and text is not None):
        yield TextPart(text=text or "")
    elif kind == "thinking":
        yield ThinkingPart(text=text_of(item.get("thinking")), field="content")
    elif (attached := _attachment(item)) is not None:
        yield attached
    else:
        yield TextPart(text=json.dumps(item, ensure_ascii=False, default=str))


def _attachment(item: Mapping[str, Any]) -> MediaPart | None:
    match item:
        case {"type": "image_url" | "input_image", "image_url": {"url": str(url), **rest}}:
            return _image(url, rest.get("detail"))
        case {"type": "image_url" | "input_image", "image_url": str(url)}:
            return _image(url, item.get("detail"))
        case {"type": "image", "source": {"data": str(data), **rest}}:
            return _image(f"data:{rest.get('media_type') or 'image/png'};base64,{data}", None)
        case {"type": "image", "source": {"url": str(url)}}:
            return _image(url, None)
        case {"type": "input_audio", "input_audio": {"data": str(data), **rest}}:
            return AudioPart(media_type=f"audio/{rest.get('format') or 'wav'}", data=_base64(data))
        case {"type": "file", "file": {"file_data": str(data), **rest}}:
            head, _, packed = data.rpartition(",")
            kind = head.removeprefix("data:").partition(";")[0]
            return FilePart(name=str(rest.get("filename") or ""), media_type=kind, data=_base64(packed))
    return None


def _image(url: str, detail: object) -> ImagePart:
    shown = detail if isinstance(detail, str) and detail else "auto"
    try:
        return replace(ImagePart.of(url), detail=shown)
    except ValueError:
        return ImagePart(url=url, detail=shown)


def _base64(data: str) -> bytes:
    try:
        return base64.b64decode("".join(data.split()), validate=True)
    except (binascii.Error, ValueError):
        return b""


def _calls(item: Mapping[str, Any]) -> Iterator[ToolPart]:
    calls = item.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        if isinstance(call, Mapping):
            said = call.get("function") or call.get("custom")
            yield _call(said if isinstance(said, Mapping) else call, str(call.get("id") or ""))
    if isinstance(old := item.get("function_call"), Mapping):
        yield _call(old, str(old.get("name") or ""))


def _call(call: Mapping[str, Any], call_id: str) -> ToolPart:
    written = call.get("arguments", call.get("input"))
    name = str(call.get("name") or "")
    if isinstance(written, Mapping):
        return ToolPart(tool=name, input=dict(written), call_id=call_id)
    text = written if isinstance(written, str) else ""
    try:
        return ToolPart(tool=name, input=read_arguments(text), raw_input=text, call_id=call_id)
    except Unreadable:
        return ToolPart(tool=name, raw_input=text, call_id=call_id)


FORMAT = "openai"
SYSTEM_STAYS = "It has its own system prompt, which is used instead of wolo's."

FILLER = {"role": "assistant", "content": encoder.NO_ANSWER}
"""Separates two user messages for servers that require it; not part of the conversation."""

_BEGINS = re.compile(rb'\s*(?:\[\s*\{|\{\s*"(?:\w+"\s*:\s*"[^"]*",\s*")*messages"\s*:\s*\[)')
_ROLE = re.compile(rb'"role"\s*:\s*"(?:system|developer|user|assistant|tool|function)"')


def write(store: Store, info: SessionInfo, out: export_stream.Write, redactor: redaction.Redactor | None) -> None:
    """Writes the messages of `to_llm_messages`, without wolo's system prompt, one per line, in bounded memory."""
    messages = iter(export_stream.MessageStream(store, info.id, redactor))
    layout = ChatEncoder().layout()
    opening: list[Message] = []
    first = next(messages, None)
    while first is not None and first.role == "system":
        opening.append(first)
        first = next(messages, None)
    prompt, _ = encoder.split_system(tuple(opening), "")
    following = (item for message in itertools.chain([first] if first else [], messages) for item in layout.add(message).items)
    between = b"[\n"
    for item in itertools.chain(layout.opening_items(prompt), following):
        out(between + msgspec.json.encode(item))
        between = b",\n"
    out(b"\n]\n" if between == b",\n" else b"[]\n")


def matches(preview: json_files.FilePreview) -> bool:
    if _BEGINS.match(preview.beginning) and _ROLE.search(preview.beginning):
        return True
    return any(isinstance(record.get("role"), str) and "content" in record for record in preview.records[:5])


def read(source: Path) -> json_files.Imported:
    reader = ChatReader()
    items, torn = json_files.read_items(source, lambda item: isinstance(item, dict) and "role" in item, "messages")
    kept = cached_blocks.without_embedded_results([item for item in items if isinstance(item, dict)])
    for item in kept:
        if item != FILLER:
            reader.add(item)
    messages = reader.finish()
    opens_with_system = bool(messages) and messages[0].role == "system"
    return json_files.Imported(
        messages=messages,
        skipped=reader.skipped + len(items) - len(kept) + torn,
        notices=(SYSTEM_STAYS,) if opens_with_system else (),
    )
