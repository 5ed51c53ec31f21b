"""The agent of the Python API: runs prompts in a conversation that it opens and keeps."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, Unpack, overload
from weakref import finalize, ref

from msgspec import Struct

from wolo.api.function_tools import ProgramTool, as_tool
from wolo.api.program_answers import OnApproval, OnQuestion, ProgramAnswers, Validator, turn_events, value_of
from wolo.api.program_input import (
    History,
    Prompt,
    check_function,
    literal,
    setting,
    to_directory,
    to_files,
    to_history,
    to_hooks,
    to_message,
    to_profiles,
    to_servers,
    to_tools,
)
from wolo.api.run_context import ActiveRun, active_run
from wolo.api.run_events import MessagesCompleted, Notice, Result, RunError, RunEvent, RunResult, TypedResult
from wolo.api.run_recorder import RunRecorder
from wolo.conversation.factory import open_conversation
from wolo.conversation.prompt_attachments import must_be_sent, write_prompt
from wolo.conversation.resources.startup import StartOptions
from wolo.errors import UsageError
from wolo.messages.message import Message, Origin, UserPrompt
from wolo.models.http.transport import Transport

if TYPE_CHECKING:
    from wolo.conversation.conversation import Conversation
    from wolo.tools.tool import ExternalTool

T = TypeVar("T")
ORIGIN: Origin = "network"
"""A program's words: no slash command, and only mentions of what lies in the workspace."""
MEMORY = "memory"
"""Name of a session that is not saved."""
_RAISED = frozenset(("model_error", "unavailable", "session_error"))


class RunArguments(TypedDict, total=False):
    """Options of one run, in place of those of the agent. Other ones than before open the conversation again."""

    model: str
    thinking: str
    mode: str
    tools: Iterable[Any] | None
    on_approval: OnApproval | None
    on_question: OnQuestion | None
    max_turns: int | None
    max_cost: float | None
    max_tokens: int | None
    max_seconds: float | None
    deps: Any
    """Value of `RunContext.deps` in functions."""


class TypedRunArguments(RunArguments, total=False):
    """Of a run whose answer is a value."""

    history: History | None
    retries: int
    """Most answers that are sent back, 1 if not given."""
    validators: Iterable[Validator]


class _Setup(Struct, frozen=True):
    """Options of a conversation that may differ between runs."""

    flags: dict[str, str]
    tools: tuple[Any, ...] | None
    answers: ProgramAnswers

    def replace(self, options: Mapping[str, Any]) -> _Setup:
        """With the options of a run. Raises UsageError."""
        if unknown := sorted(options.keys() - RunArguments.__annotations__.keys()):
            raise UsageError(f"A run has no option {unknown[0]}.", hint=f"Options: {', '.join(RunArguments.__annotations__)}.")
        flags = dict(self.flags)
        for name in options.keys() & _FLAGS:
            flags.pop(name, None)
            flags |= {name: str(options[name])} if options[name] not in (None, "") else {}
        for name in ("on_approval", "on_question"):
            check_function(options.get(name), name)
        on_approval = options.get("on_approval", self.answers.on_approval)
        on_question = options.get("on_question", self.answers.on_question)
        tools = to_tools(options["tools"]) if "tools" in options else self.tools
        return _Setup(flags, tools, ProgramAnswers(on_approval, on_question))


_FLAGS = frozenset(("model", "thinking", "mode", "max_turns", "max_cost", "max_tokens", "max_seconds"))


class _Running:
    """A run that has not ended; `stream` gives None once the program has dropped its iterator."""

    def __init__(self) -> None:
        self.ended = asyncio.Event()
        self.stream: Callable[[], object] = lambda: self
        self.task: asyncio.Task[Any] | None = None
        """In which it is read."""


class _OpenConversation:
    """The open conversation of an agent, given back when the agent is dropped."""

    def __init__(self, agent: Agent) -> None:
        self.conversation: Conversation | None = None
        self.process = os.getpid()
        finalize(agent, self.give_back)

    def give_back(self) -> None:
        conversation, self.conversation = self.conversation, None
        if conversation is None or self.process != os.getpid():  # in a forked child everything is the parent's
            return
        conversation.abandon()


class Agent:
    """An agent and its conversation. Runs follow one another; for runs side by side use several agents."""

    _loop: asyncio.AbstractEventLoop | None = None
    _history: tuple[Message, ...] = ()
    _running: _Running | None = None
    _fork = False

    def __init__(
        self,
        model: str = "",
        *,
        system: str = "",
        tools: Iterable[Any] | None = None,
        cwd: str | Path = ".",
        mode: str = "",
        session: str | None = None,
        on_approval: OnApproval | None = None,
        on_question: OnQuestion | None = None,
        hooks: Mapping[str, Callable[[dict[str, Any]], Any]] | None = None,
        max_turns: int | None = None,
        max_cost: float | None = None,
        max_tokens: int | None = None,
        max_seconds: float | None = None,
        transport: Transport | None = None,
        thinking: str = "",
        name: str = "",
        base_url: str = "",
        api_key: str = "",
        api: str = "",
        settings: Mapping[str, Any] | None = None,
        trust: bool = False,
        deps: Any = None,
        mcp_servers: Mapping[str, Mapping[str, Any]] | None = None,
        agents: Mapping[str, Mapping[str, Any]] | Iterable[str | Path] = (),
        skills: Iterable[str | Path] = (),
    ) -> None:
        """Nothing is read or opened before the first run, so mistakes are raised there, as UsageError.

        `tools`: functions are added to the built-in tools; names choose some of those (`["read", "grep", my_function]`); an empty
        list offers none. `session`: None saves a new one, "memory" saves nothing, an id resumes. Without `on_approval` a call
        that needs an approval is denied. `hooks` by event, such as `PreToolUse`, get the event's fields and may return Claude
        Code's JSON output as a dict. `settings` by dotted key. `trust`: read the project's own settings and extensions.
        `deps` is what functions get with a `RunContext`. `mcp_servers` by name, as in `.mcp.json`. `agents` by name, with
        `description`, `prompt`, `tools`, `model`, or paths of files and folders; `skills` are such paths.
        """
        self._cwd = Path(cwd)
        self._session = session
        check_function(on_approval, "on_approval")
        check_function(on_question, "on_question")
        answers = ProgramAnswers(on_approval, on_question)
        self._deps = deps
        self._files, self._agents = to_files(agents, skills), to_profiles(agents)
        self._hooks = to_hooks(hooks)
        check_function(None if transport is None else getattr(transport, "send", transport), "transport.send")
        self._transport, self._trust = transport, trust
        limits = {"max_turns": max_turns, "max_cost": max_cost, "max_tokens": max_tokens, "max_seconds": max_seconds}
        endpoint = {"model": model, "base_url": base_url, "api_key": api_key, "api": api}
        options = {**endpoint, "system_prompt": literal(system), "mode": mode, "thinking": thinking, "name": name, **limits}
        flags = {option: str(value) for option, value in options.items() if value not in (None, "")}
        self._setup = self._used = _Setup(flags, to_tools(tools), answers)
        """The agent's own, and that of the open conversation."""
        self._given: dict[str, str | bool | list[str]] = {
            "set": [f"{key}={setting(value)}" for key, value in (settings or {}).items()]
        }
        if mcp_servers:
            self._given["mcp_config"] = [to_servers(mcp_servers)]
        self._open = _OpenConversation(self)

    @property
    def _conversation(self) -> Conversation | None:
        return self._open.conversation if self._open.process == os.getpid() else None

    @_conversation.setter
    def _conversation(self, conversation: Conversation | None) -> None:
        self._open.conversation, self._open.process = conversation, os.getpid()

    @property
    def history(self) -> tuple[Message, ...]:
        """All messages of the conversation so far."""
        return self._conversation.history if self._conversation else self._history

    @property
    def session_id(self) -> str:
        """Empty before the first run."""
        return self._conversation.info.session_id if self._conversation else self._session or ""

    async def run(self, prompt: Prompt, *, history: History | None = None, **options: Unpack[RunArguments]) -> RunResult:
        """Runs one prompt to its end, after the runs that have begun before. `options` hold for this run.

        `history` is the conversation before it; None: this agent's own. Raises RunError when the model or the session fails,
        UsageError for mistakes; a run that a budget ended returns.
        """
        return await self._run_to_end(self.run_stream(prompt, history=history, **options))

    async def _run_to_end(self, stream: AsyncGenerator[RunEvent, None]) -> RunResult:
        async with aclosing(stream) as events:
            async for event in events:
                last = event
        assert isinstance(last, Result)
        return last.result

    def run_stream(
        self, prompt: Prompt, *, history: History | None = None, **options: Unpack[RunArguments]
    ) -> AsyncGenerator[RunEvent, None]:
        """Yields the events of one run; the last one is a `Result`.

        Closing the iterator early, or leaving its loop, interrupts the run. Raises as `run`, a RunError after the result.
        """
        return self._stream(prompt, history, options)

    def _stream(
        self,
        prompt: Prompt,
        history: History | None,
        options: RunArguments,
        changed: Callable[[UserPrompt], UserPrompt] = lambda message: message,
        owner: Callable[[], object] | None = None,
    ) -> AsyncGenerator[RunEvent, None]:
        """`changed` gets the message of the prompt and returns the one to send; `owner` refers to what is read."""
        running = _Running()
        stream = self._run_events(prompt, history, options, running, changed)
        running.stream = owner or ref(stream)
        return stream

    async def _run_events(
        self,
        prompt: Prompt,
        history: History | None,
        options: RunArguments,
        running: _Running,
        changed: Callable[[UserPrompt], UserPrompt],
    ) -> AsyncGenerator[RunEvent, None]:
        await self._begin(running)
        outer = active_run.get()
        run = ActiveRun(ref(self), options.get("deps", self._deps), [], outer)
        try:
            setup = self._setup.replace(options)
            if setup != self._used and self._conversation is not None:
                await self._leave().close()  # it was opened with other options; the next one continues it
            self._used = setup
            message = UserPrompt.from_message(to_message(prompt), ORIGIN)
            conversation = await self._open_conversation(history)
            if isinstance(prompt, str):
                notices: list[str] = []
                write = partial(write_prompt, prompt, conversation, origin=ORIGIN, notify=notices.append)
                message = await asyncio.to_thread(write) if "@" in prompt else write()  # only files that are named are read
                for text in notices:
                    yield Notice(text=text, level="warning")
            else:
                message = must_be_sent(conversation.choice, message)
            message = changed(message)
            recorder = RunRecorder(conversation)
            async with aclosing(turn_events(conversation, message, self._used.answers, run)) as events:
                async for event in events:
                    for run_event in recorder.on_event(event):
                        yield run_event
            self._history = conversation.history
            if rest := recorder.rest():
                yield MessagesCompleted(messages=rest)
            result = recorder.result(run.usages)
            if outer is not None:
                outer.usages.append(result.usage)
            yield Result(result=result)
            if result.cause in _RAISED:
                raise RunError(result)
        finally:
            run.deps = run.outer = None
            self._running = None
            running.ended.set()

    async def _begin(self, running: _Running) -> None:
        """Waits for the end of runs that began before. Raises UsageError for one that cannot end before this one."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError as error:
            raise UsageError("Agents need an event loop of asyncio.", hint="With anyio, choose its backend asyncio.") from error
        if self._conversation is not None and self._loop is not None and self._loop.is_closed():
            self._leave().abandon()
            self._running = None  # it cannot end any more
        if self._conversation is not None and self._loop is not loop:
            raise UsageError("This agent was used in another event loop.", hint="Close it there first; it can then go on here.")
        task, inside = asyncio.current_task(), active_run.get()
        while self._running is not None:
            is_read_here = self._running.stream() is not None and self._running.task is task
            if is_read_here or (inside is not None and inside.includes(self)):
                raise UsageError("This agent is running already.", hint="Await its run first, or use another Agent.")
            await self._running.ended.wait()
        running.task = task
        self._running, self._loop = running, loop

    @overload
    async def run_for(self, prompt: Prompt, output: type[T], **options: Unpack[TypedRunArguments]) -> TypedResult[T]: ...
    @overload
    async def run_for(self, prompt: Prompt, output: Any, **options: Unpack[TypedRunArguments]) -> TypedResult[Any]: ...
    async def run_for(self, prompt: Prompt, output: Any, **options: Unpack[TypedRunArguments]) -> TypedResult[Any]:
        """Runs a prompt whose answer is a value of the type `output`, or fits that JSON schema.

        `output` is a pydantic model, dataclass, TypedDict, msgspec Struct or other type. The server enforces the schema where no
        tools are offered, and for an answer that is sent back: up to `retries` times, when it does not fit or a validator raises
        ValueError with what to correct. Each of `validators` gets the value, may be async, and may return another one.
        Raises OutputError with the text of the last answer, else as `run`.
        """
        result = await self._run_to_end(self.run_stream_for(prompt, output, **options))
        assert isinstance(result, TypedResult)
        return result

    def run_stream_for(self, prompt: Prompt, output: Any, **options: Unpack[TypedRunArguments]) -> AsyncGenerator[RunEvent, None]:
        """Yields the events of `run_for`, with a `PartialOutput` when more of the value is there; the last is a `Result`."""
        from wolo.api.typed_answers import typed_events  # noqa: PLC0415  # loads the schema library

        earlier, retries, validators = options.pop("history", None), options.pop("retries", 1), options.pop("validators", ())

        def run(
            prompt: Prompt, history: History | None, changed: Callable[[UserPrompt], UserPrompt]
        ) -> AsyncGenerator[RunEvent, None]:
            return self._stream(prompt, history, options, changed, owner)

        stream = typed_events(run, prompt, output, earlier, retries, validators)
        owner = ref(stream)
        return stream

    def run_sync(self, prompt: Prompt, *, history: History | None = None, **options: Unpack[RunArguments]) -> RunResult:
        """Like `run`, for scripts without an event loop. Servers and background commands end with each call."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(self._run_and_close(prompt, history, options))
        raise UsageError("run_sync cannot be called in a running event loop.", hint="Use `await agent.run(…)` there.")

    async def _run_and_close(self, prompt: Prompt, history: History | None, options: RunArguments) -> RunResult:
        try:
            return await self.run(prompt, history=history, **options)
        finally:
            await self.close()

    def as_tool(self, name: str, description: str) -> ProgramTool:
        """A tool for another agent: the model writes a prompt and reads the answer. Usage is added to that of the other run."""

        async def ask(prompt: str) -> str:
            return (await self.run(prompt)).answer

        return ProgramTool(ask, name=name, description=description, parallel=False)

    def fork(self) -> Agent:
        """Returns an agent that continues from here in a copy of the session; this one is not affected."""
        other = Agent.__new__(Agent)
        other.__dict__.update(self.__dict__)
        other._open, other._running, other._history = _OpenConversation(other), None, self.history
        if self._session != MEMORY and self.session_id:
            other._session, other._fork = self.session_id, True
        return other

    def interrupt(self) -> bool:
        """Stops the run; its result still comes. False: no run has begun."""
        if self._conversation is None or self._running is None:
            return False
        self._conversation.interrupt()
        return True

    def steer(self, prompt: Prompt) -> bool:
        """Sends a message into the run after its current call, which skips the calls behind it. False: no run has begun."""
        message = UserPrompt.from_message(to_message(prompt), ORIGIN)
        if self._conversation is None or self._running is None:
            return False
        self._conversation.steer(message)
        return True

    async def close(self) -> None:
        """Ends processes and servers. A later run continues the conversation."""
        if self._conversation is None:
            return
        conversation = self._leave()
        try:
            function, info = self._hooks.get("SessionEnd"), conversation.info
            if function is not None and conversation.history:
                ended = {"hook_event_name": "SessionEnd", "session_id": info.session_id, "cwd": str(info.cwd), "reason": "other"}
                await value_of(function(ended))
        finally:
            if self._loop is not None and self._loop.is_closed():
                conversation.abandon()
            else:
                await conversation.close()

    def _leave(self) -> Conversation:
        """Returns the open conversation, which a later run continues."""
        conversation, self._conversation = self._conversation, None
        assert conversation is not None
        self._history = conversation.history
        if self._session != MEMORY and conversation.history:
            self._session, self._fork = conversation.info.session_id, False
        return conversation

    async def __aenter__(self) -> Agent:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _open_conversation(self, history: History | None) -> Conversation:
        messages = self.history if history is None else to_history(history)
        if [message.id for message in messages] != [message.id for message in self.history]:
            await self.close()
            self._session = MEMORY if self._session == MEMORY else None
            self._fork, self._history = False, messages
        if self._conversation is None:
            conversation = await open_conversation(self._options())
            if not conversation.history and self._history:
                await conversation.continue_from(self._history)
            self._conversation = conversation
        return self._conversation

    def _options(self) -> StartOptions:
        options, cwd, setup = {**self._used.flags, **self._given}, to_directory(self._cwd), self._used
        functions: tuple[ExternalTool, ...] = ()
        if self._session == MEMORY:
            options["no_session"] = True
        elif self._session:
            options |= {"resume": self._session, **({"fork": True} if self._fork else {})}
        if self._trust:
            options["trust"] = str(cwd)
        if setup.tools is not None:
            names = [each for each in setup.tools if isinstance(each, str)]
            functions = tuple(as_tool(each) for each in setup.tools if not isinstance(each, str))
            num_by_name = Counter((*names, *(function.name for function in functions)))
            if twice := [name for name, num in num_by_name.items() if num > 1]:
                raise UsageError(f"Two tools are named {twice[0]}.", hint="@tool(name=…) gives a function another name.")
            if names or not functions:
                options["tools"] = ",".join((*names, *(each.name for each in functions)))
        if self._transport is not None:
            endpoint = getattr(self._transport, "endpoint", {})
            if both := sorted(options.keys() & endpoint.keys()):
                raise UsageError(f"The transport has its own endpoint, so {both[0]} would have no effect.")
            options = {**options, **{name: str(value) for name, value in endpoint.items()}}
        return StartOptions(
            flags=options,
            attended=False,
            cwd=cwd,
            answers_approvals=setup.answers.on_approval is not None,
            answers_questions=setup.answers.on_question is not None,
            transport=self._transport,
            tools=functions,
            hook_functions=self._hooks,
            files=self._files,
            agents=self._agents,
            sends_local_context=False,
        )
