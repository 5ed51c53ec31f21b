"""The routes of the HTTP API, each declared once: the application and its OpenAPI document are made from them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from inspect import isawaitable
from types import MappingProxyType
from typing import Any

from msgspec import Struct
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Message, Send

from wolo import __version__
from wolo.frontends.server import request_bodies as bodies
from wolo.frontends.server import response_types as types
from wolo.frontends.server.access import MAX_BODY_BYTES, too_large
from wolo.frontends.server.http_errors import HttpError
from wolo.frontends.server.live_session import LiveSession
from wolo.frontends.server.request_bodies import Body, parse
from wolo.frontends.server.session_hub import SessionHub

PING_S = 15.0
"""Pause after which an idle stream sends a comment, so that a dead connection is noticed."""
STALLED_S = 60.0
"""Time after which a listener that takes nothing is dropped."""
JSON_LINES = "application/x-ndjson"
EVENT_STREAM = "text/event-stream"
EXPORT_TYPES = {"html": "text/html; charset=utf-8", "markdown": "text/markdown; charset=utf-8", "openai": "application/json"}


class QueryParameter(Struct, frozen=True):
    name: str
    about: str
    required: bool = False
    schema: Mapping[str, Any] = MappingProxyType({"type": "string"})


LIMIT = QueryParameter("limit", "At most so many, from 1.", schema={"type": "integer", "minimum": 1})
SESSION = QueryParameter("session", "In the folder of this session, with its rules; else in `cwd`")
CWD = QueryParameter("cwd", "The folder; empty: where the server was started")


class Route(Struct, frozen=True):
    method: str
    path: str
    summary: str
    name: str
    """The operation in the OpenAPI document."""
    run: Callable[[RouteCall], Awaitable[Any]]
    """Returns a response, or the JSON of one."""
    returns: Any = None
    """Type of that JSON; None: `produces` has the media types of a good response."""
    body: type[Body] | None = None
    query: tuple[QueryParameter, ...] = ()
    status: int = 200
    produces: tuple[str, ...] = ()


class RouteCall(Struct, frozen=True):
    """One request with its parsed body."""

    hub: SessionHub
    request: Request
    body: Any = None

    @property
    def session_id(self) -> str:
        return str(self.request.path_params["id"])

    async def session(self) -> LiveSession:
        return await self.hub.get(self.session_id)

    def text(self, name: str) -> str:
        return str(self.request.query_params.get(name, ""))

    def number(self, name: str) -> int | None:
        """None where it is not given. Raises HttpError 422."""
        text = self.text(name)
        if text and not (text.isascii() and text.isdecimal() and len(text) < 10 and int(text) > 0):
            raise HttpError(422, f"{name} is no number from 1.")
        return int(text) if text else None


async def read_body(request: Request, kind: type[Body]) -> Body:
    data = bytearray()
    try:
        async for piece in request.stream():
            data += piece
            if len(data) > MAX_BODY_BYTES:
                raise too_large()
    except ClientDisconnect as error:
        raise HttpError(400, "The request ended early.") from error
    return parse(kind, bytes(data))


def _live(act: Callable[[LiveSession, Any], Any]) -> Callable[[RouteCall], Awaitable[Any]]:
    """`act` gets the session and the body of the request."""

    async def run(call: RouteCall) -> Any:
        result = act(await call.session(), call.body)
        return await result if isawaitable(result) else result

    return run


async def _change(call: RouteCall) -> Any:
    body: bodies.Change = call.body
    call.hub.check_mode(body.mode)
    live = await call.session()
    if body.title:
        await call.hub.rename(live, body.title)
    return await live.change(body.model, body.mode)


async def _prompt(call: RouteCall) -> Any:
    body: bodies.Prompt = call.body
    if not body.text.strip() and not body.images:
        raise HttpError(422, "The prompt is empty.")
    live = await call.session()
    await live.prompt(body.text, bodies.read_images(body.images), "keyboard" if body.typed else "network")
    return {"session_id": live.id, "last_event_id": live.log.last_id}


async def _steer(call: RouteCall) -> Any:
    if not call.body.text.strip():
        raise HttpError(422, "The message is empty.")
    await (await call.session()).steer(call.body.text)
    return {"queued": True}


async def _delete(call: RouteCall) -> Any:
    return {"deleted": await call.hub.delete(call.session_id)}


async def _resume(call: RouteCall) -> Any:
    (await call.session()).resume(call.body.model)
    return {"resumed": True}


async def _approve(call: RouteCall) -> Any:
    body: bodies.Approve = call.body
    (await call.session()).approve(body.call_id, body.decision, body.reason)
    return {"decision": body.decision}


async def _answer(call: RouteCall) -> Any:
    (await call.session()).answer(call.body.call_id, bodies.replies(call.body.answers))
    return {"answered": True}


async def _export(call: RouteCall) -> Response:
    format = call.text("format") or "jsonl"
    data = await call.hub.export(call.session_id, format)
    headers = {"Content-Disposition": "attachment"}
    return Response(data, media_type=EXPORT_TYPES.get(format, JSON_LINES), headers=headers)


async def _search(call: RouteCall) -> Any:
    if not (words := call.text("q").strip()):
        raise HttpError(422, "Nothing to search for.", "Give words in q.")
    return await call.hub.search(words)


async def _runs(call: RouteCall) -> Any:
    return await asyncio.to_thread(call.hub.runs.overview) if call.hub.runs else []


async def _run(call: RouteCall) -> Any:
    if call.hub.runs is None or not call.session_id.isascii() or not call.session_id.isdecimal():
        raise HttpError(404, "There is no such run.", "GET /v1/runs lists them; `wolo serve --run FOLDER` shows one.")
    return await asyncio.to_thread(call.hub.runs.run, int(call.session_id[:9]))


async def _events(call: RouteCall) -> Response:
    given = call.request.headers.get("last-event-id", "").strip()
    position = int(given) if given.isascii() and given.isdecimal() and len(given) < 20 else -1
    body = stream(await call.session(), position)
    return Events(body)


class Events(StreamingResponse):
    """Ends for a listener that takes nothing; it can come back with the id of its last event."""

    def __init__(self, lines: AsyncGenerator[bytes]) -> None:
        super().__init__(lines, media_type=EVENT_STREAM, headers={"X-Accel-Buffering": "no"})
        self._lines = lines

    async def stream_response(self, send: Send) -> None:
        async def send_in_time(message: Message) -> None:
            async with asyncio.timeout(STALLED_S):
                await send(message)

        try:
            await super().stream_response(send_in_time)
        except TimeoutError:
            return
        finally:
            await self._lines.aclose()  # at once, not when it is collected: it counts as a listener


async def stream(live: LiveSession, position: int) -> AsyncGenerator[bytes]:
    """All lines after a position, at the pace of the listener."""
    live.log.listeners += 1
    try:
        yield b"retry: 1000\n\n"
        while True:
            position, data = live.log.after(position)
            if data:
                yield data
            elif live.log.is_closed:
                return
            else:
                try:
                    async with asyncio.timeout(PING_S):
                        await live.log.wait()
                except TimeoutError:
                    yield b": ping\n\n"
    finally:
        live.log.listeners -= 1
        live.used = time.monotonic()


async def _health(call: RouteCall) -> Any:
    return {"status": "ok", "version": __version__}


async def _files(call: RouteCall) -> Any:
    rights = await call.hub.rights(call.text("session"), call.text("cwd"))
    await rights.secrets.scan_workspace()
    return await asyncio.to_thread(rights.read, call.text("path") or ".", call.number("offset") or 1)


async def _find(call: RouteCall) -> Any:
    words, kind = call.text("q"), call.text("in") or "names"
    if kind not in ("names", "text"):
        raise HttpError(422, f"Cannot find in {kind!r}.", "in is `names` or `text`.")
    rights = await call.hub.rights(call.text("session"), call.text("cwd"))
    return await (rights.find_text(words) if kind == "text" else asyncio.to_thread(rights.find_names, words))


def _get(base: str, name: str, summary: str, run: Any, returns: Any = None, **more: Any) -> Route:
    return Route("GET", f"{base}/{name}", summary, name, run, returns, **more)


def _post(name: str, summary: str, run: Any, body: type[Body], returns: Any, status: int = 200) -> Route:
    return Route("POST", f"{ONE}/{name}", summary, name, run, returns, body, status=status)


VERSION = "/v1"
OLD = "/api"
"""Prefix of the paths before version 1."""
ALL = f"{VERSION}/sessions"
ONE = f"{ALL}/{{id}}"
RUN = f"{VERSION}/runs/{{id}}"
ROUTES = (
    _get(VERSION, "health", "The server runs.", _health, types.ServerHealth),
    Route(
        "GET",
        ALL,
        "List all sessions, newest first.",
        "list",
        lambda call: call.hub.rows(call.number("limit"), call.text("before")),
        list[types.SessionSummary],
        query=(LIMIT, QueryParameter("before", "Id of a session: the list continues behind it.")),
    ),
    Route(
        "POST",
        ALL,
        "Open a new session.",
        "create",
        lambda call: call.hub.create(call.body),
        types.SessionSummary,
        bodies.NewSession,
        status=201,
    ),
    Route(
        "GET",
        ONE,
        "A session with its messages.",
        "describe",
        lambda call: call.hub.describe(call.session_id, call.number("limit"), call.text("before")),
        types.SessionMessages,
        query=(LIMIT, QueryParameter("before", "Id of a message: only those before it.")),
    ),
    Route("DELETE", ONE, "Delete a session permanently.", "delete", _delete, types.SessionDeleted),
    _get(
        VERSION,
        "choices",
        "Models and modes for a session in a folder, with the defaults.",
        lambda call: call.hub.choices(call.text("cwd")),
        types.SessionChoices,
        query=(CWD,),
    ),
    _post("change", "Choose another model, mode or title.", _change, bodies.Change, types.SessionStatus),
    _get(ONE, "commands", "Slash commands for prompts.", _live(lambda it, _: it.commands()), list[types.SlashCommand]),
    _post("prompt", "Start a turn; the prompt is saved.", _prompt, bodies.Prompt, types.PromptSaved, 202),
    _post("steer", "Send a message into the running turn; it is saved.", _steer, bodies.Steer, types.SteeringSaved, 202),
    _post(
        "interrupt",
        "Stop the running turn.",
        _live(lambda it, _: {"interrupted": it.interrupt()}),
        bodies.Nothing,
        types.InterruptAnswer,
    ),
    _post("resume", "Ask at once, while a turn waits for a limit.", _resume, bodies.Resume, types.ResumeAnswer),
    _post("approve", "Decide about a call that waits for approval.", _approve, bodies.Approve, types.DecisionTaken),
    _post("answer", "Answer the model's questions.", _answer, bodies.Answer, types.AnswerTaken),
    _post("fork", "Copy the session.", lambda call: call.hub.fork(call.session_id), bodies.Nothing, types.SessionSummary, 201),
    _post("undo", "Undo the last turns, files too.", _live(LiveSession.undo), bodies.Undo, types.Reverted),
    _post("redo", "Take the last undo back, before the next prompt.", _live(LiveSession.redo), bodies.Redo, types.Reverted),
    _get(ONE, "diff", "All changes of the session to files.", lambda call: call.hub.diff(call.session_id), types.SessionDiff),
    _get(ONE, "todo", "The task list of the session.", _live(lambda it, _: {"items": it.todos()}), types.TaskItems),
    _get(
        ONE,
        "children",
        "Sessions of the session's subagents.",
        lambda call: call.hub.children(call.session_id),
        list[types.SessionSummary],
    ),
    _get(
        ONE,
        "export",
        "The session as a file.",
        _export,
        query=(QueryParameter("format", "jsonl (default), rows, openai, markdown, html, atif and others"),),
        produces=tuple(sorted({JSON_LINES, *EXPORT_TYPES.values()})),
    ),
    _get(
        ONE,
        "events",
        "Events of stream-json as they happen; Last-Event-ID resumes after that id.",
        _events,
        produces=(EVENT_STREAM,),
    ),
    _get(
        VERSION,
        "files",
        "A text file or folder of a workspace, as far as the model may read it without approval.",
        _files,
        types.FileAnswer,
        query=(
            QueryParameter("path", "Relative to the folder; empty: the folder itself."),
            QueryParameter("offset", "First line, from 1.", schema={"type": "integer", "minimum": 1}),
            SESSION,
            CWD,
        ),
    ),
    _get(
        VERSION,
        "find",
        "Names of files with these letters in order, or lines of files with this text.",
        _find,
        types.FindAnswer,
        query=(
            QueryParameter("q", "The letters or the text.", required=True),
            QueryParameter("in", "names (default) or text", schema={"type": "string", "enum": ["names", "text"]}),
            SESSION,
            CWD,
        ),
    ),
    _get(VERSION, "runs", "Runs of batches that were named with --run.", _runs, list[types.BatchOverview]),
    Route("GET", RUN, "One of them, with its tasks; the id is its place in the list.", "run", _run, types.BatchTasks),
    _get(
        VERSION,
        "search",
        "Search the text of all sessions.",
        _search,
        list[types.SearchHit],
        query=(QueryParameter("q", "Words and filters", required=True),),
    ),
)
