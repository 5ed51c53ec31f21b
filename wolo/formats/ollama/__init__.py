"""Ollama's native API, `/api/chat`: JSON lines, with the context window in each request."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta, Struct

from wolo.errors import BadRequest, ProviderError
from wolo.formats.encoding.attachments import MEDIA_BELOW, ONLY_ATTACHMENT, base64_text, not_fetched, not_sent, read_data_url
from wolo.formats.encoding.encoder import (
    CONTINUE,
    BaseFormat,
    Item,
    Layout,
    MessageLayout,
    encode_json,
    sampling_of,
    split_system,
)
from wolo.formats.encoding.thinking_levels import nearest_level
from wolo.formats.encoding.wire_forms import arguments_object, result_text, tool_functions, wire_name
from wolo.formats.format import Framing, Request, ThinkingLevel, ToolSpec
from wolo.formats.text_recovery.text_filter import FIELD as WITHIN_TEXT
from wolo.messages.message import Message, Producer
from wolo.messages.parts import ImagePart, MediaPart, TextPart, ThinkingPart, ToolPart
from wolo.messages.unicode import clean

ThinkStyle = Literal["auto", "bool", "levels", "none"]


class OllamaDialect(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Defaults fit a current server and an unknown model."""

    num_ctx: Annotated[int, Meta(ge=1)] = 65_536
    """Requested context window in tokens, unless the model's is smaller; servers default to as little as 4,096."""
    refuse_overflow: bool = True
    """Ask for an error instead of silent truncation; old servers truncate anyway."""
    keep_alive: str = ""
    """Time the model stays loaded, such as `30m`, or `-1m` for ever; empty: server default."""

    think: ThinkStyle = "auto"
    """Send `think` as a boolean or a level name; `none`: omit it. `auto`: levels for gpt-oss, booleans otherwise."""
    thinking_levels: tuple[ThinkingLevel, ...] = ("low", "medium", "high")
    """Supported levels; others map to the next higher level, or the highest; off is the lowest."""
    thinking_replay: bool = True
    """Replay reasoning to the model that wrote it."""

    images: bool = True
    call_ids: bool = False
    """Calls and results carry ids; otherwise the server pairs them by order."""

    think_tags: bool = True
    """Text starting with a think tag is reasoning up to the closing tag."""
    leaked_calls: bool = True
    """Accept a call of an offered tool written as text, if it is alone at the end and there is no native call. False for hosted
    catalogue providers unless `models probe` found it necessary."""


class OllamaLayout(Layout):
    def __init__(self, dialect: OllamaDialect, producer: Producer) -> None:
        super().__init__()
        self._dialect, self._producer = dialect, producer

    def opening_items(self, system: str) -> list[Item]:
        text = clean(system)
        if not text.strip():
            return []
        self.role = "system"
        return [{"role": "system", "content": text}]

    def _between(self, role: str) -> list[Item]:
        """Many chat templates require alternating roles that start with the user."""
        if role == "assistant" and self.role in ("", "system", "assistant"):
            return [self.user_item(CONTINUE)]
        if role == "user" and self.role == "user":
            return [{"role": "assistant", "content": self.no_answer}]
        return []

    def _items(self, message: Message, layout_step: MessageLayout) -> Iterator[Item]:
        if message.role != "assistant":
            texts, images, has_media = list[str](), list[str](), False
            for part in message.parts:
                if isinstance(part, TextPart):
                    texts.append(clean(part.text))
                elif not isinstance(part, ThinkingPart | ToolPart):
                    has_media = True
                    self._add_media(part, texts, images)
            item: Item = {"role": "user", "content": ("\n" if has_media else "").join(texts)}
            yield {**item, "images": images} if images else item
            return
        calls = [(call, self.wire_id(call, layout_step)) for call in message.calls]
        text = clean(message.text)
        item = {"role": "assistant", "content": text if text.strip() else "" if calls else ONLY_ATTACHMENT}
        if self._dialect.thinking_replay and message.producer == self._producer:
            thoughts = (part.text for part in message.of(ThinkingPart) if part.field != WITHIN_TEXT)
            if thought := clean("".join(thoughts)):
                item["thinking"] = thought
        if calls:
            functions = [{"name": wire_name(call.tool), "arguments": arguments_object(call)} for call, _ in calls]
            ids = [{"id": wire} if self._dialect.call_ids else {} for _, wire in calls]
            item["tool_calls"] = [{**of_call, "function": function} for of_call, function in zip(ids, functions, strict=True)]
        yield item
        images = list[str]()
        for call, wire in calls:
            item, of_call = self._result(call, wire)
            images += of_call
            yield item
        if images:
            yield {"role": "user", "content": MEDIA_BELOW, "images": images}

    def _result(self, call: ToolPart, wire: str) -> tuple[Item, list[str]]:
        """The tool message, and its images: templates ignore images in results, so a user message carries them."""
        notes, images = list[str](), list[str]()
        for part in call.output_parts:
            self._add_media(part, notes, images)
        item: Item = {"role": "tool", "tool_name": wire_name(call.tool), "content": result_text(call, notes)}
        if self._dialect.call_ids:
            item["tool_call_id"] = wire
        return item, images

    def _add_media(self, part: MediaPart, texts: list[str], images: list[str]) -> None:
        """Append an image, or a note about what is not supported."""
        if not isinstance(part, ImagePart) or not self._dialect.images:
            texts.append(not_sent(part))
        elif data := part.data or read_data_url(part.url)[1]:
            images.append(base64_text(data))
        else:
            texts.append(not_fetched(part.url))


if TYPE_CHECKING:
    from wolo.formats.ollama.decode import OllamaDecoder

KNOWS_LEVELS_ONLY = re.compile(r"gpt-?oss", re.IGNORECASE)
NOT_PULLED = re.compile(r"model .*not found", re.IGNORECASE | re.DOTALL)


class Ollama(BaseFormat[OllamaDialect]):
    """Chat templates put tools before the conversation."""

    name = "ollama"
    framing: Framing = "lines"

    def path(self, model: str) -> str:
        return "/api/chat"

    def encode(self, request: Request) -> bytes:
        """Keys have a fixed order: equal histories give equal bytes, also across processes."""
        before = (encode_json({"model": request.model})[:-1], b',"messages":[')
        tools = self._tools.take(request.tools, _functions, _functions)
        fields = encode_json(self._fields(request))[1:]
        system, messages = split_system(request.messages, request.system)
        layout = partial(OllamaLayout, self._dialect, request.producer)
        encoded = self._history.encode(messages, system, request.producer, layout)
        return encoded.join(before, (b"]", b',"tools":' if tools else b"", tools, b",", fields))

    def _decoder(self, tools: Sequence[ToolSpec]) -> OllamaDecoder:
        from wolo.formats.ollama.decode import OllamaDecoder  # noqa: PLC0415  # not needed before the response

        return OllamaDecoder(self._dialect, {tool.name: tool.parameters for tool in tools})

    def read_error(self, status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
        error = super().read_error(status, headers, body)
        if isinstance(error, BadRequest) and status == 404 and NOT_PULLED.search(error.message):
            error.hint = error.hint if "ollama pull" in error.hint else "`ollama pull NAME` fetches a model."
        elif isinstance(error, BadRequest) and status in (404, 405):
            error.hint = "Check the base URL: Ollama's own API lies at the host itself, such as http://127.0.0.1:11434."
        return error

    def _fields(self, request: Request) -> dict[str, Any]:
        dialect = self._dialect
        fields: dict[str, Any] = {"stream": True}
        if dialect.refuse_overflow:
            fields |= {"truncate": False, "shift": False}
        if (think := self._think(request)) is not None:
            fields["think"] = think
        if request.json_schema is not None:
            fields["format"] = request.json_schema
        if dialect.keep_alive:
            fields["keep_alive"] = dialect.keep_alive
        kept = {
            name: value for name, value in fields.items() if name in ("stream", "think") or name not in request.dropped_fields
        }
        # The server's default window is too small for an agent.
        num_ctx = min(self._dialect.num_ctx, request.context or self._dialect.num_ctx)
        given = {"num_predict": request.max_tokens, **sampling_of(request), "stop": list(request.stop) or None}
        options = {name: value for name, value in given.items() if value is not None and name not in request.dropped_fields}
        return kept | {"options": {"num_ctx": num_ctx, **options}}

    def _think(self, request: Request) -> bool | ThinkingLevel | None:
        """Falls back to a boolean when the value was refused, and to nothing when the field was."""
        style, level = self._dialect.think, request.thinking
        if level is None or style == "none" or "thinking" in request.dropped_fields:
            return None
        if style == "levels" or (style == "auto" and KNOWS_LEVELS_ONLY.search(request.model)):
            if "think" not in request.dropped_fields:
                return nearest_level(level, self._dialect.thinking_levels)
        elif "think" in request.dropped_fields:
            return None
        return level != "off"


def _functions(tools: Iterable[ToolSpec]) -> list[dict[str, Any]]:
    return [{"type": "function", "function": function} for function in tool_functions(tools)]
