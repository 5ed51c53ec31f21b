"""Encode messages for the Messages API: lists of content blocks, with alternating roles."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from wolo.formats.encoding.attachments import ONLY_ATTACHMENT, base64_text, not_fetched, not_sent, read_data_url
from wolo.formats.encoding.encoder import CONTINUE, Item, Layout, MessageLayout, join_items
from wolo.formats.encoding.wire_forms import arguments_object, outcome_of, result_text, wire_name
from wolo.formats.format import ThinkingLevel
from wolo.messages.media import image_type
from wolo.messages.message import Message, Producer
from wolo.messages.parts import AudioPart, FilePart, ImagePart, MediaPart, TextPart, ThinkingPart, ToolPart, blob_of
from wolo.messages.unicode import clean, whole

GENERATION = re.compile(r"claude-(?:[a-z]+-)?(\d+)(?:[.-](\d{1,2})(?!\d))?", re.IGNORECASE)
ADAPTIVE_SINCE = (4, 6)
HIDES_THINKING_SINCE = (4, 7)


class AnthropicDialect(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Defaults fit an unknown compatible server."""

    # Thinking

    thinking_style: Literal["auto", "none", "budget", "adaptive"] = "auto"
    """`budget`: a number of thinking tokens; `adaptive`: the model decides, guided by an effort. `auto`: by the Claude
    generation in the model name; `budget` for other names."""
    thinking_off: Literal["disabled", "between_tools", "refused"] = "disabled"
    """Parameter that disables thinking. `between_tools` still allows it after tool results; `refused`: only the lowest effort is
    possible."""
    thinks_unasked: bool = False
    """The model thinks even when the request does not ask for it."""
    thinking_levels: tuple[ThinkingLevel, ...] = ()
    """Supported levels; empty: all. Others map to the next higher level, or the highest."""
    thinking_display: Literal["", "summarized", "omitted"] = ""
    """Visibility of thinking; newer models hide it unless this is set."""
    thinking_replay: Literal["always", "tool_turns", "never"] = "always"
    """Assistant messages whose thinking is replayed; never to another producer."""
    unsigned_thinking: bool = False
    """Replay thinking without a signature: this server sends none."""
    bound_thinking: bool = True
    """Replay thinking only after the exact prefix it was written after."""

    # Caching

    cache_marks: bool = True
    long_cache: bool = False
    """Cache for an hour instead of five minutes: writes cost twice the input instead of 1.25 times."""

    # Address

    path: str = "/v1/messages"
    """Path below the base URL. With `{model}` in it the body names no model."""
    body_version: str = ""
    """Version of the API in the body, where clouds want it instead of in a header."""
    body_betas: tuple[str, ...] = ()
    """Beta features in the body."""
    stream_field: bool = True
    """The body says that the answer is to be streamed; otherwise the path does."""

    # Other

    web_search: bool = False
    """Searches the web with its own tool `web_search_20250305`."""
    max_tokens: int = 16_384
    """Output limit when neither request nor catalogue sets one; the field is required."""
    sampling: Literal["open", "fixed"] = "open"
    """`fixed`: temperature and top_p are refused."""
    structured_output: bool = True
    """Supports JSON schema output."""
    images: bool = True
    image_urls: bool = True
    """Images may be URLs that the server fetches."""
    files: bool = True
    """PDF and plain text are sent as documents."""
    tool_result_media: bool = True
    """Tool results may contain images and documents; otherwise these follow the results."""


def resolve_dialect(dialect: AnthropicDialect, model: str) -> AnthropicDialect:
    """Replace every `auto`."""
    if dialect.thinking_style != "auto":
        return dialect
    # `claude-opus-4-7` is (4, 7), `claude-3-7-sonnet-20250219` (3, 7); (0, 0) for names without a number.
    found = GENERATION.search(model)
    generation = (int(found[1]), int(found[2] or 0)) if found else (0, 0)
    if generation < ADAPTIVE_SINCE:
        return replace(dialect, thinking_style="budget")
    display = "summarized" if generation >= HIDES_THINKING_SINCE else ""
    return replace(dialect, thinking_style="adaptive", thinking_display=dialect.thinking_display or display)


SIGNATURE = "anthropic.signature"
REDACTED = "anthropic.redacted"
PREFIX = "anthropic.prefix"
"""Blob kinds; `PREFIX` is internal and never sent."""
THINKING = ("thinking", "redacted_thinking")
DIGEST_BYTES = 16


class _State(NamedTuple):
    digest: bytes
    """Digest of everything encoded so far."""
    paused: bool = False
    """The last item is a paused response that the model will continue."""
    stripped: bool = False
    """Thinking was dropped because its prefix changed: later thinking without a stamp is dropped too."""


class AnthropicLayout(Layout):
    id_policy = "anthropic"
    user_roles = ("user",)

    def __init__(self, dialect: AnthropicDialect, producer: Producer, opening: bytes, *, thinking: bool = True) -> None:
        """`opening` holds the encoded tools and system prompt. `thinking` False drops all thinking."""
        super().__init__()
        self._dialect, self._producer, self._thinking = dialect, producer, thinking
        self._now = _State(_digest(b"", opening))
        self._before: list[_State] = []

    @property
    def prefix(self) -> str:
        """Digest of a request that ends here."""
        return self._digest_after(self.close())

    def add(self, message: Message) -> MessageLayout:
        self._before.append(self._now)
        layout_step = super().add(message)
        if not layout_step.items:
            return layout_step
        encoded = join_items(layout_step.items)
        paused = message.finish_reason == "paused" and self.role == "assistant"
        self._now = _State(_digest(self._now.digest, encoded), paused, self._now.stripped)
        return replace(layout_step, encoded=encoded)

    def undo(self, layout_step: MessageLayout) -> None:
        super().undo(layout_step)
        self._now = self._before.pop()

    def close(self) -> list[Item]:
        """A paused response is sent unchanged, so that the model continues it."""
        return [] if self._now.paused else super().close()

    def user_item(self, text: str) -> Item:
        return _text_message("user", text)

    def _between(self, role: str) -> list[Item]:
        if role == "user":
            return [_text_message("assistant", self.no_answer)] if self.role == "user" else []
        return [] if self.role == "user" else [_text_message("user", CONTINUE)]

    def _items(self, message: Message, layout_step: MessageLayout) -> Iterator[Item]:
        if message.role != "assistant":
            blocks: list[Block] = []
            for part in message.parts:
                if isinstance(part, TextPart):
                    blocks += _text_blocks(clean(part.text))
                elif not isinstance(part, ThinkingPart | ToolPart):
                    block = media_block(part, self._dialect)
                    blocks.append({"type": "text", "text": block} if isinstance(block, str) else block)
            yield {"role": "user", "content": blocks}
            return
        calls = message.calls
        wire_ids = {call.id: self.wire_id(call, layout_step) for call in calls}
        yield {"role": "assistant", "content": self._assistant_content(message, wire_ids)}
        if calls:
            # Results come first; media that results cannot contain follow the last one.
            results: list[Block] = []
            behind: list[Block] = []
            for call in calls:
                media = [media_block(part, self._dialect) for part in call.output_parts]
                notes = [each for each in media if isinstance(each, str)]
                inside = [each for each in media if not isinstance(each, str)]
                failed = outcome_of(call) != "ok"
                if failed or not self._dialect.tool_result_media:  # error results accept text only
                    behind, inside = [*behind, *inside], []
                text = result_text(call, notes)
                result: Block = {"type": "tool_result", "tool_use_id": wire_ids[call.id]}
                result["content"] = [*_text_blocks(text), *inside] if inside else text
                results.append({**result, "is_error": True} if failed else result)
            yield {"role": "user", "content": [*results, *behind]}

    # Assistant messages

    def _assistant_content(self, message: Message, wire_ids: dict[str, str]) -> list[Block]:
        """Blocks in their original order. Thinking at the end is removed because the API refuses it."""
        thinks = self._may_think(message)
        blocks: list[Block] = []
        for part in message.parts:
            match part:
                case TextPart():
                    blocks += _text_blocks(clean(part.text))
                case ThinkingPart():
                    blocks += self._thinking_blocks(part) if thinks else ()
                case ToolPart():
                    name = wire_name(part.tool)
                    blocks.append({"type": "tool_use", "id": wire_ids[part.id], "name": name, "input": arguments_object(part)})
                case _:
                    blocks += _text_blocks(ONLY_ATTACHMENT)
        while blocks and blocks[-1]["type"] in THINKING and message.finish_reason != "paused":
            blocks.pop()
        return blocks

    def _may_think(self, message: Message) -> bool:
        """Check that the thinking is the producer's own and follows its original prefix."""
        replay = self._dialect.thinking_replay
        wanted = self._thinking and (replay == "always" or (replay == "tool_turns" and bool(message.calls)))
        if not wanted or message.producer != self._producer:
            return False
        if not self._dialect.bound_thinking:
            return True
        stamps = [
            blob_of(part.blobs, PREFIX)
            for part in message.parts
            if isinstance(part, ThinkingPart) and self._thinking_blocks(part)
        ]
        if not stamps:
            return True
        here = self._digest_after(self._between("assistant"))
        if any(stamp not in ("", here) for stamp in stamps) or (self._now.stripped and "" in stamps):
            self._now = self._now._replace(stripped=True)
            return False
        return True

    def _thinking_blocks(self, part: ThinkingPart) -> list[Block]:
        """The original blocks unchanged, or none."""
        if redacted := blob_of(part.blobs, REDACTED):
            return [{"type": "redacted_thinking", "data": redacted}]
        signature = blob_of(part.blobs, SIGNATURE)
        if signature or (self._dialect.unsigned_thinking and part.text.strip()):
            return [{"type": "thinking", "thinking": whole(part.text), "signature": signature}]
        return []

    def _digest_after(self, items: list[Item]) -> str:
        return (_digest(self._now.digest, join_items(items)) if items else self._now.digest).hex()


def _digest(before: bytes, encoded: bytes) -> bytes:
    return hashlib.blake2b(before + encoded, digest_size=DIGEST_BYTES).digest()


def _text_message(role: str, text: str) -> Item:
    return {"role": role, "content": _text_blocks(text)}


def _text_blocks(text: str) -> list[Block]:
    """Blank text is refused by the API."""
    return [{"type": "text", "text": text}] if text.strip() else []


Block = dict[str, Any]

IMAGE_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")
PDF = "application/pdf"
ADDRESSES = ("https://", "http://")
READ_AS_TEXT = ("text/", "application/json", "application/xml", "application/yaml", "application/toml")


def media_block(part: MediaPart, dialect: AnthropicDialect) -> Block | str:
    """A content block, or a note about what this server does not support."""
    match part:
        case ImagePart():
            if not dialect.images:
                return not_sent(part)
            kind, data = (part.media_type, part.data) if part.data else read_data_url(part.url)
            if data:
                kind = image_type(data[:16]) or kind
                if kind not in IMAGE_TYPES:
                    return f"[image, not sent: this server does not take {clean(kind) or 'its type'}]"
                return {"type": "image", "source": {"type": "base64", "media_type": kind, "data": base64_text(data)}}
            url = clean(part.url).strip()
            if url.startswith(ADDRESSES) and dialect.image_urls:
                return {"type": "image", "source": {"type": "url", "url": url}}
            return not_fetched(url)
        case AudioPart():
            return not_sent(part)
        case FilePart():
            if not dialect.files:
                return not_sent(part)
            url, source = clean(part.url).strip(), None
            if part.data.startswith(b"%PDF") or (part.data and part.media_type == PDF):
                source = {"type": "base64", "media_type": PDF, "data": base64_text(part.data)}
            elif part.media_type.startswith(READ_AS_TEXT):
                text = clean(part.data.decode("utf-8", "replace"))
                source = {"type": "text", "media_type": "text/plain", "data": text} if text.strip() else None
            elif not part.data and url.startswith(ADDRESSES):
                source = {"type": "url", "url": url}
            if source is None:
                return not_sent(part)
            name = clean(part.name).strip()
            return {"type": "document", "source": source, **({"title": name} if name else {})}
