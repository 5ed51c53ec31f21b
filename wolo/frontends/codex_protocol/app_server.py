"""Serves a client of Codex's app server: its threads are sessions of wolo."""

from __future__ import annotations

import asyncio
import logging
import os
import platform
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from wolo import __version__
from wolo.commands.prompt_commands import review_prompt
from wolo.conversation.factory import open_conversation
from wolo.conversation.prompt_attachments import write_prompt
from wolo.conversation.resources.startup import ConversationChange, StartOptions
from wolo.conversation.structured_output import OutputForm
from wolo.errors import UsageError, WoloError
from wolo.frontends.codex_protocol import json_rpc
from wolo.frontends.codex_protocol.app_thread import AppThread, read_prompt, review_target
from wolo.frontends.codex_protocol.codex_settings import MODES, READ_ONLY, CodexSettings, mode_of, to_thinking
from wolo.frontends.streams import error_text, print_message
from wolo.guard.modes import MODES as ALL_MODES
from wolo.messages.terminal_text import clean_line
from wolo.places import find_places
from wolo.sessions.listing import SessionInfo
from wolo.sessions.store import Store

log = logging.getLogger(__name__)
Params = Mapping[str, Any]
PAGE = 25
_WITHOUT_EFFECT = frozenset(
    (
        *("serviceTier", "serviceName", "personality", "summary", "sessionStartSource", "threadSource", "persistExtendedHistory"),
        *("experimentalRawEvents", "clientUserMessageId", "sortKey", "sourceKinds", "modelProviders"),
    )
)
"""Parameters about the vendor's service and statistics, and how an answer sounds."""
_SANDBOX_TYPES = {"readOnly": "read-only", "workspaceWrite": "workspace-write", "dangerFullAccess": "danger-full-access"}


class AppServer:
    """One connection. Its threads run side by side, each in its own directory."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        """`settings`: Codex's, of the command line, for every thread."""
        self._settings = settings
        self._rpc = json_rpc.JsonRpc(self._on_message)
        self._threads: dict[str, AppThread] = {}
        self.stopped_by = 0
        """Exit code of the signal that ended the connection; 0 without one."""
        self._hidden: frozenset[str] = frozenset()
        self._is_initialized = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._opening = asyncio.Lock()
        self._methods: dict[str, Callable[[Params], Awaitable[Any]]] = {
            "thread/start": self._start_thread,
            "thread/resume": self._resume_thread,
            "thread/fork": self._fork_thread,
            "thread/list": self._list_threads,
            "thread/loaded/list": self._list_loaded,
            "thread/name/set": self._set_name,
            "model/list": self._list_models,
            "turn/start": self._start_turn,
            "turn/steer": self._steer,
            "turn/interrupt": self._interrupt,
            "review/start": self._start_review,
        }

    async def run(self) -> None:
        """Returns when the client has closed its end, and every session is closed."""
        await self._rpc.ended.wait()
        await self.close()

    async def close(self) -> None:
        self._rpc.end()
        await json_rpc.settle(self._tasks)
        for thread in self._threads.values():
            await thread.close()

    def stop(self, exit_code: int) -> None:
        self.stopped_by = exit_code
        self._rpc.end()

    def kill(self) -> None:
        for thread in self._threads.values():
            thread.conversation.kill()

    def _on_message(self, method: str, params: Params, id: Any) -> None:
        if id is None:
            return  # `initialized`, and what others there may be
        if method == "initialize":
            if self._is_initialized:
                self._rpc.refuse(id, json_rpc.INVALID_REQUEST, "Already initialized")
                return
            self._is_initialized = True
            capabilities = params.get("capabilities")
            hidden = capabilities.get("optOutNotificationMethods") if isinstance(capabilities, Mapping) else None
            self._hidden = frozenset(map(str, hidden)) if isinstance(hidden, list) else frozenset()
            about = {"codexHome": str(find_places().data), "platformFamily": "unix" if os.name == "posix" else "windows"}
            self._rpc.respond(id, {"userAgent": f"wolo/{__version__}", **about, "platformOs": platform.system().lower()})
        elif not self._is_initialized:
            self._rpc.refuse(id, json_rpc.INVALID_REQUEST, "Not initialized")
        elif method not in self._methods:
            names = ", ".join(("initialize", *self._methods))
            self._rpc.refuse(id, json_rpc.METHOD_NOT_FOUND, f"wolo does not have the method {method}. It has: {names}.")
        else:
            task = asyncio.create_task(self._answer(method, params, id))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _answer(self, method: str, params: Params, id: Any) -> None:
        try:
            result = await self._methods[method](params)
        except json_rpc.RpcError as error:
            self._rpc.refuse(id, error.code, error.message)
        except WoloError as error:
            self._rpc.refuse(id, json_rpc.SERVER_ERROR, error_text(error))
        except Exception as error:  # a client that waits for an answer gets one
            log.exception("%s failed", method)
            self._rpc.refuse(id, json_rpc.INTERNAL_ERROR, f"wolo failed: {error}")
        else:
            follow = result.pop("_follow", None) if isinstance(result, dict) else None
            self._rpc.respond(id, result)
            if follow:
                follow()

    # Threads

    async def _start_thread(self, params: Params) -> dict[str, Any]:
        result, thread = await self._open(params, {})
        return {**result, "_follow": lambda: self._announce(thread, result)}

    def _announce(self, thread: AppThread, result: Mapping[str, Any]) -> None:
        if "thread/started" not in self._hidden:
            self._rpc.notify("thread/started", {"thread": result["thread"]})

    async def _resume_thread(self, params: Params) -> dict[str, Any]:
        id = _text(params, "threadId")
        rest = {name: value for name, value in params.items() if name != "threadId"}
        if id in self._threads:
            _refuse_rest(rest, ())
            return opened_object(self._threads[id], "")
        result, _ = await self._open(rest, {"resume": id})
        return result

    async def _fork_thread(self, params: Params) -> dict[str, Any]:
        id = _text(params, "threadId")
        rest = {name: value for name, value in params.items() if name != "threadId"}
        result, thread = await self._fork(id, rest)
        return {**result, "_follow": lambda: self._announce(thread, result)}

    async def _fork(self, id: str, rest: Params) -> tuple[dict[str, Any], AppThread]:
        """Continues in a copy. Parameters of an open thread hold for its copy, where `rest` names no others; null names none."""
        id, rest = await asyncio.to_thread(exact_id, id), {name: value for name, value in rest.items() if value is not None}
        origin = self._threads.get(id)
        result, thread = await self._open({**(origin.params if origin else {}), **rest}, {"resume": id, "fork": True})
        if origin and not {"sandbox", "approvalPolicy", "config"} & rest.keys():
            order, mode = list(ALL_MODES), origin.conversation.info.mode
            thread.asks = thread.asks and origin.asks
            if order.index(mode) < order.index(thread.conversation.info.mode):
                thread.conversation.set_mode(mode)
            result = opened_object(thread, "")
        result["thread"]["forkedFromId"] = id
        return result, thread

    async def _open(self, params: Params, flags: Mapping[str, str | bool]) -> tuple[dict[str, Any], AppThread]:
        settings = CodexSettings(values={**flags})
        settings.apply(self._settings)
        settings.apply(_table(params, "config"))
        values = settings.values
        if model := params.get("model"):
            values["model"] = str(model)
        settings.sandbox = str(params.get("sandbox") or settings.sandbox)
        settings.policy = str(params.get("approvalPolicy") or settings.policy)
        for name, option in (("baseInstructions", "system_prompt"), ("developerInstructions", "append_system_prompt")):
            if prompt := params.get(name):
                values[option] = f"\n{prompt}" if str(prompt).startswith("@") else str(prompt)
        if params.get("ephemeral"):
            if flags:
                raise UsageError("wolo does not continue a session in an ephemeral thread.", hint="Leave out ephemeral.")
            values["no_session"] = True
        handled = ("cwd", "config", "model", "sandbox", "approvalPolicy", "ephemeral")
        _refuse_rest(params, (*handled, "baseInstructions", "developerInstructions"))
        mode_of(settings.sandbox or "read-only", settings.policy)  # both exist
        asks = settings.policy != "never"
        settings.choose_mode(asks=asks)
        cwd = Path(str(params["cwd"])) if params.get("cwd") else None
        if cwd is not None and not (cwd.is_absolute() and cwd.is_dir()):
            raise UsageError(f"cwd: {cwd} is no absolute path of a directory.")
        options = StartOptions(flags=values, attended=False, answers_approvals=True, cwd=cwd, agents=(READ_ONLY,))
        async with self._opening:
            conversation = await open_conversation(options)
        thread = AppThread(conversation, self._rpc, self._hidden, params)
        thread.asks = asks
        self._threads[thread.id] = thread
        return opened_object(thread, settings.policy), thread

    async def _list_threads(self, params: Params) -> dict[str, Any]:
        _refuse_rest(params, ("cursor", "limit", "cwd", "searchTerm", "archived"))
        numbers = [str(params.get(name) or default) for name, default in (("cursor", 0), ("limit", PAGE))]
        if not all(map(str.isdecimal, numbers)):
            raise UsageError(f"cursor and limit must be numbers, not {' and '.join(numbers)}.")
        start, limit = map(int, numbers)
        cwd, term = params.get("cwd"), str(params.get("searchTerm") or "")
        infos = [] if params.get("archived") else await asyncio.to_thread(list_sessions, None if cwd is None else str(cwd))
        infos = [each for each in infos if term in each.title]
        data = [saved_object(each, "idle" if each.id in self._threads else "notLoaded") for each in infos[start : start + limit]]
        return {"data": data, "nextCursor": str(start + limit) if start + limit < len(infos) else None}

    async def _list_loaded(self, params: Params) -> dict[str, Any]:
        return {"data": list(self._threads), "nextCursor": None}

    async def _set_name(self, params: Params) -> dict[str, Any]:
        self._thread(params).conversation.session.set_title(_text(params, "name"))
        return {}

    async def _list_models(self, params: Params) -> dict[str, Any]:
        from wolo.config import layers  # noqa: PLC0415  # few clients ask
        from wolo.diagnostics.model_info import usable_in_brief  # noqa: PLC0415
        from wolo.workspace.root import find_site  # noqa: PLC0415

        usable = await asyncio.to_thread(lambda: usable_in_brief(layers.load(find_site())))
        efforts = [{"reasoningEffort": level, "description": ""} for level in ("low", "medium", "high")]
        more = {"description": "", "hidden": False, "supportedReasoningEfforts": efforts, "defaultReasoningEffort": "medium"}
        data = [
            {"id": label, "model": label, "displayName": label, **more, "isDefault": not at} for at, label in enumerate(usable)
        ]
        return {"data": data, "nextCursor": None}

    # Turns

    async def _start_review(self, params: Params) -> dict[str, Any]:
        thread, delivery = self._idle_thread(params), params.get("delivery") or "inline"
        _refuse_rest(params, ("threadId", "target", "delivery"))
        what = review_target(_table(params, "target"))
        if delivery not in ("inline", "detached"):
            raise UsageError(f"delivery: there is no {delivery}, only inline and detached.")
        if delivery == "detached":
            result, thread = await self._fork(thread.id, {})
            self._announce(thread, result)
        text = review_prompt(what)
        prompt = await asyncio.to_thread(write_prompt, text, thread.conversation, origin="network", notify=print_message)
        turn = thread.start(prompt, [{"type": "text", "text": f"Review {what or 'the uncommitted changes'}"}], None, review=what)
        return {"turn": turn, "reviewThreadId": thread.id}

    async def _start_turn(self, params: Params) -> dict[str, Any]:
        thread = self._idle_thread(params)
        handled = ("threadId", "input", "cwd", "model", "effort", "approvalPolicy", "sandboxPolicy", "outputSchema")
        _refuse_rest(params, handled)
        cwd, conversation = params.get("cwd"), thread.conversation
        schema = _table(params, "outputSchema")
        form, effort = OutputForm(schema) if schema else None, params.get("effort")
        thinking = to_thinking(str(effort)) if effort else None
        if cwd is not None and str(cwd).rstrip("/") != str(conversation.info.cwd):
            raise UsageError("The directory of a thread cannot be changed.", hint="Start another thread with this cwd.")
        asks, mode = thread.asks, ""
        if (policy := params.get("approvalPolicy")) is not None:
            mode_of("read-only", str(policy))  # it exists
            if policy == "never" and asks and conversation.info.mode == "ask":
                raise UsageError("approvalPolicy never needs a thread that begins with it, for its sandbox only reads.")
            asks = policy != "never"
        if sandbox := _table(params, "sandboxPolicy"):
            name = _SANDBOX_TYPES.get(str(sandbox.get("type")), "")
            if not name or sandbox.get("networkAccess") or (name == "read-only" and not asks):
                raise UsageError(f"sandboxPolicy {sandbox} is not supported during a thread.", hint="Start a thread with it.")
            mode = MODES[name]
        if (model := params.get("model")) and model != conversation.info.model:
            thread.conversation = conversation = await conversation.reopen(ConversationChange(model=str(model)))
        prompt = await read_prompt(params, conversation)
        # nothing is refused from here on
        thread.asks = asks
        if mode := "ask" if policy == "untrusted" else mode:
            conversation.set_mode(mode)
        if thinking:
            conversation.think(thinking)  # type: ignore[arg-type]  # it was just looked up
        return {"turn": thread.start(prompt, list(params["input"]), form)}

    async def _steer(self, params: Params) -> dict[str, Any]:
        thread = self._thread(params)
        if not thread.turn_id or params.get("expectedTurnId", thread.turn_id) != thread.turn_id:
            raise UsageError("This turn is not running.")
        thread.conversation.steer(await read_prompt(params, thread.conversation))
        return {"turnId": thread.turn_id}

    async def _interrupt(self, params: Params) -> dict[str, Any]:
        thread = self._thread(params)
        if params.get("turnId", thread.turn_id) == thread.turn_id:
            thread.conversation.interrupt()
        return {}

    def _idle_thread(self, params: Params) -> AppThread:
        thread = self._thread(params)
        if thread.turn_id:
            raise UsageError("A turn of this thread is running.", hint="Steer it with turn/steer, or interrupt it.")
        return thread

    def _thread(self, params: Params) -> AppThread:
        id = _text(params, "threadId")
        if id not in self._threads:
            raise UsageError(f"thread not found: {id}", hint="thread/resume opens it.")
        return self._threads[id]


def _text(params: Params, name: str) -> str:
    value = params.get(name)
    if not isinstance(value, str) or not value:
        raise UsageError(f"{name} is missing.")
    return value


def _table(params: Params, name: str) -> Mapping[str, Any]:
    value = params.get(name)
    if value is not None and not isinstance(value, Mapping):
        raise UsageError(f"{name} is no object.")
    return value or {}


def _refuse_rest(params: Params, handled: tuple[str, ...]) -> None:
    """Raises UsageError for a parameter that wolo does not have."""
    for name, value in params.items():
        is_user = name == "approvalsReviewer" and value == "user"
        if name not in handled and name not in _WITHOUT_EFFECT and value not in (None, False, "", [], {}) and not is_user:
            raise UsageError(f"wolo does not have the parameter {name} of Codex.")


def list_sessions(cwd: str | None) -> list[SessionInfo]:
    with Store.open(find_places().data) as store:
        return list(store.list(None if cwd is None else os.path.realpath(cwd)))


def exact_id(name: str) -> str:
    """Raises UsageError where no session has this id or name: the beginning of one is not enough, nor an ephemeral thread's."""
    with Store.open(find_places().data) as store:
        found = store.exactly(name)
    if found is None:
        raise UsageError(f"There is no session {clean_line(name)} that was saved.")
    return found.id


def opened_object(thread: AppThread, policy: str) -> dict[str, Any]:
    conversation = thread.conversation
    info = conversation.info
    provider, _, _ = info.model.partition("/")
    sandboxes = {"yolo": {"type": "dangerFullAccess"}, "auto": _WORKSPACE, "edit": _WORKSPACE}
    return {
        "thread": _thread_object(thread.id, info.model, str(info.cwd), is_saved=info.saves_session, status="idle"),
        "model": info.model,
        "modelProvider": provider,
        "serviceTier": None,
        "cwd": str(info.cwd),
        "instructionSources": [],
        "approvalPolicy": policy or ("on-request" if thread.asks else "never"),
        "approvalsReviewer": "user",
        "sandbox": sandboxes.get(info.mode, {"type": "readOnly"}),
        "reasoningEffort": conversation.choice.thinking,
    }


_WORKSPACE = {
    "type": "workspaceWrite",
    "writableRoots": [],
    "networkAccess": False,
    "excludeTmpdirEnvVar": False,
    "excludeSlashTmp": False,
}


def saved_object(info: SessionInfo, status: str) -> dict[str, Any]:
    found = _thread_object(info.id, info.model, info.cwd, is_saved=True, status=status)
    return {
        **found,
        "preview": info.title,
        "name": info.name or info.title,
        "createdAt": int(info.created),
        "updatedAt": int(info.updated),
    }


def _thread_object(id: str, model: str, cwd: str, *, is_saved: bool, status: str) -> dict[str, Any]:
    now = int(time.time())
    return {
        "id": id,
        "sessionId": id,
        "forkedFromId": None,
        "parentThreadId": None,
        "preview": "",
        "ephemeral": not is_saved,
        "modelProvider": model.partition("/")[0],
        "createdAt": now,
        "updatedAt": now,
        "status": {"type": status},
        "path": None,
        "cwd": cwd,
        "cliVersion": __version__,
        "source": "appServer",
        "threadSource": None,
        "agentNickname": None,
        "agentRole": None,
        "gitInfo": None,
        "name": None,
        "turns": [],
    }
