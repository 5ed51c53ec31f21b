"""What a person says while the agent works: it waits here until the running call has ended."""

from __future__ import annotations

from msgspec.structs import replace

from wolo.messages.message import NUDGE, STEERED, Message


class Inbox:
    def __init__(self) -> None:
        self._waiting: list[Message] = []

    @property
    def is_waiting(self) -> bool:
        return bool(self._waiting)

    @property
    def waiting(self) -> tuple[Message, ...]:
        return tuple(self._waiting)

    def put(self, message: Message) -> None:
        """It joins the turn instead of beginning one."""
        self._waiting.append(replace(message, metadata={**message.metadata, NUDGE: STEERED}))

    def put_back(self, message: Message) -> None:
        """It could not be delivered: it is the first one again."""
        self._waiting.insert(0, message)

    def withdraw(self, message_id: str) -> bool:
        """False when it has been delivered already."""
        left = [message for message in self._waiting if message.id != message_id]
        withdrawn = len(left) < len(self._waiting)
        self._waiting = left
        return withdrawn

    def take(self) -> list[Message]:
        """All that waits, in the order in which it was said."""
        taken, self._waiting = self._waiting, []
        return taken
