"""A model that is opened when it is asked first: until then nobody waits for what speaks with it to be loaded."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from wolo.formats.format import ThinkingLevel
from wolo.messages.message import Message
from wolo.models.protocol import Asker, Listener, Question
from wolo.models.provider import Choice


class Later:
    """An `Asker` in front of one that may not be there yet."""

    def __init__(self, choice: Choice, open_it: Callable[[Choice], Asker]) -> None:
        self._choice = choice
        self._open = open_it
        self._asker: Asker | None = None

    @property
    def choice(self) -> Choice:
        return self._asker.choice if self._asker else self._choice

    def think(self, level: ThinkingLevel) -> None:
        if self._asker:
            self._asker.think(level)
        self._choice = replace(self._choice, thinking=level)

    async def ask(self, question: Question, listener: Listener) -> Message:
        if self._asker is None:
            self._asker = self._open(self._choice)
        return await self._asker.ask(question, listener)

    async def close(self) -> None:
        if self._asker:
            await self._asker.close()
