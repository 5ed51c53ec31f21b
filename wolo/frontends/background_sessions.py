"""Sessions in the background, and their server: a file of each says what it does, also when its server was killed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from wolo import __version__
from wolo.config.files import lock_folder
from wolo.errors import SessionError, WoloError
from wolo.frontends.running_servers import FOLDER as SERVERS
from wolo.frontends.running_servers import RunningServer, running_servers
from wolo.frontends.streams import as_json, print_json_text, print_line, print_message
from wolo.messages.terminal_text import clean_line
from wolo.places import find_home, find_places, make_private
from wolo.sessions.locks import is_held
from wolo.workspace.files.unfinished import write_whole

FOLDER = "background"
"""Beside the sessions."""
KEPT_S = 7 * 86400.0
"""A session that does nothing is listed so long."""
MOST_CHARS = 80
State = Literal["working", "waiting", "idle", "interrupted"]
NOT_KEPT = ("api_key", "goal", "until", "budget", "trust", "continue", "resume", "session", "fork")
"""Options of the first opening only; a key is in no file but the user's."""


class BackgroundSession(Struct, frozen=True, kw_only=True):
    id: str
    title: str
    """The beginning of the first prompt."""
    cwd: str
    port: int
    """Of its server."""
    state: State = "idle"
    """`interrupted`: its server ended during a turn."""
    waits_for: str = ""
    """Call or question that a user must answer."""
    options: Mapping[str, str | bool | list[str]] = {}
    """With which it is opened again."""
    updated_at: float = 0.0


def after_line(session: BackgroundSession, line: Mapping[str, Any]) -> BackgroundSession:
    """The session after a line of its server."""
    kind = line.get("subtype") if line.get("type") == "system" else line.get("type")
    if kind == "status":
        return replace(session, state="working" if line.get("busy") else "idle", waits_for="")
    if kind == "approval":
        call = f"{line.get('name')} {msgspec.json.encode(line.get('input'), enc_hook=str).decode()}"
        return replace(session, state="waiting", waits_for=clean_line(call)[:MOST_CHARS])
    if kind == "questions":
        return replace(session, state="waiting", waits_for="an answer to its questions")
    if kind in ("approval_given", "questions_answered"):
        return replace(session, state="working", waits_for="")
    return session


def write_session(data: Path, session: BackgroundSession) -> None:
    """Raises OSError."""
    folder = data / FOLDER
    make_private(folder)
    kept = {name: value for name, value in session.options.items() if name not in NOT_KEPT}
    content = msgspec.json.encode(replace(session, options=kept, updated_at=time.time()))
    write_whole(folder / f"{session.id}.json", content, durable=False)


def read_session(data: Path, session_id: str) -> BackgroundSession | None:
    if "/" in session_id:
        return None
    try:
        session = msgspec.json.decode((data / FOLDER / f"{session_id}.json").read_bytes(), type=BackgroundSession)
    except (OSError, ValueError, msgspec.MsgspecError):
        return None
    return session


def list_sessions(data: Path) -> list[BackgroundSession]:
    """The latest first; those that did nothing for a week are forgotten here, and stay saved."""
    sessions, running = [], dict[int, bool]()
    for path in (data / FOLDER).glob("*.json"):
        if (each := read_session(data, path.stem)) is None:
            continue
        if (is_alive := running.get(each.port)) is None:
            is_alive = running[each.port] = is_held(data / SERVERS / f"{each.port}.json")
        if not is_alive and each.state in ("working", "waiting"):
            each = replace(each, state="interrupted", waits_for="")
        if each.state == "idle" and each.updated_at + KEPT_S < time.time():
            forget_session(data, each.id)
            continue
        sessions.append(each)
    return sorted(sessions, key=lambda each: -each.updated_at)


def find_background(data: Path, spec: str) -> BackgroundSession:
    """By id, or the beginning or end of one. Raises SessionError."""
    sessions = list_sessions(data)
    matches = [each for each in sessions if each.id == spec] or [
        each for each in sessions if each.id.startswith(spec) or each.id.endswith(spec)
    ]
    if len(matches) != 1:
        few = "no session" if not matches else f"{len(matches)} sessions"
        raise SessionError(f"There is {few} {spec!r} in the background.", hint="`wolo ps` lists them.")
    return matches[0]


def forget_session(data: Path, session_id: str) -> None:
    with suppress(OSError):
        os.unlink(data / FOLDER / f"{session_id}.json")  # noqa: PTH108  # of a name that was read


def print_sessions(*, in_json: bool) -> None:
    """Prints the list of `wolo ps`, without what only other subcommands need: it takes less than a tenth of a second."""
    sessions = list_sessions(find_places().data)
    if in_json:
        names = ("id", "state", "waits_for", "title", "cwd", "updated_at")
        print_json_text(as_json([{name: getattr(each, name) for name in names} for each in sessions], indent=2))
        return
    if not sessions:
        print_message("Nothing is in the background.", hint='`wolo --bg "PROMPT"` starts a session there.')
    for each in sessions:
        print_line(f"{each.id}  {each.state:11}  {each.title}")
        if each.waits_for:
            print_line(f"    waits for: {each.waits_for} · wolo attach {each.id}")


END_IDLE_S = 60


def background_server() -> RunningServer:
    """The one that runs, else a new one, which ends by itself. Raises WoloError."""
    places = find_places()
    with lock_folder(places.data / FOLDER):
        for each in running_servers(places.data):
            if each.ends_idle and each.has_yolo and each.version == __version__:
                return each
        argv = [sys.executable, "-P", "-m", "wolo", "serve", "--end-idle", str(END_IDLE_S), "--yolo"]  # for command lines
        try:
            process = subprocess.Popen(
                argv,
                cwd=find_home(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as error:
            raise WoloError(f"The server of the background cannot be started: {error.strerror}.") from error
        assert process.stdout is not None
        with process.stdout:
            process.stdout.readline()  # its address, once it is listed
        process.returncode = 0  # it outlives this process
        for each in running_servers(places.data):
            if each.pid == process.pid:
                return each
    raise WoloError("The server of the background has ended at once.", hint="`wolo serve` shows why.")


def server_of(session: BackgroundSession) -> RunningServer:
    """That of the session, as long as it runs. Raises WoloError."""
    with suppress(StopIteration):
        return next(each for each in running_servers(find_places().data) if each.port == session.port)
    return background_server()
