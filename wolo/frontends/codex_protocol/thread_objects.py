"""Threads as the app server describes them."""

from __future__ import annotations

import os
import time
from typing import Any

from wolo import __version__
from wolo.errors import UsageError
from wolo.frontends.codex_protocol.app_thread import AppThread
from wolo.messages.terminal_text import clean_line
from wolo.places import find_places
from wolo.sessions.listing import SessionInfo
from wolo.sessions.store import Store


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
