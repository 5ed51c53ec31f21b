"""Messages laid out as Chat Completions wants them: each of ours becomes none, one or several of theirs."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from wolo.formats.dialect import Dialect
from wolo.formats.loose_json import read_strictly
from wolo.formats.pairing import as_sent, result_text
from wolo.formats.tool_names import to_wire
from wolo.formats.wire_ids import wire_id
from wolo.messages.characters import whole
from wolo.messages.message import Message, Producer
from wolo.messages.parts import AudioPart, Blob, ImagePart, MediaPart, TextPart, ThinkingPart, ToolPart

REASONING_FIELDS = ("reasoning_content", "reasoning", "reasoning_text", "thinking")
"""The names under which servers are known to send reasoning, most common first."""
REASONING_DETAILS = "openrouter.reasoning_details"
EXTRA_CONTENT = "chat.extra_content"
"""Kinds of blobs: what OpenRouter sends beside reasoning, and what Gemini's compatible endpoint hangs on calls."""
CONTENT_LIST = "content"
"""The field name of reasoning that came as an item of the content list (Mistral)."""

NO_ANSWER = "(no answer was given)"
GO_ON = "Continue."
MEDIA_FOLLOW = "Attached by the tool results above:"


class Laid(NamedTuple):
    """What one message became, and what must be forgotten when it is taken back."""

    items: list[dict[str, Any]]
    role_before: str
    wire_ids: list[str]
    call_ids: list[str]


class Layout:
    """Lays out one conversation, message by message.

    What a message becomes depends on the messages before it and never on those after it, so a longer history begins with the
    bytes of a shorter one. That is why two user messages in a row are not merged, which would rewrite the first after it was
    sent: a short assistant message goes between them. In the same way a short user message goes before an assistant message
    that has none before it.
    """

    def __init__(
        self,
        dialect: Dialect,
        producer: Producer | None,
        withheld: frozenset[str] = frozenset(),
        *,
        opens_with_user: bool = True,
    ) -> None:
        """`producer` None: reasoning of every producer is laid out. `withheld` names fields the server has refused.
        `opens_with_user`: put a user message before an assistant that speaks first, as servers want it."""
        self._dialect = dialect
        self._producer = producer
        self._withheld = withheld
        self._opens_with_user = opens_with_user
        self._role = ""
        """Who spoke last."""
        self._taken: set[str] = set()
        self._seen: set[str] = set()

    def open_with(self, system: str) -> list[dict[str, Any]]:
        """The system message, if there is one; called before anything else."""
        text = clean(system)
        if not text.strip():
            return []
        role = "system" if {"developer", "role"} & self._withheld else self._dialect.system_role
        self._role = role
        return [{"role": role, "content": text}]

    def add(self, message: Message) -> Laid:
        laid = Laid([], self._role, [], [call.id for call in message.calls if call.id not in self._seen])
        visible = as_sent(message, self._seen)
        if visible is not None:
            for item in self._items(visible, laid):
                laid.items.extend(self._between(item["role"]))
                laid.items.append(item)
                self._role = item["role"]
        return laid

    def take_back(self, laid: Laid) -> None:
        """Only ever the message that was added last."""
        self._role = laid.role_before
        self._taken.difference_update(laid.wire_ids)
        self._seen.difference_update(laid.call_ids)

    def close(self) -> list[dict[str, Any]]:
        """What must still follow so that the model has something to answer."""
        return [] if self._role in ("user", "tool") else [{"role": "user", "content": GO_ON}]

    # Whose turn it is

    def _between(self, role: str) -> list[dict[str, Any]]:
        before = self._role
        nobody_yet = self._opens_with_user and before in ("", "system", "developer")
        if role == "assistant" and (nobody_yet or (before == "assistant" and self._dialect.alternate_roles)):
            return [{"role": "user", "content": GO_ON}]
        twice = before == role == "user" and self._dialect.alternate_roles
        if twice or (role == "user" and before == "tool" and self._dialect.assistant_between_tool_and_user):
            return [{"role": "assistant", "content": NO_ANSWER}]
        return []

    # What a message becomes

    def _items(self, message: Message, laid: Laid) -> Iterator[dict[str, Any]]:
        if message.role != "assistant":
            yield {"role": "user", "content": self._user_content(message)}
            return
        calls = message.calls
        ids = [self._wire_id(call, laid) for call in calls]
        yield self._assistant(message, list(zip(calls, ids, strict=True)))
        for call, wire in zip(calls, ids, strict=True):
            yield self._result(call, wire)
        media = [item for call in calls for part in call.output_parts if isinstance(item := self._media(part), dict)]
        if media:
            yield {"role": "user", "content": [_text(MEDIA_FOLLOW), *media]}

    def _wire_id(self, call: ToolPart, laid: Laid) -> str:
        wire = wire_id(call.wire_id, self._dialect.id_policy, self._taken)
        self._taken.add(wire)
        laid.wire_ids.append(wire)
        return wire

    def _user_content(self, message: Message) -> str | list[dict[str, Any]]:
        """Plain text wherever it is all text: some servers break lists up or make the model copy them."""
        pieces: list[str | dict[str, Any]] = []
        for part in message.parts:
            if isinstance(part, TextPart):
                pieces.append(clean(part.text))
            elif not isinstance(part, ThinkingPart | ToolPart):
                pieces.append(self._media(part))
        texts = [piece for piece in pieces if isinstance(piece, str)]
        if len(texts) == len(pieces):
            return ("\n" if len(message.of(TextPart)) < len(message.parts) else "").join(texts)
        return [
            _text(piece) if isinstance(piece, str) else piece for piece in pieces if not isinstance(piece, str) or piece.strip()
        ]

    def _assistant(self, message: Message, calls: list[tuple[ToolPart, str]]) -> dict[str, Any]:
        own = self._producer is None or message.producer == self._producer
        text = clean(message.text)
        item: dict[str, Any] = {"role": "assistant", "content": text if text.strip() else self._no_content(message)}
        replay = self._dialect.reasoning_replay
        if own and (replay in ("always", "always_even_empty") or (replay == "tool_turns" and calls)):
            self._give_back_reasoning(message, item)
        if replay == "always_even_empty":
            field = self._dialect.reasoning_field
            if (name := REASONING_FIELDS[0] if field == "auto" else field) not in self._withheld:
                item.setdefault(name, "")
        if calls:
            item["tool_calls"] = [self._call(call, wire, own) for call, wire in calls]
        return item

    def _no_content(self, message: Message) -> str | None:
        if message.calls:
            return None if self._dialect.content_null_ok else ""
        return "(an attachment of the assistant, not sent)"

    def _give_back_reasoning(self, message: Message, item: dict[str, Any]) -> None:
        """Byte for byte, under the name it came under; reasoning that came inside the text stays behind."""
        by_field: dict[str, list[str]] = {}
        for part in message.of(ThinkingPart):
            by_field.setdefault(part.field, []).append(part.text)
            for blob in part.blobs:
                if blob.kind == REASONING_DETAILS and "reasoning_details" not in self._withheld:
                    item |= {"reasoning_details": details} if (details := read_strictly(blob.data)) else {}
        for field, texts in by_field.items():
            text = clean("".join(texts))
            if field == CONTENT_LIST and text:
                spoken = [_text(item["content"])] if item["content"] else []
                item["content"] = [{"type": "thinking", "thinking": [_text(text)]}, *spoken]
            elif text and field not in self._withheld and field in (*REASONING_FIELDS, self._dialect.reasoning_field):
                item[field] = text

    def _call(self, call: ToolPart, wire: str, own: bool) -> dict[str, Any]:
        function = {"name": to_wire(call.tool, self._dialect.reserved_tool_names), "arguments": arguments_text(call)}
        item: dict[str, Any] = {"id": wire, "type": "function", "function": function}
        if own and (extra := read_strictly(_blob(call.blobs, EXTRA_CONTENT))):
            item["extra_content"] = extra
        return item

    def _result(self, call: ToolPart, wire: str) -> dict[str, Any]:
        notes = [item for part in call.output_parts if isinstance(item := self._media(part), str)]
        text = "\n".join([clean(result_text(call)), *notes])
        item = {"role": "tool", "tool_call_id": wire, "content": text if text.strip() else "(blank output)"}
        if self._dialect.tool_result_name:
            item["name"] = to_wire(call.tool, self._dialect.reserved_tool_names)
        return item

    # Images and the like

    def _media(self, part: MediaPart) -> dict[str, Any] | str:
        """A content item, or a note that stands for what this server does not take."""
        if isinstance(part, ImagePart):
            return self._image(part)
        if isinstance(part, AudioPart):
            kind = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3"}.get(part.media_type)
            if self._dialect.audio and kind and part.data:
                return {"type": "input_audio", "input_audio": {"data": _base64(part.data), "format": kind}}
            return "[audio, not sent: this model does not take it]"
        name = clean(part.name) or "file"
        if self._dialect.files and part.data:
            file = {"filename": name, "file_data": _data_url(part.media_type or "application/pdf", part.data)}
            return {"type": "file", "file": file}
        return f"[{name}, not sent: this model does not take files]"

    def _image(self, part: ImagePart) -> dict[str, Any] | str:
        style = self._dialect.image_style
        if not self._dialect.images:
            return "[image, not sent: this model does not take images]"
        if part.data:
            url = _base64(part.data) if style == "bare" else _data_url(part.media_type or "image/png", part.data)
        elif part.url and (style != "data" or part.url.startswith("data:")):
            url = clean(part.url)
        else:
            return f"[image, not sent: this server takes no addresses: {clean(part.url)}]" if part.url else "[empty image]"
        image = {"url": url} if part.detail == "auto" else {"url": url, "detail": part.detail}
        return {"type": "image_url", "image_url": image}


def split_system(messages: tuple[Message, ...], system: str) -> tuple[str, tuple[Message, ...]]:
    """A conversation that opens with a system message of its own keeps it; otherwise the given one opens it.

    System messages further down are no system messages to a server: they are laid out as the user's.
    """
    count = next((at for at, message in enumerate(messages) if message.role != "system"), len(messages))
    own = "\n\n".join(text for message in messages[:count] if (text := message.text).strip())
    return own or system, messages[count:]


def arguments_text(call: ToolPart) -> str:
    """What the model wrote where that is JSON and still what it means, otherwise the parsed arguments written anew."""
    if call.raw_input and read_strictly(call.raw_input) == call.input:
        return call.raw_input
    return _written(call.input) if call.input else "{}"


def _written(arguments: Mapping[str, Any]) -> str:
    """As models write it, with a blank behind comma and colon."""
    try:
        return json.dumps(msgspec.json.decode(msgspec.json.encode(arguments)), ensure_ascii=False)
    except UnicodeEncodeError:  # halves of characters; only arguments that no model wrote can hold them
        return whole(json.dumps(arguments, ensure_ascii=False, default=str))


def clean(text: str) -> str:
    """Without what breaks a server's JSON or its tokenizer: halves of characters and NUL."""
    if text.isascii():
        return text if "\0" not in text else text.replace("\0", "\ufffd")
    return whole(text).replace("\0", "\ufffd")


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _blob(blobs: Iterable[Blob], kind: str) -> str:
    return next((blob.data for blob in blobs if blob.kind == kind), "")


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _data_url(media_type: str, data: bytes) -> str:
    return f"data:{media_type};base64,{_base64(data)}"
