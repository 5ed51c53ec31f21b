"""Encode messages as input items of the Responses API."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec
from msgspec import Struct

from wolo.formats import format, tolerant_json
from wolo.formats.encoding import attachments, wire_forms
from wolo.formats.encoding.encoder import CONTINUE, Item, Layout, MessageLayout
from wolo.messages.message import Message, Producer
from wolo.messages.parts import AnyPart, Blob, FilePart, ImagePart, MediaPart, TextPart, ThinkingPart, ToolPart, blob_of
from wolo.messages.unicode import clean


class ResponsesDialect(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Defaults fit an unknown server."""

    # Requests

    system: Literal["instructions", "developer", "system"] = "instructions"
    """Place of the system prompt: the `instructions` field, or the first item with this role."""
    images: bool = True
    files: bool = True
    phase: bool = True
    """Replay whether a text was commentary or the final answer."""
    reasoning_replay: Literal["encrypted", "always", "never"] = "encrypted"
    """Reasoning to replay to its producer: encrypted only, all, or none."""

    strict_field: bool = True
    """Send `strict: false`; otherwise null, the server's default."""
    schema_null_types: bool = True
    """Schemas may use the type null."""
    reserved_tool_names: tuple[str, ...] = ()
    """Names of the model's built-in tools; ours are renamed."""
    parallel_flag: bool = False
    """Send `parallel_tool_calls: true`."""

    effort: bool = True
    """Send thinking levels as `reasoning.effort`."""
    thinking_levels: tuple[format.ThinkingLevel, ...] = ()
    """Supported levels; empty: all. Others map to the next higher level, or the highest."""
    summary: Literal["", "auto", "concise", "detailed"] = ""
    """Kind of reasoning summary to request; without one, OpenAI models show no reasoning."""
    encrypted_reasoning: bool = True
    """Request encrypted reasoning, which can be replayed without server-side state."""
    sampling: Literal["open", "fixed"] = "open"
    """`fixed`: temperature and top_p are refused."""
    verbosity: Literal["", "low", "medium", "high"] = ""
    json_schema: bool = True
    """Supports `text.format`."""
    web_search: bool = False
    """Searches the web with its own tool `web_search`."""
    cache_key: bool = False
    """Send the session id so that requests reach the server with the cached prefix."""


MESSAGE_CONTENT = "openai.message"
"""Blob kind for message content with more than one text piece."""
DETAILS = ("auto", "low", "high", "original")

_ITEM_ID = re.compile(r"[A-Za-z0-9_-]{0,63}[A-Za-z0-9-]")
_ROLES = {"reasoning": "assistant", "function_call": "assistant", "function_call_output": "tool"}


class ResponsesLayout(Layout):
    id_policy = "responses"

    def __init__(self, dialect: ResponsesDialect, producer: Producer) -> None:
        super().__init__()
        self._dialect, self._producer = dialect, producer

    def opening_items(self, system: str) -> list[Item]:
        text = clean(system)
        if self._dialect.system == "instructions" or not text.strip():
            return []
        self.role = self._dialect.system
        return [_message(self.role, [_text(text)])]

    def user_item(self, text: str) -> Item:
        return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}

    def role_of(self, item: Item) -> str:
        return _ROLES.get(item["type"]) or str(item["role"])

    def _between(self, role: str) -> list[Item]:
        """The user must open the conversation."""
        return [self.user_item(CONTINUE)] if role == "assistant" and self.role in ("", "system", "developer") else []

    def _items(self, message: Message, layout_step: MessageLayout) -> Iterator[Item]:
        if message.role != "assistant":
            content: list[Item] = []
            for part in message.parts:
                if isinstance(part, TextPart):
                    content += [_text(text)] if (text := clean(part.text)).strip() else []
                elif not isinstance(part, ThinkingPart | ToolPart):
                    content.append(self._media(part))
            yield _message("user", content)
            return
        is_own = message.producer == self._producer
        calls: list[tuple[ToolPart, str]] = []
        is_silent = True
        for group in _groups(message.parts):
            ids = self._ids_of(group) if is_own else set()
            for part in group:
                item = self._assistant_item(part, ids, layout_step, calls, is_own=is_own)
                if item is not None:
                    is_silent = False
                    yield item
        if is_silent:
            yield _message("assistant", attachments.ONLY_ATTACHMENT)
        for call, wire in calls:
            media = [self._media(part) for part in call.output_parts]
            notes = [item["text"] for item in media if item["type"] == "input_text"]
            shown = [item for item in media if item["type"] != "input_text"]
            text = wire_forms.result_text(call, notes)  # it states an error: the API has no flag for it
            yield {"type": "function_call_output", "call_id": wire, "output": [_text(text), *shown] if shown else text}

    # User messages and results

    def _media(self, part: MediaPart) -> Item:
        """A content item, or a note about what this server does not support."""
        if isinstance(part, ImagePart):
            if not self._dialect.images:
                return _text(attachments.not_sent(part))
            url = attachments.data_url(part.media_type or "image/png", part.data) if part.data else clean(part.url)
            if not url:
                return _text("[empty image]")
            return {"type": "input_image", "detail": part.detail if part.detail in DETAILS else "auto", "image_url": url}
        if isinstance(part, FilePart) and self._dialect.files:
            if part.data:
                url = attachments.data_url(part.media_type or "application/pdf", part.data)
                return {"type": "input_file", "filename": clean(part.name) or "file.pdf", "file_data": url}
            if part.url:
                return {"type": "input_file", "file_url": clean(part.url)}
        return _text(attachments.not_sent(part))

    # Assistant messages

    def _ids_of(self, group: Sequence[AnyPart]) -> set[str]:
        """Ids under which reasoning and the items it led to can be replayed; empty if they cannot.

        The server looks each up by the other's id: if the reasoning is dropped, its products must drop their ids.
        """
        ids: set[str] = set()
        for part in group:
            prefix = "rs" if isinstance(part, ThinkingPart) else "msg" if isinstance(part, TextPart) else "fc"
            is_legal = part.item_id.startswith(prefix) and _ITEM_ID.fullmatch(part.item_id) is not None
            ids |= {part.item_id} if is_legal and _item_key(part.item_id) not in self._used_ids else set()
        thoughts = [part for part in group if isinstance(part, ThinkingPart)]
        if not thoughts:
            return ids
        product = group[len(thoughts)] if len(group) > len(thoughts) else None
        if product is None or product.item_id not in ids or (isinstance(product, TextPart) and not product.text.strip()):
            return set()
        replay = self._dialect.reasoning_replay
        may_go_back = all(
            part.item_id in ids and (replay == "always" or (replay == "encrypted" and bool(_encrypted_text(part))))
            for part in thoughts
        )
        return ids if may_go_back and len({part.item_id for part in thoughts}) == len(thoughts) else set()

    def _assistant_item(
        self, part: AnyPart, ids: set[str], layout_step: MessageLayout, calls: list[tuple[ToolPart, str]], *, is_own: bool
    ) -> Item | None:
        if isinstance(part, TextPart):
            text = clean(part.text)
            if not text.strip():
                return None
            if self._claim_id(part, ids, layout_step):  # replayed as the original item
                item = {**_message("assistant", _content(part, text)), "id": part.item_id, "status": "completed"}
            else:
                item = _message("assistant", text)
            if is_own and part.phase and self._dialect.phase:
                item["phase"] = part.phase
            return item
        if isinstance(part, ToolPart):
            wire = self.wire_id(part, layout_step)
            calls.append((part, wire))
            name = wire_forms.wire_name(part.tool, self._dialect.reserved_tool_names)
            item = {"type": "function_call", "call_id": wire, "name": name, "arguments": wire_forms.arguments_text(part)}
            if self._claim_id(part, ids, layout_step):
                item["id"] = part.item_id
            return item
        if isinstance(part, ThinkingPart) and self._claim_id(part, ids, layout_step):
            encrypted = _encrypted_text(part)
            content = {"encrypted_content": encrypted} if encrypted else {}
            return {"type": "reasoning", "id": part.item_id, **_divide(part), **content}
        return None

    def _claim_id(self, part: AnyPart, ids: set[str], layout_step: MessageLayout) -> bool:
        """Each id is sent once. Item ids are kept apart from call ids, which may be equal."""
        if part.item_id not in ids:
            return False
        ids.remove(part.item_id)
        taken = _item_key(part.item_id)
        self._used_ids.add(taken)
        layout_step.wire_ids.append(taken)
        return True


def _item_key(item_id: str) -> str:
    return f"item {item_id}"


def _groups(parts: Sequence[AnyPart]) -> Iterator[list[AnyPart]]:
    group: list[AnyPart] = []
    for part in parts:
        if isinstance(part, ThinkingPart) and group and not isinstance(group[-1], ThinkingPart):
            yield group
            group = []
        group.append(part)
    if group:
        yield group


def _content(part: TextPart, text: str) -> list[Item]:
    """The original content, refusals included, while it still matches the part's text."""
    stored = tolerant_json.read_json(blob_of(part.blobs, MESSAGE_CONTENT))
    if isinstance(stored, list) and all(isinstance(piece, dict) for piece in stored):
        says = [piece.get("text") or piece.get("refusal") for piece in stored]
        if all(isinstance(each, str) for each in says) and "".join(map(str, says)) == text:
            return stored
    return [{"type": "output_text", "text": text, "annotations": []}]


def _message(role: str, content: str | list[Item]) -> Item:
    return {"type": "message", "role": role, "content": content}


def _text(text: str) -> Item:
    return {"type": "input_text", "text": text}


ENCRYPTED = "openai.encrypted"
"""Blob kind for `encrypted_content`."""
ORIGINAL_PARTS = "openai.reasoning"
"""Blob kind for summary and content when the text alone does not show how they were divided."""
SUMMARY = "summary"
CONTENT = "reasoning_text"
"""Field names of thinking parts: reasoning summaries, and unhidden reasoning."""
BETWEEN = "\n\n"
"""Separator between the pieces of one item."""


def pieces_of(item: Mapping[str, Any]) -> list[tuple[str, int, str]]:
    """Readable pieces of an item: field, index, text."""
    return [
        (field, at, piece["text"])
        for name, field in (("summary", SUMMARY), ("content", CONTENT))
        for at, piece in enumerate(_pieces(item, name))
    ]


def blobs_of(item: Mapping[str, Any], text: str, field: str) -> tuple[Blob, ...]:
    """Data besides the text that is needed to rebuild the item."""
    encrypted = item.get("encrypted_content")
    blobs = [Blob(ENCRYPTED, encrypted)] if isinstance(encrypted, str) and encrypted else []
    divided = {name: pieces for name in ("summary", "content") if (pieces := _pieces(item, name)) or name == "summary"}
    if divided != _divide_text(text, field):
        blobs.append(Blob(ORIGINAL_PARTS, msgspec.json.encode(divided).decode()))
    return tuple(blobs)


def _encrypted_text(part: ThinkingPart) -> str:
    """Empty when absent, or when it could not be replayed unchanged."""
    data = blob_of(part.blobs, ENCRYPTED)
    return data if data == clean(data) else ""


def _divide(part: ThinkingPart) -> dict[str, Any]:
    """Summary and content as they came, otherwise by the field."""
    stored = tolerant_json.read_json(blob_of(part.blobs, ORIGINAL_PARTS))
    if not isinstance(stored, dict):
        return _divide_text(clean(part.text), part.field)
    content = _pieces(stored, "content")
    return {"summary": _pieces(stored, "summary"), **({"content": content} if content else {})}


def _divide_text(text: str, field: str) -> dict[str, Any]:
    if field == CONTENT:
        return {"summary": [], "content": [{"type": "reasoning_text", "text": text}]}
    return {"summary": [{"type": "summary_text", "text": text}] if text else []}


def _pieces(item: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """Only well-formed pieces, with the type their field requires."""
    kind = "summary_text" if name == "summary" else "reasoning_text"
    pieces = item.get(name)
    if not isinstance(pieces, list):
        return []
    texts = [piece.get("text") for piece in pieces if isinstance(piece, dict)]
    return [{"type": kind, "text": text} for text in texts if isinstance(text, str)]
