"""Runs the hooks of an event: all that match, in parallel, each as a program of the user, and joins their answers into one."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import stat
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from wolo.extensions.hooks.claude_calls import ClaudeCall, to_claude_calls, to_wolo_arguments
from wolo.extensions.hooks.claude_results import failure, to_claude_response
from wolo.extensions.hooks.definitions import ABOUT_TOOLS, Hook
from wolo.extensions.hooks.matchers import PERMISSION_MODES, matches, names_of
from wolo.extensions.hooks.response import NOTHING, Answer, combined, read_answer, restricted
from wolo.extensions.referenced_files import files_named, runs_relative_program
from wolo.workspace.processes.process_runner import Processes
from wolo.workspace.processes.run_with_input import run_with_input

SLOW_S = 1.0
"""What takes longer is told."""
AT_ONCE = 16
"""Programs that may run at the same time: a patch is told file by file."""
MOST_BYTES = 4 << 20
"""Of one file: a script is smaller, and a program that is larger counts with its size and its time."""
_KEPT_BYTES = 256 * 1024
"""Of each end of what a hook prints."""
_SUBJECTS = {
    "SessionStart": "source",
    "SessionEnd": "reason",
    "PreCompact": "trigger",
    "PostCompact": "trigger",
    "Notification": "notification_type",
    "SubagentStart": "agent_type",
    "SubagentStop": "agent_type",
}
"""What a matcher is held against where the event is about no tool; at the others every hook is meant."""
_BEFORE_THE_CALL = frozenset(("PreToolUse", "PermissionRequest"))
_NOT_CARRIED_OVER = "A hook changes the arguments of a call that concerns several files, which cannot be carried over."

Slow = Callable[[Sequence[str]], Awaitable[None]]
"""Hears which commands are still awaited."""


class RegisteredHook(Struct, frozen=True, kw_only=True):
    """A hook, and who wants it to run."""

    event: str
    hook: Hook
    source: str
    """The file or setting it stands in, for people."""
    projects: Path | None = None
    """It came with this folder of a checkout, where it runs: it may only make wolo stricter."""
    named_in: Path | None = None
    """Of a hook of the user's: the folder of the file that names it, where its relative programs are."""
    is_still_allowed: Callable[[], bool] = lambda: True
    """Whether what it runs is what the person said yes to."""


class HookEnvironment(Struct, frozen=True, kw_only=True):
    """Where and how hooks run."""

    processes: Processes
    shell: str
    cwd: Path
    environ: Callable[[Path | None], Mapping[str, str]]
    """Gets the folder of the project that a hook came with."""


class Hooks:
    def __init__(self, placed: Sequence[RegisteredHook], environment: HookEnvironment) -> None:
        self.placed = tuple(placed)
        self._environment = environment

    async def run(
        self,
        event: str,
        payload: Mapping[str, Any],
        slow: Slow,
        most_s: float | None = None,
        *,
        environ: Mapping[str, str] | None = None,
    ) -> Answer:
        """What the hooks of this event say together; never raises but when it is cancelled: then all of them are ended.

        `payload` joins what is on their stdin, in wolo's names. None may take longer than `most_s`. `environ` is more for
        their environment.
        """
        meant = self.meant(event, payload)
        if not meant:
            return NOTHING
        places = asyncio.Semaphore(AT_ONCE)
        try:
            async with asyncio.TaskGroup() as group:
                running = {
                    group.create_task(self._run_one(each, _told(event, payload, call), most_s, environ or {}, places)): each
                    for each, call in meant
                }
                _, late = await asyncio.wait(running, timeout=SLOW_S)
                if late:
                    await slow(list(dict.fromkeys(running[each].hook.command for each in running if each in late)))
        except BaseExceptionGroup as failed:  # only `slow` can fail
            raise failed.exceptions[0] from None
        answers = [each.result() for each in running]
        return _in_wolos_names(event, payload, [call for _, call in meant], answers)

    def meant(self, event: str, payload: Mapping[str, Any]) -> list[tuple[RegisteredHook, ClaudeCall | None]]:
        """Each command once, in the order in which they are written; for each file that a call concerns."""
        calls: list[ClaudeCall | None] = [None]
        if event in ABOUT_TOOLS:
            told = to_claude_calls(
                payload["tool_name"], payload["tool_input"], self._environment.cwd, follow_links=event in _BEFORE_THE_CALL
            )
            calls = [*told]
        subject = str(payload.get(_SUBJECTS.get(event, ""), ""))
        found: dict[tuple[str, str, Path | None, int], tuple[RegisteredHook, ClaudeCall | None]] = {}
        for each in self.placed:
            for at, call in enumerate(calls):
                names = names_of(payload["tool_name"], call.name) if call else (subject,)
                is_about = call is not None or event in _SUBJECTS
                if each.event != event or (is_about and not matches(each.hook.matcher, names)):
                    continue
                if self._is_narrowed_to(each.hook, call, names):
                    found.setdefault((each.hook.command, each.hook.condition, each.projects, at), (each, call))
        return list(found.values())

    def _is_narrowed_to(self, hook: Hook, call: ClaudeCall | None, names: Sequence[str]) -> bool:
        if not hook.condition:
            return True
        from wolo.extensions.hooks.matchers import holds  # noqa: PLC0415  # few hooks have one

        return call is not None and holds(hook.condition, call, names, self._environment.cwd)

    async def _run_one(
        self,
        placed: RegisteredHook,
        told: Mapping[str, Any],
        most_s: float | None,
        environ: Mapping[str, str],
        places: asyncio.Semaphore,
    ) -> Answer:
        event, hook = placed.event, placed.hook
        timeout_s = hook.timeout_s if most_s is None else min(hook.timeout_s, most_s)
        async with places:
            if not placed.is_still_allowed():
                return _failed(placed, "has changed since you allowed it and is not run")
            try:
                heard = await run_with_input(
                    self._environment.processes,
                    [self._environment.shell, "-c", hook.command],
                    json.dumps(told, ensure_ascii=False).encode("utf-8", "replace"),
                    cwd=self._folder(placed),
                    env={**self._environment.environ(placed.projects), **environ},
                    timeout_s=timeout_s,
                    kept_bytes=_KEPT_BYTES,
                )
            except (OSError, ValueError) as error:
                return _failed(placed, f"could not be started: {error}")
        if heard.cause != "exited":
            why = f"took longer than {timeout_s:g} s" if heard.cause == "timed_out" else "started far too many processes"
            return _failed(placed, f"{why} and was ended")
        answer = read_answer(event, heard.exit_code, heard.stdout, heard.stderr)
        if isinstance(answer, str):
            return _failed(placed, answer)
        return restricted(answer) if placed.projects else answer

    def _folder(self, placed: RegisteredHook) -> Path:
        """Where it runs: never where a relative name of the user's own would be a program of the checkout."""
        if placed.projects:
            return placed.projects
        named_in, cwd = placed.named_in, self._environment.cwd
        return named_in if named_in and runs_relative_program(placed.hook.command, cwd, named_in) else cwd


def _told(event: str, payload: Mapping[str, Any], call: ClaudeCall | None) -> dict[str, Any]:
    """What stands on stdin: Claude Code's form, and wolo's own beside it under `wolo_…`."""
    told = {"hook_event_name": event, **payload}
    if (mode := payload.get("permission_mode")) is not None:
        told |= {"permission_mode": PERMISSION_MODES.get(mode, mode), "wolo_mode": mode}
    if call is None:
        return told
    told |= {"tool_name": call.name, "tool_input": call.input}
    told |= {"wolo_tool_name": payload["tool_name"], "wolo_tool_input": payload["tool_input"]}
    result = payload.get("tool_response")
    if result is not None:
        told |= {"duration_ms": result["duration_ms"], "wolo_tool_response": result}
        told["tool_response"] = to_claude_response(call, result)
        if event == "PostToolUseFailure":
            told |= {"error": failure(call, result), "is_interrupt": False}
    return told


def _in_wolos_names(
    event: str, payload: Mapping[str, Any], calls: Sequence[ClaudeCall | None], answers: Sequence[Answer]
) -> Answer:
    """All answers as one, with changed arguments as wolo's tool takes them."""
    answer = combined(answers)
    if answer.updated_input is None or event not in ABOUT_TOOLS:
        return answer
    arguments = dict(payload["tool_input"])
    for call, each in zip(calls, answers, strict=True):
        if call is None or each.updated_input is None or each.updated_input == call.input:
            continue
        taken = to_wolo_arguments(payload["tool_name"], arguments, call, each.updated_input)
        if taken is None:
            return replace(answer, decision="deny", reason=_NOT_CARRIED_OVER, updated_input=None)
        arguments = taken
    return replace(answer, updated_input=None if arguments == payload["tool_input"] else arguments)


def _failed(placed: RegisteredHook, why: str) -> Answer:
    notice = f"{_named(placed)} {why.rstrip('.')}."
    if not placed.hook.strict:
        return Answer(notices=(notice,))
    return Answer(decision="deny", reason=f"{notice} It is strict, so this counts as a no.", notices=(notice,))


def _named(placed: RegisteredHook) -> str:
    return f"The {placed.event} hook `{placed.hook.command}`"


def digest(hooks: Sequence[tuple[str, Hook]], folder: Path) -> str:
    """Another one as soon as a command, or a file it names, has changed."""
    seen = hashlib.sha256(msgspec.json.encode(hooks))
    named = {named.path for _, hook in hooks for named in files_named(hook.command, folder)}
    for path in sorted(path for path in named if path.is_relative_to(folder)):
        seen.update(f"\0{path}\0".encode("utf-8", "surrogateescape"))
        seen.update(_content(path))
    return seen.hexdigest()


def _content(path: Path) -> bytes:
    """What it is, when it is no file, too: a name that a file takes later is a change."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b"none"
    found = os.fstat(handle)
    if not stat.S_ISREG(found.st_mode):
        os.close(handle)
        return b"no file"
    with os.fdopen(handle, "rb") as file:
        if found.st_size > MOST_BYTES:
            return f"{found.st_size} {found.st_mtime_ns}".encode()
        return hashlib.file_digest(file, "sha256").digest()
