"""Runs the calls of one answer: read-only calls in parallel, the others one after another."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import takewhile
from operator import attrgetter

from msgspec.structs import replace

from wolo.agent.agent_services import SteeringQueue
from wolo.agent.cancellation import Cancellation
from wolo.agent.tool_calls import EndedCall, PlannedCall, ToolCalls
from wolo.agent.tool_execution import SKIPPED_FOR_STEERING, end
from wolo.messages.parts import ToolPart

MAX_PARALLEL = 8
"""Maximum number of read-only calls at once."""


class CallBatch:
    """Runs the calls of one answer. The result of a call is emitted once it and all calls before it have ended."""

    def __init__(self, calls: ToolCalls, message_id: str, planned: Sequence[PlannedCall], cancellation: Cancellation) -> None:
        self._calls = calls
        self._message_id = message_id
        self._planned = planned
        self._cancellation = cancellation
        self._ended: list[EndedCall | None] = [None] * len(planned)
        self._emitted = 0
        self._emit_lock = asyncio.Lock()

    @property
    def parts(self) -> list[ToolPart]:
        """Ended calls, in call order."""
        return [ended.part for ended in self._ended if ended is not None]

    async def run(self, note: str = "", *, steering: SteeringQueue | None = None) -> None:
        """Runs all calls. After a cancellation, calls that have not started get the outcome `never_started`; so do those after
        the first call once `steering` holds a message.

        `note` is text for the model, appended to the last result.
        """
        at = 0
        while at < len(self._planned):
            if at and steering is not None and steering.is_waiting:
                self._skip_rest(at)
            readers = _count_readers(self._planned, at)
            if readers > 1:
                await self._run_side_by_side(range(at, at + readers), note)
            else:
                await self._run_one(at, note)
            at += max(readers, 1)

    async def _run_one(self, at: int, note: str) -> None:
        ended = await self._calls.run(self._message_id, self._planned[at], self._cancellation)
        if note and at == len(self._planned) - 1:
            ended = replace(ended, part=replace(ended.part, output=f"{ended.part.output}\n\n{note}"))
        self._ended[at] = ended
        async with self._emit_lock:
            while self._emitted < len(self._ended) and (following := self._ended[self._emitted]) is not None:
                following = self._ended[self._emitted] = self._calls.explained(following)
                await self._calls.emit_result(self._message_id, following)
                self._emitted += 1

    def _skip_rest(self, at: int) -> None:
        """Skips the remaining calls because the user has sent a message."""
        self._planned = (
            *self._planned[:at],
            *(_not_begun(call) if call.tool is not None else call for call in self._planned[at:]),
        )

    async def _run_side_by_side(self, positions: range, note: str) -> None:
        places = asyncio.Semaphore(MAX_PARALLEL)

        async def run_in_place(at: int) -> None:
            async with places:
                await self._run_one(at, note)

        try:
            async with asyncio.TaskGroup() as group:
                for at in positions:
                    group.create_task(run_in_place(at))
        except BaseExceptionGroup as failed:  # only `emit` can fail; its first failure cancels the others
            raise failed.exceptions[0] from None


def _not_begun(call: PlannedCall) -> PlannedCall:
    return PlannedCall(part=end(call.part, "never_started", SKIPPED_FOR_STEERING))


def _count_readers(planned: Sequence[PlannedCall], at: int) -> int:
    """Counts the calls from `at` on that are read-only and need no approval."""
    return sum(1 for _ in takewhile(attrgetter("reads_freely"), planned[at:]))
