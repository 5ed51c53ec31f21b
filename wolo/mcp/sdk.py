"""MCP connections through the SDK, which only this file, `sdk_transport.py` and `sdk_tasks.py` import.

Loading the SDK takes most of a second, so it happens in a thread and only when a server starts.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import Any

import anyio
import httpx2
import mcp_types as types
from mcp.client.client import Client
from mcp.client.session import ClientRequestContext, IncomingMessage
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from msgspec.structs import replace
from pydantic import ValidationError

from wolo import __version__
from wolo.errors import ConfigError, WoloError
from wolo.mcp.connection import Completing, Connection, ConnectionLost, PromptMessage, RequestRejected, read_messages
from wolo.mcp.listings import MOST_PROMPTS, MOST_RESOURCES, MOST_TOOLS, ServerListing, read_listed, read_prompts, read_resources
from wolo.mcp.sdk_tasks import call_as_task, runs_tasks, task_only
from wolo.mcp.sdk_transport import INVALID, RAW, Transport, make_http_client, pipe_streams, raw_result, tidy
from wolo.mcp.server_requests import SampleRequest, ServerRequests
from wolo.mcp.tool_answer import Item, ToolAnswer, UnusableSchema, first_violation, read_answer, read_contents, read_items
from wolo.messages.terminal_text import clean
from wolo.places import Notices
from wolo.workspace.processes.piped_program import PipedProgram

_MOST_PAGES = 50
_MOST_EXTENSIONS = 10
"""Progress extends the time of a call, to this many times its timeout."""
_MOST_SAMPLE_TOKENS = 8_192
_List = Callable[..., Awaitable[Any]]

logging.getLogger("mcp").setLevel(logging.CRITICAL)  # errors are reported to the caller


@asynccontextmanager
async def connect_child(child: PipedProgram, requests: ServerRequests) -> AsyncIterator[Connection]:
    """Raises ConnectionLost and RequestRejected."""
    async with _connect(lambda: pipe_streams(child), requests) as link:
        yield link


@asynccontextmanager
async def connect_http(
    url: str,
    headers: Mapping[str, str],
    *,
    old: bool,
    environ: Mapping[str, str],
    on_status: Callable[[int], None],
    requests: ServerRequests,
    auth: httpx2.Auth | None = None,
) -> AsyncIterator[Connection]:
    """`old`: use SSE. `on_status` receives the HTTP status of each response. Raises ConnectionLost and RequestRejected."""

    async def on_message(response: httpx2.Response) -> None:
        on_status(response.status_code)

    made: list[httpx2.AsyncClient] = []

    def client(**more: Any) -> httpx2.AsyncClient:
        made.append(make_http_client(url, headers, environ, on_message, auth=auth, **more))
        return made[-1]

    def transport() -> Transport:
        if old:
            return sse_client(url, httpx_client_factory=lambda headers=None, timeout=None, auth=None: client())
        return streamable_http_client(url, http_client=client())

    try:
        async with _connect(transport, requests) as link:
            yield link
    finally:
        for each in made:
            await each.aclose()  # the SDK leaves a stream open that it was reading


@asynccontextmanager
async def _connect(transport: Callable[[], Transport], requests: ServerRequests) -> AsyncIterator[Connection]:
    """Connect with the legacy handshake, then with the newer one if the server refuses it."""
    link = _Link(requests)
    try:
        async with AsyncExitStack() as stack:
            try:
                await link.open(stack, transport(), "legacy")
            except Exception as error:
                if not _is_newer(_leaf(error)):
                    raise
                link = _Link(requests)
                await link.open(stack, transport(), "auto")
            yield link
    except Exception as error:
        raise _translate(error) from error


class _Link:
    """Implements `connection.Connection`."""

    def __init__(self, requests: ServerRequests) -> None:
        self.ended = asyncio.Event()
        self.changed = asyncio.Event()
        self._requests = requests
        self._client: Client | None = None
        self._output_schemas: dict[str, Mapping[str, Any]] = {}
        self._tasks: set[str] = set()
        """Tools that run as tasks only."""

    async def open(self, stack: AsyncExitStack, transport: Transport, mode: str) -> None:
        client = Client(
            tidy(transport, self.ended),
            mode=mode,
            client_info=types.Implementation(name="wolo", version=__version__),
            message_handler=self._on_message,
            cache=None,
            log_level="info",
            **_client_callbacks(self._requests),
        )
        self._client = await stack.enter_async_context(client)

    async def listing(self) -> ServerListing:
        connected, notices = self._connected, Notices()
        offers = connected.server_capabilities
        tools = await self._entries(connected.list_tools, "tools") if offers.tools is not None else []
        prompts = await self._more(connected.list_prompts, "prompts", notices) if offers.prompts is not None else []
        resources, templates = list[object](), list[object]()
        if offers.resources is not None:
            resources = await self._more(connected.list_resources, "resources", notices)
            templates = await self._more(connected.list_resource_templates, "resourceTemplates", notices)
        self._tasks = {each["name"] for each in tools if task_only(each)}
        if not runs_tasks(offers):
            notices.extend(f"{clean(name)} is not offered: it runs as an MCP task only" for name in sorted(self._tasks))
            tools = [each for each in tools if not task_only(each)]
        listing = ServerListing(
            tools=read_listed(tools),
            prompts=read_prompts(prompts),
            resources=read_resources(resources, templates),
            instructions=connected.instructions or "",
        )
        self._output_schemas = dict(_output_schemas(tools))
        notices.extend(_left_out_notice("tool", tools, len(listing.tools), MOST_TOOLS))
        notices.extend(_left_out_notice("prompt", prompts, len(listing.prompts), MOST_PROMPTS))
        notices.extend(_left_out_notice("resource", [*resources, *templates], len(listing.resources), MOST_RESOURCES))
        return replace(listing, notices=tuple(notices))

    async def _more(self, ask: _List, key: str, notices: Notices) -> list[object]:
        """A list that the rest can do without."""
        try:
            return await self._entries(ask, key)
        except RequestRejected as error:
            notices.add(f"its {key} cannot be listed: {error}")
            return []

    async def _entries(self, ask: _List, key: str) -> list[object]:
        """Raw entries of all pages. Raises ConnectionLost and RequestRejected."""
        entries: list[object] = []
        cursor: str | None = None
        seen: set[str | None] = {None}
        with _translating():
            for _ in range(_MOST_PAGES):
                try:
                    result = await ask(cursor=cursor)
                except MCPError as error:
                    if error.code == types.METHOD_NOT_FOUND:  # it offers none of these, whatever it announced
                        break
                    raise
                listed = (result.meta or {}).get(RAW, {}).get(key, [])
                # Tools whose arguments cannot be sent as the headers that they ask for become entries without a name
                entries += (
                    listed
                    if key != "tools"
                    else [
                        each if isinstance(each, dict) and each.get("name") in {tool.name for tool in result.tools} else None
                        for each in listed
                    ]
                )
                cursor = result.next_cursor
                if cursor in seen:
                    break
                seen.add(cursor)
        return entries

    async def call(self, tool: str, arguments: Mapping[str, Any], timeout_s: float, show: Callable[[str], None]) -> ToolAnswer:
        async with _limit(timeout_s) as deadline:
            loop = asyncio.get_running_loop()
            latest = loop.time() + timeout_s * _MOST_EXTENSIONS

            def on_sign(line: str) -> None:
                if deadline.when() is not None:
                    deadline.reschedule(min(loop.time() + timeout_s, latest))
                if line:
                    show(f"{line}\n")

            async def on_message(progress: float, total: float | None, message: str | None) -> None:
                of = f"{progress:g}/{total:g}" if total else f"{progress:g}"
                on_sign(f"{of} {message}" if message else of)

            with _translating(), self._requests.limiting(deadline, timeout_s):
                try:
                    if tool in self._tasks:
                        result = await call_as_task(self._connected.session, tool, arguments, on_sign, on_message)
                    else:
                        result = await self._connected.call_tool(tool, dict(arguments), progress_callback=on_message)
                except MCPError as error:
                    raise (await self._after_pages(error) if error.code == types.URL_ELICITATION_REQUIRED else error) from error
        raw = raw_result(result)
        return read_answer(raw, "" if raw.get("isError") else _complaint(raw, self._output_schemas.get(tool)))

    async def _after_pages(self, error: MCPError) -> RequestRejected:
        """Asks the user to open the pages that a refused call needs."""
        pages = error.data.get("elicitations") if isinstance(error.data, dict) else None
        wanted = [each for each in pages if isinstance(each, dict)] if isinstance(pages, list) else []
        answers = [await self._requests.elicit({**each, "mode": "url"}) for each in wanted]
        if wanted and all(answer["action"] == "accept" for answer in answers):
            return RequestRejected("the user has to finish something in the browser first; the page is open. Call it again then")
        return RequestRejected(f"it needs a page that was not opened: {error.message}")

    async def read(self, uri: str, timeout_s: float) -> tuple[Item, ...]:
        async with _limit(timeout_s):
            with _translating():
                result = await self._connected.read_resource(uri)
        return tuple(read_contents(raw_result(result).get("contents")))

    async def prompt(self, name: str, arguments: Mapping[str, str], timeout_s: float) -> tuple[PromptMessage, ...]:
        async with _limit(timeout_s):
            with _translating():
                result = await self._connected.get_prompt(name, dict(arguments))
        return read_messages(raw_result(result).get("messages"))

    async def complete(self, completing: Completing) -> tuple[str, ...]:
        if self._connected.server_capabilities.completions is None:
            return ()
        about: types.PromptReference | types.ResourceTemplateReference = (
            types.PromptReference(name=completing.prompt)
            if completing.prompt
            else types.ResourceTemplateReference(uri=completing.template)
        )
        with _translating():
            found = await self._connected.complete(
                about, {"name": completing.argument, "value": completing.typed}, dict(completing.others)
            )
        return tuple(found.completion.values)

    async def roots_changed(self) -> None:
        with _translating():
            await self._connected.send_roots_list_changed()

    @property
    def _connected(self) -> Client:
        assert self._client is not None  # `open` is called first
        return self._client

    async def _on_message(self, message: IncomingMessage) -> None:
        if isinstance(message, _LISTS_CHANGED):
            self.changed.set()


_LISTS_CHANGED = (types.ToolListChangedNotification, types.PromptListChangedNotification, types.ResourceListChangedNotification)


def _client_callbacks(requests: ServerRequests) -> dict[str, Any]:
    """Arguments of the SDK's client; each callback that is there announces its capability."""

    async def elicit(context: ClientRequestContext, params: types.ElicitRequestParams) -> types.ElicitResult:
        return types.ElicitResult.model_validate(await requests.elicit(params.model_dump(mode="json", by_alias=True)))

    async def list_roots(context: ClientRequestContext) -> types.ListRootsResult:
        return types.ListRootsResult(
            roots=[types.Root.model_validate({"uri": path.as_uri(), "name": path.name}) for path in requests.roots]
        )

    async def log(params: types.LoggingMessageNotificationParams) -> None:
        said = params.data if isinstance(params.data, str) else repr(params.data)
        requests.note(params.level, f"{params.logger}: {said}" if params.logger else said)

    async def sample(
        context: ClientRequestContext, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResult | types.ErrorData:
        try:
            messages = []
            for message in params.messages:
                dumped = message.model_dump(mode="json", by_alias=True)["content"]
                items = read_items(dumped if isinstance(dumped, list) else [dumped])
                messages.append(
                    (str(message.role), "\n".join(item if isinstance(item, str) else "[not text, left out]" for item in items))
                )
            answer = await requests.use_model(
                SampleRequest(params.system_prompt or "", tuple(messages), min(params.max_tokens, _MOST_SAMPLE_TOKENS))
            )
        except WoloError as error:
            requests.note("warning", f"its request to the model was refused: {error.message}")
            return types.ErrorData(code=types.INVALID_REQUEST, message=error.message)
        return types.CreateMessageResult(
            role="assistant",
            content=types.TextContent(text=answer.text),
            model=answer.model,
            stop_reason="maxTokens" if answer.is_cut else "endTurn",
        )

    given: dict[str, Any] = {"elicitation_callback": elicit, "list_roots_callback": list_roots, "logging_callback": log}
    return {**given, "sampling_callback": sample} if requests.sampling_tokens else given


@asynccontextmanager
async def _limit(timeout_s: float) -> AsyncIterator[asyncio.Timeout]:
    try:
        async with asyncio.timeout(timeout_s) as deadline:
            yield deadline
    except TimeoutError:
        raise RequestRejected("it did not answer in time") from None


def _output_schemas(entries: list[object]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for entry in entries:
        if (
            isinstance(entry, dict)
            and isinstance(entry.get("name"), str)
            and isinstance(schema := entry.get("outputSchema"), dict)
        ):
            yield entry["name"], schema


def _complaint(result: Mapping[str, Any], schema: Mapping[str, Any] | None) -> str:
    """A result that does not follow its tool's output schema is used all the same, with this note."""
    if schema is None:
        return ""
    if result.get("structuredContent") is None:
        return "note: the tool promises structured content, and sent none"
    try:
        violation = first_violation(schema, result["structuredContent"])
    except UnusableSchema as problem:
        return f"note: the output schema of the tool cannot be used: {problem}"
    return f"note: the structured content does not follow the tool's output schema: {violation}" if violation else ""


def _left_out_notice(kind: str, entries: list[object], kept: int, most: int) -> list[str]:
    lost = len(entries) - kept
    if lost <= 0:
        return []
    why = f"wolo takes at most {most:,}" if kept >= most else "invalid or listed twice"
    return [f"{lost:,} of its {len(entries):,} {kind}s are not offered: {why}"]


@contextmanager
def _translating() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        raise _translate(error) from error


def _translate(error: Exception) -> Exception:
    match _leaf(error):
        case ConnectionLost() | RequestRejected() | ConfigError() as known:
            return known
        case MCPError() as refused if _is_closed(refused):
            return ConnectionLost("the connection was closed")
        case MCPError() as late if late.code == types.REQUEST_TIMEOUT:
            return RequestRejected("it did not answer in time")
        case MCPError() as refused if refused.message == "Session terminated":
            return ConnectionLost("the server has forgotten this session", may_have_run=False)
        case MCPError() as refused if refused.message.startswith("Failed to parse"):
            return RequestRejected(INVALID)
        case MCPError() as refused:
            return RequestRejected(refused.message)
        case ValidationError() as wrong:
            return RequestRejected(f"{INVALID}: {_first_line(wrong)}")
        case httpx2.HTTPError() | OSError() | anyio.ClosedResourceError() | anyio.BrokenResourceError() as broken:
            return ConnectionLost(str(broken).rstrip(".") or type(broken).__name__)
        case other:
            return RequestRejected(str(other) or type(other).__name__)


def _is_newer(error: BaseException) -> bool:
    """The server refuses the legacy handshake, or answers it with a revision that has none."""
    if isinstance(error, RuntimeError):
        return str(error).startswith("Unsupported protocol version")
    return isinstance(error, MCPError) and not _is_closed(error)


def _is_closed(error: BaseException) -> bool:
    return isinstance(error, MCPError) and error.code == types.CONNECTION_CLOSED


def _leaf(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _first_line(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
