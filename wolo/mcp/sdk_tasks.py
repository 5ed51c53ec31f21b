"""Calls that a server runs as tasks: starts one, polls its status, and takes its result; revision 2025-11-25."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, TypeGuard

import mcp_types as types
from mcp.client.session import ClientSession
from mcp.shared.dispatcher import ProgressFnT

from wolo.mcp.connection import RequestRejected
from wolo.mcp.sdk_transport import raw_result
from wolo.messages.terminal_text import clean_line

_LEAST_MS, _USUAL_MS, _MOST_MS = 50, 1_000, 30_000
"""Between two looks at a task."""
_CANCEL_S = 5.0


def task_only(entry: object) -> TypeGuard[dict[str, Any]]:
    """Plain calls of the tool are refused."""
    execution = entry.get("execution") if isinstance(entry, dict) and isinstance(entry.get("name"), str) else None
    return isinstance(execution, dict) and execution.get("taskSupport") == "required"


def runs_tasks(capabilities: types.ServerCapabilities) -> bool:
    requests = capabilities.tasks.requests if capabilities.tasks else None
    return requests is not None and requests.tools is not None and requests.tools.call is not None


async def call_as_task(
    session: ClientSession, tool: str, arguments: Mapping[str, Any], on_look: Callable[[str], None], on_progress: ProgressFnT
) -> types.CallToolResult:
    """`on_look` receives a new message of the task, or nothing. A cancelled or late call cancels the task.

    Raises RequestRejected and the SDK's errors.
    """
    params = types.CallToolRequestParams(name=tool, arguments=dict(arguments), task=types.TaskMetadata())
    request = types.CallToolRequest(params=params)
    answer = await session.send_request(request, types.CallToolResult, progress_callback=on_progress)
    task = raw_result(answer).get("task")
    if not isinstance(task, dict):
        return answer  # it ran at once
    task_id = task.get("taskId")
    if not isinstance(task_id, str):
        raise RequestRejected("it started a task without an id")
    try:
        shown = ""
        while task.get("status") == "working":
            interval = task.get("pollInterval")
            await asyncio.sleep(min(max(interval, _LEAST_MS), _MOST_MS) / 1000 if isinstance(interval, int) else _USUAL_MS / 1000)
            look = types.GetTaskRequest(params=types.GetTaskRequestParams(task_id=task_id))
            task = (await session.send_request(look, types.GetTaskResult)).model_dump(mode="json", by_alias=True)
            message = clean_line(str(task.get("statusMessage") or ""))
            on_look(message if message != shown else "")
            shown = message
        # What a task asks of the user comes while its result is awaited
        end = types.GetTaskPayloadRequest(params=types.GetTaskPayloadRequestParams(task_id=task_id))
        return await session.send_request(end, types.CallToolResult, progress_callback=on_progress)
    except asyncio.CancelledError:
        with suppress(Exception):
            async with asyncio.timeout(_CANCEL_S):
                stop = types.CancelTaskRequest(params=types.CancelTaskRequestParams(task_id=task_id))
                await session.send_request(stop, types.CancelTaskResult)
        raise
