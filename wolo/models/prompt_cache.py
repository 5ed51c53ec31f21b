"""What each request begins with, compared with the one before: providers cache exactly the part that is the same.

With every answer the digests of its request's blocks are kept, as what changed since the request before it: a conversation that
only grows keeps each digest once, and one that is resumed knows what was sent in another process.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from wolo.formats.encoding.encoder import DIGEST_BYTES
from wolo.formats.format import Block
from wolo.messages.message import Message

METADATA = "prefix"
"""Under this name the metadata of an answer hold the `Prefix` of its request."""
UNKNOWN = b"\0" * DIGEST_BYTES
SHORTENED = "the end of the history, which is shorter now"

Digests = list[bytes]


class Prefix(Struct, frozen=True, omit_defaults=True):
    """One request: the first `same` blocks of the one before, `new` ones, its last `again` blocks, `more` new ones."""

    after: str = ""
    """Id of the answer to the request before; empty for the first."""
    same: int = 0
    new: bytes = b""
    again: int = 0
    more: bytes = b""
    size_bytes: int = 0
    """Of all blocks."""
    same_bytes: int = 0
    differs: str = ""
    """The label of the first block that is not what it was; empty while the request before is a beginning of this one."""


class PrefixWatch:
    """Knows the blocks of the last answered request of one conversation."""

    def __init__(self) -> None:
        self._known: dict[str, Digests] = {}
        """Of the last answers by their ids: one that was not kept leaves the one before it to compare with."""

    def compare(self, messages: Sequence[Message], blocks: Sequence[Block]) -> tuple[Prefix, Digests]:
        """`messages` are those of the request. What comes back goes to `answered` when an answer has come."""
        before = next((each.id for each in reversed(messages) if METADATA in each.metadata), "") or next(iter(self._known), "")
        old = self._known.get(before)
        if old is None:
            old = digests_of(before, messages)
        now = [block.digest for block in blocks]
        return _difference(before, old, now, blocks), now

    def answered(self, answer: Message, prefix: Prefix, digests: Digests) -> Message:
        """The answer with its prefix."""
        self._known = {answer.id: digests, **({prefix.after: known} if (known := self._known.get(prefix.after)) else {})}
        return replace(answer, metadata={**answer.metadata, METADATA: msgspec.to_builtins(prefix)})


def prefix_of(message: Message) -> Prefix | None:
    """None where there is none, or one that cannot be read."""
    try:
        return msgspec.convert(message.metadata[METADATA], Prefix) if METADATA in message.metadata else None
    except msgspec.ValidationError:
        return None


def digests_of(message_id: str, messages: Sequence[Message]) -> Digests:
    """The blocks of the request that this answer came for, put together from the answers before it."""
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
    """Newest first; every answer at most once, whatever a damaged session says."""
    waiting = dict(by_id)
    while message := waiting.pop(message_id, None):
        prefix = prefix_of(message)
        if prefix is None:
            return
        yield prefix
        message_id = prefix.after


def _difference(before: str, old: Digests, now: Digests, blocks: Sequence[Block]) -> Prefix:
    """A block that is not known any more is taken for the same; where nothing else differs, nothing is claimed."""
    pairs = enumerate(zip(old, now, strict=False))
    same = next((at for at, (one, other) in pairs if one not in (other, UNKNOWN)), min(len(old), len(now)))
    differs = "" if same == len(old) else blocks[same].label if same < len(blocks) else SHORTENED
    if not differs and UNKNOWN in old:
        return Prefix(more=b"".join(now), size_bytes=sum(block.size_bytes for block in blocks))
    again, at = _tail(old, now, same)
    known = 0 if UNKNOWN in old[:same] else same  # what is only taken for the same is kept itself
    return Prefix(
        after=before,
        same=known,
        new=b"".join(now[known:at]),
        again=again,
        more=b"".join(now[at + again :]),
        size_bytes=sum(block.size_bytes for block in blocks),
        same_bytes=sum(block.size_bytes for block in blocks[:same]),
        differs=differs,
    )


def _tail(old: Digests, now: Digests, same: int) -> tuple[int, int]:
    """How many of the last old blocks come again behind what changed, and where: a changed system prompt costs one digest."""
    if same == len(old) or old[-1] not in now[same:]:
        return 0, same
    end = now.index(old[-1], same)
    length = next(back for back in count() if min(end, len(old) - 1) - back < same or old[len(old) - 1 - back] != now[end - back])
    return length, end - length + 1


def _split(digests: bytes) -> Digests:
    return [digests[at : at + DIGEST_BYTES] for at in range(0, len(digests), DIGEST_BYTES)]
