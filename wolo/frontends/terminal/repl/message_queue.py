"""What a person has sent while wolo works and the model has not heard: shown, taken back, and sent in the end."""

from __future__ import annotations

from collections import deque

from wolo.conversation.conversation import Conversation
from wolo.frontends.terminal.io.pastes import Pastes
from wolo.messages.message import Message
from wolo.messages.terminal_text import clean_line


class Waiting:
    """Texts are as they were written, with their pastes folded."""

    def __init__(self, pastes: Pastes) -> None:
        self.later: deque[str] = deque()
        """Their turn comes when what runs has ended."""
        self._pastes = pastes
        self._steered: dict[str, str] = {}
        """How a message was written, by its id."""

    def steer(self, conversation: Conversation, message: Message, written: str) -> None:
        self._steered[message.id] = written
        conversation.steer(message)

    def as_written(self, message: Message) -> str:
        """As it is shown once the model hears it."""
        return self._pastes.shown(self._steered.get(message.id) or message.text)

    def texts(self, conversation: Conversation) -> list[str]:
        """In the order in which they will be heard."""
        return [*(self.written(message) for message in conversation.steered), *self.later]

    def lines(self, conversation: Conversation) -> tuple[str, ...]:
        """One for each, for the foot."""
        steered = (f"  ↪ {self._line(self.written(message))}" for message in conversation.steered)
        return (*steered, *(f"  ⧗ {self._line(text)}" for text in self.later))

    def take_newest(self, conversation: Conversation) -> str:
        """Empty when nothing waits."""
        if self.later:
            return self.later.pop()
        for message in reversed(conversation.steered):
            if conversation.withdraw(message.id):
                return self.written(message)
        return ""

    def settle(self, conversation: Conversation) -> None:
        """The turn has ended: what it ended without comes before all that was to come after it."""
        self.later.extendleft(self.written(message) for message in reversed(conversation.unheard()))

    def give_up(self) -> str:
        """All of it, to be written anew."""
        text = "\n".join(self.later)
        self.later.clear()
        return text

    def written(self, message: Message) -> str:
        """To be written on."""
        return self._steered.get(message.id) or self._pastes.fold(message.text)

    def _line(self, text: str) -> str:
        return clean_line(self._pastes.shown(text))
