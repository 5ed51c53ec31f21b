"""The routes of the HTTP API, each declared once: the application and its OpenAPI document are made from them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

from msgspec import Struct
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.types import Message, Send

from wolo.frontends.server import request_bodies as bodies
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
EXPORT_TYPES = {"html": "text/html; charset=utf-8", "markdown": "text/markdown; charset=utf-8", "openai": "application/json"}


class Route(Struct, frozen=True):
    method: str
    path: str
    summary: str
    name: str
    """The operation in the OpenAPI document."""
    run: Callable[[RouteCall], Awaitable[Any]]
    """Returns a response, or the JSON of one."""
    body: type[Body] | None = None
    query: tuple[tuple[str, bool, str], ...] = ()
    """Name, required, description."""
    status: int = 200
    produces: tuple[str, ...] = ("application/json",)
    """All types of a good response."""


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


async def _change(call: RouteCall) -> Response:
    body: bodies.Change = call.body
    live = await call.session()
    if body.title:
        await call.hub.rename(live, body.title)
    return JSONResponse(await live.change(body.model, body.mode))


async def _commands(call: RouteCall) -> Response:
    return JSONResponse(await (await call.session()).commands())


async def _prompt(call: RouteCall) -> Response:
    body: bodies.Prompt = call.body
    if not body.text.strip() and not body.images:
        raise HttpError(422, "The prompt is empty.")
    live = await call.session()
    await live.prompt(body.text, bodies.read_images(body.images), "keyboard" if body.typed else "network")
    return JSONResponse({"session_id": live.id, "last_event_id": live.log.last_id}, 202)


async def _steer(call: RouteCall) -> Response:
    if not call.body.text.strip():
        raise HttpError(422, "The message is empty.")
    await (await call.session()).steer(call.body.text)
    return JSONResponse({"queued": True}, 202)


async def _interrupt(call: RouteCall) -> Response:
    return JSONResponse({"interrupted": (await call.session()).interrupt()})


async def _resume(call: RouteCall) -> Response:
    (await call.session()).resume(call.body.model)
    return JSONResponse({"resumed": True})


async def _approve(call: RouteCall) -> Response:
    body: bodies.Approve = call.body
    (await call.session()).approve(body.call_id, body.decision, body.reason)
    return JSONResponse({"decision": body.decision})


async def _answer(call: RouteCall) -> Response:
    (await call.session()).answer(call.body.call_id, bodies.replies(call.body.answers))
    return JSONResponse({"answered": True})


async def _undo(call: RouteCall) -> Response:
    return JSONResponse(await (await call.session()).undo(call.body))


async def _redo(call: RouteCall) -> Response:
    return JSONResponse(await (await call.session()).redo(call.body))


async def _export(call: RouteCall) -> Response:
    format = call.request.query_params.get("format", "jsonl")
    data = await call.hub.export(call.session_id, format)
    headers = {"Content-Disposition": "attachment"}
    return Response(data, media_type=EXPORT_TYPES.get(format, JSON_LINES), headers=headers)


async def _search(call: RouteCall) -> Response:
    words = call.request.query_params.get("q", "").strip()
    if not words:
        raise HttpError(422, "Nothing to search for.", "Give words in q.")
    return JSONResponse(await call.hub.search(words))


async def _runs(call: RouteCall) -> Response:
    return JSONResponse(await asyncio.to_thread(call.hub.runs.overview) if call.hub.runs else [])


async def _run(call: RouteCall) -> Response:
    if call.hub.runs is None or not call.session_id.isascii() or not call.session_id.isdecimal():
        raise HttpError(404, "There is no such run.", "GET /api/runs lists them; `wolo serve --run FOLDER` shows one.")
    return JSONResponse(await asyncio.to_thread(call.hub.runs.run, int(call.session_id[:9])))


async def _events(call: RouteCall) -> Response:
    given = call.request.headers.get("last-event-id", "").strip()
    position = int(given) if given.isascii() and given.isdecimal() and len(given) < 20 else -1
    body = stream(await call.session(), position)
    return Events(body)


class Events(StreamingResponse):
    """Ends for a listener that takes nothing; it can come back with the id of its last event."""

    def __init__(self, lines: AsyncGenerator[bytes]) -> None:
        super().__init__(lines, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})
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


def _create(call: RouteCall) -> Awaitable[Any]:
    return call.hub.create(call.body)


def _fork(call: RouteCall) -> Awaitable[Any]:
    return call.hub.fork(call.session_id)


ONE = "/api/sessions/{id}"
ROUTES = (
    Route("GET", "/api/sessions", "List all sessions, newest first.", "list", lambda call: call.hub.rows()),
    Route("POST", "/api/sessions", "Open a new session.", "create", _create, bodies.NewSession, status=201),
    Route("GET", ONE, "A session with its messages.", "describe", lambda call: call.hub.describe(call.session_id)),
    Route(
        "GET",
        "/api/choices",
        "Models and modes for a session in a folder, with the defaults.",
        "choices",
        lambda call: call.hub.choices(call.request.query_params.get("cwd", "")),
        query=(("cwd", False, "The folder; empty: where the server was started"),),
    ),
    Route("POST", f"{ONE}/change", "Choose another model, mode or title.", "change", _change, bodies.Change),
    Route("GET", f"{ONE}/commands", "Slash commands that a prompt can begin with.", "commands", _commands),
    Route("POST", f"{ONE}/prompt", "Start a turn; the prompt is saved.", "prompt", _prompt, bodies.Prompt, status=202),
    Route(
        "POST", f"{ONE}/steer", "Send a message into the running turn; it is saved.", "steer", _steer, bodies.Steer, status=202
    ),
    Route("POST", f"{ONE}/interrupt", "Stop the running turn.", "interrupt", _interrupt, bodies.Nothing),
    Route("POST", f"{ONE}/resume", "Ask at once, while a turn waits for a limit.", "resume", _resume, bodies.Resume),
    Route("POST", f"{ONE}/approve", "Decide about a call that waits for approval.", "approve", _approve, bodies.Approve),
    Route("POST", f"{ONE}/answer", "Answer the model's questions.", "answer", _answer, bodies.Answer),
    Route("POST", f"{ONE}/fork", "Copy the session.", "fork", _fork, bodies.Nothing, status=201),
    Route("POST", f"{ONE}/undo", "Undo the last turns, files too.", "undo", _undo, bodies.Undo),
    Route("POST", f"{ONE}/redo", "Take the last undo back, before the next prompt.", "redo", _redo, bodies.Redo),
    Route("GET", f"{ONE}/diff", "All changes of the session to files.", "diff", lambda call: call.hub.diff(call.session_id)),
    Route(
        "GET",
        f"{ONE}/export",
        "The session as a file.",
        "export",
        _export,
        query=(("format", False, "jsonl (default), rows, openai, markdown, html, atif and others"),),
        produces=tuple(sorted({JSON_LINES, *EXPORT_TYPES.values()})),
    ),
    Route(
        "GET",
        f"{ONE}/events",
        "Events of stream-json as they happen; Last-Event-ID resumes after that id.",
        "events",
        _events,
        produces=("text/event-stream",),
    ),
    Route("GET", "/api/runs", "Runs of batches that were named with --run.", "runs", _runs),
    Route("GET", "/api/runs/{id}", "One of them, with its tasks; the id is its place in the list.", "run", _run),
    Route("GET", "/api/search", "Search the text of all sessions.", "search", _search, query=(("q", True, "Words and filters"),)),
)
