"""A real agent with the built-in tools and a real judge around any model, one prompt at a time."""

from __future__ import annotations

from pathlib import Path

from wolo.agent.agent import AgentLoop, Turn
from wolo.agent.agent_services import AgentServices, MessageHistory
from wolo.agent.budget import Account, Limits
from wolo.agent.compaction.compactor import Compactor
from wolo.agent.events import Event
from wolo.agent.hook_calls import AgentHooks
from wolo.agent.prompt_prefix import PromptPrefix
from wolo.agent.tool_calls import ToolCalls
from wolo.guard.judge import Judge
from wolo.guard.modes import find_mode
from wolo.messages.message import Message, user
from wolo.messages.parts import ToolPart
from wolo.models.protocol import ModelClient
from wolo.tools.tool import ShellState, ToolServices
from wolo.tools.toolbox import Toolbox
from wolo.workspace.files.file_reading import FileLedger
from wolo.workspace.root import Workspace


class PromptRunner:
    """Works in the current directory, in a mode that asks nobody."""

    def __init__(self, asker: ModelClient, directory: Path, mode: str = "yolo") -> None:
        self.history: tuple[Message, ...] = ()
        self.events: list[Event] = []
        work = Path.cwd()
        services = ToolServices(
            workspace=Workspace(work),
            ledger=FileLedger(directory / "locks"),
            save_output=lambda name, data: directory / name,
            shell=ShellState(work),
        )
        toolbox, compactor, secrets = Toolbox(), Compactor(), services.secrets
        hooks, judge = AgentHooks(None, self._emit, secrets), Judge(find_mode(mode), [], work)
        self._agent = AgentLoop(
            AgentServices(
                asker=asker,
                emit=self._emit,
                hooks=hooks,
                calls=ToolCalls(toolbox, services, judge, emit=self._emit, ask_user=None, hooks=hooks),
                prefix=PromptPrefix("", toolbox, compactor, secrets),
                compactor=compactor,
                history=MessageHistory(compactor),
                shell=services.shell,
                account=Account(Limits()),
            )
        )

    async def ask(self, prompt: str | Message) -> Turn:
        turn = await self._agent.run(self.history, user(prompt) if isinstance(prompt, str) else prompt)
        self.history = turn.messages
        return turn

    async def _emit(self, event: Event) -> None:
        self.events.append(event)


def calls_of(turn: Turn) -> list[ToolPart]:
    return [call for message in turn.new for call in message.calls]
