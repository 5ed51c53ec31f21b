"""Runs one tool: its live output, and every outcome as a result."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Literal

from msgspec.structs import replace

from wolo.agent.events import CallProgressed, Event
from wolo.errors import ToolError
from wolo.messages.parts import CHANGED, EXIT_CODE, Outcome, ToolPart
from wolo.messages.secret_values import StreamRedactor
from wolo.tools.tool import CallContext, Tool, kind_of
from wolo.tools.tool_values import CallResult, Diff, Interrupted, Output

log = logging.getLogger(__name__)

Emit = Callable[[Event], Awaitable[None]]

NEVER_STARTED = "Never started: the turn was interrupted before this call began. It had no effect."
SKIPPED_FOR_STEERING = "Not run: the user said something in the meantime, which comes next. It had no effect."
INTERRUPTED = "The call was interrupted while it was running. It may have had effects; check before you repeat it."
DENIED_BY_RULE = "Denied, so it was not run. {reason} Do not try to get the same effect another way."
READ_ONLY = "Denied by plan mode, so it was not run. {reason} Plan mode is read-only: describe this change in the plan instead."
MAY_BE_EXAMPLE = "The answer ends with this call in a code fence behind other text: it may be meant as an example."
NOT_CONFIRMED = "Not run. {reason} If you mean it, make the call itself, without a fence and without other text behind it."
DENIED_BY_PERSON = "Denied by the user, so it was not run: {reason}. Do not try to get the same effect another way."
NO_REASON = "no reason given"
"""Used when the user denies a call without a reason."""
NOT_ANSWERED = "Not run, though not denied either: it needs the user's approval, and the question was closed without an answer."
DENIED_BY_HOOK = "Denied by a user hook, so it was not run: {reason}"
CHANGED_BY_HOOK = "[A user hook changed the arguments of this call; it ran with {arguments}]"
CHANGED_BY_PERSON = "[The user changed the arguments of this call; it ran with {arguments}]"
WRONGLY_CHANGED = "A user hook changed the arguments of this call to invalid ones, so it was not run. {reason}"
FROM_HOOK = "[User hook: {text}]"
MOST_CHANGED = 200
"""Changed files that are saved with a call."""
BROKEN_OFF = "Not run: the answer was incomplete ({reason})."
LOOPING = "Not run: the same call was made {times} times in a row."


def end(part: ToolPart, outcome: Outcome, output: str) -> ToolPart:
    status: Literal["completed", "failed"] = "completed" if outcome == "ok" else "failed"
    return replace(part, status=status, outcome=outcome, output=output, end_time=time.time())


def crash_text(tool: str, error: Exception) -> str:
    return f"The tool {tool} failed internally ({type(error).__name__}: {error}). This is not your mistake; try another way."


def finish_part(part: ToolPart, result: CallResult) -> ToolPart:
    outcome: Outcome = result.outcome or ("error" if result.is_error else "ok")
    # What the finish check needs to know of a call.
    effects: dict[str, Any] = {}
    if isinstance(result.view, Output):
        effects[EXIT_CODE] = result.view.exit_code
    if result.files_changed:
        kind = "made" if isinstance(result.view, Diff) and result.view.created else "changed"
        effects[CHANGED] = {kind: list(result.files_changed[:MOST_CHANGED])}
    return replace(
        end(part, outcome, result.text or ("" if result.media else "(no output)")),
        output_parts=result.media,
        terminate=result.terminate,
        metadata={**part.metadata, **effects, **result.metadata},
    )


async def run_guarded(tool: Tool, args: Any, context: CallContext) -> CallResult:
    """Turns every failure into a result. Edits are checked for new errors."""
    services, is_edit = context.services, kind_of(tool) == "edit"
    if services.editor is not None and (is_edit or kind_of(tool) == "read"):
        from wolo.tools.editing.open_files import run_in_editor  # noqa: PLC0415  # only an editor has open files

        return await run_in_editor(services.editor, context, partial(_run_checked, tool, args), is_edit=is_edit)
    return await _run_checked(tool, args, context)


async def _run_checked(tool: Tool, args: Any, context: CallContext) -> CallResult:
    services, is_edit = context.services, kind_of(tool) == "edit"
    if services.edit_checks is None or not (is_edit or services.shell.language_servers):
        return await _run(tool, args, context)
    return await services.edit_checks().run(context, partial(_run, tool, args, context), is_edit=is_edit)


async def _run(tool: Tool, args: Any, context: CallContext) -> CallResult:
    try:
        return await tool.run(args, context)
    except ToolError as error:
        return CallResult(text=error.message, is_error=True)
    except Interrupted as stopped:
        return replace(stopped.result, is_error=True, outcome="interrupted")
    except asyncio.CancelledError:
        return CallResult(text=INTERRUPTED, is_error=True, outcome="interrupted")
    except Exception as error:
        log.exception("the tool %s failed", tool.name)
        return CallResult(text=crash_text(tool.name, error), is_error=True)


KEPT_CHARS = 64_000
"""Older output is dropped when events are emitted more slowly than output arrives."""


class LiveProgress:
    def __init__(self, part_id: str, emit: Emit, hiding: StreamRedactor) -> None:
        self._part_id, self._emit, self._hiding = part_id, emit, hiding
        self._waiting = ""
        self._loop = asyncio.get_running_loop()
        self._emitter: asyncio.Task[None] | None = None
        self._closed = self._has_output = False

    def add(self, text: str) -> None:
        """Thread-safe; never blocks."""
        self._has_output = True
        self._loop.call_soon_threadsafe(self._take, text)

    async def close(self) -> None:
        """Returns when all output has been emitted."""
        if self._has_output:
            await asyncio.sleep(0)  # lets output added from this thread arrive
        self._closed = True
        if self._emitter is not None:
            await self._emitter
            if held := self._hiding.close():
                await self._emit(CallProgressed(part_id=self._part_id, text=held))

    def _take(self, text: str) -> None:
        if self._closed:
            return
        self._waiting = (self._waiting + text)[-KEPT_CHARS:]
        if self._emitter is None or self._emitter.done():
            self._emitter = self._loop.create_task(self._pass_on())

    async def _pass_on(self) -> None:
        while self._waiting:
            text, self._waiting = self._hiding.feed(self._waiting), ""
            if text:
                await self._emit(CallProgressed(part_id=self._part_id, text=text))
