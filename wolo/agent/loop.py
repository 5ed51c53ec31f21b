"""The agent: what it works with, what it does between turns, and the door to a turn."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

from wolo.agent.budget import Account, Limits, describe, spent
from wolo.agent.cancellation import Brake, outlast
from wolo.agent.compaction.compaction_run import MakingRoom, can_sum_up
from wolo.agent.compaction.compactor import Compactor
from wolo.agent.compaction.context_usage import Filling, Preview, filling, preview
from wolo.agent.compaction.context_window import Fixed
from wolo.agent.dynamic_tools import LateTools, blamed, most_taken, unsaid
from wolo.agent.hook_calls import Hooks, RunHook
from wolo.agent.side_question import ask_aside
from wolo.agent.steering import Inbox
from wolo.agent.tool_calls import AskPerson, Calls, Emit
from wolo.agent.turn import Play, Turn
from wolo.agent.verification import Verify
from wolo.errors import UsageError
from wolo.formats.format import ToolSpec
from wolo.guard.judge import Judge
from wolo.messages.message import Message, Usage
from wolo.models.protocol import Asker
from wolo.tools.tool import ToolContext
from wolo.tools.toolbox import Toolbox


class Agent:
    """Knows no screen, no disk and no settings. `emit` is awaited with every event before the loop goes on, so what an
    event says is kept before it has consequences; an exception of `emit` ends the turn.

    Without `ask_person` nobody is there: what needs an approval is denied. `reread` gives the system prompt as it would be
    now; it is asked when requests begin anew anyway. `account`: of the agent that this one does a task for; what it uses
    counts there, and its own `limits` hold besides.
    """

    def __init__(
        self,
        asker: Asker,
        toolbox: Toolbox,
        context: ToolContext,
        judge: Judge,
        *,
        emit: Emit,
        ask_person: AskPerson | None = None,
        system: str = "",
        session_id: str = "",
        limits: Limits | None = None,
        account: Account | None = None,
        compactor: Compactor | None = None,
        reread: Callable[[], str] | None = None,
        run_hook: RunHook | None = None,
        verify: Verify | None = None,
        late: LateTools | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.asker = asker
        """May be replaced between turns: another model goes on with the conversation."""
        self.limits = limits or Limits()
        self.account = account or Account(self.limits)
        """What is used up, over all turns."""
        self.does_a_task = account is not None
        self.compactor = compactor or Compactor()
        self.system = system
        self.session_id = session_id
        self.messages: Sequence[Message] = ()
        """The whole conversation as it stands in this moment; it is not changed from outside."""
        self.verify = verify
        self._toolbox = toolbox
        self._late = late
        self._hide = context.secrets.hide
        self._reread = reread or (lambda: system)
        self.hooks = Hooks(run_hook, emit, context.secrets)
        self.calls = Calls(toolbox, context, judge, emit=emit, ask_person=ask_person, hooks=self.hooks)
        self.emit = emit
        self.clock = clock
        self.inbox = Inbox()
        """What a person says while a turn runs."""
        self.news = context.shell.news
        """What the model should know of before it is asked again."""
        self._brake: Brake | None = None

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        """What is offered: the way back to what was left out, once something is."""
        return self._toolbox.specs(compacted=not self.compactor.cut.is_empty)

    async def settle_tools(self) -> str:
        """Before a request: what has come meanwhile is offered behind all others. What a person should know of it."""
        if self._late is None:
            return ""
        await self._late.settle()
        self._toolbox.add(self._late.tools)
        return self._hide(self._late.news())

    def unsaid_instructions(self, messages: Sequence[Message]) -> str:
        """What servers say of their tools and the model does not know yet; empty: nothing."""
        if self._late is None or not (instructions := self._late.instructions):
            return ""
        hidden = {server: self._hide(text) for server, text in instructions.items()}
        return unsaid(hidden, self.compactor.shown(messages))

    def heed_limit(self, refusal: str) -> str:
        """Offers no more tools than a provider takes that refuses them for their number. What a person should know of it;
        empty: that is not what the refusal is about."""
        most = most_taken(refusal)
        if most is None or not self._toolbox.limit(most):
            return ""
        return f"The provider takes {most} tools; the model looks for those of MCP servers with find_tools from now on."

    def drop_blamed(self, refusal: str) -> str:
        """The tool from elsewhere that a provider's refusal is about is offered no more; empty: it is about none."""
        name = blamed(refusal, self._toolbox.foreign(compacted=not self.compactor.cut.is_empty))
        if name:
            self._toolbox.drop(name)
        return name

    def recall(self) -> tuple[Message, ...]:
        """All that was said, and what stands for the part of it that is not sent."""
        lead = self.compactor.cut.lead
        return (*((lead,) if lead else ()), *self.messages)

    def fixed(self) -> Fixed:
        return Fixed(self.system, self.tools, self.asker.choice.model.context)

    def begin_anew(self) -> None:
        """Instructions are read again: nothing is gained by keeping the old ones when requests change anyway."""
        self.system = self._reread()

    def filling(self, history: Sequence[Message]) -> Filling:
        """What the next request would be made of."""
        return filling(self.compactor, history, self.fixed())

    def preview(self, history: Sequence[Message]) -> Preview:
        """What `compact` would do; nobody is asked and nothing is changed."""
        return preview(self.compactor, history, self.fixed(), may_ask=can_sum_up(self.asker))

    async def compact(self, history: Sequence[Message], focus: str = "") -> None:
        """A person wants room in the window. Tells what came of it; `interrupt` leaves everything as it was."""
        self.messages = history
        brake = self._brake = Brake()
        room = MakingRoom(self, brake, focus=focus)
        try:
            await room.because_asked(history)
        finally:
            self._brake = None
            self.account.use(room.take_usage())

    async def uncompact(self, history: Sequence[Message]) -> None:
        """As much as fits of what was shortened and left out is sent again."""
        self.messages = history
        await MakingRoom(self, Brake()).taken_back(history)

    async def aside(self, history: Sequence[Message], question: str) -> Message:
        """Asks beside the conversation, also while a turn runs. Raises ProviderError, and UsageError where that cannot be."""
        if not can_sum_up(self.asker):
            raise UsageError("The embedded model cannot be asked aside.", hint="Ask it as a prompt of its own.")
        if limit := spent(self.account.limits, self.account.used, 0):
            raise UsageError(describe(self.account.limits, limit), hint="Raise the limit, or go on with -c.")
        said = self.compactor.cut.apply(self.messages or history)
        window = self.compactor.window.most(self.fixed())
        answer = await ask_aside(
            self.asker, said, question, session_id=self.session_id, window=None if window is None else round(window)
        )
        self.account.use(answer.usage or Usage())
        return answer

    async def run(self, history: Sequence[Message], prompt: Message) -> Turn:
        """One turn, from `TurnStarted` to `TurnEnded`. One at a time.

        Cancelling the task that awaits this is the same as `interrupt()`: the turn ends cleanly and is returned.
        Raises only what `emit` raises while the end of the turn is told.
        """
        brake = self._brake = Brake()
        playing = asyncio.ensure_future(Play(self, history, prompt, brake).play())
        alarm = None
        if self.limits.max_seconds is not None:
            alarm = asyncio.get_running_loop().call_later(self.limits.max_seconds, brake.pull, "max_seconds")
        try:
            await outlast(playing, brake)
            return playing.result()
        finally:
            self._brake = None
            if alarm is not None:
                alarm.cancel()

    def interrupt(self) -> None:
        """Stops the turn where it stands; its open calls are answered, its `TurnEnded` still comes. Nothing between turns."""
        if self._brake is not None:
            self._brake.pull("interrupted")
