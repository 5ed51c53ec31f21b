"""Lists and reads sessions for clients."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from msgspec import UNSET, convert

from wolo.errors import SessionError
from wolo.frontends.mcp_server import tool_values
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
