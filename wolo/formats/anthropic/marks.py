"""Cache marks: where the server is told to keep what it has read so far. At most four a request, and they move."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from wolo.formats.anthropic.messages import THINKING
from wolo.formats.encoding.cached_blocks import is_cached_block
from wolo.formats.encoding.encoder import Item, Kept, joined

MARK = {"type": "ephemeral"}
LONG_MARK = {"type": "ephemeral", "ttl": "1h"}
MOST = 4
REACH_BLOCKS = 20
"""So far back a mark looks for something that was kept before."""


def cached_stretches(kept: Sequence[Kept]) -> list[int]:
    """The messages that the user wants kept, by their index, the last one first."""
    marks = [at for at, each in enumerate(kept) if (told := each.message) and told.metadata and is_cached_block(told)]
    return [at for at in reversed(marks) if _takes_mark(kept[at])]


def places(kept: Sequence[Kept], cached: Sequence[int], room: int) -> list[int]:
    """Which messages carry a mark on their last block, by their index; no more than there is room for.

    The end of the conversation comes first, then what the user wants kept, then where the request before ended: that is found
    from the end without a mark of its own, unless the last step alone is longer than a mark looks back.
    """
    said = (at for at in range(len(kept) - 1, -1, -1) if _takes_mark(kept[at]))
    last = next(said, None)
    if last is None:
        return []
    before = list(islice((at for at in said if kept[at].laid.items[-1]["role"] == "user"), 1))
    is_far = bool(before) and _count_blocks(kept[before[0] + 1 : last + 1]) > REACH_BLOCKS
    wanted = [last, *before, *cached] if is_far else [last, *cached, *before]
    return sorted(list(dict.fromkeys(wanted))[:room])


def marked(kept: Kept) -> bytes:
    """The bytes of a message with a mark on its last block that takes one."""
    items = list(kept.laid.items)
    at = _markable(items)
    assert at is not None  # `places` names no others
    item, block = at
    content = list(items[item]["content"])
    content[block] = {**content[block], "cache_control": MARK}
    items[item] = {**items[item], "content": content}
    return joined(items)


def with_mark(block: Mapping[str, Any], *, long: bool) -> dict[str, Any]:
    return {**block, "cache_control": LONG_MARK if long else MARK}


def _takes_mark(kept: Kept) -> bool:
    return kept.block.label != "close" and _markable(kept.laid.items) is not None


def _markable(items: Sequence[Item]) -> tuple[int, int] | None:
    """The last block that takes a mark, in the last item: thinking takes none."""
    if not items:
        return None
    content = items[-1]["content"]
    found = next((at for at in range(len(content) - 1, -1, -1) if content[at]["type"] not in THINKING), None)
    return None if found is None else (len(items) - 1, found)


def _count_blocks(kept: Sequence[Kept]) -> int:
    return sum(len(item["content"]) for each in kept for item in each.laid.items)
