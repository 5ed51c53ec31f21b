"""Workers: each leases a task, has the engine run it, and publishes the outcome, until nothing is left to do."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Literal

from msgspec import Struct

from wolo.errors import WoloError
from wolo.fleet.agent_run import Allowance
from wolo.fleet.attempts import AttemptView
from wolo.fleet.engines.engine import Engine
from wolo.fleet.ledger.hosts import utc_now
from wolo.fleet.ledger.ledger import Ledger
from wolo.fleet.ledger.outcomes import AttemptOutcome, Ended, Failure, Lease, Owner
from wolo.workspace.directory_copy import remove_tree

log = logging.getLogger(__name__)
_POLL_S = 1.0
"""Between looks for tasks that other workers give back."""
_FOLLOW_EVERY_S = 1.0
_BEAT_EVERY_S = 5.0
"""At most; cancelled attempts learn of it then."""

Stop = Literal["cancelled", "budget", "lost"]


class WorkerCallbacks(Struct, frozen=True):
    """Is notified of what the workers do."""

    started: Callable[[AttemptView], None] = lambda view: None
    ended: Callable[[Lease, AttemptOutcome], None] = lambda lease, outcome: None
    """Only for outcomes that count."""


class Workers:
    """The workers of one process."""

    def __init__(
        self,
        ledger: Ledger,
        engine: Engine,
        owner: Owner,
        jobs: int,
        *,
        most: int | None = None,
        waits: bool = True,
    ) -> None:
        """`most`: the number of attempts to start; None: any. `waits`: for tasks that other processes may still give back."""
        self.views: dict[int, AttemptView] = {}
        """The running attempts, by fence."""
        self._ledger, self._engine, self._owner = ledger, engine, owner
        self._jobs, self._left, self._waits = jobs, most, waits
        self.watcher = WorkerCallbacks()
        self._attempts: dict[int, asyncio.Task[AttemptOutcome]] = {}
        self._stops: dict[int, Stop] = {}
        self._is_draining = False
        self._ended = asyncio.Event()

    async def run(self) -> None:
        """Raises WoloError or OSError when no task can be run any more; then nothing is left running."""
        meta = await asyncio.to_thread(self._ledger.meta)
        try:
            async with asyncio.TaskGroup() as group:
                beating = group.create_task(self._beat(min(meta.lease_s / 4, _BEAT_EVERY_S)))
                await asyncio.wait([group.create_task(self._work()) for _ in range(self._jobs)])
                beating.cancel()
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from errors

    def drain(self) -> None:
        """Starts nothing more."""
        self._is_draining = True
        self._ended.set()

    def stop(self, why: Stop) -> None:
        """Ends the running attempts: `cancelled` for good, `lost` to be run again."""
        self.drain()
        for fence in list(self._attempts):
            self._stop(fence, why)

    def _stop(self, fence: int, why: Stop) -> None:
        attempt = self._attempts.get(fence)
        if attempt is not None and not attempt.done() and fence not in self._stops:
            self._stops[fence] = why
            attempt.cancel()

    async def _work(self) -> None:
        while not self._is_draining and self._left != 0:
            lease = await asyncio.to_thread(self._ledger.lease, self._owner)
            if lease is not None:
                if self._left is not None:
                    self._left -= 1
                await self._attempt(lease)
            elif await self._may_come():
                self._ended.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(_POLL_S):
                        await self._ended.wait()
            else:
                return

    async def _may_come(self) -> bool:
        """Tells whether a task may be given back to the queue."""
        if self.views:
            return True
        await asyncio.to_thread(self._ledger.expire)
        counts = await asyncio.to_thread(self._ledger.counts)
        if counts.get("queued"):
            return not await asyncio.to_thread(self._ledger.is_held)
        return self._waits and bool(counts.get("leased"))

    async def _attempt(self, lease: Lease) -> None:
        view = AttemptView(lease)
        self.views[lease.fence] = view
        started = utc_now()
        placing = asyncio.ensure_future(self._place(lease, view))
        self._attempts[lease.fence] = placing
        self.watcher.started(view)
        try:
            outcome = await placing
        except asyncio.CancelledError:
            why = self._stops.get(lease.fence)
            if why is None:  # this worker itself is cancelled
                placing.cancel()
                with suppress(asyncio.CancelledError):
                    await placing
                raise
            outcome = _stop_outcome(why, view, started, self._engine.name)
        except (WoloError, OSError):
            raise
        except Exception as error:  # one bad task costs itself only
            log.exception("attempt %s", lease.folder)
            outcome = _stop_outcome("lost", view, started, self._engine.name, f"{type(error).__name__}: {error}")
        finally:
            del self.views[lease.fence], self._attempts[lease.fence]
            self._ended.set()
        if await asyncio.to_thread(self._ledger.publish, lease, outcome):
            self.watcher.ended(lease, outcome)
        else:
            await asyncio.to_thread(remove_tree, self._ledger.folder / lease.folder)

    async def _place(self, lease: Lease, view: AttemptView) -> AttemptOutcome:
        return await self._engine.place(lease, await asyncio.to_thread(self._allowance), view)

    def _allowance(self) -> Allowance:
        meta, spent = self._ledger.meta(), self._ledger.totals()
        usd = None if meta.max_cost_usd is None else max(meta.max_cost_usd - spent.counted_usd, 0.0)
        tokens = None if meta.max_tokens is None else max(meta.max_tokens - spent.tokens, 1)
        return Allowance(usd, tokens)

    async def _beat(self, every_s: float) -> None:
        """Keeps the leases, and finds those of dead workers."""
        loop = asyncio.get_running_loop()
        due = loop.time()
        while True:
            for view in list(self.views.values()):
                await asyncio.to_thread(view.follow)
            if loop.time() >= due:
                due = loop.time() + every_s
                await asyncio.to_thread(self._ledger.expire)
                for fence, view in list(self.views.items()):
                    line = view.stream.line if view.stream else view.phase
                    beat = await asyncio.to_thread(self._ledger.heartbeat, view.lease, view.spent, line)
                    if beat != "held":
                        self._stop(fence, beat)
            await asyncio.sleep(min(_FOLLOW_EVERY_S, every_s))


def _stop_outcome(why: Stop, view: AttemptView, started: str, engine: str, message: str = "") -> AttemptOutcome:
    """The outcome of an attempt that did not come to its end."""
    state: Ended = why
    messages: dict[Stop, str] = {
        "cancelled": "The attempt was cancelled.",
        "budget": "The budget of the batch is used up.",
        "lost": "The worker stopped before the attempt ended.",
    }
    view.follow()
    return AttemptOutcome(
        state=state,
        session_id=view.stream.session_id if view.stream else "",
        usage=view.spent,
        started=started,
        ended=utc_now(),
        host=socket.gethostname(),
        engine=engine,
        error=Failure(why, message or messages[why]),
        retryable=why == "lost",
    )
