"""Writes the files that Claude Code hooks expect: a transcript, and a file for variables."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from wolo.extensions.hooks.claude_calls import to_claude_calls
from wolo.messages.message import Message
from wolo.messages.parts import TextPart, ThinkingPart, ToolPart
from wolo.places import make_private
from wolo.workspace.processes.command_environment import OF_THE_SHELL, UNATTENDED, rule_against
from wolo.workspace.processes.process_runner import Processes
from wolo.workspace.processes.process_table import status_of
from wolo.workspace.processes.run_with_input import run_with_input

_READ_WITHIN_S = 10.0
_MOST_BYTES = 256 * 1024


class HookRecords:
    """Lives in a private folder that is deleted with the conversation."""

    def __init__(self, state: Path, session_id: str, cwd: Path) -> None:
        # Folders of killed processes
        for folder in state.glob("hooks-*-*"):
            with suppress(ValueError):
                if status_of(int(folder.name.split("-")[1])) is None:
                    shutil.rmtree(folder, ignore_errors=True)
        self._folder = state / f"hooks-{os.getpid()}-{os.urandom(4).hex()}"
        make_private(self._folder)
        self._session_id, self._cwd = session_id, cwd
        self.transcript = self._folder / f"{session_id}.jsonl"
        self.transcript.touch(0o600)
        self.env_file = self._folder / "env.sh"
        self._messages = 0
        """Number of complete messages in the transcript."""
        self._last = ""
        self._written: set[str] = set()
        """Ids of messages and results."""

    def update(self, messages: Sequence[Message]) -> None:
        """Appends new messages; an answer whose calls are running follows later."""
        if self._messages > len(messages) or (self._messages and messages[self._messages - 1].id != self._last):
            self._messages = 0
        lines = [line for message in messages[max(self._messages - 1, 0) :] for line in self._lines(message)]
        self._messages = len(messages)
        self._last = messages[-1].id if messages else ""
        if lines:
            with self.transcript.open("ab") as file:
                file.write(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))

    def close(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def _lines(self, message: Message) -> Iterator[dict[str, Any]]:
        if message.role == "assistant":
            blocks: list[dict[str, Any]] = []
            for part in message.parts:
                match part:
                    case TextPart(text=text) if text:
                        blocks.append({"type": "text", "text": text})
                    case ThinkingPart(text=text) if text:
                        blocks.append({"type": "thinking", "thinking": text})
                    case ToolPart():
                        translated = to_claude_calls(part.tool, part.input, self._cwd, follow_links=False)[0]
                        blocks.append({"type": "tool_use", "id": part.id, "name": translated.name, "input": translated.input})
            model = message.producer.model if message.producer else ""
            yield from self._line(
                message, message.id, {"role": "assistant", "type": "message", "id": message.id, "model": model, "content": blocks}
            )
        elif message.role == "user":
            yield from self._line(message, message.id, {"role": "user", "content": message.text})
        for part in message.calls:
            if part.status != "pending":
                yield from self._line(
                    message,
                    f"{part.id}-result",
                    {
                        "role": "user",
                        "content": [
                            {"type": "tool_result", "tool_use_id": part.id, "content": part.output, "is_error": part.is_error}
                        ],
                    },
                )

    def _line(self, message: Message, uuid: str, content: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        if uuid not in self._written:
            self._written.add(uuid)
            yield {
                "type": content["role"],
                "uuid": uuid,
                "sessionId": self._session_id,
                "cwd": str(self._cwd),
                "timestamp": datetime.fromtimestamp(message.timestamp, UTC).isoformat(),
                "isSidechain": False,
                "userType": "external",
                "message": content,
            }


async def variables_set(
    file: Path, shell: str, processes: Processes, cwd: Path, before: Mapping[str, str]
) -> tuple[dict[str, str], list[str]]:
    """The variables that a file of `export` lines sets, and the names of those that commands may not see.

    `before` is the environment of commands without it.
    """
    script = 'set -a; . "$1" >/dev/null 2>&1; exec env -0'
    finished = await run_with_input(
        processes,
        [shell, "-c", script, shell, str(file)],
        b"",
        cwd=cwd,
        env=before,
        timeout_s=_READ_WITHIN_S,
        kept_bytes=_MOST_BYTES,
    )
    pairs = (line.partition("=") for line in finished.stdout.decode("utf-8", "replace").split("\0"))
    found = {name: value for name, sign, value in pairs if sign and name not in OF_THE_SHELL and before.get(name) != value}
    refused = sorted(name for name in found if name in UNATTENDED or rule_against(name))
    return {name: value for name, value in found.items() if name not in refused}, refused
