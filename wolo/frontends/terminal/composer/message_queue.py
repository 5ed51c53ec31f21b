"""Messages sent while wolo works: steered into the turn, or queued until it has ended."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from wolo.conversation.conversation import Conversation
from wolo.frontends.terminal.composer.pastes import Pastes
from wolo.frontends.terminal.display.terminal_state import TerminalState
from wolo.frontends.terminal.live.component import Row
from wolo.messages.message import Message, UserPrompt
from wolo.messages.terminal_text import clean_line


class MessageQueue:
    """Texts are as they were typed, with their pastes folded."""

    def __init__(self, state: TerminalState, pastes: Pastes) -> None:
        self.later: deque[str] = deque()
        """Sent one by one after the turn."""
        self._state = state
        self._pastes = pastes
        self._steered: dict[str, str] = {}
        """Typed text by message id."""

    def rows(self) -> Sequence[Row]:
        steered = (f"  ↪ {self._line(self.typed(message))}" for message in self._conversation.steering.waiting)
        return [[("class:dim", line)] for line in (*steered, *(f"  ⧗ {self._line(text)}" for text in self.later))]

    def steer(self, message: UserPrompt, typed: str) -> None:
        self._steered[message.id] = typed
        self._state.typed_texts[message.id] = self._pastes.shown(typed)
        self._conversation.steer(message)

    def texts(self) -> list[str]:
        """All that waits, in the order of sending."""
        steered = self._conversation.steering.waiting if self._state.conversation is not None else ()
        return [*(self.typed(message) for message in steered), *self.later]

    def pop_newest(self) -> str:
        """Withdraws the newest message. Empty when none waits."""
        if self.later:
            return self.later.pop()
        for message in reversed(self._conversation.steering.waiting):
            if self._conversation.steering.withdraw(message.id):
                return self.typed(message)
        return ""

    def end_turn(self) -> None:
        """Moves steered messages that the turn ended without to the front of the queue."""
        self.later.extendleft(self.typed(message) for message in reversed(self._conversation.steering.take_all()))

    def pop_all(self) -> str:
        text = "\n".join(self.later)
        self.later.clear()
        return text

    def typed(self, message: Message) -> str:
        """The message as text to edit."""
        return self._steered.get(message.id) or self._pastes.fold(message.text)

    @property
    def _conversation(self) -> Conversation:
        assert self._state.conversation is not None  # the REPL opens one before it reads
        return self._state.conversation

    def _line(self, text: str) -> str:
        return clean_line(self._pastes.shown(text))
