"""The agent of the protocol: opens, lists and closes sessions for one client."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wolo import __version__
from wolo.config.cli_options import Flags, many
from wolo.errors import SessionError, UsageError
from wolo.frontends.acp import acp_sdk as sdk
from wolo.frontends.acp.acp_sdk import helpers, schema
from wolo.messages.terminal_text import clean_line, quantity

if TYPE_CHECKING:
    from wolo.conversation.resources.startup import StartOptions
    from wolo.frontends.acp.session import Session
    from wolo.sessions.store import Store


PAGE = 50
"""Sessions in one answer of `session/list`."""
LOGIN = "wolo-login"


class AcpAgent:
    """One connection; its sessions run side by side, each in its own directory. Methods raise WoloError."""

    client: sdk.AcpClient

    def __init__(self, flags: Flags) -> None:
        """`flags`: those of the command line, for every session."""
        self._flags = flags
        self._sessions: dict[str, Session] = {}
        self._opening = asyncio.Lock()
        self.more = {"session/set_model": self.set_session_model, "session/delete": self.delete_session}
        """Methods that the SDK does not dispatch."""

    async def initialize(self, protocol_version: int, client_capabilities: Any = None, client_info: Any = None, **_: Any) -> Any:
        if client_capabilities is not None:
            self.client.capabilities = client_capabilities
        return schema.InitializeResponse(
            protocol_version=sdk.PROTOCOL_VERSION,
            agent_capabilities=schema.AgentCapabilities(
                load_session=True,
                prompt_capabilities=schema.PromptCapabilities(image=True, audio=True, embedded_context=True),
                mcp_capabilities=schema.McpCapabilities(http=True, sse=True),
                session_capabilities=schema.SessionCapabilities.model_validate(
                    {name: {} for name in ("list", "fork", "resume", "close", "delete", "additionalDirectories")}
                ),
            ),
            agent_info=schema.Implementation(name="wolo", title="Wolo", version=__version__),
            auth_methods=[
                schema.AuthMethodAgent(
                    id=LOGIN, name="wolo login", description="Run `wolo login` in a terminal to save an API key."
                )
            ],
        )

    async def authenticate(self, method_id: str, **_: Any) -> Any:
        from wolo.conversation.resources.startup import check_start  # noqa: PLC0415  # after `initialize`

        if method_id != LOGIN:
            raise UsageError(f"There is no authentication method {method_id}.", hint=f"There is: {LOGIN}.")
        await asyncio.to_thread(check_start, self._options(Path.cwd()))
        return schema.AuthenticateResponse()

    # `opening`: cwd, additional_directories and mcp_servers, and what the client adds in `_meta`.

    async def new_session(self, **opening: Any) -> Any:
        session = await self._open(opening)
        await asyncio.to_thread(remember_unsent, session.id)
        return schema.NewSessionResponse(session_id=session.id, **await self._state(session))

    async def load_session(self, session_id: str, **opening: Any) -> Any:
        session = await self._open(opening, resume=session_id)
        await session.replay()
        return schema.LoadSessionResponse(**await self._state(session))

    async def resume_session(self, session_id: str, **opening: Any) -> Any:
        return schema.ResumeSessionResponse(**await self._state(await self._open(opening, resume=session_id)))

    async def fork_session(self, session_id: str, **opening: Any) -> Any:
        session = await self._open(opening, resume=session_id, fork=True)
        return schema.ForkSessionResponse(session_id=session.id, **await self._state(session))

    async def list_sessions(self, cwd: str | None = None, cursor: str | None = None, **_: Any) -> Any:
        start = int(cursor) if cursor and cursor.isdecimal() else 0
        if cursor and not cursor.isdecimal():
            raise UsageError(f"{cursor} is no cursor of a list of sessions.")
        infos = await asyncio.to_thread(_list_in, cwd)
        sessions = [
            schema.SessionInfo(
                session_id=each.id,
                cwd=each.cwd,
                title=each.title or each.name or "",
                updated_at=datetime.fromtimestamp(each.updated, UTC).isoformat(),
            )
            for each in infos[start : start + PAGE]
        ]
        following = start + PAGE
        response = schema.ListSessionsResponse(sessions=sessions)
        if following < len(infos):
            response.next_cursor = str(following)
        return response

    async def close_session(self, session_id: str, **_: Any) -> Any:
        await self._session(session_id).close()
        del self._sessions[session_id]
        return schema.CloseSessionResponse()

    async def prompt(self, session_id: str, prompt: list[Any], **_: Any) -> Any:
        return await self._session(session_id).prompt(prompt)

    async def cancel(self, session_id: str, **_: Any) -> None:
        """Ignores a session that is not open: it may have been closed at the same time."""
        if session_id in self._sessions:
            self._sessions[session_id].cancel()

    async def set_session_mode(self, session_id: str, mode_id: str, **_: Any) -> Any:
        await self._session(session_id).set_mode(mode_id)
        return schema.SetSessionModeResponse()

    async def set_config_option(self, config_id: str, session_id: str, value: str | bool, **_: Any) -> Any:
        options = await self._session(session_id).set_option(config_id, str(value))
        return schema.SetSessionConfigOptionResponse(config_options=options)

    async def set_session_model(self, params: dict[str, Any]) -> Any:
        await self._session(_text(params, "sessionId")).set_option("model", _text(params, "modelId"))
        return {}

    async def delete_session(self, params: dict[str, Any]) -> Any:
        session_id = _text(params, "sessionId")
        if session := self._sessions.pop(session_id, None):
            await session.close()
        await asyncio.to_thread(_delete, session_id)
        return {}

    async def close(self) -> None:
        sessions = tuple(self._sessions.values())
        await asyncio.gather(*(session.close() for session in sessions), return_exceptions=True)

    def kill(self) -> None:
        for session in self._sessions.values():
            session.conversation.kill()

    def _session(self, session_id: str) -> Session:
        if session_id not in self._sessions:
            raise SessionError(f"The session {session_id} is not open.", hint="Open it with session/load or session/resume.")
        return self._sessions[session_id]

    async def _open(self, opening: Mapping[str, Any], *, resume: str = "", fork: bool = False) -> Session:
        """Raises WoloError. Loading an open session closes it first."""
        from wolo.conversation.factory import open_conversation  # noqa: PLC0415  # after `initialize`
        from wolo.frontends.acp.session import Session  # noqa: PLC0415

        unsent = ""
        if resume:
            is_unsent = await asyncio.to_thread(_is_unsent, resume)
            resume, unsent = ("", resume) if is_unsent else (resume, "")
        files, servers = ClientFiles(self.client), opening.get("mcp_servers") or ()
        which: dict[str, Any] = {"resume": resume, "fork": fork and bool(resume), "unsent": "" if fork else unsent}
        path = _require_absolute(opening["cwd"])
        if not path.is_dir():
            raise UsageError(f"There is no directory {path}.")
        options = self._options(path, opening.get("additional_directories") or (), servers, editor=files, **which)
        async with self._opening:
            if not fork and (before := self._sessions.pop(resume or unsent, None)):
                await before.close()
            conversation = await open_conversation(options)
        files.session_id = conversation.info.session_id
        session = self._sessions[files.session_id] = Session(conversation, self.client)
        if unread := sdk.servers_given.get() - len(servers):
            session.notices.append(f"Ignored {quantity(unread, 'MCP server')} of the editor that wolo cannot read.")
        return session

    async def _state(self, session: Session) -> dict[str, Any]:
        """The common part of the answers; the commands follow as an update."""
        from wolo.frontends.acp import choices  # noqa: PLC0415  # after `initialize`

        options = await asyncio.to_thread(choices.config_options, session.conversation)
        session.announce_soon()
        return {"modes": choices.mode_state(session.conversation), "config_options": options}

    def _options(
        self,
        cwd: Path,
        directories: Sequence[str] = (),
        servers: Sequence[Any] = (),
        *,
        editor: ClientFiles | None = None,
        resume: str = "",
        fork: bool = False,
        unsent: str = "",
    ) -> StartOptions:
        from wolo.conversation.resources.startup import StartOptions  # noqa: PLC0415  # after `initialize`

        flags = dict(self._flags)
        if directories:
            flags["add_dir"] = [*many(flags, "add_dir"), *directories]
        if servers:
            by_name: dict[str, Any] = {}
            for each in servers:
                if isinstance(each, schema.McpServerStdio):
                    env = {variable.name: variable.value for variable in each.env}
                    by_name[each.name] = {"command": each.command, "args": each.args, "env": env}
                elif isinstance(each, schema.HttpMcpServer | schema.SseMcpServer):
                    headers = {header.name: header.value for header in each.headers}
                    by_name[each.name] = {"type": each.type, "url": each.url, "headers": headers}
                else:
                    raise UsageError(f"wolo cannot use the MCP server {each.name}.", hint="It uses stdio, http and sse.")
            flags["mcp_config"] = [*many(flags, "mcp_config"), json.dumps({"mcpServers": by_name})]
        if resume:
            flags["resume"] = resume
        if fork:
            flags["fork"] = True
        return StartOptions(
            flags=flags, attended=False, cwd=cwd, answers_approvals=True, answers_questions=True, editor=editor, unsaved_id=unsent
        )


def _require_absolute(cwd: str) -> Path:
    if not (path := Path(cwd)).is_absolute():
        raise UsageError(f"cwd must be an absolute path, and {cwd!r} is not.")
    return path


def _list_in(cwd: str | None) -> list[Any]:
    """Raises UsageError for a relative path."""
    if cwd is not None:
        _require_absolute(cwd)
    with _store() as store:
        return store.list(None if cwd is None else os.path.realpath(cwd))


def _is_unsent(session_id: str) -> bool:
    """False: it is saved. Raises SessionError for an id that is neither saved nor remembered."""
    with _store() as store:
        try:
            _find(store, session_id)
        except SessionError:
            if not _is_remembered(session_id):
                raise
            return True
    _forget(session_id)
    return False


def _delete(session_id: str) -> None:
    if _is_unsent(session_id):
        _forget(session_id)
    else:
        with _store() as store:
            store.delete(session_id)


def _find(store: Store, session_id: str) -> str:
    """Ids only: part of a title names no session of a client."""
    found = store.exactly(session_id)
    if found is None or found.id != session_id:
        raise SessionError(f"There is no session {clean_line(session_id)}.", hint="session/list lists them.")
    return found.id


def _store() -> Store:
    from wolo.places import find_places  # noqa: PLC0415  # after `initialize`
    from wolo.sessions.store import Store  # noqa: PLC0415

    return Store.open(find_places().data)


def _text(params: dict[str, Any], name: str) -> str:
    if not isinstance(params.get(name), str):
        raise UsageError(f"{name} is missing, or no text.")
    return str(params[name])


UNSENT = "unsent"
"""Folder beside the sessions: an empty file for each one without a prompt, so that an editor can load it again."""
KEPT_S = 30 * 86400.0


def remember_unsent(session_id: str) -> None:
    """Blocks. Without room on the disk the session can be loaded by this process only."""
    from wolo.places import make_private  # noqa: PLC0415  # after `initialize`

    with suppress(OSError):
        folder = _unsent_folder()
        make_private(folder)
        for path in folder.iterdir():
            if path.stat().st_mtime + KEPT_S < time.time():
                path.unlink(missing_ok=True)
        (folder / session_id).touch(mode=0o600)


def _is_remembered(session_id: str) -> bool:
    """Blocks."""
    from wolo.sessions.session_rows import check_id  # noqa: PLC0415  # after `initialize`

    try:
        return (_unsent_folder() / check_id(session_id)).is_file()
    except (SessionError, OSError):
        return False


def _forget(session_id: str) -> None:
    """Blocks."""
    with suppress(OSError):
        (_unsent_folder() / session_id).unlink(missing_ok=True)


def _unsent_folder() -> Path:
    from wolo.places import find_places  # noqa: PLC0415  # after `initialize`

    return find_places().data / UNSENT


ANSWER_S = 5.0
"""A client that takes longer is not waited for."""


class ClientFiles:
    """The files of one session; `session_id` is known once it is open."""

    def __init__(self, client: sdk.AcpClient) -> None:
        self.session_id = ""
        self._client = client
        self._late: set[asyncio.Task[Any]] = set()
        """Requests that the client did not answer in time; until it does, it is asked nothing more."""
        self._has_told = False

    async def text(self, path: Path) -> str | None:
        """None: the client does not have it, or offers no files."""
        fs = self._client.capabilities.fs
        if not self.session_id or fs is None or not fs.read_text_file or self.is_late:
            return None
        text: str | None = await self._answer(self._client.read_file(self.session_id, str(path)))
        return text

    async def write(self, path: Path, text: str) -> None:
        """Shows a change in the client; the file on disk has it already."""
        fs = self._client.capabilities.fs
        if not self.session_id or fs is None or not fs.write_text_file or self.is_late:
            return
        await self._answer(self._client.write_file(self.session_id, str(path), text))

    @property
    def is_late(self) -> bool:
        return bool(self._late)

    async def _answer(self, request: Coroutine[Any, Any, Any]) -> Any:
        """None: the client refused, or took too long."""
        task = asyncio.create_task(request)
        try:
            done, _ = await asyncio.wait((task,), timeout=ANSWER_S)
        except asyncio.CancelledError:
            task.cancel()
            raise
        if done:
            return _result(task)
        self._late.add(task)
        task.add_done_callback(self._on_late_answer)
        if not self._has_told:
            self._has_told = True
            said = "The editor does not answer requests for files; until it does, wolo uses the files on disk.\n"
            await self._client.update(self.session_id, helpers.update_agent_thought_text(said))
        return None

    def _on_late_answer(self, task: asyncio.Task[Any]) -> None:
        self._late.discard(task)
        _result(task)


def _result(task: asyncio.Task[Any]) -> Any:
    if task.cancelled():
        return None
    try:
        return task.result()
    except (sdk.RequestError, ConnectionError, ValueError):
        return None
