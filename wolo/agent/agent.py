"""The agent: runs turns, compactions and side questions, one turn at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from wolo.agent.agent_services import AgentServices
from wolo.agent.cancellation import Cancellation, wait_for_clean_end
from wolo.agent.turn import Turn, TurnRunner
from wolo.messages.message import Message

if TYPE_CHECKING:
    from wolo.agent.compaction_run import CompactionPreview, ContextUsage


class Agent:
    """Knows no screen, no disk and no settings."""

    def __init__(self, services: AgentServices) -> None:
        self.services = services
        self._cancellation: Cancellation | None = None

    def context_usage(self, history: Sequence[Message]) -> ContextUsage:
        """The content of the next request, by source."""
        from wolo.agent.compaction_run import context_usage  # noqa: PLC0415  # not needed for a prompt

        return context_usage(self.services.compactor, history, self.services.fixed())

    def preview(self, history: Sequence[Message]) -> CompactionPreview:
        """The effect that `compact` would have; asks no model and changes nothing."""
        from wolo.agent.compaction_run import can_summarize, preview  # noqa: PLC0415  # not needed for a prompt

        services = self.services
        return preview(services.compactor, history, services.fixed(), may_ask=can_summarize(services.asker))

    async def compact(self, history: Sequence[Message], focus: str = "") -> None:
        """Compacts on the user's request and emits the result; `interrupt` leaves everything as it was."""
        from wolo.agent.compaction_run import CompactionRun  # noqa: PLC0415  # not needed for a prompt

        self.services.history.start_from(history)
        cancellation = self._cancellation = Cancellation()
        run = CompactionRun(self.services, cancellation, focus=focus)
        try:
            await run.on_request(history)
        finally:
            self._cancellation = None
            self.services.account.use(run.take_usage())

    async def uncompact(self, history: Sequence[Message]) -> None:
        """Sends as many of the compacted messages again as fit."""
        from wolo.agent.compaction_run import CompactionRun  # noqa: PLC0415  # not needed for a prompt

        self.services.history.start_from(history)
        await CompactionRun(self.services, Cancellation()).restore(history)

    async def aside(self, history: Sequence[Message], question: str) -> Message:
        """Asks a question that does not join the conversation, also during a turn. Raises ProviderError and UsageError."""
        from wolo.agent.side_question import ask_aside  # noqa: PLC0415  # not needed for a prompt

        return await ask_aside(self.services, history, question)

    async def run(self, history: Sequence[Message], prompt: Message) -> Turn:
        """Runs a turn, from `TurnStarted` to `TurnEnded`.

        Cancelling the awaiting task equals `interrupt()`: the turn ends cleanly and is returned.
        Raises only what `emit` raises for the end of the turn.
        """
        cancellation = self._cancellation = Cancellation()
        runner = TurnRunner(self.services, history, prompt, cancellation)
        running = asyncio.ensure_future(runner.run())
        alarm = None
        if (max_seconds := self.services.limits.max_seconds) is not None:
            alarm = asyncio.get_running_loop().call_later(max_seconds, cancellation.cancel, "max_seconds")
        try:
            await wait_for_clean_end(running, cancellation)
            return running.result()
        finally:
            self._cancellation = None
            if alarm is not None:
                alarm.cancel()

    def interrupt(self) -> None:
        """Stops the turn: open calls get results, `TurnEnded` still follows. Does nothing between turns."""
        if self._cancellation is not None:
            self._cancellation.cancel("interrupted")
