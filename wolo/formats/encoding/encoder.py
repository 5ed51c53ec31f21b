"""Encode a conversation message by message, reusing the bytes of earlier messages.

An encoded message depends only on the messages before it, so a longer history starts with the bytes of a shorter one, as prefix
caches require. Hence adjacent messages of one role are not merged, which would rewrite the first one; formats insert a short
message of the other role instead.
"""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from operator import is_
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from wolo.errors import ProviderError
from wolo.formats.encoding.wire_forms import IdPolicy, wire_id
from wolo.formats.format import Block, Blocks, Decoder, Framing, Request, ToolSpec
from wolo.formats.response_end import response_error
from wolo.messages.deltas import Delta
from wolo.messages.message import Message, common_prefix_length
from wolo.messages.parts import TextPart, ToolPart

if TYPE_CHECKING:
    from wolo.formats.web_findings import WebFindings

CONTINUE = "Continue."
"""User message where a server expects one."""
NO_ANSWER = "(no answer was given)"
"""Assistant message between two user messages."""
CACHED_BLOCK_READ = "(the conversation so far was read)"
"""Assistant message after a cached block."""
CLOSE = "close"
"""Label of closing items."""
SUMMARIES = ("branch_summary", "compaction_summary")
DIGEST_BYTES = 8

encode_json = msgspec.json.Encoder().encode
Item = dict[str, Any]


class MessageLayout(Struct, frozen=True):
    """Items of one message, and the state to restore on undo."""

    items: list[Item]
    role_before: str
    wire_ids: list[str]
    call_ids: list[str]
    encoded: bytes = b""
    """The items as bytes, if the layout encoded them itself."""
    was_behind_block: bool = False
    is_cached_block: bool = False


class Layout(ABC):
    """Encodes one conversation; formats implement `_items` and `_between`."""

    id_policy: IdPolicy = "opaque"
    user_roles: ClassVar[tuple[str, ...]] = ("user", "tool")
    """Roles after which the model may answer."""

    def __init__(self) -> None:
        self.role = ""
        """Role of the last item."""
        self.is_behind_block = False
        """The last message was a cached block."""
        self._used_ids: set[str] = set()
        self._seen_calls: set[str] = set()

    def opening_items(self, system: str) -> list[Item]:
        """Items before the first message; called first."""
        return []

    def add(self, message: Message) -> MessageLayout:
        new_calls = [call.id for call in message.calls if call.id not in self._seen_calls]
        layout_step = MessageLayout(
            [], self.role, [], new_calls, was_behind_block=self.is_behind_block, is_cached_block=message.is_cached_block
        )
        if (visible := visible_message(message, self._seen_calls)) is not None:
            for item in self._items(visible, layout_step):
                role = self.role_of(item)
                layout_step.items.extend(self._between(role))
                layout_step.items.append(item)
                self.role = role
            self.is_behind_block = layout_step.is_cached_block
        return layout_step

    def undo(self, layout_step: MessageLayout) -> None:
        """Undo the last added message."""
        self.role = layout_step.role_before
        self.is_behind_block = layout_step.was_behind_block
        self._used_ids.difference_update(layout_step.wire_ids)
        self._seen_calls.difference_update(layout_step.call_ids)

    def close(self) -> list[Item]:
        """Items needed at the end so that the model has something to answer."""
        return [] if self.role in self.user_roles else [self.user_item(CONTINUE)]

    @property
    def no_answer(self) -> str:
        """Assistant text between two user messages."""
        return CACHED_BLOCK_READ if self.is_behind_block else NO_ANSWER

    def wire_id(self, call: ToolPart, layout_step: MessageLayout) -> str:
        """A legal id, unique in the conversation; called once per call."""
        wire = wire_id(call.wire_id, self.id_policy, self._used_ids)
        self._used_ids.add(wire)
        layout_step.wire_ids.append(wire)
        return wire

    def role_of(self, item: Item) -> str:
        return str(item["role"])

    def user_item(self, text: str) -> Item:
        return {"role": "user", "content": text}

    @abstractmethod
    def _items(self, message: Message, layout_step: MessageLayout) -> Iterator[Item]:
        """Items of a message with content; summaries have the user role."""

    @abstractmethod
    def _between(self, role: str) -> list[Item]:
        """Items required before an item of this role, given the last role (`self.role`)."""


class EncodedMessage(Struct, frozen=True):
    """An encoded message; opening and closing items are stored the same way."""

    message: Message | None
    layout_step: MessageLayout
    block: Block

    @property
    def items(self) -> list[Item]:
        return self.layout_step.items


class EncodedRequest(Struct, frozen=True):
    """The messages of one request, until the next is encoded: all of it is shared with the history."""

    messages: Sequence[EncodedMessage]
    cached: Sequence[int]
    """Indexes of messages that are cached blocks."""
    layout: Layout
    _joined: bytearray
    _ends: Sequence[int]

    def join(self, before: Iterable[bytes], after: Iterable[bytes], changed: Mapping[int, bytes] | None = None) -> bytes:
        """Returns the messages, joined by commas, between other bytes; everything is copied once.

        `changed` replaces the bytes of messages by index.
        """
        messages, at = memoryview(self._joined), 0
        pieces: list[bytes | memoryview] = [*before]
        for index in sorted(changed or ()):
            pieces += (messages[at : self._ends[index - 1] + 1 if index else 0], (changed or {})[index])
            at = self._ends[index]
        return b"".join((*pieces, messages[at:], *after))


class EncodedHistory:
    """Encoded messages of one conversation, reused while the history only grows.

    Everything is kept from the request before, so that the work for the next does not grow with the history.
    """

    def __init__(self) -> None:
        self._for: Hashable = None
        self._layout: Layout | None = None
        self._start_anew()

    def _start_anew(self) -> None:
        self._messages: tuple[Message, ...] = ()
        self._kept: list[EncodedMessage] = []
        """One for each of `_messages`."""
        self._sent: list[EncodedMessage] = []
        """The opening, those of `_kept` that have items, and the closing items."""
        self._joined = bytearray()
        """All of `_sent`, joined by commas."""
        self._ends: list[int] = []
        """End of each of `_sent` in `_joined`."""
        self._cached: list[int] = []
        self._blocks: list[Block] = []
        """Those of `_sent` without closing items. Only appended to, because requests share it."""
        self._is_closed = False
        """The last of `_sent` are closing items."""

    def encode(self, messages: Sequence[Message], system: str, key: Hashable, new_layout: Callable[[], Layout]) -> EncodedRequest:
        """Encode opening, messages and closing items; empty ones are omitted.

        A different `key` or `system` discards everything encoded before.
        """
        if self._layout is None or self._for != (key, system):
            self._for = (key, system)
            self._layout = new_layout()
            self._start_anew()
            self._add(None, MessageLayout(self._layout.opening_items(system), "", [], []), "system")
        layout = self._layout
        if self._is_closed:
            self._is_closed = False
            self._remove()
        keep = common_prefix_length(self._messages, messages)
        before = len(self._sent)
        while len(self._kept) > keep:
            last = self._kept.pop()
            layout.undo(last.layout_step)
            if last.block.size_bytes:
                self._remove()
        if len(self._sent) < before:
            self._blocks = self._blocks[: len(self._sent)]
        for at in range(len(self._kept), len(messages)):
            message = messages[at]
            self._kept.append(self._add(message, layout.add(message), f"{message.role} message {at + 1}"))
        self._messages = tuple(messages)
        if closing := layout.close():
            self._add(None, MessageLayout(closing, "", [], []), CLOSE)
            self._is_closed = True
        return EncodedRequest(self._sent, self._cached, layout, self._joined, self._ends)

    def blocks(self, *head: Block) -> Blocks:
        """Blocks of the last request after `head`, without closing items, which are never part of a later prefix."""
        return Blocks(head, self._blocks, len(self._blocks))

    def _add(self, message: Message | None, layout_step: MessageLayout, label: str) -> EncodedMessage:
        encoded = layout_step.encoded or join_items(layout_step.items)
        added = EncodedMessage(message, layout_step, block(label, encoded))
        if encoded:
            if self._sent:
                self._joined += b","
            self._joined += encoded
            self._ends.append(len(self._joined))
            if layout_step.is_cached_block:
                self._cached.append(len(self._sent))
            self._sent.append(added)
            if label != CLOSE:
                self._blocks.append(added.block)
        return added

    def _remove(self) -> None:
        self._sent.pop()
        self._ends.pop()
        del self._joined[self._ends[-1] if self._ends else 0 :]
        if self._cached and self._cached[-1] == len(self._sent):
            self._cached.pop()


def visible_message(message: Message, seen: set[str]) -> Message | None:
    """The message as sent to a model; None if it must not be sent.

    Summaries become user messages. Omitted are empty messages, those of extensions, and responses stopped by the provider's
    filter, which would be refused again. A call that occurs in two messages counts once: `seen` collects call ids.
    """
    if message.role == "custom" or message.finish_reason == "refused":
        return None
    visible = replace(message, role="user") if message.role in SUMMARIES else message
    kept = []
    for part in visible.parts:
        if isinstance(part, ToolPart):
            if part.id in seen or visible.role != "assistant":
                continue  # sent before, or not a message that may hold calls
            seen.add(part.id)
        kept.append(part)
    visible = visible if len(kept) == len(visible.parts) else replace(visible, parts=tuple(kept))
    return visible if has_content(visible) else None


def has_content(message: Message) -> bool:
    """Servers refuse messages with only reasoning."""
    return any(bool(part.text.strip()) if isinstance(part, TextPart) else part.type != "thinking" for part in message.parts)


def sampling_of(request: Request) -> dict[str, float]:
    """Temperature and top_p where set; values that JSON cannot express are dropped."""
    values = {"temperature": request.temperature, "top_p": request.top_p}
    return {name: value for name, value in values.items() if value is not None and math.isfinite(value)}


def split_system(messages: tuple[Message, ...], system: str) -> tuple[str, tuple[Message, ...]]:
    """Leading system messages replace `system`; later ones are encoded as user messages."""
    count = next((at for at, message in enumerate(messages) if message.role != "system"), len(messages))
    own = "\n\n".join(text for message in messages[:count] if (text := message.text).strip())
    return own or system, messages[count:]


def block(label: str, encoded: bytes) -> Block:
    return Block(label, hashlib.blake2b(encoded, digest_size=DIGEST_BYTES).digest(), len(encoded))


def join_items(items: Sequence[Item]) -> bytes:
    return encode_json(items)[1:-1]


_encoded_tools: dict[Hashable, tuple[tuple[ToolSpec, ...], list[dict[str, Any]], bytes]] = {}
"""Of all conversations of this process, by the identity of the tools: those of wolo are the same in all. No value changes."""
_MOST_ENCODED = 64


class OfferedTools:
    """Tools of the last request, encoded once while they stay the same."""

    def __init__(self) -> None:
        self._key: Hashable = None
        self.specs: tuple[ToolSpec, ...] = ()
        self.items: list[dict[str, Any]] = []
        self.encoded = b""
        """`items` as a JSON list; empty without tools."""
        self.blocks: tuple[Block, ...] = ()
        """One, or none without tools."""

    def take(
        self, specs: tuple[ToolSpec, ...], write: Callable[[Iterable[ToolSpec]], list[dict[str, Any]]], key: Hashable
    ) -> bytes:
        """`write` encodes tools, `key` names it with its other inputs. Of duplicate names the last wins."""
        is_same = len(specs) == len(self.specs) and all(map(is_, specs, self.specs))
        if key != self._key or not is_same:
            self.specs, self._key = specs, key
            row = (key, *map(id, specs))
            if row not in _encoded_tools:
                items = write({tool.name: tool for tool in specs}.values())
                if len(_encoded_tools) >= _MOST_ENCODED:
                    _encoded_tools.clear()
                _encoded_tools[row] = (specs, items, encode_json(items) if items else b"")
            _, self.items, self.encoded = _encoded_tools[row]
            self.blocks = (block("tools", self.encoded),) if self.encoded else ()
        return self.encoded


DialectT = TypeVar("DialectT")


class BodyDecoder(Decoder, Protocol):
    findings: WebFindings | None
    """Collects the pages of a request that wanted the web to be searched; the message carries them."""

    def read_whole(self, body: bytes) -> Sequence[Delta]: ...


class BaseFormat(ABC, Generic[DialectT]):
    """The parts that formats share. Reuses the encoded bytes of earlier messages, so a new message costs only itself."""

    framing: Framing = "sse"

    def __init__(self, dialect: DialectT, *, provider_hint: str = "") -> None:
        """`provider_hint` is added to the error when the key is rejected."""
        self._dialect, self._hint = dialect, provider_hint
        self._history = EncodedHistory()
        self._tools = OfferedTools()
        self._searches = False

    def blocks(self) -> Blocks:
        return self._history.blocks(*self._tools.blocks)

    def decoder(self, request: Request) -> Decoder:
        self._searches = request.web_search
        return self._open_decoder(request.tools)

    def read_whole(self, body: bytes) -> Sequence[Delta]:
        return self._open_decoder(self._tools.specs).read_whole(body)

    def _open_decoder(self, tools: Sequence[ToolSpec]) -> BodyDecoder:
        decoder = self._decoder(tools)
        if self._searches:
            from wolo.formats.web_findings import WebFindings  # noqa: PLC0415  # no answer of a conversation has any

            decoder.findings = WebFindings()
        return decoder

    def read_error(self, status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
        return response_error(status, headers, body, provider_hint=self._hint)

    @abstractmethod
    def _decoder(self, tools: Sequence[ToolSpec]) -> BodyDecoder:
        """Of a response to a request that offered these tools."""
