"""An agent with real tools, a real judge and a real model stream, asking the scripted provider."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest
from msgspec import Struct

from tests.fakes.provider_server import KEY, MODEL, ProviderServer
from wolo.agent.agent import AgentLoop, Turn
from wolo.agent.agent_services import AgentServices, MessageHistory
from wolo.agent.budget import Account, BudgetNotices, Limits
from wolo.agent.compaction.compactor import Compactor
from wolo.agent.events import ApprovalAsked, ApprovalGiven, Event
from wolo.agent.hook_calls import AgentHooks
from wolo.agent.prompt_prefix import PromptPrefix
from wolo.agent.tool_calls import ToolCalls
from wolo.errors import ToolError
from wolo.guard.intents import Intent, RunIntent
from wolo.guard.judge import Judge
from wolo.guard.modes import find_mode
from wolo.guard.rules import Rule
from wolo.guard.secrets.redactor import Secrets
from wolo.messages.message import Message, user
from wolo.messages.secret_values import Secret
from wolo.models.catalog import Catalog
from wolo.models.client import ClientOptions, HttpModelClient
from wolo.models.format_selection import format_of
from wolo.models.http.http_transport import HttpTransport
from wolo.tools.shell import Shell
from wolo.tools.tool import CallContext, ShellState, Tool, ToolServices
from wolo.tools.tool_values import CallResult
from wolo.tools.toolbox import BUILTIN, Toolbox
from wolo.workspace.files.file_reading import FileLedger
from wolo.workspace.root import Workspace

SECRET = "a-secret-nobody-may-see"
SYSTEM = "You are Wolo, an AI coding agent."


class Note(Struct):
    text: str = ""


class TestTool:
    """What the tools of these tests share: arguments, no intents, and a memory of what ran."""

    __test__ = False
    Args: ClassVar[type[Struct]] = Note
    aliases: ClassVar[Mapping[str, str]] = {}
    reads_only: ClassVar[bool] = False

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.begun = asyncio.Event()
        self.running = 0
        self.most_running = 0

    def intents(self, args: Note, services: ToolServices) -> Sequence[Intent]:
        return ()


class Say(TestTool):
    """Gives back the text."""

    name: ClassVar[str] = "say"

    async def run(self, args: Note, call: CallContext) -> CallResult:
        self.ran.append(args.text)
        return CallResult(text=f"said {args.text}")


class Look(TestTool):
    """Only reads; waits until enough others read beside it."""

    name: ClassVar[str] = "look"
    reads_only: ClassVar[bool] = True

    def __init__(self) -> None:
        super().__init__()
        self.together = 1
        self._enough = asyncio.Event()

    async def run(self, args: Note, call: CallContext) -> CallResult:
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        if self.running >= self.together:
            self._enough.set()
        async with asyncio.timeout(60):
            await self._enough.wait()
        self.running -= 1
        self.ran.append(args.text)
        return CallResult(text=f"saw {args.text}")


class Hang(TestTool):
    """Prints a little and never ends by itself."""

    name: ClassVar[str] = "hang"

    async def run(self, args: Note, call: CallContext) -> CallResult:
        self.ran.append(args.text)
        call.progress("half a line")
        self.begun.set()
        await asyncio.Event().wait()
        raise AssertionError("nobody wakes it")


class Crash(TestTool):
    """Has a bug."""

    name: ClassVar[str] = "crash"

    async def run(self, args: Note, call: CallContext) -> CallResult:
        raise ZeroDivisionError("division by zero")


class Fail(TestTool):
    """Says no."""

    name: ClassVar[str] = "fail"

    async def run(self, args: Note, call: CallContext) -> CallResult:
        raise ToolError(f"there is no {args.text}")


class Finish(TestTool):
    """Ends the turn with its result."""

    name: ClassVar[str] = "finish"

    async def run(self, args: Note, call: CallContext) -> CallResult:
        return CallResult(text=args.text, terminate=True)


class Leak(TestTool):
    """Prints the key."""

    name: ClassVar[str] = "leak"

    async def run(self, args: Note, call: CallContext) -> CallResult:
        return CallResult(text=f"the key is {SECRET}!")


class Command(TestTool):
    """Means to run a command; runs nothing."""

    name: ClassVar[str] = "command"

    def intents(self, args: Note, services: ToolServices) -> Sequence[Intent]:
        return (RunIntent(args.text, services.shell.cwd),)

    async def run(self, args: Note, call: CallContext) -> CallResult:
        self.ran.append(args.text)
        return CallResult(text="it ran")


class UnpredictableIntents(TestTool):
    """Its intents can be computed when the call is planned, and fail when it is to run."""

    name: ClassVar[str] = "unpredictable"

    def intents(self, args: Note, services: ToolServices) -> Sequence[Intent]:
        self.running += 1
        if self.running > 1:
            raise OSError(22, "Invalid argument")
        return ()

    async def run(self, args: Note, call: CallContext) -> CallResult:
        raise AssertionError("it must not run")


Person = Callable[[ApprovalAsked], Awaitable[ApprovalGiven]]


class AgentHarness:
    """One agent, its tools and every event it emitted."""

    def __init__(self, provider: ProviderServer, directory: Path) -> None:
        self.provider = provider
        self.events: list[Event] = []
        self.on_event: Callable[[Event], None] = lambda event: None
        self.person: Person | None = None
        self.rules: list[Rule] = []
        self.mode = "edit"
        self.limits = Limits()
        self.compactor = Compactor()
        self.reread_system = SYSTEM
        self.longest_wait_s = 0.01
        """Between two attempts."""
        self.history: tuple[Message, ...] = ()
        self.say, self.look, self.hang, self.command = Say(), Look(), Hang(), Command()
        self._more: tuple[Tool, ...] = (Crash(), Fail(), Finish(), Leak(), UnpredictableIntents())
        self._directory = directory
        self._stream: HttpModelClient | None = None
        self._agent: AgentLoop | None = None

    @property
    def agent(self) -> AgentLoop:
        if self._agent is None:
            self._agent = self._build()
        return self._agent

    async def turn(self, prompt: str = "go") -> Turn:
        async with asyncio.timeout(30):
            turn = await self.agent.run(self.history, user(prompt))
        self.history = turn.messages
        return turn

    async def emit(self, event: Event) -> None:
        self.on_event(event)
        self.events.append(event)

    def told(self, kind: type[Event]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    def results(self, request: int = -1) -> list[str]:
        return self.provider.requests[request].results

    async def close(self) -> None:
        if self._stream is not None:
            await self._stream.close()

    def _build(self) -> AgentLoop:
        work = Path.cwd()
        workspace = Workspace(work)
        secrets = Secrets([Secret("CANARY", SECRET)])
        services = ToolServices(
            workspace=workspace,
            ledger=FileLedger(self._directory / "locks"),
            save_output=lambda name, data: self._directory / name,
            shell=ShellState(work),
            secrets=secrets,
        )
        tools: tuple[Tool, ...] = (*BUILTIN, self.say, self.look, self.hang, self.command, *self._more)
        shells = () if any(tool.name == "shell" for tool in BUILTIN) else (Shell(),)
        choice = Catalog({}).find(f"custom/{MODEL}", base_url=self.provider.base_url, api_key=KEY)
        around = ClientOptions(sleep=lambda seconds: asyncio.sleep(min(seconds, self.longest_wait_s)))
        self._stream = HttpModelClient(choice, format_of(choice), HttpTransport(), around)
        toolbox, hooks = Toolbox((*tools, *shells)), AgentHooks(None, self.emit, secrets)
        judge = Judge(find_mode(self.mode), self.rules, work)
        return AgentLoop(
            AgentServices(
                asker=self._stream,
                emit=self.emit,
                hooks=hooks,
                calls=ToolCalls(toolbox, services, judge, emit=self.emit, ask_user=self.person, hooks=hooks),
                prefix=PromptPrefix(SYSTEM, toolbox, self.compactor, secrets, reread=lambda: self.reread_system),
                compactor=self.compactor,
                history=MessageHistory(self.compactor),
                shell=services.shell,
                account=Account(self.limits),
                limits=self.limits,
                budget=BudgetNotices(),
                session_id="session_123",
            )
        )


@pytest.fixture
async def harness(provider: ProviderServer, tmp_path: Path) -> AsyncIterator[AgentHarness]:
    harness = AgentHarness(provider, tmp_path)
    yield harness
    await harness.close()
