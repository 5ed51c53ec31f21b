"""A second model for when the first cannot be reached: it answers the rest of the turn, the next prompt tries the first again."""

from __future__ import annotations

from collections.abc import Callable

from wolo.errors import ContextOverflow, ProviderError
from wolo.formats.format import ThinkingLevel
from wolo.messages.message import Message
from wolo.models.protocol import Asker, Listener, Question
from wolo.models.provider import Choice

TEMPORARY = 75
"""The exit status of what goes by itself: another model cures that, but not a wrong key or a request nobody accepts."""


class Fallback:
    """An `Asker` of two. The second is opened when it is needed first."""

    def __init__(self, first: Asker, second: Choice, open_second: Callable[[], Asker]) -> None:
        self._first = first
        self._second_choice = second
        self._open_second = open_second
        self._second: Asker | None = None
        self._failure: ProviderError | None = None
        """Why the first gave up in the turn under way."""
        self._prompt_id = ""
        self._level: ThinkingLevel | None = None

    @property
    def choice(self) -> Choice:
        if self._failure is None:
            return self._first.choice
        return self._second.choice if self._second else self._second_choice

    def think(self, level: ThinkingLevel) -> None:
        self._level = level
        for asker in filter(None, (self._first, self._second)):
            asker.think(level)

    async def ask(self, question: Question, listener: Listener) -> Message:
        if not question.prompt_id or question.prompt_id != self._prompt_id:
            self._failure, self._prompt_id = None, question.prompt_id
        if self._failure is None:
            try:
                return await self._first.ask(question, listener)
            except ProviderError as error:
                if error.exit_code != TEMPORARY:
                    raise
                self._failure = error
            await listener.on_replaced(self._failure, self.choice.label)
        return await self._ask_second(question, listener, self._failure)

    async def close(self) -> None:
        await self._first.close()
        if self._second is not None:
            await self._second.close()

    async def _ask_second(self, question: Question, listener: Listener, failure: ProviderError) -> Message:
        if self._second is None:
            self._second = self._open_second()
            if self._level is not None:
                self._second.think(self._level)
        try:
            return await self._second.ask(question, listener)
        except ContextOverflow:
            raise  # cured by sending less, and nothing else
        except ProviderError as error:
            message = f"{failure.message} {self.choice.label} was asked instead: {error.message}"
            failure.message, failure.args, failure.hint = message, (message,), error.hint or failure.hint
            raise failure from error
