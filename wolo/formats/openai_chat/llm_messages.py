"""Conversion of messages to the `messages` of a Chat Completions request; every request goes through `to_llm_messages`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from wolo.formats.default_prompt import NAME, default_prompt, renamed
from wolo.formats.dialect import Dialect
from wolo.formats.encoding.encoder import EncodedHistory, Item, Kept, joined, split_system
from wolo.formats.openai_chat.messages import ChatLayout, marked
from wolo.messages.message import Message, Producer

if TYPE_CHECKING:
    from wolo.messages.roles import AgentMessage

PLAIN = Dialect(cache_marks=True)
"""The dialect of `to_llm_messages` called without an encoder."""


class LlmMessages(list[dict[str, Any]]):
    """The messages of a request, and the same as JSON."""

    encoded: bytes = b""
    """The items joined by commas, without the brackets."""


class ChatEncoder:
    """Lays out messages for one server. With a `history` of its own caller, the bytes of earlier messages are reused."""

    def __init__(
        self,
        dialect: Dialect = PLAIN,
        producer: Producer | None = None,
        withheld: frozenset[str] = frozenset(),
        *,
        history: EncodedHistory | None = None,
        for_server: bool = False,
    ) -> None:
        """`for_server`: adds the short messages and the moving cache marks that servers want; otherwise each message becomes
        what it is. `producer` and `withheld` as in `ChatLayout`."""
        self._dialect = dialect
        self._producer = producer
        self._withheld = withheld
        self._history = history or EncodedHistory()
        self._for_server = for_server

    def lay(self, messages: Sequence[Message], system: str) -> LlmMessages:
        kept, _ = self._history.lay(messages, system, (self._producer, self._withheld, self._for_server), self.layout)
        found = LlmMessages()
        pieces = []
        marks = self._marks(kept)
        for at, each in enumerate(kept):
            items = _marked_at_end(each.laid.items) if at in marks else each.laid.items
            pieces.append(joined(items) if at in marks else each.encoded)
            found += items
        found.encoded = b",".join(pieces)
        return found

    def layout(self) -> ChatLayout:
        return ChatLayout(self._dialect, self._producer, self._withheld, takes_turns=self._for_server)

    def _marks(self, kept: Sequence[Kept]) -> set[int]:
        """A cached prefix may end at the system message and at the last message that has words."""
        if not (self._for_server and self._dialect.cache_marks):
            return set()
        first = next((at for at, each in enumerate(kept) if each.block.label == "system"), None)
        last = next((at for at in reversed(range(len(kept))) if kept[at].message and _has_words(kept[at])), None)
        return {at for at in (first, last) if at is not None}


def to_llm_messages(
    messages: Sequence[Message | AgentMessage],
    *,
    system: str | None = None,
    display_name: str = NAME,
    encoder: ChatEncoder | None = None,
) -> LlmMessages:
    """Converts messages to those of a Chat Completions request.

    Unsendable messages are left out, and every call is followed by its result. A conversation without a system message of
    its own opens with `system`: wolo's prompt by default, none if it is empty. In the system message the word "Wolo" becomes
    `display_name`. `encoder` is that of a server; without one each message becomes what it is, and nothing is added.
    Raises ValueError for messages by role with a result that answers no open call.
    """
    own = tuple(each for each in messages if isinstance(each, Message))
    if len(own) < len(messages):
        from wolo.messages.roles import to_messages  # noqa: PLC0415  # wolo's own requests never need it

        own = to_messages(messages)
    prompt, rest = split_system(own, default_prompt() if system is None else system)
    return (encoder or ChatEncoder()).lay(rest, renamed(prompt, display_name))


def _marked_at_end(items: Sequence[Item]) -> list[Item]:
    """With a cache mark on the last item that has words; results take none."""
    for at in reversed(range(len(items))):
        if items[at]["role"] != "tool" and (changed := marked(items[at])) is not items[at]:
            return [*items[:at], changed, *items[at + 1 :]]
    return [*items]


def _has_words(kept: Kept) -> bool:
    return any(item["role"] != "tool" and marked(item) is not item for item in kept.laid.items)
