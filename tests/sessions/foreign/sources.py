"""A session of each agent, as it lies on a disk, and a history judged as every format would send it."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from wolo.formats.format import Request, ToolSpec
from wolo.formats.lint.linters import LINTERS
from wolo.messages.message import Message, Producer, user
from wolo.messages.parts import ToolPart
from wolo.models.catalog import Catalog
from wolo.models.format_selection import FORMATS, format_of
from wolo.sessions.exchange.foreign import claude_code, codex, kimi, opencode, pi, vibe
from wolo.sessions.exchange.json_files import Imported

HERE = Path(__file__).parent
CWD = "/home/ada/abacus"
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
"""An image, as base64."""
TOOLS = (ToolSpec(name="read", description="Reads a file.", parameters={"type": "object", "properties": {}}),)


class Sample(NamedTuple):
    name: str
    pattern: str
    """Where its main file lies, below this folder."""
    read: Callable[[Path], Imported]

    def path(self, root: Path = HERE) -> Path:
        return next(root.glob(self.pattern))

    def copied(self, to: Path) -> Path:
        """The main file in a copy of the agent's whole home."""
        home = self.pattern.partition("/")[0]
        shutil.copytree(HERE / home, to / home)
        return self.path(to)


SAMPLES = (
    Sample("claude-code", "claude_code/projects/*/*.jsonl", claude_code.read),
    Sample("codex", "codex/sessions/2026/*/*/*.jsonl", codex.read),
    Sample("codex-2025", "codex/sessions/2025/*/*/*.jsonl", codex.read),
    Sample("opencode", "opencode/export.json", opencode.read),
    Sample("kimi", "kimi/sessions/*/*/context.jsonl", kimi.read),
    Sample("kimi-code", "kimi_code/sessions/*/*/agents/main/wire.jsonl", kimi.read),
    Sample("pi", "pi/sessions/*/*.jsonl", pi.read),
    Sample("vibe", "vibe/logs/session/*/messages.jsonl", vibe.read),
)
LINED = tuple(each for each in SAMPLES if each.pattern.endswith(".jsonl"))


def sample(name: str) -> Sample:
    return next(each for each in SAMPLES if each.name == name)


def calls(imported: Imported) -> list[ToolPart]:
    return [call for message in imported.messages for call in message.calls]


def in_view(imported: Imported) -> list[Message]:
    return [message for message in imported.messages if message.id not in imported.left_out]


def complaints(messages: list[Message] | tuple[Message, ...]) -> list[str]:
    """What strict servers of all formats would refuse if a person went on with this history."""
    found = []
    for name in FORMATS:
        choice = Catalog({}).find("custom/m-1", base_url="http://h/v1", api_key="k", api=name)
        request = Request(
            model="m-1",
            producer=Producer(provider="custom", format=name, model="m-1"),
            messages=(*messages, user("Go on.")),
            system="You are Wolo.",
            tools=TOOLS,
            max_output=8192,
        )
        body: dict[str, Any] = json.loads(format_of(choice).encode(request))
        found += [f"{name}: {complaint}" for complaint in LINTERS[name](body, None)]
    return found


def opencode_database(path: Path, *, wal: bool = False, crashed: bool = False) -> None:
    """The export as the rows that OpenCode keeps, with a session of a subagent and one of another directory beside it."""
    export = json.loads((HERE / "opencode" / "export.json").read_text(encoding="utf-8"))
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path)
    if wal or crashed:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA wal_autocheckpoint=0")
    connection.executescript(
        "CREATE TABLE session (id TEXT PRIMARY KEY, project_id TEXT, parent_id TEXT, directory TEXT, title TEXT, revert TEXT, "
        "time_created INTEGER, time_updated INTEGER);"
        "CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER, time_updated INTEGER, data TEXT);"
        "CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, data TEXT);"
    )
    add = "INSERT INTO session VALUES (?, 'prj', ?, ?, ?, NULL, ?, ?)"
    connection.execute(add, ("ses_01", None, CWD, "Repair the sum", 1791200000000, 1791200100000))
    connection.execute(add, ("ses_02", "ses_01", CWD, "A task", 1791200000000, 1791200200000))
    connection.execute(add, ("ses_03", None, "/home/ada/other", "Another", 1791200000000, 1791200300000))
    for message in export["messages"]:
        info = message["info"]
        data = {name: value for name, value in info.items() if name not in ("id", "sessionID")}
        created = info["time"]["created"]
        connection.execute("INSERT INTO message VALUES (?, 'ses_01', ?, ?, ?)", (info["id"], created, created, json.dumps(data)))
        for part in message["parts"]:
            said = {name: value for name, value in part.items() if name not in ("id", "sessionID", "messageID")}
            connection.execute("INSERT INTO part VALUES (?, ?, 'ses_01', ?)", (part["id"], info["id"], json.dumps(said)))
    connection.commit()
    if crashed:
        # A crash: what was committed lies in the log, and nobody has put it into the database.
        for end in ("", "-wal"):
            shutil.copyfile(f"{path}{end}", f"{path}{end}.kept")
        connection.close()
        for end in ("", "-wal"):
            Path(f"{path}{end}.kept").rename(f"{path}{end}")
    else:
        connection.close()


def opencode_tree(storage: Path) -> Path:
    """The same as files, as older versions keep it; returns the file of the session."""
    export = json.loads((HERE / "opencode" / "export.json").read_text(encoding="utf-8"))
    session = storage / "session" / "prj" / "ses_01.json"
    session.parent.mkdir(parents=True)
    session.write_text(json.dumps(export["info"]))
    session.with_name("ses_02.json").write_text(json.dumps({"id": "ses_02", "parentID": "ses_01", "directory": CWD}))
    for message in export["messages"]:
        info = message["info"]
        path = storage / "message" / "ses_01" / f"{info['id']}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(info))
        for part in message["parts"]:
            path = storage / "part" / info["id"] / f"{part['id']}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(part))
    return session
