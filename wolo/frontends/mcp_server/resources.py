"""Sessions as the MCP server lists and reads them, for its tools and as resources, and its prompts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import mcp_types as types
from mcp.shared.exceptions import MCPError
from msgspec import UNSET, Struct, convert

from wolo.errors import SessionError, UsageError
from wolo.frontends.mcp_server import tool_values
from wolo.frontends.mcp_server.tool_values import ReadSession
from wolo.messages.call_arguments import shorten
from wolo.messages.terminal_text import clean_line
from wolo.places import find_places
from wolo.sessions.listing import SessionInfo, row
from wolo.sessions.replay_entries import messages
from wolo.sessions.store import Store

MOST_OF_OUTPUT = 4_000
"""Characters of the output of one call."""
IsRunning = Callable[[str], bool]


def list_sessions(asked: tool_values.ListSessions, cwd: Path | None, is_running: IsRunning) -> tool_values.SessionList:
    """Raises WoloError."""
    with Store.open_to_read(find_places().data) as store:
        found = store.list(cwd)
    return tool_values.SessionList(sessions=[_row(info, is_running) for info in found[: asked.limit]])


def read_session(asked: tool_values.ReadSession, is_running: IsRunning) -> tool_values.SessionContent:
    """Raises SessionError for an unknown session."""
    with Store.open_to_read(find_places().data) as store:
        info = find_session(store, asked.session_id)
        history = messages(store.load(info.id).entries)
    shown = []
    for message in history[-asked.last :]:
        calls = [
            tool_values.CallText(
                tool=part.tool, input=part.input, status=part.status, output=shorten(part.output, MOST_OF_OUTPUT)
            )
            for part in message.calls
        ]
        shown.append(tool_values.MessageText(role=message.role, text=message.text, calls=calls or UNSET))
    return tool_values.SessionContent(session=_row(info, is_running), messages=shown, omitted=len(history) - len(shown))


def find_session(store: Store, session_id: str) -> SessionInfo:
    """Ids only: part of a title names no session of a client. Raises SessionError for an unknown one."""
    info = store.exactly(session_id)
    if info is None or info.id != session_id:
        raise SessionError(f"There is no session {clean_line(session_id)}.", hint="list_sessions shows the ids.")
    return info


def list_text(sessions: tool_values.SessionList) -> str:
    rows = []
    for each in sessions.sessions:
        state = "running" if each.running else "live" if each.live else ""
        rows.append("  ".join(filter(None, (each.id, state, each.title or each.name or "(no title)", each.cwd))))
    return "\n".join(rows) or "There are no sessions."


def session_text(content: tool_values.SessionContent) -> str:
    parts = [f"{content.session.id}  {content.session.title}\n{content.session.cwd} · {content.session.model}"]
    if content.omitted:
        parts.append(f"({content.omitted} earlier messages omitted)")
    for message in content.messages:
        lines = [f"{message.role}: {message.text}".rstrip()]
        for each in message.calls or ():
            lines += [f"● {each.tool} {each.status}", each.output]
        parts.append("\n".join(filter(None, lines)))
    return "\n\n".join(parts)


def _row(info: SessionInfo, is_running: IsRunning) -> tool_values.SessionRow:
    running = is_running(info.id)
    return convert(row(info) | {"live": info.live or running, "running": running}, tool_values.SessionRow)


SESSION = "wolo://sessions/"
TEMPLATE = types.ResourceTemplate(
    name="session",
    title="Session",
    uri_template=f"{SESSION}{{session_id}}",
    description="The messages and tool calls of a session.",
    mime_type="text/plain",
)
PAGE = 100
"""Sessions in one answer."""
MOST_MESSAGES = 200
"""Of a session, from its end."""


async def list_templates(_: Any, __: types.PaginatedRequestParams | None) -> types.ListResourceTemplatesResult:
    return types.ListResourceTemplatesResult(resource_templates=[TEMPLATE])


def list_resources(cursor: str | None) -> types.ListResourcesResult:
    """Saved sessions, newest first; the cursor is the number of those before. Blocks. Raises UsageError."""
    if cursor and not (cursor.isascii() and cursor.isdecimal() and len(cursor) < 10):
        raise UsageError(f"{cursor!r} is no cursor of a list of sessions.")
    start = int(cursor or 0)
    with Store.open_to_read(find_places().data) as store:
        sessions = store.list()
    shown = [
        types.Resource(
            name=each.id,
            title=each.title or each.name or each.id,
            uri=f"{SESSION}{each.id}",
            description=f"Session in {each.cwd}, with {each.model}.",
            mime_type="text/plain",
        )
        for each in sessions[start : start + PAGE]
    ]
    following = start + PAGE
    return types.ListResourcesResult(resources=shown, next_cursor=str(following) if following < len(sessions) else None)


def read_resource(uri: str, is_running: IsRunning) -> types.ReadResourceResult:
    """Blocks. Raises SessionError for an unknown session, UsageError for another address."""
    if not uri.startswith(SESSION):
        raise UsageError(f"There is no resource {uri}.", hint=f"Sessions are {SESSION}ID.")
    content = read_session(ReadSession(session_id=uri.removeprefix(SESSION), last=MOST_MESSAGES), is_running)
    text = types.TextResourceContents(uri=uri, mime_type="text/plain", text=session_text(content))
    return types.ReadResourceResult(contents=[text])


class _PromptText(Struct, frozen=True, kw_only=True):
    title: str
    about: str
    required: Mapping[str, str]
    """Arguments with their descriptions."""
    optional: Mapping[str, str] = {}
    write: Callable[[Mapping[str, str]], str]


_CWD = {"cwd": "Directory to work in; default: where the server was started."}
_TASK = {"task": "What to do, in full: wolo knows nothing of this conversation."}
PROMPTS = {
    "delegate": _PromptText(
        title="Give wolo a task",
        about="Hand a task over, and report what came back.",
        required=_TASK,
        optional=_CWD,
        write=lambda given: (
            f"Give this task to wolo with the tool run_task{_where(given)}. Then tell me what it answered, which files it "
            f"changed and the id of its session.\n\n{given['task']}"
        ),
    ),
    "continue": _PromptText(
        title="Continue a session of wolo",
        about="Give one more prompt to an earlier session.",
        required={"session_id": "Id of the session.", **_TASK},
        write=lambda given: (
            f"Continue the session {given['session_id']} of wolo with the tool continue_task. Then tell me what it answered and "
            f"which files it changed.\n\n{given['task']}"
        ),
    ),
    "review": _PromptText(
        title="Have wolo review changes",
        about="A second opinion on the uncommitted changes of a directory; nothing is changed.",
        required={},
        optional={"focus": "What to look at most.", **_CWD},
        write=lambda given: (
            f"Call run_task of wolo with mode=plan{_where(given)} and this prompt; then tell me which findings you share.\n\n"
            "Review the uncommitted changes of this repository for mistakes, security holes and missing tests. For each finding "
            f"name file and line. Change nothing.{' Look most at: ' + given['focus'] if given.get('focus') else ''}"
        ),
    ),
}


def _where(params: Mapping[str, str]) -> str:
    return f" in cwd={params['cwd']}" if params.get("cwd") else ""


async def list_prompts(_: Any, __: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
    return types.ListPromptsResult(
        prompts=[
            types.Prompt(
                name=name,
                title=each.title,
                description=each.about,
                arguments=[
                    types.PromptArgument(name=argument, description=about, required=argument in each.required)
                    for argument, about in {**each.required, **each.optional}.items()
                ],
            )
            for name, each in PROMPTS.items()
        ]
    )


async def get_prompt(_: Any, params: types.GetPromptRequestParams) -> types.GetPromptResult:
    """Raises MCPError for an unknown name, and for missing or unknown arguments."""
    name, arguments = params.name, params.arguments or {}
    if (prompt := PROMPTS.get(name)) is None:
        raise MCPError(code=types.INVALID_PARAMS, message=f"There is no prompt {name}.")
    known = {**prompt.required, **prompt.optional}
    missing = [each for each in prompt.required if not arguments.get(each, "").strip()]
    if missing or not arguments.keys() <= known.keys():
        what = f"{missing[0]} is missing" if missing else f"{min(arguments.keys() - known.keys())} is unknown"
        raise MCPError(code=types.INVALID_PARAMS, message=f"{name}: {what}. It takes {', '.join(known)}.")
    content = types.TextContent(text=prompt.write(arguments))
    return types.GetPromptResult(description=prompt.about, messages=[types.PromptMessage(role="user", content=content)])
