"""Prompt caching: compare each request with the one before, and explain cache misses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from wolo.formats.encoding.encoder import DIGEST_BYTES
from wolo.formats.format import Block, Blocks
from wolo.messages.message import Message, Producer, Usage
from wolo.models.provider import PER_TOKEN, Price

METADATA = "prefix"
"""Metadata key of responses for the `Prefix` of their request."""
UNKNOWN = b"\0" * DIGEST_BYTES
SHORTENED = "the end of the history, which is shorter now"
REASONS = {
    "tools": "the tools changed",
    "system": "the system prompt changed",
    SHORTENED: f"the history changed at {SHORTENED}",
}
"""By the label of the block that differs."""

Digests = list[bytes]


class Prefix(Struct, frozen=True, omit_defaults=True):
    """Blocks of one request as changes: the first `same` of the previous one, `new` ones, its last `again`, `more` new ones."""

    after: str = ""
    """Id of the response to the previous request; empty for the first."""
    same: int = 0
    new: bytes = b""
    again: int = 0
    more: bytes = b""
    size_bytes: int = 0
    """Total size of all blocks."""
    same_bytes: int = 0
    differs: str = ""
    """Label of the first changed block; empty while the previous request is a prefix."""


class PrefixWatch:
    """Remembers the blocks of the last answered request."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Digests, int]] = {}
        """Blocks of the last two responses by id, in case the newest was not saved. Requests that only append share a list, and
        have their first ones in it."""
        self._blocks = Blocks((), [], 0)
        """The blocks of the last request."""
        self._digests: Digests = []
        self._size_bytes = 0

    def remember(self, answer: Message, messages: Sequence[Message], blocks: Blocks) -> Message:
        """Add the prefix to the response's metadata; `messages` and `blocks` are those of the request."""
        before = next((each.id for each in reversed(messages) if METADATA in each.metadata), "") or next(iter(self._known), "")
        # Only what is new is collected, if the last request is known to be a prefix of this one.
        last = self._blocks
        if blocks.messages is last.messages and blocks.count >= last.count and blocks.head == last.head:
            new = blocks.messages[last.count : blocks.count]
        else:
            new, self._digests, self._size_bytes = all_blocks(blocks), [], 0
        self._digests += [block.digest for block in new]
        self._size_bytes += sum(block.size_bytes for block in new)
        self._blocks = blocks
        old, count = self._known.get(before, (None, 0))
        if old is self._digests:
            new = blocks.messages[blocks.count - (len(self._digests) - count) : blocks.count]
            prefix = Prefix(
                after=before,
                same=count,
                new=b"".join(self._digests[count:]),
                size_bytes=self._size_bytes,
                same_bytes=self._size_bytes - sum(block.size_bytes for block in new),
            )
        else:
            old = digests_of(before, messages) if old is None else old[:count]
            prefix = _compare_prefix(before, old, self._digests, all_blocks(blocks), self._size_bytes)
        kept = {prefix.after: self._known[prefix.after]} if prefix.after in self._known else {}
        self._known = {answer.id: (self._digests, len(self._digests)), **kept}
        return replace(answer, metadata={**answer.metadata, METADATA: msgspec.to_builtins(prefix)})


def all_blocks(blocks: Blocks) -> list[Block]:
    return [*blocks.head, *blocks.messages[: blocks.count]]


def prefix_of(message: Message) -> Prefix | None:
    """None if missing or unreadable."""
    try:
        return msgspec.convert(message.metadata[METADATA], Prefix) if METADATA in message.metadata else None
    except msgspec.ValidationError:
        return None


def digests_of(message_id: str, messages: Sequence[Message]) -> Digests:
    """Rebuild the blocks of a request from the prefixes of earlier responses."""
    by_id = {message.id: message for message in messages if METADATA in message.metadata}
    digests: Digests = []
    for prefix in reversed(list(_chain(message_id, by_id))):
        again = digests[-prefix.again :] if prefix.again else []
        del digests[prefix.same :]
        digests += [UNKNOWN] * (prefix.same - len(digests))
        digests += _split(prefix.new)
        digests += [UNKNOWN] * (prefix.again - len(again)) + again
        digests += _split(prefix.more)
    return digests


def _chain(message_id: str, by_id: Mapping[str, Message]) -> Iterator[Prefix]:
    """Newest first; each response at most once, even in a damaged session."""
    waiting = dict(by_id)
    while message := waiting.pop(message_id, None):
        if (prefix := prefix_of(message)) is None:
            return
        yield prefix
        message_id = prefix.after


def _compare_prefix(before: str, old: Digests, now: Digests, blocks: Sequence[Block], size_bytes: int) -> Prefix:
    """Unknown blocks count as unchanged; if nothing else differs, no change is reported."""
    same = len(old)
    if now[: len(old)] != old:
        pairs = enumerate(zip(old, now, strict=False))
        same = next((at for at, (one, other) in pairs if one not in (other, UNKNOWN)), min(len(old), len(now)))
    differs = "" if same == len(old) else blocks[same].label if same < len(blocks) else SHORTENED
    if not differs and UNKNOWN in old:
        return Prefix(more=b"".join(now), size_bytes=size_bytes)
    # Length and position of the unchanged tail, so that a changed system prompt costs one digest.
    if same == len(old) or old[-1] not in now[same:]:
        again, at = 0, same
    else:
        end = now.index(old[-1], same)
        length = next(
            back for back in count() if min(end, len(old) - 1) - back < same or old[len(old) - 1 - back] != now[end - back]
        )
        again, at = length, end - length + 1
    known = 0 if UNKNOWN in old[:same] else same  # unknown blocks are stored in full
    return Prefix(
        after=before,
        same=known,
        new=b"".join(now[known:at]),
        again=again,
        more=b"".join(now[at + again :]),
        size_bytes=size_bytes,
        same_bytes=size_bytes - sum(block.size_bytes for block in blocks[same:]),
        differs=differs,
    )


def _split(digests: bytes) -> Digests:
    return [digests[at : at + DIGEST_BYTES] for at in range(0, len(digests), DIGEST_BYTES)]


SMALLEST_TOKENS = 1_024
"""No provider caches shorter prefixes."""
SMALLEST_CERTAIN_TOKENS = 4_096
"""Every caching provider caches prefixes of this length."""
LOW_SHARE = 0.5
"""A smaller share read from the cache counts as a miss."""
IDLE_S = 300.0
"""Common cache lifetime."""
RECENT_MESSAGES = 40
"""A provider whose answers among these name no cached tokens is one that names none."""

Kind = Literal["model", "prefix", "provider"]
"""Another model was asked; the prefix changed; the provider did not have the prefix."""


class CacheMiss(Struct, frozen=True):
    kind: Kind
    block: str
    """First changed block; empty if none."""
    reason: str
    """Explanation as a clause."""
    tokens: int
    """Estimated tokens read again."""
    cost: float | None
    """Extra cost in US dollars; None: prices unknown."""

    @property
    def sentence(self) -> str:
        money = "" if self.cost is None else f" (${self.cost:.4f} more)"
        return f"Prompt cache missed: {self.reason}; about {self.tokens:,} tokens were read again{money}."


class AnsweredRequest(Struct, frozen=True):
    number: int
    message: Message
    usage: Usage
    miss: CacheMiss | None

    @property
    def read_share(self) -> float:
        return self.usage.cache_read_tokens / self.usage.prompt_tokens if self.usage.prompt_tokens else 0.0


def cache_use_by_request(messages: Iterable[Message], prices: Mapping[Producer, Price | None]) -> list[AnsweredRequest]:
    """Answered requests in order. Responses written by wolo itself have no usage."""
    before: list[Message] = []
    looked: list[AnsweredRequest] = []
    for message in messages:
        if message.role == "assistant" and message.usage is not None and message.usage.context_tokens:
            miss = find_miss(message, before, prices.get(message.producer or Producer()))
            looked.append(AnsweredRequest(len(looked) + 1, message, message.usage, miss))
            before.append(message)
    return looked


def find_miss(answer: Message, before: Sequence[Message], price: Price | None) -> CacheMiss | None:
    """`before` holds the messages until then. None also if nothing is known about the request."""
    prefix, usage = prefix_of(answer), answer.usage
    if prefix is None or usage is None or not prefix.after:
        return None
    last = next((each for each in reversed(before) if each.id == prefix.after), None)
    if last is None or last.usage is None:
        return None
    now, then = (f"{each.provider}/{each.model}" if each else "" for each in (answer.producer, last.producer))
    if now != then:
        reason = f"the model changed from {then} to {now}"
        return _cache_miss("model", prefix, reason, _read_anew(usage, last.usage, 0), price)
    if prefix.differs:
        before_it = prefix_of(last)
        smaller = min(prefix.size_bytes, before_it.size_bytes if before_it else 0)
        common = min(usage.prompt_tokens, last.usage.prompt_tokens) * prefix.same_bytes // smaller if smaller else 0
        reason = REASONS.get(prefix.differs, f"the history changed, first in {prefix.differs}")
        if prefix.differs.startswith("compaction_summary"):
            reason = "the conversation was compacted"
        return _cache_miss("prefix", prefix, reason, _read_anew(usage, last.usage, common), price)
    expected = last.usage.prompt_tokens
    if usage.estimated or expected < SMALLEST_TOKENS or usage.cache_read_tokens >= expected * LOW_SHARE:
        return None
    has_price = price is not None and price.cache_read is not None and price.cache_read != price.input
    recent = before[-RECENT_MESSAGES:]  # reading the whole history would make each answer slower than the one before
    by_model = (each.usage for each in recent if METADATA in each.metadata and each.producer == answer.producer)
    has_cached = any(each is not None and (each.cache_read_tokens or each.cache_write_tokens) for each in by_model)
    if not has_cached and not (has_price and expected >= SMALLEST_CERTAIN_TOKENS):
        return None
    idle_s = answer.timestamp - last.timestamp
    when = f"after {idle_s / 60:.0f} minutes without a request it had expired" if idle_s >= IDLE_S else "expired or evicted"
    reason = f"the prefix was unchanged, but it was no longer in the provider's cache ({when})"
    return _cache_miss("provider", prefix, reason, _read_anew(usage, last.usage, 0), price)


def _read_anew(usage: Usage, last: Usage, common_tokens: int) -> int:
    """The prompts share as many tokens as the smaller has, at most."""
    return max(min(usage.prompt_tokens, last.prompt_tokens) - max(common_tokens, usage.cache_read_tokens), 0)


def _cache_miss(kind: Kind, prefix: Prefix, reason: str, tokens: int, price: Price | None) -> CacheMiss:
    cost = None
    if price is not None and price.input is not None and price.cache_read is not None:
        cost = tokens * (price.input - price.cache_read) * PER_TOKEN
    return CacheMiss(kind, prefix.differs, reason, tokens, cost)
