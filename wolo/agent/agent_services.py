"""Everything an agent works with, complete before its first turn."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct, field

from wolo.agent import events, hook_calls, prompt_prefix, tool_calls, tool_execution, verification
from wolo.agent.budget import Account, BudgetNotices, Limits
from wolo.agent.cancellation import Cancellation, SteeringQueue
from wolo.agent.compaction.compactor import Compactor
from wolo.messages.message import Message
from wolo.models.protocol import ModelClient
from wolo.tools.tool import ModeSwitch, ShellState

if TYPE_CHECKING:
    from wolo.agent.finish.finish_check import FinishCheck
    from wolo.agent.turn_policy import Stop


class MessageHistory:
    """The messages of a conversation, including those of the running turn."""

    def __init__(self, compactor: Compactor, load_earlier: Callable[[], Sequence[Message]] = tuple) -> None:
        """`load_earlier` returns messages of a large session that were not loaded."""
        self._compactor, self.load_earlier = compactor, load_earlier
        self.messages: list[Message] = []

    def recall(self) -> tuple[Message, ...]:
        """All messages, also those that are no longer sent, and the summary that replaces them."""
        lead = self._compactor.cut.lead
        return (*self.load_earlier(), *((lead,) if lead else ()), *self.messages)


class TurnGoal(Protocol):
    """Holds turns to a goal; `goal.py` has the only one."""

    @property
    def is_begun(self) -> bool: ...

    def begin_turn(self, num_messages: int) -> None: ...

    def seconds_left(self) -> float | None: ...

    def reminder(self, messages: Sequence[Message], left_out: Collection[str]) -> Message | None: ...

    async def after_answer(self, messages: Sequence[Message], cancellation: Cancellation) -> Message | None: ...

    async def end_turn(self, stop: Stop) -> Stop: ...

    def report(self) -> events.GoalReport: ...


class GoalSlot:
    """The goal that the turns of a conversation work towards; it can change during a turn."""

    def __init__(self) -> None:
        self.policy: TurnGoal | None = None


class BackgroundWork(Protocol):
    """Background tasks of the agent."""

    @property
    def holds_turn(self) -> bool:
        """The turn may not end while they run: nobody could get their results later."""

    @property
    def is_running(self) -> bool: ...

    def take_news(self, messages: Sequence[Message]) -> list[Message]:
        """A message for each task that ended since the last call."""

    @property
    def has_news(self) -> bool: ...

    async def wait(self) -> None:
        """Returns when one has ended."""

    async def stop(self) -> None:
        """Interrupts all and waits for their clean end."""


class AgentServices(Struct, frozen=True, kw_only=True):
    """`emit` is awaited with every event before the agent continues, so an event is saved before it has consequences; an
    exception from `emit` ends the turn."""

    asker: ModelClient
    emit: tool_execution.Emit
    hooks: hook_calls.AgentHooks
    calls: tool_calls.ToolCalls
    prefix: prompt_prefix.PromptPrefix
    compactor: Compactor
    history: MessageHistory
    shell: ShellState
    mode: ModeSwitch | None = None
    """The model is told of its changes; None: it is not."""
    account: Account
    """Usage over all turns; a subagent shares its parent's, whose limits hold in addition to its own."""
    limits: Limits = field(default_factory=Limits)
    budget: BudgetNotices | None = None
    """None: there are no limits to tell of."""
    steering: SteeringQueue = field(default_factory=SteeringQueue)
    session_id: str = ""
    verify: verification.Verify | None = None
    goals: GoalSlot = field(default_factory=GoalSlot)
    finish: Callable[[], FinishCheck] | None = None
    """Opens the finish check, which only turns that change files need; None: there is none."""
    open_small: Callable[[], ModelClient] | None = None
    """Opens the small model, which writes summaries; None: there is none."""
    tasks: BackgroundWork | None = None
    is_subagent: bool = False
    clock: Callable[[], float] = time.monotonic
