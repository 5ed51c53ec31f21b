"""One extension in its own process: asks it, one thing after the other, and gives it up when it crashes or is slow."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from wolo.errors import ToolError
from wolo.extension import LoginStep
from wolo.extensions.custom_tools.tool_listing import Enclose, ExtensionListing, ToolFile
from wolo.extensions.custom_tools.tool_process import ToolCrashedError, ToolProcess, start_and_load
from wolo.extensions.hooks.response import GUARD, NOTHING
from wolo.places import make_private
from wolo.tools.tool import CallContext
from wolo.tools.tool_values import HookReply
from wolo.workspace.files.unfinished import write_whole
from wolo.workspace.processes.process_runner import Processes

ANSWERS_WITHIN_S = 10.0
"""Without `TIMEOUT_S` in the file."""
STARTS_WITHIN_S = 20.0
MOST_EVENTS = 20_000
"""Events that may wait for an observer."""
MOST_STATE_BYTES = 1 << 20
MAY_REFUSE = frozenset((GUARD, "UserPromptSubmit"))
"""Hook events at which nothing passes an extension that cannot be asked. A result is withheld, too."""
RESULTS = frozenset(("PostToolUse", "PostToolUseFailure"))


class ExtensionDownError(Exception):
    """The extension gives no answer; the message says why."""


class ExtensionLaunch(Struct, frozen=True, kw_only=True):
    processes: Processes
    enclose: Enclose
    cwd: Path
    env: Callable[[], Mapping[str, str]]
    facts: Callable[[], Mapping[str, Any]]
    hide: Callable[[Any], Any]
    """Replaces secrets by placeholders."""
    notify: Callable[[str], None]
    on_status: Callable[[], None] = lambda: None
    """Called when the text for the status line has changed."""
    state_file: Path | None = None
    """Of the session; None: nothing is saved."""


class _Reply(Struct, frozen=True, forbid_unknown_fields=True):
    """There is no "allow"."""

    decision: Literal["", "ask", "deny"] = ""
    reason: str = ""
    context: str = ""
    updated_input: dict[str, Any] | None = None
    updated_output: str | None = None


class ExtensionAnswer(Struct, frozen=True):
    error: str = ""
    reply: _Reply = _Reply()
    actions: tuple[tuple[Literal["status", "notify", "tell", "prompt", "compact", "save"], Any], ...] = ()
    # of a tool or command
    output: str = ""
    is_error: bool = False
    printed: str = ""
    rows: tuple[str, ...] | None = None
    values: tuple[str, ...] = ()
    # of a login
    key: str = ""
    saved: str = ""
    step: LoginStep | None = None
    # of a request
    system: str | None = None
    texts: Mapping[int, str] = {}
    dropped: tuple[int, ...] = ()
    added: tuple[str, ...] = ()
    blocked: str = ""


class ExtensionHost:
    """Has the interface of a `FileProcess`, for the extension's tools."""

    def __init__(self, name: str, file: ToolFile, listing: ExtensionListing, launch: ExtensionLaunch) -> None:
        self.name, self.file, self.listing = name, file, listing
        self.problem = ""
        """Why it is not asked any more; empty: it is."""
        self.status = ""
        self.wants_compaction = False
        self._launch = launch
        self._limit_s = listing.timeout_s or ANSWERS_WITHIN_S
        self._process: ToolProcess | None = None
        self._has_started = False
        self._lock = asyncio.Lock()
        self._running: set[asyncio.Task[ExtensionAnswer]] = set()
        self._queue: deque[Any] = deque()
        self._pump: asyncio.Task[None] | None = None
        self._texts: list[str] = []
        """For the model, with the next request."""
        self._errors: set[str] = set()
        """Errors of its functions that were shown."""

    # Observers

    def observe(self, event: Any, task: str = "") -> None:
        """Queues an event, if the extension observes its type; `task` is the subagent's. Waits for nothing."""
        types = self.listing.task_events if task else self.listing.events
        if self.problem or not ("*" in types or type(event).__struct_config__.tag in types):
            return
        if len(self._queue) >= MOST_EVENTS:
            self._give_up(f"is {MOST_EVENTS:,} events behind")
            return
        self._queue.append((task, event))
        if self._pump is None or self._pump.done():
            self._pump = asyncio.get_running_loop().create_task(self._send_events())

    async def _send_events(self) -> None:
        while self._queue:
            batch = [[task, msgspec.to_builtins(event, enc_hook=str, str_keys=True)] for task, event in self._queue]
            self._queue.clear()
            with suppress(ExtensionDownError):
                self._show_error(await self.ask("events", events=self._launch.hide(batch)))

    # Hooks

    async def run_hook(self, event: str, payload: Mapping[str, Any]) -> HookReply:
        """Nothing for an event that it has no function for."""
        tools = self.listing.hooks.get(event)
        if tools is None or (tools and payload.get("tool_name") not in tools):
            return NOTHING
        try:
            answer = await self.ask("hook", event=event, payload=self._launch.hide(dict(payload)))
        except ExtensionDownError as error:
            return self._refuse(event, str(error))
        if answer.error:
            self._show_error(answer)
            return self._refuse(event, f"failed: {answer.error.splitlines()[-1]}")
        reply = answer.reply
        return HookReply(
            decision=reply.decision,
            reason=reply.reason or (f"The extension {self.name} gives no reason." if reply.decision else ""),
            context=reply.context,
            updated_input=reply.updated_input if event == GUARD else None,
            updated_output=reply.updated_output if event in RESULTS else None,
        )

    def _refuse(self, event: str, why: str) -> HookReply:
        reason = f"The extension {self.name} {why.rstrip('.')}. It could not check this."
        if event in RESULTS:
            return HookReply(updated_output=f"[withheld] {reason}")
        if event not in MAY_REFUSE:
            return NOTHING
        return HookReply(decision="ask" if event == GUARD else "deny", reason=reason)

    def take_texts(self) -> list[str]:
        texts, self._texts = self._texts, []
        return texts

    # Tools

    async def call(self, tool: str, arguments: Mapping[str, Any], call: CallContext, timeout_s: float) -> dict[str, Any]:
        """Raises ToolError."""
        try:
            answer = await self.ask(
                "tool", self.listing.timeout_s or timeout_s, tool=tool, input=self._launch.hide(dict(arguments))
            )
        except ExtensionDownError as error:
            raise ToolError(f"{tool}: the extension {self.name} {error}.") from error
        return msgspec.structs.asdict(answer)

    # All

    async def ask(self, do: str, timeout_s: float | None = None, **fields: Any) -> ExtensionAnswer:
        """Raises ExtensionDownError. When cancelled, the extension still finishes what it does."""
        task = asyncio.get_running_loop().create_task(self._ask({"do": do, **fields}, timeout_s or self._limit_s))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return await asyncio.shield(task)

    async def _ask(self, fields: dict[str, Any], timeout_s: float) -> ExtensionAnswer:
        async with self._lock:
            if self.problem:
                raise ExtensionDownError(self.problem)
            why, is_answered = "was ended", False
            try:
                async with asyncio.timeout(STARTS_WITHIN_S):
                    process = self._process or await self._start()
                fields["facts"] = self._launch.facts()
                if not self._has_started:
                    self._has_started = True
                    fields["state"] = await asyncio.to_thread(self._read_state)
                async with asyncio.timeout(timeout_s):
                    answer = msgspec.convert(await process.request(fields), type=ExtensionAnswer, strict=False)
                for action, value in answer.actions:
                    hide = self._launch.hide
                    if action == "status":
                        self.status = hide(str(value))
                        self._launch.on_status()
                    elif action == "notify":
                        self._launch.notify(hide(str(value)))
                    elif action == "tell":
                        self._texts.append(hide(str(value)))
                    elif action == "compact":
                        self.wants_compaction = True
                    elif action == "save":
                        await asyncio.to_thread(self._write_state, value)
                is_answered = True
                return answer
            except TimeoutError:
                why = f"took longer than {timeout_s:g} s and was ended"
            except (ToolCrashedError, msgspec.ValidationError) as error:
                why = f"gave no valid answer: {error}"
            except ToolError as error:
                why = f"could not be started: {error.message}"
            finally:
                if not is_answered:
                    self._give_up(why)
                    await self._end_process()
            raise ExtensionDownError(self.problem)

    async def _start(self) -> ToolProcess:
        """Raises ToolError and ToolCrashedError."""
        launch, first_line = self._launch, self.file.first_line()
        process, loaded = await start_and_load(
            launch.processes, lambda: launch.enclose(tuple(self.file.argv)), launch.cwd, launch.env(), first_line
        )
        self._process = process
        if "events" not in loaded:
            raise ToolError(f"{self.file.source} cannot be loaded: {loaded['problems'][0]['message']}")
        return process

    def _give_up(self, why: str) -> None:
        if not self.problem:
            self.problem, self.status = why, ""
            self._queue.clear()
            effect = " Calls and prompts that it checks are not let through." if MAY_REFUSE & self.listing.hooks.keys() else ""
            self._launch.notify(f"The extension {self.name} {why.rstrip('.')}.{effect}")

    def _show_error(self, answer: ExtensionAnswer) -> None:
        if answer.error and answer.error not in self._errors:
            self._errors.add(answer.error)
            self._launch.notify(f"The extension {self.name} failed: {answer.error}")

    def _read_state(self) -> Any:
        with suppress(OSError, msgspec.DecodeError):
            if self._launch.state_file is not None:
                return msgspec.json.decode(self._launch.state_file.read_bytes())
        return None

    def _write_state(self, value: Any) -> None:
        data = msgspec.json.encode(self._launch.hide(value))
        if len(data) > MOST_STATE_BYTES:
            self._launch.notify(f"The state of the extension {self.name} is not saved: it has more than 1 MiB.")
        elif self._launch.state_file is not None:
            with suppress(OSError):
                make_private(self._launch.state_file.parent)
                write_whole(self._launch.state_file, data, durable=False)

    async def close(self, within_s: float, *, ends_session: bool) -> None:
        """Lets it finish its work, and tells it that the session ends."""
        deadline_at = time.monotonic() + within_s
        with suppress(TimeoutError, ExtensionDownError):
            async with asyncio.timeout(within_s):
                if self._pump is not None:
                    await asyncio.shield(self._pump)
                if ends_session and "SessionEnd" in self.listing.hooks and not self.problem:
                    left_s = max(deadline_at - time.monotonic(), 0.1)
                    self._show_error(await self.ask("hook", left_s, event="SessionEnd", payload={}))
        tasks = [*self._running, *filter(None, [self._pump])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.problem = self.problem or "was closed"
        await self._end_process()

    async def _end_process(self) -> None:
        if (process := self._process) is not None:
            self._process = None
            await process.end()
