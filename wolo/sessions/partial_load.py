"""How far back a session is read to go on with it.

What is read is several times what any model takes; of a session that is larger, the rest stays on the disk until somebody
asks for it.
"""

from __future__ import annotations

from wolo.messages.message import Message
from wolo.messages.parts import TextPart, new_id
from wolo.sessions.entries import AnyEntry, CompactionEntry, MessageEntry

ENOUGH_BYTES = 16_000_000
"""Of entries, from the newest back: at four bytes a token four times a window of a million."""

OPENING = (
    "[The conversation began earlier: its first {count:,} entries were left out here to save space. The session keeps them all.]"
)
HINT = 'message_id "{id}"\nUse expand_message to see the full content: without arguments it lists all messages with their ids.'
"""The end of a message that stands for others."""


class Reach:
    """Belongs to one reading, from the newest entry back. It ends with a prompt, so that no turn is torn.

    What came after the last compaction has to fit a window, so that compaction is met before enough was read.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._read_bytes = 0
        self._sent: set[str] | None = None
        """What the last compaction sends shortened, as far as it has not been read."""

    def is_enough(self, entry: AnyEntry | None, size_bytes: int) -> bool:
        """`entry` was read, too; None: it was damaged."""
        self._read_bytes += size_bytes
        if isinstance(entry, CompactionEntry) and self._sent is None:
            self._sent = set(entry.shortened)
        if not isinstance(entry, MessageEntry):
            return False
        if self._sent:
            self._sent.discard(entry.message.id)
        if self._read_bytes < self._most_bytes or self._sent:
            return False
        # A turn may be longer than all that: then it is torn, and its prompt is read by itself.
        return entry.message.is_prompt or self._read_bytes >= 1.5 * self._most_bytes


def too_large(unread: int) -> str:
    """For people, once."""
    return f"This session is larger than any model's window: its first {unread:,} entries are not sent. The session keeps them."


def opening(unread: int) -> CompactionEntry:
    """What stands for the entries that were not read, where no compaction had left them out before."""
    id = new_id("msg")
    text = f"{OPENING.format(count=unread)}\n\n{HINT.format(id=id)}"
    metadata = {"compressed": True, "compressed_content": text}
    lead = Message(id=id, role="compaction_summary", parts=(TextPart(text=text),), finished=True, metadata=metadata)
    return CompactionEntry(summary=lead, left_out=(f"before_{id}",), reason="window")
