"""A function in a file of the user as a tool of the model, run in the file's process."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from msgspec.structs import replace

from wolo.errors import ToolError
from wolo.extensions.custom_tools.tool_listing import ListedFunction, ToolFile, ToolListing
from wolo.extensions.custom_tools.tool_process import ToolCrashedError, ToolProcess, start_and_load
from wolo.formats.encoding.wire_forms import adapt_schema
from wolo.formats.format import ToolSpec
from wolo.guard.intents import CallIntent, Intent
from wolo.messages import terminal_text
from wolo.tools.clipping import clean, clip_and_keep
from wolo.tools.command_tracking import ChangeTracking, changes_metadata, paths_of
from wolo.tools.shell import FILES
from wolo.tools.tool import CallContext, ToolServices
from wolo.tools.tool_values import Answered, CallResult, Interrupted
from wolo.workspace.processes.process_runner import Processes

INTERRUPTED = "[interrupted: the tool was ended; the call may have had effects]\n"


class FileProcess:
    """The processes of one file, one inside the sandbox and one outside; calls run one after the other."""

    def __init__(self, file: ToolFile, processes: Processes) -> None:
        self.file = file
        self._processes = processes
        self._running: dict[bool, ToolProcess] = {}
        self._lock = asyncio.Lock()
        self._is_closed_with: object = None

    async def call(self, tool: str, arguments: Mapping[str, Any], call: CallContext, timeout_s: float) -> dict[str, Any]:
        """Raises ToolError; a process that crashed, or took too long, is started again at the next call."""
        async with self._lock:
            is_safe = False
            try:
                async with asyncio.timeout(timeout_s):
                    process = self._running.get(call.confined) or await self._start(call)
                    answer = await process.request({"tool": tool, "input": arguments})
                is_safe = True
                return answer
            except TimeoutError as error:
                raise ToolError(f"{tool} took longer than {timeout_s:g} s and was ended.") from error
            except ToolCrashedError as error:
                raise ToolError(f"{tool} crashed: {error}.") from error
            finally:
                if not is_safe and (broken := self._running.pop(call.confined, None)):
                    await broken.end()

    async def _start(self, call: CallContext) -> ToolProcess:
        services = call.services
        if self._is_closed_with is not services.shell:
            services.shell.closing.append(self._processes.close_all)
            self._is_closed_with = services.shell
        env = call.environment()
        cwd, first_line = services.workspace.start, self.file.first_line()
        process, loaded = await start_and_load(
            self._processes,
            lambda: replace(call, only_reads=True).enclose(self.file.argv, cwd, in_background=True),
            cwd,
            env,
            first_line,
        )
        self._running[call.confined] = process
        if not loaded["tools"]:
            raise ToolError(f"{self.file.source} cannot be loaded: {loaded['problems'][0]['message']}.")
        return process


class ToolHost(Protocol):
    """Runs the functions of one file in a process."""

    @property
    def file(self) -> ToolFile: ...

    async def call(self, tool: str, arguments: Mapping[str, Any], call: CallContext, timeout_s: float) -> dict[str, Any]:
        """The output, whether it is an error, and what was printed. Raises ToolError."""


class CustomTool:
    aliases: Mapping[str, str] = {}
    reads_only = False

    def __init__(self, listed: ListedFunction, listing: ToolListing, process: ToolHost) -> None:
        self.name = listed.name
        self.spec = ToolSpec(listed.name, listed.description, adapt_schema(listed.parameters))
        self.effects = listing.effects
        self.source = process.file.source
        self._timeout_s = listing.timeout_s
        self._process = process

    def intents(self, args: Mapping[str, Any], services: ToolServices) -> Sequence[Intent]:
        return (CallIntent(f"tool:{self.name}", only_reads=not self.effects),)

    async def run(self, args: Mapping[str, Any], call: CallContext) -> CallResult:
        if recorded := call.services.recorded_result(call.call_id):
            return recorded
        looks = None if call.confined else ChangeTracking(call)
        began = time.monotonic()
        try:
            if looks is not None:
                await looks.before()
            answer = await self._process.call(self.name, args, call, self._timeout_s or call.services.shell_timeout_s)
            changes = await looks.find_changes(runs_on=False) if looks is not None else None
        except asyncio.CancelledError as error:
            raise Interrupted(CallResult(INTERRUPTED, outcome="interrupted")) from error
        finally:
            if looks is not None:
                looks.after()
        elapsed_s = time.monotonic() - began
        printed = str(answer.get("printed") or "")
        said = str(answer["output"]) or printed or "(no result)"
        if answer["is_error"] and printed:
            said = f"{said}\n\n[printed before]\n{printed}"
        text = b"".join(clean(call.services.secrets.hide(said).encode(errors="replace")))
        shown = clip_and_keep(text, name=f"{self.name}-{call.call_id or 'output'}.txt", keep=call.services.save_output)
        view = None
        if (rows := answer.get("rows")) is not None:
            view = Answered(terminal_text.clean(call.services.secrets.hide("\n".join(rows))), elapsed_s)
        elif not answer["is_error"]:
            view = Answered(shown, elapsed_s)
        result = CallResult(shown, view, is_error=bool(answer["is_error"]))
        if changes is None or not (paths := paths_of(changes)):
            return result
        return replace(result, files_changed=paths, metadata={FILES: changes_metadata(changes)})
