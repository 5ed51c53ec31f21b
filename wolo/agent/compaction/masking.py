"""Decides when old tool outputs are masked before the window is full: rarely, and many at once.

Each masking breaks the cached prefix: everything behind the first masked output is sent at the full price once more, and later
requests are smaller. The decision needs nothing but the messages and the prices of the model, and the cut that follows from it is
saved, so a resumed session sends the same bytes.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from wolo.agent.compaction.history_cut import Cut, shorten
from wolo.messages.message import Message
from wolo.models.provider import Price
from wolo.models.tokens import estimate_message

KEEP_ANSWERS = 6
"""Newest answers with calls; their outputs stay whole."""
LEAST_ANSWERS = 20
"""A shorter conversation is not masked for its price: it may end before the broken prefix has paid for itself."""
LEAST_SHARE = 0.45
"""Share of the request that must go, so that the next masking is far away."""
LEAST_SHARE_AT_LIMIT = 0.2
"""The same above `compaction.at_tokens`."""
FUTURE_SHARE = 0.25
"""Requests that are still expected, as a share of those so far; the smaller requests must pay for the broken prefix by then."""

MOST_RISK = 0.12
"""Cost of the broken prefix, at most, as a share of what all requests so far cost: the loss of a task that ends right then."""


class Masking:
    """Belongs to one conversation."""

    def __init__(self, protected_tools: Collection[str], at_tokens: int | None) -> None:
        """`at_tokens` is the setting; None: when the prices of the model make it pay."""
        self._protected_tools, self._at_tokens = protected_tools, at_tokens
        self._gains: dict[str, int] = {}
        """Tokens that masking a message saves, by its id."""

    def next_cut(self, cut: Cut, messages: Sequence[Message], size: float, scale: float, price: Price | None) -> Cut | None:
        """The cut with more outputs masked; None: not now. `size` is that of the request in the provider's tokens, of which an
        estimated one is `scale`."""
        is_limited = self._at_tokens is not None
        if size <= self._at_tokens if self._at_tokens is not None else price is None or not price.input:
            return None
        # Messages behind the newest one that is masked or left out already
        gone = cut.shortened | cut.left_out
        last = next((at for at in range(len(messages) - 1, -1, -1) if messages[at].id in gone), -1) if gone else -1
        answers = [message for message in messages[last + 1 :] if message.calls]
        old = [message for message in answers[:-KEEP_ANSWERS] if self._gain(message) > 0]
        gain = sum(map(self._gain, old)) * scale
        if not old or gain < size * (LEAST_SHARE_AT_LIMIT if is_limited else LEAST_SHARE):
            return None
        if not is_limited and price is not None and not self._pays(cut, messages, old[0], gain, size, scale, price):
            return None
        return Cut(cut.shortened.union(message.id for message in old), cut.left_out, cut.lead)

    def _pays(
        self, cut: Cut, messages: Sequence[Message], first: Message, gain: float, size: float, scale: float, price: Price
    ) -> bool:
        num_answers = sum(message.role == "assistant" for message in messages)
        if num_answers < LEAST_ANSWERS or price.input is None:
            return False
        shown = cut.apply(messages)
        sizes = [estimate_message(message) * scale for message in shown]
        at = next(at for at, message in enumerate(shown) if message is first)
        # The first cut offers one more tool, which stands before all messages.
        behind = size if cut.is_empty else sum(sizes[at:])
        read = price.input if price.cache_read is None else price.cache_read
        write = price.input if price.cache_write is None else price.cache_write
        broken = (behind - gain) * (write - read)
        so_far, sent, before = 0.0, size - sum(sizes), 0.0
        for message, tokens in zip(shown, sizes, strict=True):
            if message.role == "assistant":
                so_far += before * read + (sent - before) * write
                before = sent
            sent += tokens
        return broken <= so_far * MOST_RISK and broken <= gain * read * num_answers * FUTURE_SHARE

    def _gain(self, message: Message) -> int:
        if message.id not in self._gains:
            is_protected = any(part.tool in self._protected_tools for part in message.calls)
            self._gains[message.id] = 0 if is_protected else estimate_message(message) - estimate_message(shorten(message))
        return self._gains[message.id]
