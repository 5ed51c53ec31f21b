"""The driver of models that cannot use tools: a model client that asks in the way of a mode and makes the calls."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Protocol

from msgspec.structs import replace

from wolo.errors import Unavailable
from wolo.formats.format import ThinkingLevel
from wolo.messages.message import Message
from wolo.models import retry
from wolo.models.capabilities import LOCAL
from wolo.models.local.driving import as_written
from wolo.models.local.local_chat import LocalChat
from wolo.models.local.local_response import EFFECTS, IgnoresSchema, LocalResponse
from wolo.models.local.simple_context import ProjectNames, list_names
from wolo.models.local.simple_mode import SimpleMode
from wolo.models.protocol import Listener, ModelClient, ModelQuestion
from wolo.models.provider import DriveMode, ModelChoice


class Policy(Protocol):
    """What a mode asks the model, and what it makes of the answers."""

    mode: DriveMode

    async def next_step(self, response: LocalResponse, names: ProjectNames) -> Message:
        """Next step of the turn: a message with one call, or the final text. Raises ProviderError or IgnoresSchema."""


class LocalDriver:
    """Drives one model in simple or constrained mode, or in written mode where the server ignores schemas."""

    def __init__(
        self,
        chat: LocalChat,
        choice: ModelChoice,
        cwd: Path,
        open_plain: Callable[[ModelChoice], ModelClient],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`choice.drive` names the mode, simple if unset. `open_plain` opens a client without a driver."""
        self._chat = chat
        self._choice = choice
        self._cwd = cwd
        self._open_plain = open_plain
        self._sleep = sleep
        self._written: ModelClient | None = None
        self._policy: Policy = SimpleMode()
        if choice.drive == "constrained":
            from wolo.models.local.constrained_mode import ConstrainedMode  # noqa: PLC0415  # most local models are driven simply

            self._policy = ConstrainedMode()

    @property
    def choice(self) -> ModelChoice:
        return self._written.choice if self._written else self._choice

    def think(self, level: ThinkingLevel) -> None:
        """Driven models are not made to think: their small steps leave no room for it."""

    async def close(self) -> None:
        """The owner of the chat closes the connection."""

    async def ask(self, question: ModelQuestion, listener: Listener) -> Message:
        if self._written is None:
            names = await asyncio.to_thread(list_names, self._cwd)
            response = LocalResponse(self._chat, self._choice, self._policy.mode, question, listener)
            if response.is_planning:  # it would not understand a refusal
                response.question = replace(question, tools=tuple(tool for tool in question.tools if tool.name not in EFFECTS))
            try:
                return await self._next_step(response, names)
            except IgnoresSchema:
                await listener.on_notice(
                    f"The server of {self._chat.server.label} does not enforce JSON schemas; written mode is used instead."
                )
                self._written = self._open_plain(replace(as_written(self._choice), drive="written"))
        return await self._written.ask(question, listener)

    async def _next_step(self, response: LocalResponse, names: ProjectNames) -> Message:
        """Ask again where a server is restarted in the middle: until the step is complete nothing was done."""
        failed_at = 0.0
        for attempt in itertools.count(1):
            try:
                return await self._policy.next_step(response, names)
            except Unavailable as error:
                failed_at = failed_at or time.monotonic()
                spent_s = time.monotonic() - failed_at
                wait_s = retry.next_wait_s(error, attempt, spent_s, retry.RetrySettings(), retry.system_random)
                if wait_s is None or self._choice.provider.name == LOCAL:  # the embedded server is started again by its owner
                    raise
                await response.listener.on_attempt_failed(error, attempt, retry.rule_for(error).tries, wait_s)
                await self._sleep(wait_s)
        raise AssertionError
