"""Runs the matching hooks of an event in parallel and combines their answers."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from wolo.errors import WoloError
from wolo.extensions.hooks.claude_calls import ClaudeCall, to_claude_calls, to_wolo_arguments
from wolo.extensions.hooks.claude_results import failure, to_claude_response
from wolo.extensions.hooks.definitions import ABOUT_TOOLS, FILE_CHANGED, ForeignHook, Hook
from wolo.extensions.hooks.matchers import PERMISSION_MODES, holds, matches, names_file, names_of
from wolo.extensions.hooks.response import GUARD, NO_REASON, NOTHING, combine, read_answer, restrict, when_late
from wolo.extensions.referenced_files import add_contents, files_named, runs_relative_program
from wolo.messages.terminal_text import clean
from wolo.tools.tool_values import HookReply
from wolo.workspace.processes.process_runner import Processes
from wolo.workspace.processes.run_with_input import run_with_input

SLOW_S = 1.0
"""Hooks that take longer are reported."""
AT_ONCE = 16
"""Concurrent programs: a patch is described file by file."""
_MISSING = 126
"""From here on a shell's exit codes mean that a program is missing, cannot be run, or was ended by a signal."""
_KEPT_BYTES = 256 * 1024
"""Per end of a hook's output."""
_SUBJECTS = {
    "SessionStart": "source",
    "SessionEnd": "reason",
    "PreCompact": "trigger",
    "PostCompact": "trigger",
    "Notification": "notification_type",
    "SubagentStart": "agent_type",
    "SubagentStop": "agent_type",
    "StopFailure": "error",
    "ConfigChange": "source",
    "InstructionsLoaded": "load_reason",
    "Setup": "trigger",
    "UserPromptExpansion": "command_name",
}
"""Fields that matchers are compared with, for events without a tool; without a field every hook matches."""
_BEFORE_THE_CALL = frozenset(("PreToolUse", "PermissionRequest"))
_NOT_TRANSLATABLE = "A hook changes the arguments of a call that affects several files, which is not supported."

Slow = Callable[[Sequence[str]], Awaitable[None]]
"""Called with the commands still running."""
AskModel = Callable[[str, str], Awaitable[str]]
"""Takes a prompt and the name of a model, or an empty one. Raises WoloError."""


CallProgram = Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any]]]
"""Gets the event and returns the hook's JSON output. Raises WoloError when there is none."""


class ProgramHook(Struct, frozen=True):
    """A hook that the embedding program answers, in Claude Code's form."""

    event: str
    hook: Hook
    """Its matcher and time limit; `command` names it for the user."""
    call: CallProgram


class RegisteredHook(Struct, frozen=True, kw_only=True):
    """A hook and its origin."""

    event: str
    hook: Hook
    source: str
    """The file or setting that defines it."""
    projects: Path | None = None
    """The project folder that it comes from and runs in; such a hook can only make wolo stricter."""
    plugin: Path | None = None
    """The plugin that it comes from; such a hook can only make wolo stricter too."""
    variables: Mapping[str, str] = {}
    """Environment variables of its plugin."""
    named_in: Path | None = None
    """For a user's hook: the folder of the defining file, where relative programs are."""
    active_with: tuple[str, ...] = ()
    """The skills (`skill NAME`) and agents (`agent NAME`) with which it runs; empty: always."""
    is_still_allowed: Callable[[], bool] = lambda: True
    """Tells whether it is still what the user consented to."""
    call: CallProgram | None = None
    """Asks the embedding program in place of what `hook` would run."""

    @classmethod
    def of_program(cls, callback: ProgramHook) -> RegisteredHook:
        return cls(event=callback.event, hook=callback.hook, source="the program", call=callback.call)

    @property
    def key(self) -> str:
        return "\0".join((self.source, self.event, self.hook.matcher, self.hook.action))


class HookEnvironment(Struct, frozen=True, kw_only=True):
    processes: Processes
    shell: str
    cwd: Path
    environ: Callable[[Path | None], Mapping[str, str]]
    """Receives the project folder that a hook comes from."""
    ask_model: AskModel | None = None
    """For hooks of type `prompt`."""
    ask_agent: AskModel | None = None
    """For hooks of type `agent`: the agent may read files."""


class HookRunner:
    def __init__(self, placed: Sequence[RegisteredHook], environment: HookEnvironment, ran: Iterable[str] = ()) -> None:
        """`ran`: keys of hooks that ran already and run only once."""
        self.placed = tuple(placed)
        self.ran = set(ran)
        self.active: set[str] = set()
        """Skills that were loaded, and the agent of the conversation, as in `RegisteredHook.active_with`."""
        self._environment = environment
        self._in_background: set[asyncio.Task[HookReply]] = set()
        self._late: list[HookReply] = []
        """Answers of hooks that nothing waited for."""

    async def run(
        self,
        event: str,
        payload: Mapping[str, Any],
        slow: Slow,
        most_s: float | None = None,
        *,
        environ: Mapping[str, str] | None = None,
    ) -> HookReply:
        """Combined answer of the event's hooks. Never raises except when cancelled, which kills all of them.

        `payload` is added to stdin, in wolo's names. No hook runs longer than `most_s`. `environ` extends the environment.
        """
        places = asyncio.Semaphore(AT_ONCE)

        def run_one(each: RegisteredHook, call: ClaudeCall | None) -> Coroutine[Any, Any, HookReply]:
            return self._run_one(each, _hook_input(event, payload, call), most_s, environ or {}, places)

        select = [pair for pair in self.select(event, payload) if not (pair[0].hook.once and pair[0].key in self.ran)]
        self.ran.update(each.key for each, _ in select if each.hook.once)
        for each, call in select:
            if each.hook.in_background:
                task = asyncio.get_running_loop().create_task(run_one(each, call))
                self._in_background.add(task)
                task.add_done_callback(self._has_ended)
        select = [pair for pair in select if not pair[0].hook.in_background]
        if not select:
            return NOTHING
        try:
            async with asyncio.TaskGroup() as group:
                running = {group.create_task(run_one(*pair)): pair[0] for pair in select}
                _, late = await asyncio.wait(running, timeout=SLOW_S)
                if late:
                    await slow(list(dict.fromkeys(running[each].hook.action for each in running if each in late)))
        except BaseExceptionGroup as failed:  # only `slow` can fail
            raise failed.exceptions[0] from None
        answers = [each.result() for each in running]
        return _combine_for_wolo(event, payload, [call for _, call in select], answers)

    def _has_ended(self, task: asyncio.Task[HookReply]) -> None:
        self._in_background.discard(task)
        if not task.cancelled():
            self._late.append(when_late(task.result()))

    def take_late(self) -> HookReply:
        """The output of background hooks that have ended since the last time."""
        late, self._late = self._late, []
        return combine(late) if late else NOTHING

    async def close(self, within_s: float) -> None:
        """Waits for background hooks, and ends those that take longer."""
        if self._in_background:
            await asyncio.wait(self._in_background, timeout=within_s)
        left = list(self._in_background)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    def select(self, event: str, payload: Mapping[str, Any]) -> list[tuple[RegisteredHook, ClaudeCall | None]]:
        """The hooks to run, each command once per affected file, in order of definition."""
        calls: list[ClaudeCall | None] = [None]
        if event in ABOUT_TOOLS:
            stdin_data = to_claude_calls(
                payload["tool_name"], payload["tool_input"], self._environment.cwd, follow_links=event in _BEFORE_THE_CALL
            )
            calls = [*stdin_data]
        subject = str(payload.get(_SUBJECTS.get(event, ""), ""))
        matching: dict[tuple[str, str, Path | None, int], tuple[RegisteredHook, ClaudeCall | None]] = {}
        for each in self.placed:
            for at, call in enumerate(calls):
                names = names_of(payload["tool_name"], call.name) if call else (subject,)
                is_about = call is not None or event in _SUBJECTS
                if (
                    each.event != event
                    or not self._is_active(each, event, payload)
                    or (is_about and not matches(each.hook.matcher, names))
                ):
                    continue
                if event == FILE_CHANGED and not names_file(each.hook.matcher, str(payload.get("file_path", ""))):
                    continue
                cwd = self._environment.cwd
                if not each.hook.condition or (call is not None and holds(each.hook.condition, call, names, cwd)):
                    matching.setdefault((each.hook.action, each.hook.condition, each.projects, at), (each, call))
        return list(matching.values())

    def _is_active(self, placed: RegisteredHook, event: str, payload: Mapping[str, Any]) -> bool:
        """The end of another agent is not that of the conversation's."""
        named = {f"agent {payload['agent_type']}"} if "agent_type" in payload else set()
        active = named if event == "SubagentStop" else named | self.active
        return not placed.active_with or not active.isdisjoint(placed.active_with)

    async def _run_one(
        self,
        placed: RegisteredHook,
        stdin_data: Mapping[str, Any],
        most_s: float | None,
        environ: Mapping[str, str],
        places: asyncio.Semaphore,
    ) -> HookReply:
        hook = placed.hook
        timeout_s = hook.limit_s if most_s is None else min(hook.limit_s, most_s)
        async with places:
            if not placed.is_still_allowed():
                return _failure_reply(placed, "has changed since you allowed it and is not run")
            if isinstance(hook, ForeignHook):
                from wolo.extensions.hooks.foreign_contracts import to_stdin  # noqa: PLC0415  # few projects have such hooks

                theirs = to_stdin(hook, stdin_data)
                if theirs is None:
                    return NOTHING
                stdin_data = theirs
            data = json.dumps(stdin_data, ensure_ascii=False).encode("utf-8", "replace")
            match "call" if placed.call else hook.type:
                case "call":
                    answer = await _ask_program(placed, stdin_data, timeout_s)
                case "command":
                    answer = await self._run_command(placed, data, environ, timeout_s)
                case "prompt":
                    answer = await ask(hook, data, self._environment.ask_model, timeout_s)
                case "agent":
                    answer = await ask(hook, data, self._environment.ask_agent, timeout_s)
                case "http":
                    from wolo.extensions.hooks.http_hook import post  # noqa: PLC0415  # few hooks are of this type

                    answer = await post(placed.event, hook, data, timeout_s, is_own=not (placed.projects or placed.plugin))
        if isinstance(answer, str):
            return _failure_reply(placed, answer)
        if answer.unclear and hook.strict:
            return _failure_reply(placed, f"answered {answer.unclear}, which wolo does not understand")
        return restrict(answer) if placed.projects or placed.plugin else answer

    async def _run_command(
        self, placed: RegisteredHook, data: bytes, environ: Mapping[str, str], timeout_s: float
    ) -> HookReply | str:
        hook, folder, read, more = placed.hook, self._folder(placed), read_answer, {}
        if isinstance(hook, ForeignHook):
            from wolo.extensions.hooks import foreign_contracts  # noqa: PLC0415  # as above

            read, more = partial(foreign_contracts.read_foreign_answer, hook), foreign_contracts.variables(hook, placed.projects)
            folder /= hook.folder
        try:
            finished = await run_with_input(
                self._environment.processes,
                [self._environment.shell, "-c", hook.command],
                data,
                cwd=folder,
                env={**self._environment.environ(placed.projects), **placed.variables, **more, **environ},
                timeout_s=timeout_s,
                kept_bytes=_KEPT_BYTES,
            )
        except (OSError, ValueError) as error:
            return f"could not be started: {error}"
        if finished.cause != "exited":
            why = f"took longer than {timeout_s:g} s" if finished.cause == "timed_out" else "started far too many processes"
            return f"{why} and was ended"
        answer = read(placed.event, finished.exit_code, finished.stdout, finished.stderr)
        fails_closed = isinstance(hook, ForeignHook) and hook.contract in (
            "copilot",
            "cline",
        )  # any failure of a guard denies there
        if isinstance(answer, str) and 0 < finished.exit_code < _MISSING and not fails_closed:
            return _failure_reply(placed, answer, has_run=True)
        return answer

    def _folder(self, placed: RegisteredHook) -> Path:
        """Avoids folders where a relative name of the user's hook would mean a program of the checkout."""
        if placed.projects:
            return placed.projects
        named_in, cwd = placed.named_in, self._environment.cwd
        return named_in if named_in and runs_relative_program(placed.hook.command, cwd, named_in) else cwd


def _hook_input(event: str, payload: Mapping[str, Any], call: ClaudeCall | None) -> dict[str, Any]:
    """Content of stdin: Claude Code's form, and wolo's own under `wolo_…`."""
    stdin_data = {"hook_event_name": event, **payload}
    if (mode := payload.get("permission_mode")) is not None:
        stdin_data |= {"permission_mode": PERMISSION_MODES.get(mode, mode), "wolo_mode": mode}
    if call is None:
        return stdin_data
    stdin_data |= {"tool_name": call.name, "tool_input": call.input}
    stdin_data |= {"wolo_tool_name": payload["tool_name"], "wolo_tool_input": payload["tool_input"]}
    result = payload.get("tool_response")
    if result is not None:
        stdin_data |= {"duration_ms": result["duration_ms"], "wolo_tool_response": result}
        stdin_data["tool_response"] = to_claude_response(call, result)
        if event == "PostToolUseFailure":
            stdin_data |= {"error": failure(call, result), "is_interrupt": False}
    return stdin_data


def _combine_for_wolo(
    event: str, payload: Mapping[str, Any], calls: Sequence[ClaudeCall | None], answers: Sequence[HookReply]
) -> HookReply:
    """Combines all answers, with changed arguments in wolo's form."""
    answer = combine(answers)
    if answer.updated_input is None or event not in ABOUT_TOOLS:
        return answer
    arguments = dict(payload["tool_input"])
    for call, each in zip(calls, answers, strict=True):
        if call is None or each.updated_input is None or each.updated_input == call.input:
            continue
        taken = to_wolo_arguments(payload["tool_name"], arguments, call, each.updated_input)
        if taken is None:
            return replace(answer, decision="deny", reason=_NOT_TRANSLATABLE, updated_input=None)
        arguments = taken
    return replace(answer, updated_input=None if arguments == payload["tool_input"] else arguments)


async def _ask_program(placed: RegisteredHook, event: Mapping[str, Any], timeout_s: float) -> HookReply | str:
    assert placed.call is not None  # the caller has looked
    try:
        async with asyncio.timeout(timeout_s):
            output = await placed.call(event)
        printed = json.dumps(output).encode("utf-8", "replace")
    except TimeoutError:
        return f"took longer than {timeout_s:g} s"
    except WoloError as error:
        return f"failed: {error.message}"
    return read_answer(placed.event, 0, printed, b"")


def _failure_reply(placed: RegisteredHook, why: str, *, has_run: bool = False) -> HookReply:
    """`has_run`: it ended with a status of its own, which by contract does not block."""
    notice = f"The {placed.event} hook `{placed.hook.action}` {why.rstrip('.')}."
    if placed.hook.strict:
        return HookReply(decision="deny", reason=f"{notice} It is strict, so the call is denied.", notices=(notice,))
    if placed.event == GUARD and not has_run:
        return HookReply(decision="ask", reason=f"{notice} It could not check this call.", notices=(notice,))
    return HookReply(notices=(notice,))


def digest(hooks: Sequence[tuple[str, Hook]], folder: Path) -> str:
    """Changes as soon as a command, or a file it names, changes."""
    seen = hashlib.sha256(msgspec.json.encode(hooks))
    named = {named.path for _, hook in hooks for named in files_named(hook.command, folder)}
    add_contents(seen, (path for path in named if path.is_relative_to(folder)))
    return seen.hexdigest()


MOST_CHARS = 60_000
"""Of the event; the middle of a longer one is left out."""
_PLACEHOLDER = "$ARGUMENTS"


class _Verdict(Struct, frozen=True):
    ok: bool
    reason: str = ""


async def ask(
    hook: Hook, data: bytes, ask_model: Callable[[str, str], Awaitable[str]] | None, timeout_s: float
) -> HookReply | str:
    """The model's answer, or a text that describes what went wrong."""
    if ask_model is None:
        return "asks a model, and there is none"
    event = data.decode()
    if len(event) > MOST_CHARS:
        event = f"{event[: MOST_CHARS // 2]}\n[… cut …]\n{event[-MOST_CHARS // 2 :]}"
    prompt = hook.prompt.replace(_PLACEHOLDER, event) if _PLACEHOLDER in hook.prompt else f"{hook.prompt}\n\n{event}"
    try:
        async with asyncio.timeout(timeout_s):
            answer = await ask_model(prompt, hook.model)
    except TimeoutError:
        return f"took longer than {timeout_s:g} s and was ended"
    except WoloError as error:
        return f"got no answer: {error.message}"
    found = re.search(r"\{.*\}", answer, re.DOTALL)
    try:
        verdict = msgspec.json.decode(found[0] if found else answer, type=_Verdict)
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return f'got an answer that is not {{"ok": true}} or {{"ok": false, "reason": …}}: {clean(answer)[:200]}'
    return NOTHING if verdict.ok else HookReply(decision="deny", reason=clean(verdict.reason).strip() or NO_REASON)
