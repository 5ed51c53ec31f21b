"""An editor: the official SDK's client over a real `wolo acp`, with what it received."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from acp.client.connection import ClientSideConnection
from acp.exceptions import RequestError
from acp.schema import (
    AllowedOutcome,
    ClientCapabilities,
    DeclineElicitationResponse,
    DeniedOutcome,
    ElicitationCapabilities,
    ElicitationFormCapabilities,
    FileSystemCapabilities,
    NewSessionResponse,
    PromptResponse,
    ReadTextFileResponse,
    RequestPermissionResponse,
    TextContentBlock,
)

from tests.fakes.command import start_wolo

Choose = Callable[[Any, list[Any]], str | None]


class Editor:
    """`choose` picks the option of a permission request by its id; None cancels."""

    def __init__(self) -> None:
        self.updates: list[tuple[str, Any]] = []
        self.asked: list[tuple[Any, list[Any]]] = []
        self.choose: Choose = lambda call, options: "once"
        self.forms: list[tuple[str, Any]] = []
        self.fill_in: Callable[[str], Any] = lambda message: DeclineElicitationResponse(action="decline")
        self.buffers: dict[str, str] = {}
        """Unsaved texts by path."""
        self.asked_files: list[str] = []
        self.answers_files = asyncio.Event()
        """Clear: requests for files wait."""
        self.awaited_files = 0
        """So many requests for files are answered only together; 0: each as it comes."""
        self.answers_files.set()
        self.is_asked = asyncio.Event()
        """A permission or a form was requested."""
        self.answers_requests = asyncio.Event()
        """Clear: permissions and forms wait."""
        self.answers_requests.set()
        self.agent: ClientSideConnection
        self._arrived = asyncio.Condition()

    def on_connect(self, connection: Any) -> None:
        self.agent = connection

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        async with self._arrived:
            self.updates.append((session_id, update))
            self._arrived.notify_all()

    async def request_permission(
        self, session_id: str, tool_call: Any, options: list[Any], **_: Any
    ) -> RequestPermissionResponse:
        self.asked.append((tool_call, options))
        self.is_asked.set()
        await self.answers_requests.wait()
        chosen = self.choose(tool_call, options)
        if chosen is None:
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=chosen))

    async def create_elicitation(self, message: str, mode: Any, **_: Any) -> Any:
        self.forms.append((message, mode.requested_schema))
        self.is_asked.set()
        await self.answers_requests.wait()
        return self.fill_in(message)

    async def read_text_file(
        self, session_id: str, path: str, line: int | None = None, limit: int | None = None, **_: Any
    ) -> ReadTextFileResponse:
        self.asked_files.append(path)
        if len(self.asked_files) == self.awaited_files:
            self.answers_files.set()
        await self.answers_files.wait()
        if path not in self.buffers:
            raise RequestError.resource_not_found(path)
        return ReadTextFileResponse(content=self.buffers[path])

    async def write_text_file(self, session_id: str, path: str, content: str, **_: Any) -> None:
        self.buffers[path] = content
        Path(path).write_text(content, encoding="utf-8")

    async def until(self, arrived: Callable[[Any], bool]) -> Any:
        """The first update of which this holds."""
        async with asyncio.timeout(20), self._arrived:
            await self._arrived.wait_for(lambda: any(arrived(update) for _, update in self.updates))
        return next(update for _, update in self.updates if arrived(update))

    def of(self, kind: str, session_id: str = "") -> list[Any]:
        """The updates of a kind."""
        return [each for id, each in self.updates if each.session_update == kind and session_id in ("", id)]

    def text(self, session_id: str = "") -> str:
        return "".join(each.content.text for each in self.of("agent_message_chunk", session_id))

    async def new(self, cwd: Path, **more: Any) -> NewSessionResponse:
        return await self.agent.new_session(cwd=str(cwd), mcp_servers=more.pop("mcp_servers", []), **more)

    async def say(self, session_id: str, *blocks: Any) -> PromptResponse:
        given = [TextContentBlock(type="text", text=each) if isinstance(each, str) else each for each in blocks]
        return await self.agent.prompt(session_id=session_id, prompt=given)


@asynccontextmanager
async def editor(*args: str, files: bool = False, forms: bool = False) -> AsyncIterator[Editor]:
    """An initialized client of `wolo acp ARGS`. `files`: it offers its buffers; `forms`: it shows forms."""
    client = Editor()
    process = start_wolo("acp", *args, stdin_pipe=True, stderr_pipe=False)
    reader, writer, end_of_output = await _streams(process)
    connection = ClientSideConnection(client, writer, reader, use_unstable_protocol=True)
    try:
        async with asyncio.timeout(60):
            capabilities = ClientCapabilities(fs=FileSystemCapabilities(read_text_file=files, write_text_file=files))
            if forms:
                capabilities.elicitation = ElicitationCapabilities(form=ElicitationFormCapabilities())
            await connection.initialize(protocol_version=1, client_capabilities=capabilities)
            yield client
            writer.close()
            await end_of_output()
            assert await asyncio.to_thread(process.wait, 60) == 0
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        writer.close()
        await connection.close()


async def _streams(
    process: subprocess.Popen[bytes],
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, Callable[[], Awaitable[None]]]:
    """Its output, its input, and a wait for the end of its output."""
    loop = asyncio.get_running_loop()
    assert process.stdin is not None
    assert process.stdout is not None
    reader = asyncio.StreamReader(limit=64 * 1024 * 1024)
    output = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), process.stdout)
    given = await loop.connect_write_pipe(lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), process.stdin)
    ended = asyncio.StreamWriter(*output, reader, loop).wait_closed
    return reader, asyncio.StreamWriter(*given, None, loop), ended
