"""Runs the hooks of one conversation, with the variables of its session and the files that Claude Code hooks expect."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from wolo.agent.agent_services import MessageHistory
from wolo.agent.hook_calls import NEWS, ReportSlow
from wolo.config import project
from wolo.conversation.resources.startup import HookProgress, HookSessionStart
from wolo.extensions.hooks.claude_calls import to_claude_calls
from wolo.extensions.hooks.definitions import FILE_CHANGED
from wolo.extensions.hooks.file_watch import FileWatch
from wolo.extensions.hooks.hook_runner import HookEnvironment, HookRunner, RegisteredHook
from wolo.extensions.hooks.response import NOTHING, combine
from wolo.messages.message import Message
from wolo.messages.parts import TextPart, ThinkingPart, ToolPart
from wolo.places import make_private
from wolo.tools.tool_values import HookReply
from wolo.workspace.processes.command_environment import OF_THE_SHELL, UNATTENDED, rule_against
from wolo.workspace.processes.process_runner import Processes
from wolo.workspace.processes.process_table import status_of
from wolo.workspace.processes.run_with_input import run_with_input
from wolo.workspace.root import Workspace

END_WITHIN_S = 1.5
"""All SessionEnd hooks together, and again for hooks in the background."""
_LOCAL = ("CLAUDE.local.md", "settings.local.json")


class HookSession:
    def __init__(
        self,
        beginning: HookSessionStart,
        placed: Sequence[RegisteredHook],
        around: HookEnvironment,
        workspace: Workspace,
        history: MessageHistory,
        *,
        before: HookProgress,
        variables: dict[str, str],
        plain: Mapping[str, str],
    ) -> None:
        """`variables` is extended by hooks; `plain` is that without."""
        self._hooks = HookRunner(placed, around, before.ran)
        self._around, self._places, self._workspace = around, beginning.places, workspace
        self._hooks.active.add(f"agent {beginning.agent}")
        self._has_looked_back = False
        self._has_components = any(each.active_with for each in placed)
        self._facts = beginning.facts
        self._instructions = beginning.instructions
        self._history = history
        self._variables, self._plain = variables, plain
        self._has_begun = before.has_begun
        self._source = before.source or ("resume" if beginning.is_resumed else "startup")
        self._is_attended = beginning.is_attended
        self._records = HookRecords(beginning.places.state, str(beginning.facts()["session_id"]), around.cwd)
        with suppress(OSError):  # as in `_payload`
            earlier = history.load_earlier()
            self._records.update(earlier)
            self._activate_earlier(earlier)
        events = {each.event for each in placed}
        self._watched = FileWatch(self._named_files) if FILE_CHANGED in events else None
        self._settings = FileWatch(lambda: self._sources().keys()) if "ConfigChange" in events else None

    @property
    def progress(self) -> HookProgress:
        return HookProgress(self._has_begun, self._variables, frozenset(self._hooks.ran))

    async def run(self, event: str, payload: Mapping[str, Any], slow: ReportSlow) -> HookReply:
        if event == NEWS:
            # Runs hooks for changed files, and adds the output of hooks in the background
            answers = []
            for path, change in self._watched.changes() if self._watched else ():
                payload = {"file_path": str(path), "event": change}
                answers.append(await self._run_with_variables(FILE_CHANGED, payload, slow))
            sources = self._sources() if self._settings else {}
            for path, _ in self._settings.changes() if self._settings else ():
                payload = {"source": sources.get(path, "skills"), "file_path": str(path)}
                answer = await self._run("ConfigChange", payload, slow)
                if answer.decision == "deny":  # settings are read at the start: there is nothing to prevent, the user sees why
                    notices = (*answer.notices, f"{path} has changed: {answer.reason}")
                    answer = replace(answer, decision="", reason="", notices=notices)
                answers.append(answer)
            late = self._hooks.take_late()
            return combine([*answers, late]) if answers else late
        if not self._has_looked_back:
            self._has_looked_back = True
            self._activate_earlier(self._history.messages)
        if self._has_components and (event == "UserPromptSubmit" or (event == "PostToolUse" and payload["tool_name"] == "skill")):
            self._activate(payload["prompt"] if event == "UserPromptSubmit" else payload["tool_response"]["output"])
        if event == "SessionStart":
            if self._has_begun:
                return NOTHING
            self._has_begun = True
            return await self._begin(payload, slow)
        if event == "InstructionsLoaded":
            path = self._workspace.root / payload["file_path"]
            payload = {**payload, "file_path": str(path), "memory_type": self._scope(path)}
        answer = await self._hooks.run(event, {**self._payload(), **payload}, slow)
        if event == "PostCompact":
            self._has_begun, self._source = False, "compact"
        return answer

    def _activate_earlier(self, messages: Iterable[Message]) -> None:
        """Skills that were loaded in the session before."""
        for message in messages if self._has_components else ():
            self._activate("".join(part.output for part in message.parts if isinstance(part, ToolPart)) + message.text)

    def _activate(self, text: str) -> None:
        """Runs the hooks of the skills whose text this is, from now on."""
        from wolo.extensions.skill_files import skills_loaded  # noqa: PLC0415  # few skills have hooks

        self._hooks.active.update(f"skill {name}" for name in skills_loaded(text))

    async def _begin(self, payload: Mapping[str, Any], slow: ReportSlow) -> HookReply:
        answers = []
        if self._source == "startup" and self._is_first_here():
            answers.append(await self._run_with_variables("Setup", {"trigger": "init"}, slow))
        answers.append(await self._run_with_variables("SessionStart", {"source": self._source, **payload}, slow))
        load_reason = "compact" if self._source == "compact" else "session_start"
        for path in self._instructions:
            loaded = {"file_path": str(path), "memory_type": self._scope(path), "load_reason": load_reason}
            answers.append(replace(await self._run("InstructionsLoaded", loaded, slow), decision=""))
        return combine(answers)

    def _scope(self, path: Path) -> str:
        if path.name in _LOCAL:
            return "Local"
        return "Project" if path.is_relative_to(self._workspace.root) else "User"

    def _is_first_here(self) -> bool:
        """Remembers that the Setup hooks ran in this folder, until they change."""
        keys = [each.key for each in self._hooks.placed if each.event == "Setup"]
        if not keys:
            return False
        mark = hashlib.sha256("\0".join((str(self._workspace.root), *keys)).encode("utf-8", "surrogateescape")).hexdigest()
        folder = self._places.state / "setup"
        make_private(folder)
        try:
            (folder / mark[:32]).touch(0o600, exist_ok=False)
        except FileExistsError:
            return False
        return True

    async def _run(self, event: str, payload: Mapping[str, Any], slow: ReportSlow) -> HookReply:
        return await self._hooks.run(event, {**self._payload(), **payload}, slow)

    async def _run_with_variables(self, event: str, payload: Mapping[str, Any], slow: ReportSlow) -> HookReply:
        """Runs hooks that may set variables for commands."""
        file = self._records.env_file
        whole = {**self._payload(), **payload}
        answer = await self._hooks.run(event, whole, slow, environ={"CLAUDE_ENV_FILE": str(file)})
        if self._watched is not None and answer.watch is not None:
            self._watched.watch(answer.watch)
        if not (file.is_file() and file.stat().st_size > 0):
            return answer
        around = self._around
        found, refused = await variables_set(file, around.shell, around.processes, around.cwd, self._plain)
        self._variables.update(found)
        if not refused:
            return answer
        names = ", ".join(refused)
        notice = f"A {event} hook sets {names}; commands do not get variables that look like a secret or load code."
        return replace(answer, notices=(*answer.notices, notice))

    def _named_files(self) -> Iterator[Path]:
        for each in self._hooks.placed:
            if each.event == FILE_CHANGED:
                folder = each.projects or self._around.cwd
                yield from (folder / name.strip() for name in each.hook.matcher.split("|") if name.strip())

    def _sources(self) -> dict[Path, str]:
        """Files of settings, and where Claude Code would say that they are from."""
        config, root, cwd = self._places.config, self._workspace.root, Path(os.path.realpath(self._around.cwd))
        sources = dict.fromkeys((config / "config.toml", config / "hooks.json"), "user_settings")
        folders = [config / "skills"]
        for folder in project.folders(root, cwd):
            for kind in (project.SETTINGS, project.HOOKS, project.MCP_SERVERS):
                files = (folder / place for place in kind.places)
                sources |= {path: "local_settings" if path.name in _LOCAL else "project_settings" for path in files}
            folders += [folder / place for place in project.SKILLS.places]
        return sources | dict.fromkeys((path for folder in folders for path in folder.glob("*/SKILL.md")), "skills")

    def _payload(self) -> dict[str, Any]:
        with suppress(OSError):  # a full disk must not stop hooks
            self._records.update(self._history.messages)
        return {**self._facts(), "transcript_path": str(self._records.transcript)}

    async def end(self, reason: str) -> None:
        if self._has_begun or self._source == "compact":
            reason = "prompt_input_exit" if reason == "other" and self._is_attended else reason
            await self._hooks.run("SessionEnd", {**self._payload(), "reason": reason}, _nobody, END_WITHIN_S)

    async def close(self) -> None:
        try:
            await self._hooks.close(END_WITHIN_S)
        finally:
            self._records.close()


async def _nobody(commands: Sequence[str]) -> None:
    pass


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
