"""All sessions of the server: those it has open, and the saved ones."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec.structs import replace

from wolo.config import layers
from wolo.config.cli_options import many
from wolo.conversation.factory import open_conversation
from wolo.conversation.history.changed_files import find_changes, patch
from wolo.conversation.resources.file_tracking import open_tracker
from wolo.conversation.resources.secrets import redactor
from wolo.errors import SessionError
from wolo.frontends import background_sessions
from wolo.frontends.file_names import FileNames
from wolo.frontends.server.http_errors import HttpError
from wolo.frontends.server.live_session import LiveSession, choices_in, start_options
from wolo.frontends.server.request_bodies import NewSession
from wolo.frontends.server.workspace_files import WorkspaceRights
from wolo.frontends.stream_json import Line
from wolo.places import find_places
from wolo.sessions.entries import unsent_steering
from wolo.sessions.exchange.format_table import EXPORT_FORMATS, export
from wolo.sessions.listing import SessionInfo, iso, row
from wolo.sessions.replay_entries import as_stored
from wolo.sessions.search import index_update
from wolo.sessions.search.passage_search import hit_row, parse, search
from wolo.sessions.session_rows import check_name, title_of
from wolo.sessions.store import Store
from wolo.workspace.root import Workspace, find_root, find_site

if TYPE_CHECKING:
    from wolo.frontends.server.batch_runs import BatchRuns

T = TypeVar("T")
log = logging.getLogger(__name__)
IDLE_S = 60.0
"""Time after which a session is let go that nobody uses."""
RIGHTS_S, MOST_RIGHTS = 5.0, 32
"""Time after which the rules of a folder are read again, and how many folders are known."""


class SessionHub:
    def __init__(self, cwd: Path, idle_s: float = IDLE_S, runs: BatchRuns | None = None, *, has_yolo: bool = False) -> None:
        self._cwd, self._idle_s = cwd, idle_s
        self.runs = runs
        """None: no run of a batch is shown."""
        self._has_yolo = has_yolo
        self._places = find_places()
        self.port = 0
        """Of the server; 0: not yet known."""
        self.options: Mapping[str, type] = {}
        """Types of the options with which clients may open a session, by name."""
        self.used = time.monotonic()
        """Time of the latest request."""
        self._live: dict[str, LiveSession] = {}
        self._loading: dict[str, asyncio.Lock] = {}
        self._rights: dict[tuple[str, str, str], tuple[float, WorkspaceRights]] = {}

    async def _read(self, question: Callable[[Store], T]) -> T:
        return await self._use(Store.open_to_read, question)

    async def _use(self, opening: Callable[[Path], Store], work: Callable[[Store], T]) -> T:
        def run() -> T:
            with opening(self._places.data) as store:
                return work(store)

        return await asyncio.to_thread(run)

    async def rows(self, limit: int | None = None, before: str = "") -> list[dict[str, Any]]:
        """Saved sessions of all directories, newest first, behind open ones that have no messages yet.

        At most `limit` of them, behind the one with the id `before`. Raises HttpError for an unknown id.
        """
        saved = [self._row(info) for info in await self._read(lambda store: store.list())]
        known = {each["id"] for each in saved}
        rows = [self._unsaved_row(each) for each in reversed(self._live.values()) if each.id not in known] + saved
        start = 0
        if before:
            start = next((at for at, row in enumerate(rows, 1) if row["id"] == before), 0)
            if not start:
                raise HttpError(422, f"There is no session {before!r} in the list.", "Begin again without `before`.")
        return rows[start:][:limit]

    def _row(self, info: SessionInfo) -> dict[str, Any]:
        live = self._live.get(info.id)
        fields = row(info) | {"busy": False, "open": False, "mode": info.mode}
        if live is None:
            return fields
        return fields | {"busy": live.is_busy, "open": live.conversation is not None, "mode": live.mode, "model": live.model}

    def _unsaved_row(self, live: LiveSession) -> dict[str, Any]:
        now = iso(time.time())
        facts = {"id": live.id, "name": None, "title": live.title, "cwd": str(live.cwd), "model": live.model, "created": now}
        empty = {"updated": now, "turns": 0, "tokens": 0, "cost_usd": None, "live": True}
        return facts | empty | {"busy": live.is_busy, "open": True, "mode": live.mode}

    def check_mode(self, name: str) -> None:
        """Raises HttpError for one that no client may choose."""
        if name == "yolo" and not self._has_yolo:
            raise HttpError(422, "Mode yolo can only be chosen on the command line.", "Start `wolo serve --yolo`.")

    async def create(self, new: NewSession) -> dict[str, Any]:
        """Raises HttpError and WoloError."""
        for name, value in new.options.items():
            if not isinstance(value, known := self.options.get(name, ())):
                fault = f"must be of type {known.__name__}" if known else "is unknown"
                raise HttpError(422, f"options: {name!r} {fault}.", "`wolo --help` lists options; their names have _ for -.")
        self.check_mode(new.mode)
        cwd = await asyncio.to_thread(self._folder, new.cwd)
        if new.name:
            try:
                plain = check_name(new.name)
            except SessionError as error:
                raise HttpError(422, error.message, error.hint) from error
            if await self._read(lambda store: store.exactly(plain)) is not None:
                raise HttpError(409, f"There is a session of the name {new.name!r}.", "Choose another name.")
        flags: dict[str, str | bool | list[str]] = {
            name: value for name, value in (("model", new.model), ("mode", new.mode), ("session", new.name)) if value
        }
        flags |= new.options
        if new.options:  # they can choose the mode too
            self.check_mode((await asyncio.to_thread(layers.load, find_site(cwd), flags, many(flags, "set"))).settings.mode)
        conversation = await open_conversation(start_options(cwd, flags))
        info = conversation.info
        live = LiveSession(info.session_id, cwd, (), mode=info.mode, model=info.model)
        live.adopt(conversation)
        if new.background:
            live.options = {name: value for name, value in flags.items() if name not in background_sessions.NOT_KEPT}
            self._record(
                live,
                background_sessions.BackgroundSession(
                    id=live.id, title=title_of(new.title), cwd=str(cwd), port=self.port, options=flags
                ),
                is_listed=False,
            )
        self.adopt(live)
        return self._unsaved_row(live)

    def _record(self, live: LiveSession, session: background_sessions.BackgroundSession, *, is_listed: bool = True) -> None:
        """Writes what the session does whenever that changes; the first prompt lists it, if it is not listed."""
        current = session

        def write(line: Line) -> None:
            nonlocal current
            if (after := background_sessions.after_line(current, line)) != current:
                current = after
                save()

        def save() -> None:
            try:
                background_sessions.write_session(self._places.data, current)
            except OSError:
                log.exception("the state of %s cannot be written", current.id)

        live.on_line = write
        if is_listed:
            save()

    async def end_idle(self, end_s: float, end: Callable[[], None]) -> None:
        """End the server once nobody has used it for `end_s` seconds."""
        while True:
            await asyncio.sleep(end_s / 4)
            last = max((live.used for live in self._live.values()), default=0.0)
            if not any(live.is_used for live in self._live.values()) and max(last, self.used) + end_s <= time.monotonic():
                end()
                return

    async def rename(self, live: LiveSession, title: str) -> None:
        """Raises HttpError for a title that is empty or another session's name, and WoloError."""
        if not (words := title_of(title)):
            raise HttpError(422, "The title is empty.")
        if (other := await self._read(lambda store: store.exactly(words))) and other.id != live.id:
            raise HttpError(409, f"Session {other.id} is already named {words}.", "Choose another title.")
        if live.conversation is not None:
            live.conversation.session.set_title(words)
            live.title = words
            return
        await self._use(Store.open, lambda store: store.rename(live.id, title=words))

    def adopt(self, live: LiveSession) -> None:
        self._live[live.id] = live

    async def choices(self, cwd: str) -> dict[str, Any]:
        """Raises HttpError for a missing folder, and WoloError for settings that cannot be read."""
        return await asyncio.to_thread(lambda: choices_in(self._folder(cwd), self._places, has_yolo=self._has_yolo))

    def _folder(self, name: str) -> Path:
        try:
            folder = (self._cwd / Path(name).expanduser()).resolve()
            if folder.is_dir():
                return folder
        except (OSError, ValueError, RuntimeError):
            pass
        raise HttpError(422, f"{name!r} is not a directory.", "cwd must be an existing folder.")

    async def get(self, session_id: str) -> LiveSession:
        """Raises HttpError 404."""
        lock = self._loading.setdefault(session_id, asyncio.Lock())
        try:
            async with lock:
                if (live := self._live.get(session_id)) and not live.can_be_dropped:
                    live.used = time.monotonic()
                    return live
                info = await self._info(session_id)
                if info.id not in self._live or self._live[info.id].can_be_dropped:
                    loaded = await self._read(lambda store: store.load(info.id))
                    history = as_stored(loaded.entries)
                    unsent = unsent_steering(loaded.entries)
                    live = LiveSession(info.id, Path(info.cwd), history, mode=info.mode, model=info.model, unsent=unsent)
                    if kept := background_sessions.read_session(self._places.data, info.id):
                        live.options = kept.options
                        self._record(live, replace(kept, port=self.port, state="idle", waits_for=""))
                    self._live[info.id] = live
                return self._live[info.id]
        finally:
            self._loading.pop(session_id, None)
            for id in [id for id, live in self._live.items() if id != session_id and live.can_be_dropped]:
                del self._live[id]

    async def _info(self, session_id: str) -> SessionInfo:
        def look(store: Store) -> SessionInfo | None:
            try:
                info = store.find(session_id)
            except SessionError:
                return None
            return info if session_id in (info.id, info.name) else None

        if (info := await self._read(look)) is None:
            if session_id in self._live:
                raise HttpError(409, "The session has no messages yet.")
            raise HttpError(404, f"There is no session {session_id!r}.", "GET /v1/sessions lists them.")
        return info

    async def describe(self, session_id: str, limit: int | None = None, before: str = "") -> dict[str, Any]:
        """The session with its messages as lines, and the id after which /events continues.

        Only the last `limit` messages, of those before the one with the id `before`. Raises HttpError for an unknown id.
        """
        live = await self.get(session_id)
        try:
            found = self._row(await self._info(session_id))
        except HttpError:
            found = self._unsaved_row(live)
        return found | {"last_event_id": live.log.last_id, "messages": live.messages(limit, before)}

    async def delete(self, session_id: str) -> str:
        """Returns its id. Raises HttpError 409 for one that is in use, and SessionError."""
        live = await self.get(session_id)
        if live.is_busy:
            raise HttpError(409, "A turn is running in this session.", "/interrupt it first.")
        live.is_busy = True  # no prompt can begin
        try:
            await live.close()
            if await self._read(lambda store: store.exactly(live.id)) is not None:  # else it has no messages yet
                await self._use(Store.open, lambda store: store.delete(live.id))
        finally:
            self._live.pop(live.id, None)
        background_sessions.forget_session(self._places.data, live.id)
        return live.id

    async def children(self, session_id: str) -> list[dict[str, Any]]:
        live = await self.get(session_id)
        infos = await self._read(lambda store: store.list(with_tasks=True))
        return [self._row(info) for info in infos if info.task_of == live.id]

    async def rights(self, session_id: str, cwd: str) -> WorkspaceRights:
        """Tell what a client may read in the folder of a session, or in another one. Raises HttpError and ConfigError."""
        live = await self.get(session_id) if session_id else None
        folder = live.cwd if live else await asyncio.to_thread(self._folder, cwd)
        flags = {**live.options, "mode": live.mode} if live else {}
        key = (str(folder), live.id if live else "", live.mode if live else "")
        known = self._rights.get(key)
        if known is None or known[0] + RIGHTS_S <= time.monotonic():
            if len(self._rights) >= MOST_RIGHTS:
                self._rights.clear()
            names = known[1].names if known else FileNames()  # a large folder is not listed again so soon
            rights = await asyncio.to_thread(WorkspaceRights.open, folder, flags, names)
            known = self._rights[key] = (time.monotonic(), rights)
        return known[1]

    async def fork(self, session_id: str) -> dict[str, Any]:
        info = await self._info(session_id)
        return self._row(await self._use(Store.open, lambda store: store.fork(info.id)))

    async def diff(self, session_id: str) -> dict[str, Any]:
        live = await self.get(session_id)

        def compare() -> list[dict[str, str]]:
            if live.conversation is not None:
                tracker = live.conversation.files.tracker
            else:
                root = find_root(live.cwd) if live.cwd.is_dir() else live.cwd
                tracker = open_tracker(self._places, Workspace(root, (), live.cwd), live.id)
            return [{"path": each.path, "patch": "\n".join(patch(each, live.cwd)) + "\n"} for each in find_changes(tracker)]

        files = await asyncio.to_thread(compare)
        return {"files": files, "patch": "".join(each["patch"] for each in files)}

    async def export(self, session_id: str, format: str) -> bytes:
        """Raises HttpError for an unknown format, and SessionError."""
        if format not in EXPORT_FORMATS:
            raise HttpError(422, f"There is no export format {format!r}.", f"Choose one of {', '.join(EXPORT_FORMATS)}.")
        info = await self._info(session_id)

        def write(store: Store) -> bytes:
            pieces: list[bytes] = []
            export(store, info, format, pieces.append, redactor())
            return b"".join(pieces)

        return await self._read(write)

    async def search(self, text: str) -> list[dict[str, Any]]:
        query = parse(text, time.time())

        def look(store: Store) -> list[dict[str, Any]]:
            sessions = store.list()
            return [hit_row(hit) for hit in index_update.ask(store, lambda index: search(index, sessions, query))]

        return await self._read(look)

    async def let_go_of_idle(self) -> None:
        """Runs as long as the server."""
        while True:
            await asyncio.sleep(self._idle_s / 4)
            for live in [each for each in self._live.values() if each.used + self._idle_s <= time.monotonic()]:
                try:
                    await live.let_go()
                except Exception:
                    log.exception("a session could not be closed")

    async def close(self) -> None:
        await asyncio.gather(*(live.close() for live in self._live.values()), return_exceptions=True)

    def kill(self) -> None:
        for live in self._live.values():
            live.kill()
