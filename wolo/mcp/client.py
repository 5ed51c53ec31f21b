"""Client of one MCP server: starts it on demand, restarts it once, and ends it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, TypeVar

from wolo.errors import ConfigError, ToolError
from wolo.mcp.connection import LONGEST_LINE_BYTES, Completing, Connection, ConnectionLost, PromptMessage, RequestRejected
from wolo.mcp.listings import ServerListing
from wolo.mcp.oauth.login import find_auth
from wolo.mcp.references import INPUT, fill_in, with_bare
from wolo.mcp.server import Server, ServerEnvironment, is_address
from wolo.mcp.server_requests import Caller, ServerRequests
from wolo.mcp.tool_answer import Item, ToolAnswer
from wolo.messages.terminal_text import clean, clean_line
from wolo.workspace.processes.command_environment import CommandVariables, find_program
from wolo.workspace.processes.piped_program import OutputTail, start_piped
from wolo.workspace.processes.process_runner import ProgramStart

T = TypeVar("T")
State = Literal["idle", "starting", "ready", "failed"]
_BETWEEN_LISTS_S = 1.0
_MOST_REFUSAL_CHARS = 4000
_PROJECT_DIR = "CLAUDE_PROJECT_DIR"
_LEAVING_S, _GRACE_S = 0.7, 0.3
"""Between closing stdin and the first signal, and from there to the last."""
_LAST_LINES = 3
_BARE = "Server returned an error response"
"""The error of the SDK that does not name the status."""
_STATUS = {403: "access is denied (403)", 404: "not found (404)"}


class McpClient:
    """Can be called from any task of one event loop."""

    def __init__(
        self,
        name: str,
        server: Server,
        around: ServerEnvironment,
        listed: Callable[[ServerListing], None],
        requests: ServerRequests,
    ) -> None:
        """`listed` receives what the server offers, after each listing; `requests` answers the server's own."""
        self.name = name
        self.server = server
        self.requests = requests
        self.state: State = "idle"
        self.why = ""
        """Failure reason for the user."""
        self._around = around
        self._listed = listed
        self._connection: Connection | None = None
        self._task: asyncio.Task[None] | None = None
        self._loaded, self._ready_or_failed = asyncio.Event(), asyncio.Event()
        self._stderr = OutputTail()
        self._ending = ""
        self._status = 0
        self._refusal = ""
        """What the login lacks."""
        self._inputs: Mapping[str, str] = {}

    def start(self) -> None:
        """Start in the background unless running or starting."""
        if self._task is None or self._task.done():
            self.state, self.why = "starting", ""
            self._loaded, self._ready_or_failed = asyncio.Event(), asyncio.Event()
            self._task = asyncio.create_task(self._run())

    async def wait_settled(self) -> None:
        """Wait until the current start succeeded or failed."""
        if self._task is not None:
            await self._ready_or_failed.wait()

    async def wait_loaded(self) -> None:
        """Wait until the SDK is loaded; the time after that is the server's own."""
        if self._task is not None:
            await self._loaded.wait()

    async def call(self, tool: str, arguments: Mapping[str, Any], caller: Caller) -> ToolAnswer:
        """Raises ToolError."""

        async def call(connection: Connection) -> ToolAnswer:
            with self.requests.working_for(caller):
                return await connection.call(tool, arguments, self.server.tool_timeout_s, caller.progress)

        return await self._ask(call, "the call may have had effects")

    async def read(self, uri: str) -> tuple[Item, ...]:
        """The contents of a resource. Raises ToolError."""
        return await self._ask(lambda connection: connection.read(uri, self.server.tool_timeout_s))

    async def prompt(self, name: str, arguments: Mapping[str, str]) -> tuple[PromptMessage, ...]:
        """Raises ToolError."""
        return await self._ask(lambda connection: connection.prompt(name, arguments, self.server.tool_timeout_s))

    async def complete(self, completing: Completing) -> tuple[str, ...]:
        """Empty where the server cannot tell; starts nothing."""
        if self._connection is None:
            return ()
        try:
            return await self._connection.complete(completing)
        except (ConnectionLost, RequestRejected):
            return ()

    async def change_roots(self, roots: Sequence[Path]) -> None:
        if tuple(roots) == tuple(self.requests.roots):
            return
        self.requests.roots = tuple(roots)
        if self._connection is not None:
            with suppress(ConnectionLost, RequestRejected):
                await self._connection.roots_changed()

    async def _ask(self, request: Callable[[Connection], Awaitable[T]], doubt: str = "") -> T:
        """Sends a request, once more if the connection was lost before it arrived. Raises ToolError."""
        for attempt in (1, 2):
            if self._connection is None:
                self.start()
                await self._ready_or_failed.wait()
            if self._connection is None:
                raise ToolError(f"The MCP server {self.name} cannot be reached: {self.why}.")
            connection = self._connection
            try:
                return await request(connection)
            except RequestRejected as refused:
                why, self._refusal = self._explain(refused), ""
                raise ToolError(f"The MCP server {self.name} refused: {_in_short(why)}") from refused
            except ConnectionLost as lost:
                await self.close()
                if lost.may_have_run or attempt == 2:
                    why = self.why or self._with_last_words(self._ending or str(lost))
                    said = f"The MCP server {self.name} was lost; {doubt}" if doubt else f"The MCP server {self.name} was lost"
                    raise ToolError(f"{said}: {why}.") from lost
        raise AssertionError("the second attempt returns or raises")

    async def close(self) -> None:
        """End the server and its child processes."""
        keeping, self._task = self._task, None
        if keeping is not None:
            keeping.cancel()
            await asyncio.wait({keeping})
        if self.state in ("starting", "ready"):
            self.state = "idle"

    async def _run(self) -> None:
        self._stderr, self._ending, self._status, self._refusal = OutputTail(), "", 0, ""
        try:
            async with AsyncExitStack() as stack:
                async with asyncio.timeout(self.server.startup_timeout_s):
                    connection = await stack.enter_async_context(self._connect())
                    self._listed(await connection.listing())
                self._connection, self.state = connection, "ready"
                self._ready_or_failed.set()
                while not connection.ended.is_set():
                    waiting = [asyncio.create_task(event.wait()) for event in (connection.ended, connection.changed)]
                    try:
                        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                    finally:
                        for each in waiting:
                            each.cancel()
                    if connection.changed.is_set() and not connection.ended.is_set():
                        connection.changed.clear()
                        self._listed(await connection.listing())
                        with suppress(TimeoutError):  # limits how often it is listed
                            async with asyncio.timeout(_BETWEEN_LISTS_S):
                                await connection.ended.wait()
            self._fail(self._ending or "it has ended")
        except TimeoutError:
            self._fail(f"it was not ready within {self.server.startup_timeout_s:g} s")
        except ConnectionLost as error:
            self._fail(self._ending or self._explain(error))
        except RequestRejected as error:
            self._fail(self._explain(error))
        except ConfigError as error:
            self._fail(error.message.rstrip("."))
        except OSError as error:
            self._fail(f"it cannot be started: {error.strerror or error}")
        finally:
            self._connection = None
            self._loaded.set()
            self._ready_or_failed.set()

    def _fail(self, why: str) -> None:
        self.state, self.why = "failed", self._with_last_words(why)

    def _with_last_words(self, why: str) -> str:
        lines = [line.strip() for line in self._stderr.lines(_LAST_LINES, clean_line)]
        return f"{why}; it said: {' ⏎ '.join(lines)}" if lines else why

    @asynccontextmanager
    async def _connect(self) -> AsyncIterator[Connection]:
        if exchange := self._around.hosted.get(self.name):
            from wolo.mcp.hosted.hosted_server import HostedConnection  # noqa: PLC0415  # few programs have any

            self._loaded.set()
            yield await HostedConnection(exchange).open()
            return
        sdk = await asyncio.to_thread(_load)
        self._loaded.set()
        self._inputs = await asyncio.to_thread(self._find_inputs)
        server, environ = self.server, self._variables
        if server.url:
            url = fill_in(server.url, environ, "url")
            if not is_address(url):
                raise ConfigError("its url, with variables expanded, does not begin with http:// or https://.")
            connecting = sdk.connect_http(
                url,
                {name: with_bare(value, environ, f"headers.{name}") for name, value in server.headers.items()},
                old=server.transport == "sse",
                environ=environ,
                on_status=self._on_status,
                requests=self.requests,
                auth=await asyncio.to_thread(find_auth, self.name, server, url, self._around, self._on_refused),
            )
            async with connecting as connection:
                yield connection
            return
        start = ProgramStart(argv=self._argv(), cwd=self._cwd(), env=self._environment())
        child = await start_piped(self._around.processes, start, LONGEST_LINE_BYTES, self._stderr)
        try:
            async with sdk.connect_child(child, self.requests) as connection:
                yield connection
        finally:
            try:
                child.close_input()
                await child.program.wait(_LEAVING_S)
            finally:
                await child.end(_GRACE_S)
            code = child.program.exit_code
            self._ending = f"it was ended by signal {-code}" if code < 0 else f"it ended with exit code {code}"

    def _on_status(self, status: int) -> None:
        self._status = status

    def _on_refused(self, scope: str) -> None:
        """`scope` is missing; empty: the login is no longer valid."""
        lack = f"its login lacks the scope {clean(scope)}" if scope else "it requires a login"
        self._refusal = f"{lack}: `wolo mcp login {self.name}`"

    def _explain(self, error: Exception) -> str:
        if self._refusal:
            return self._refusal
        is_bare = str(error) == _BARE
        if not is_bare and (self.state != "starting" or self._status not in (401, *_STATUS)):
            return str(error)
        if self._status == 401:
            is_given = any(name.lower() == "authorization" for name in self.server.headers)
            return (
                "its Authorization header is refused (401)" if is_given else f"it requires a login: `wolo mcp login {self.name}`"
            )
        return _STATUS.get(self._status, f"it answered with HTTP status {self._status}")

    def _argv(self) -> list[str]:
        """Programs are looked up outside the checkout unless named by path."""
        environ = self._variables
        command = fill_in(self.server.command, environ, "command")
        program = command if "/" in command else find_program(command, self._around.workspace)
        if program is None:
            raise ConfigError(f"there is no program {command} on the PATH.")
        if "/" in command:
            program = os.path.join(self._around.cwd, os.path.expanduser(command))  # noqa: PTH111, PTH118  # keeps `./x`
        return [program, *(fill_in(word, environ, "args", may_lack=True) for word in self.server.args)]

    def _cwd(self) -> Path:
        named = fill_in(self.server.cwd, self._variables, "cwd")
        return Path(self._around.cwd, os.path.expanduser(named))  # noqa: PTH111  # Path.expanduser raises for unknown users

    def _environment(self) -> dict[str, str]:
        own = {name: with_bare(value, self._variables, f"env.{name}") for name, value in self.server.env.items()}
        return {
            **CommandVariables(inherit="core", environ=self._around.environ).select(is_outside=False),
            _PROJECT_DIR: self._variables[_PROJECT_DIR],
            **own,
        }

    @property
    def _variables(self) -> Mapping[str, str]:
        """Variables for references; `CLAUDE_PROJECT_DIR` for files written for Claude Code."""
        return {**self._around.environ, **self._inputs, _PROJECT_DIR: str(self._around.workspace.root)}

    def _find_inputs(self) -> Mapping[str, str]:
        find = self._around.find_input
        return {f"{INPUT}{name}": find(name) for name in self.server.inputs} if find else {}


def _load() -> ModuleType:
    from wolo.mcp import sdk  # noqa: PLC0415  # most of a second

    return sdk


def _in_short(text: str) -> str:
    text = clean(text)
    return text if len(text) <= _MOST_REFUSAL_CHARS else f"{text[: _MOST_REFUSAL_CHARS - 1]}…"
