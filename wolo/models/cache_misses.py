"""Why a request was not read from the provider's cache, and what that cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from wolo.messages.message import Message, Producer, Usage
from wolo.models.price import PER_TOKEN
from wolo.models.prompt_cache import METADATA, SHORTENED, Prefix, prefix_of
from wolo.models.provider import Price

SMALLEST_TOKENS = 1_024
"""Shorter prefixes are cached by nobody."""
SMALLEST_CERTAIN_TOKENS = 4_096
"""Prefixes of this length are cached by all who cache at all."""
LOW_SHARE = 0.5
"""A provider that read less than this share of what was the same has forgotten it."""
IDLE_S = 300.0
"""Most caches forget what was not asked for within five minutes."""

Kind = Literal["model", "prefix", "provider"]
"""Another model was asked; the request began differently; it began the same and was not read from the cache all the same."""


class Miss(Struct, frozen=True):
    kind: Kind
    block: str
    """The first block that differed; empty when none did."""
    reason: str
    """For people; a clause."""
    tokens: int
    """Read anew, by estimate."""
    cost: float | None
    """US dollars more than from the cache; None: the prices are not known."""

    @property
    def sentence(self) -> str:
        money = "" if self.cost is None else f" (${self.cost:.4f} more)"
        return f"Prompt cache missed: {self.reason}; about {self.tokens:,} tokens were read anew{money}."


class Looked(Struct, frozen=True):
    """One answered request."""

    number: int
    message: Message
    usage: Usage
    miss: Miss | None

    @property
    def prompt_tokens(self) -> int:
        return prompt_tokens(self.usage)

    @property
    def read_share(self) -> float:
        return self.usage.cache_read_tokens / self.prompt_tokens if self.prompt_tokens else 0.0


def look_through(messages: Iterable[Message], prices: Mapping[Producer, Price | None]) -> list[Looked]:
    """Every answer that was counted, in order. One that wolo wrote itself, as for the embedded model, was no request."""
    before: list[Message] = []
    looked: list[Looked] = []
    for message in messages:
        if message.role == "assistant" and message.usage is not None and message.usage.context_tokens:
            miss = find_miss(message, before, prices.get(message.producer or Producer()))
            looked.append(Looked(len(looked) + 1, message, message.usage, miss))
            before.append(message)
    return looked


def find_miss(answer: Message, before: Sequence[Message], price: Price | None) -> Miss | None:
    """`before` are the messages that were said until then. None also where nothing is known of the request."""
    prefix, usage = prefix_of(answer), answer.usage
    if prefix is None or usage is None or not prefix.after:
        return None
    last = next((each for each in reversed(before) if each.id == prefix.after), None)
    if last is None or last.usage is None:
        return None
    now, then = _name(answer.producer), _name(last.producer)
    if now != then:
        reason = f"another model was asked, {now} after {then}"
        return _missed("model", prefix, reason, _read_anew(usage, last.usage, 0), price)
    if prefix.differs:
        smaller = min(_size_bytes(answer), _size_bytes(last))
        common = _both(usage, last.usage) * prefix.same_bytes // smaller if smaller else 0
        return _missed("prefix", prefix, _difference(prefix.differs), _read_anew(usage, last.usage, common), price)
    return _forgotten(prefix, answer, last, before, price)


def prompt_tokens(usage: Usage) -> int:
    return usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens


def _both(usage: Usage, last: Usage) -> int:
    """No more of it than the shorter of two prompts could come from the cache."""
    return min(prompt_tokens(usage), prompt_tokens(last))


def _size_bytes(answer: Message) -> int:
    prefix = prefix_of(answer)
    return prefix.size_bytes if prefix else 0


def _forgotten(prefix: Prefix, answer: Message, last: Message, before: Sequence[Message], price: Price | None) -> Miss | None:
    assert answer.usage is not None
    assert last.usage is not None
    expected = prompt_tokens(last.usage)
    if answer.usage.estimated or expected < SMALLEST_TOKENS or answer.usage.cache_read_tokens >= expected * LOW_SHARE:
        return None
    has_price = price is not None and price.cache_read is not None and price.cache_read != price.input
    if not ((has_price and expected >= SMALLEST_CERTAIN_TOKENS) or _has_cached(before, answer.producer)):
        return None
    idle_s = answer.timestamp - last.timestamp
    when = f"after {idle_s / 60:.0f} minutes without a request it had expired" if idle_s >= IDLE_S else "expired or evicted"
    reason = f"the request began as the one before, but the provider did not have it any more ({when})"
    return _missed("provider", prefix, reason, _read_anew(answer.usage, last.usage, 0), price)


def _read_anew(usage: Usage, last: Usage, common_tokens: int) -> int:
    """Of what both requests hold, all but the common beginning, or less if the provider says so."""
    return max(_both(usage, last) - max(common_tokens, usage.cache_read_tokens), 0)


def _missed(kind: Kind, prefix: Prefix, reason: str, tokens: int, price: Price | None) -> Miss:
    return Miss(kind, prefix.differs, reason, tokens, _cost(tokens, price))


def _cost(tokens: int, price: Price | None) -> float | None:
    if price is None or price.input is None or price.cache_read is None:
        return None
    return tokens * (price.input - price.cache_read) * PER_TOKEN


def _difference(label: str) -> str:
    match label:
        case "tools":
            return "the tools changed"
        case "system":
            return "the system prompt changed"
        case _ if label == SHORTENED:
            return f"the history changed at {label}"
        case _ if label.startswith("compaction_summary"):
            return "the conversation was compacted"
        case _:
            return f"the history changed, first in {label}"


def _has_cached(before: Iterable[Message], producer: Producer | None) -> bool:
    """Whether this model has ever used a cache in this conversation."""
    return any(
        each.usage is not None and each.producer == producer and (each.usage.cache_read_tokens or each.usage.cache_write_tokens)
        for each in before
        if METADATA in each.metadata
    )


def _name(producer: Producer | None) -> str:
    return f"{producer.provider}/{producer.model}" if producer else ""
