"""Encode messages for Chat Completions; every request goes through `to_llm_messages`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, cast

from wolo.formats.chat_dialect import ChatDialect
from wolo.formats.encoding.attachments import MEDIA_BELOW, ONLY_ATTACHMENT, base64_text, data_url, not_fetched, not_sent
from wolo.formats.encoding.encoder import (
    CONTINUE,
    EncodedHistory,
    EncodedRequest,
    Item,
    Layout,
    MessageLayout,
    join_items,
    split_system,
)
from wolo.formats.encoding.wire_forms import arguments_text, result_text, wire_name
from wolo.formats.format import NAME, default_prompt, with_display_name
from wolo.formats.tolerant_json import read_json
from wolo.messages.message import Message, Producer
from wolo.messages.parts import AudioPart, ImagePart, MediaPart, TextPart, ThinkingPart, ToolPart, blob_of
from wolo.messages.unicode import clean

if TYPE_CHECKING:
    from wolo.messages.roles import AgentMessage

REASONING_FIELDS = ("reasoning_content", "reasoning", "reasoning_text", "thinking")
"""Known field names of reasoning, most common first."""
REASONING_DETAILS = "openrouter.reasoning_details"
EXTRA_CONTENT = "chat.extra_content"
"""Blob kinds: OpenRouter's reasoning details, and extra content of calls from Gemini's compatible endpoint."""
CONTENT_LIST = "content"
"""Field name for reasoning that arrived as a list item in `content` (Mistral)."""


class ChatLayout(Layout):
    def __init__(
        self, dialect: ChatDialect, producer: Producer | None, withheld: frozenset[str] = frozenset(), *, takes_turns: bool = True
    ) -> None:
        """`producer` None: encode reasoning of every producer. `withheld` names fields the server has refused. `takes_turns`:
        add short messages where a server expects the other role."""
        super().__init__()
        self.id_policy = dialect.id_policy
        self._dialect, self._producer, self._withheld = dialect, producer, withheld
        self._takes_turns = takes_turns
        self._is_block = False
        """The current item is a cached block."""

    def opening_items(self, system: str) -> list[Item]:
        text = clean(system)
        if not text.strip():
            return []
        role = "system" if {"developer", "role"} & self._withheld else self._dialect.system_role
        self.role = role
        return [{"role": role, "content": text}]

    def close(self) -> list[Item]:
        return super().close() if self._takes_turns else []

    def _between(self, role: str) -> list[Item]:
        before = self.role
        if not self._takes_turns:
            return []
        if role == "assistant":
            twice = before == "assistant" and self._dialect.alternate_roles
            return [self.user_item(CONTINUE)] if twice or before in ("", "system", "developer") else []
        if (self._is_block or self.is_behind_block) and self._dialect.cache_marks:
            return []
        twice = before == role == "user" and self._dialect.alternate_roles
        if twice or (role == "user" and before == "tool" and self._dialect.assistant_between_tool_and_user):
            return [{"role": "assistant", "content": self.no_answer}]
        return []

    # Messages

    def _items(self, message: Message, layout_step: MessageLayout) -> Iterator[dict[str, Any]]:
        self._is_block = message.role != "assistant" and layout_step.is_cached_block
        if message.role != "assistant":
            said: Item = {"role": "user", "content": self._user_content(message)}
            yield with_cache_mark(said) if self._dialect.cache_marks and self._is_block else said
            return
        calls = message.calls
        ids = [self.wire_id(call, layout_step) for call in calls]
        yield self._assistant(message, list(zip(calls, ids, strict=True)))
        for call, wire in zip(calls, ids, strict=True):
            yield self._result(call, wire)
        media = [item for call in calls for part in call.output_parts if isinstance(item := self._media(part), dict)]
        if media:
            yield {"role": "user", "content": [_text_item(MEDIA_BELOW), *media]}

    def _user_content(self, message: Message) -> str | list[dict[str, Any]]:
        """A plain string where possible: some servers split lists or make the model copy them."""
        pieces: list[str | dict[str, Any]] = []
        for part in message.parts:
            if isinstance(part, TextPart):
                pieces.append(clean(part.text))
            elif not isinstance(part, ThinkingPart | ToolPart):
                pieces.append(self._media(part))
        texts = [piece for piece in pieces if isinstance(piece, str)]
        if len(texts) == len(pieces):
            return ("" if all(isinstance(part, TextPart) for part in message.parts) else "\n").join(texts)
        return [
            _text_item(piece) if isinstance(piece, str) else piece
            for piece in pieces
            if not isinstance(piece, str) or piece.strip()
        ]

    def _assistant(self, message: Message, calls: list[tuple[ToolPart, str]]) -> dict[str, Any]:
        own = self._producer is None or message.producer == self._producer
        text = clean(message.text)
        item: dict[str, Any] = {"role": "assistant", "content": text}
        if not text.strip():
            without_text = None if self._dialect.content_null_ok else ""
            item["content"] = without_text if calls else ONLY_ATTACHMENT
        replay = self._dialect.reasoning_replay
        if own and (replay in ("always", "always_even_empty") or (replay == "tool_turns" and calls)):
            # Byte for byte under the original field name; reasoning extracted from text is not replayed
            by_field: dict[str, list[str]] = {}
            for part in message.of(ThinkingPart):
                by_field.setdefault(part.field, []).append(part.text)
                for blob in part.blobs:
                    if blob.kind == REASONING_DETAILS and "reasoning_details" not in self._withheld:
                        item |= {"reasoning_details": details} if (details := read_json(blob.data)) else {}
            for field, texts in by_field.items():
                text = clean("".join(texts))
                if field == CONTENT_LIST and text:
                    spoken = [_text_item(item["content"])] if item["content"] else []
                    item["content"] = [{"type": "thinking", "thinking": [_text_item(text)]}, *spoken]
                elif text and field not in self._withheld and field in (*REASONING_FIELDS, self._dialect.reasoning_field):
                    item[field] = text
        if replay == "always_even_empty":
            field = self._dialect.reasoning_field
            if (name := REASONING_FIELDS[0] if field == "auto" else field) not in self._withheld:
                item.setdefault(name, "")
        if calls:
            item["tool_calls"] = [self._call(call, wire, own) for call, wire in calls]
        return item

    def _call(self, call: ToolPart, wire: str, own: bool) -> dict[str, Any]:
        function = {"name": wire_name(call.tool, self._dialect.reserved_tool_names), "arguments": arguments_text(call)}
        item: dict[str, Any] = {"id": wire, "type": "function", "function": function}
        if own and (extra := read_json(blob_of(call.blobs, EXTRA_CONTENT))):
            item["extra_content"] = extra
        return item

    def _result(self, call: ToolPart, wire: str) -> dict[str, Any]:
        notes = [item for part in call.output_parts if isinstance(item := self._media(part), str)]
        item = {"role": "tool", "tool_call_id": wire, "content": result_text(call, notes)}
        if self._dialect.tool_result_name and "name" not in self._withheld:
            item["name"] = wire_name(call.tool, self._dialect.reserved_tool_names)
        return item

    # Attachments

    def _media(self, part: MediaPart) -> dict[str, Any] | str:
        """A content item, or a note about what this server does not support."""
        if isinstance(part, ImagePart):
            style = self._dialect.image_style
            if not self._dialect.images:
                return not_sent(part)
            if part.data:
                url = base64_text(part.data) if style == "bare" else data_url(part.media_type or "image/png", part.data)
            elif part.url and (style != "data" or part.url.startswith("data:")):
                url = clean(part.url)
            else:
                return not_fetched(part.url)
            image = {"url": url} if part.detail == "auto" else {"url": url, "detail": part.detail}
            return {"type": "image_url", "image_url": image}
        if isinstance(part, AudioPart):
            kind = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3"}.get(part.media_type)
            if self._dialect.audio and kind and part.data:
                return {"type": "input_audio", "input_audio": {"data": base64_text(part.data), "format": kind}}
            return not_sent(part)
        if self._dialect.files and part.data:
            url = data_url(part.media_type or "application/pdf", part.data)
            return {"type": "file", "file": {"filename": clean(part.name) or "file", "file_data": url}}
        return not_sent(part)


def with_cache_mark(item: Item) -> Item:
    """Add a cache mark to the last text; unchanged when there is no text."""
    content = item["content"]
    parts = [_text_item(content)] if isinstance(content, str) else [*(content or ())]
    at = next((at for at in reversed(range(len(parts))) if parts[at].get("type") == "text" and parts[at]["text"]), None)
    if at is None:
        return item
    parts[at] = {**parts[at], "cache_control": {"type": "ephemeral"}}
    return {**item, "content": parts}


def _text_item(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


PLAIN = ChatDialect(cache_marks=True)
"""Dialect of `to_llm_messages` when called without an encoder."""


class ChatEncoder:
    """Encodes messages for one server; with a `history`, bytes of earlier messages are reused."""

    def __init__(
        self,
        dialect: ChatDialect = PLAIN,
        producer: Producer | None = None,
        withheld: frozenset[str] = frozenset(),
        *,
        history: EncodedHistory | None = None,
        for_server: bool = False,
    ) -> None:
        """`for_server`: add filler messages and moving cache marks; otherwise messages are encoded as they are. `producer` and
        `withheld` as in `ChatLayout`."""
        self._dialect, self._producer, self._withheld = dialect, producer, withheld
        self._history = history or EncodedHistory()
        self._for_server = for_server

    def encode(self, messages: Sequence[Message], system: str) -> list[dict[str, Any]]:
        request = self._request(messages, system)
        marked = self._mark_items(request)
        return [*chain.from_iterable(marked.get(at, each.items) for at, each in enumerate(request.messages))]

    def join(self, messages: Sequence[Message], system: str, before: Iterable[bytes], after: Iterable[bytes]) -> bytes:
        """The same as JSON without brackets, between other bytes."""
        request = self._request(messages, system)
        return request.join(before, after, {at: join_items(items) for at, items in self._mark_items(request).items()})

    def layout(self) -> ChatLayout:
        return ChatLayout(self._dialect, self._producer, self._withheld, takes_turns=self._for_server)

    def _request(self, messages: Sequence[Message], system: str) -> EncodedRequest:
        return self._history.encode(messages, system, (self._producer, self._withheld, self._for_server), self.layout)

    def _mark_items(self, request: EncodedRequest) -> dict[int, list[dict[str, Any]]]:
        """Items with cache marks by index: the system message, and the last message with text."""
        if not (self._for_server and self._dialect.cache_marks):
            return {}
        kept, marked = request.messages, {}
        if kept and kept[0].block.label == "system" and (items := _mark_end(kept[0].items)):
            marked[0] = items
        for at in reversed(range(len(kept))):
            if kept[at].message and (items := _mark_end(kept[at].items)):
                return marked | {at: items}
        return marked


def to_llm_messages(
    messages: Sequence[Message | AgentMessage],
    *,
    system: str | None = None,
    agent_display_name: str = NAME,
    encoder: ChatEncoder | None = None,
) -> list[dict[str, Any]]:
    """Convert messages to those of a Chat Completions request.

    Omits unsendable messages; every call is followed by its result. `system` opens a conversation without a system message:
    wolo's default prompt if None, nothing if empty. `agent_display_name` replaces the word "Wolo" in it. Without `encoder`
    nothing is added.
    Raises ValueError for a result that does not answer an open call.
    """
    if {Message}.issuperset(map(type, messages)):
        own = cast("tuple[Message, ...]", tuple(messages))
    else:
        from wolo.messages.roles import to_messages  # noqa: PLC0415  # only API users pass role messages

        own = to_messages(messages)
    prompt, rest = split_system(own, default_prompt() if system is None else system)
    prompt = prompt if agent_display_name == NAME else with_display_name(prompt, agent_display_name)
    return (encoder or ChatEncoder()).encode(rest, prompt)


def _mark_end(items: Sequence[Item]) -> list[Item] | None:
    """Mark the last item with text; None if there is none. Results cannot carry marks."""
    for at in reversed(range(len(items))):
        if items[at]["role"] != "tool" and (changed := with_cache_mark(items[at])) is not items[at]:
            return [*items[:at], changed, *items[at + 1 :]]
    return None
