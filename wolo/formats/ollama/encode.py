"""Encode messages for Ollama: text content, separate images, arguments as objects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from msgspec import Meta, Struct

from wolo.formats.encoding.attachments import MEDIA_BELOW, ONLY_ATTACHMENT, base64_text, not_fetched, not_sent, read_data_url
from wolo.formats.encoding.encoder import CONTINUE, Item, Layout, MessageLayout
from wolo.formats.encoding.wire_forms import arguments_object, result_text, wire_name
from wolo.formats.format import ThinkingLevel
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

    def user_item(self, text: str) -> Item:
        return {"role": "user", "content": text}

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
