"""Runs one prompt without a user present: prints the answer as text, as one JSON object, or as JSON lines."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from wolo.agent import events
from wolo.conversation.conversation import Conversation
from wolo.conversation.phrasing import describe, describe_work
from wolo.errors import UsageError, WoloError
from wolo.frontends.streams import as_json, for_stdout, print_json, print_message, save_answer, write
from wolo.messages.call_arguments import SOME, call_line
from wolo.messages.message import Usage, UserPrompt
from wolo.messages.parts import IN_FENCE
from wolo.messages.terminal_text import escaped_line

if TYPE_CHECKING:
    from wolo.conversation.structured_output import OutputForm, Structured
    from wolo.frontends.stream_json import RunTotals


OutputFormat = Literal["text", "json", "stream-json"]


_CAUSES = {2: "config", 3: "session_error", 75: "unavailable", 129: "interrupted", 130: "interrupted", 143: "interrupted"}
"""Causes of a run that did not start, by its exit code."""


class Headless:
    """Runs one prompt and prints the output that docs/guide/scripts.md specifies for `format`."""

    def __init__(self, conversation: Conversation, *, format: OutputFormat, partial: bool = False, verbose: bool = False) -> None:
        self._conversation, self._format = conversation, format
        self._partial = partial and format == "stream-json"
        self._verbose = verbose
        self._totals = self._new_totals()
        self._help: dict[str, None] = {}
        """Advice about the denials; empty: none."""
        self._progress = ProgressLine()
        self._structured: Structured | None = None
        self._has_begun = False
        self.stopped_by = 0
        """Exit code of the signal that ended the turn; 0 without one."""
        self.stopped = asyncio.Event()

    def stop(self, exit_code: int) -> None:
        """Makes this the exit code, wakes what waits for input, and interrupts the turn."""
        self.stopped_by = exit_code
        self.stopped.set()
        self.interrupt()

    def kill(self) -> None:
        self._conversation.kill()

    def interrupt(self) -> None:
        """Stops the running turn; its result still comes."""
        self._conversation.interrupt()

    async def run(self, prompt: UserPrompt, *, last_message_file: Path | None = None, form: OutputForm | None = None) -> int:
        """Returns the exit code. `form`: the answer must fit a JSON schema. Raises OutputLost when stdout cannot be written."""
        if self._format == "stream-json" and not self._has_begun:
            self._has_begun = True
            from wolo.frontends.stream_json import init_line  # noqa: PLC0415  # text output needs none of it

            print_json(init_line(self._conversation))
        with self._progress.showing(self._format != "stream-json"):
            if form is None:
                ended = await self._turn(prompt)
            else:
                ended, self._structured = await form.ask(self._turn, prompt)
        exit_code = self.stopped_by or ended.exit_code or (4 if self._help else 0)
        if last_message_file is not None:
            answer = ended.answer if self._structured is None else as_json(self._structured.value)
            save_answer(last_message_file, answer, print_message)
        self._finish(ended, exit_code)
        self._totals, self._help = self._new_totals(), {}
        return exit_code

    async def _turn(self, prompt: UserPrompt) -> events.TurnEnded:
        ended: events.TurnEnded | None = None
        async for event in self._conversation.prompt(prompt):
            if isinstance(event, events.TurnEnded):
                ended = event
            else:
                self._show(event)
        assert ended is not None  # every turn ends with TurnEnded
        return ended

    def _new_totals(self) -> RunTotals | None:
        if self._format == "text":
            return None
        from wolo.frontends.stream_json import RunTotals  # noqa: PLC0415  # text output needs none of it

        return RunTotals(self._conversation)

    def _show(self, event: events.Event) -> None:
        if self._progress.is_enabled:
            self._progress.on_event(event)
        if self._totals is not None:
            self._totals.on_event(event)
        if self._format == "stream-json":
            from wolo.frontends.stream_json import event_line  # noqa: PLC0415  # text output needs none of it

            line = event_line(event)
            if line is not None and (self._partial or line["type"] != "stream_event"):
                print_json({**line, "session_id": self._conversation.info.session_id})
        match event:
            case events.CallDenied():
                if event.part.metadata.get("decided_by") == "hook":
                    self._help[HOOK_HINT] = None
                else:
                    self._help[FENCE_HINT if IN_FENCE in event.part.metadata else APPROVAL_HINT] = None
                self._print_message(describe(event))
            case events.Compacted(reason="masked") if not self._verbose:
                pass
            case events.AttemptFailed() | events.ModelReplaced() | events.Compacted() | events.Verified():
                self._print_message(describe(event))
            case events.AnswerEnded() if self._verbose:
                for part in event.message.calls:
                    self._print_message(call_line(part, most_of_change=SOME))
            case events.HookAwaited() if self._verbose:
                self._print_message(describe(event))
            case events.Noticed() if event.level == "warning" or self._verbose:
                self._print_message(describe(event))

    def _print_message(self, text: str) -> None:
        self._progress.hide()
        print_message(text)

    def _finish(self, ended: events.TurnEnded, exit_code: int) -> None:
        if self._format == "text":
            if self._structured is not None:
                print_text(as_json(self._structured.value))
            elif ended.answer:
                print_text(ended.answer)
            if ended.error is not None:
                print_message(ended.error.message, hint=ended.error.hint)
            if ended.work.line:
                print_message(ended.work.line)
            if self._help and exit_code == 4:
                by_hooks = self._help.keys() == {HOOK_HINT}
                why = "by hooks" if by_hooks else "because no one could approve them"
                print_message(f"Some actions were denied {why}.", hint="\n      ".join(self._help))
            return
        assert self._totals is not None
        structured = {} if self._structured is None else {"structured_output": self._structured.value}
        print_json(self._totals.result(ended, exit_code) | structured)


FENCE_HINT = "A call in a code fence needs your approval: continue in a terminal (wolo -c)."
APPROVAL_HINT = "Allow it with --allow 'tool:pattern', or choose another --mode."
HOOK_HINT = "No rule allows what a hook denies: wolo hooks list"


def print_failure(error: WoloError) -> None:
    from wolo.frontends.stream_json import result_head, usage_object, work_object  # noqa: PLC0415  # text output needs none of it

    cause = _CAUSES.get(error.exit_code, "model_error")
    print_json(
        result_head(cause, error.exit_code, events.ErrorInfo.of(error), denied=False)
        | {"result": "", "session_id": None, "num_turns": 0, "duration_ms": 0, "duration_api_ms": 0}
        | {"total_cost_usd": 0.0, "usage": usage_object(Usage()), "model": None, "stop_reason": None}
        | {"permission_denials": [], "files_changed": [], "verification": work_object(events.WorkCheck())}
    )


def print_text(text: str) -> None:
    write(for_stdout(text).rstrip("\n") + "\n")


def check_format(name: str) -> OutputFormat:
    if name in ("text", "json", "stream-json"):
        return name  # type: ignore[return-value]  # the literal was just checked
    raise UsageError(f"There is no output format {name!r}.", hint="Choose text, json or stream-json.")


TICK_S = 1.0
"""Shorter work is not shown."""
MOST_CHARS = 200


class ProgressLine:
    def __init__(self) -> None:
        self._words, self._began = "", time.monotonic()
        self.is_enabled = False
        self._is_shown = False
        self._due: asyncio.TimerHandle | None = None

    @contextlib.contextmanager
    def showing(self, is_enabled: bool = True) -> Iterator[None]:
        """Shows progress while the block runs, if stderr is a terminal with a movable cursor and stdout is not."""
        can_move = os.environ.get("TERM", "dumb") not in ("dumb", "unknown", "")
        self.is_enabled = is_enabled and can_move and sys.stderr.isatty() and not sys.stdout.isatty()
        if self.is_enabled:
            self._tick_later()
        try:
            yield
        finally:
            self.hide()
            if self._due is not None:
                self._due.cancel()

    def on_event(self, event: events.Event) -> None:
        match event:
            case events.RequestStarted():
                words = f"waiting for {event.model}"
            case events.AttemptFailed():
                words = describe_work(event)
            case events.CallStarted():
                words = call_line(event.part, most_chars=MOST_CHARS, most_of_change=0)
            case _:
                return
        self._words, self._began = escaped_line(words)[:MOST_CHARS], time.monotonic()

    def hide(self) -> None:
        """Called before anything else is printed."""
        if self._is_shown:
            self._is_shown = False
            _write("\r\x1b[K")

    def _tick_later(self) -> None:
        self._due = asyncio.get_running_loop().call_later(TICK_S, self._tick)

    def _tick(self) -> None:
        self._tick_later()
        seconds = time.monotonic() - self._began
        if self._words and seconds >= TICK_S and _is_in_front():
            self._is_shown = True
            _write(f"\r{_fit(self._words, f' · {seconds:.0f} s')}\x1b[K")


def _is_in_front() -> bool:
    """False for a background job of the shell, whose line would disturb the user."""
    try:
        return os.tcgetpgrp(sys.stderr.fileno()) == os.getpgrp()
    except (OSError, ValueError):
        return False


def _fit(text: str, end: str) -> str:
    """Cut to one row."""
    from wolo.frontends.wrapping import cells  # noqa: PLC0415  # for progress on a terminal only

    try:
        room = (os.get_terminal_size(sys.stderr.fileno()).columns or 80) - 2 - len(end)
    except (OSError, ValueError):
        return ""
    for at, letter in enumerate(text):
        room -= cells(letter)
        if room < 0:
            return f"{text[:at]}…{end}"
    return text + end


def _write(text: str) -> None:
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(text)
        sys.stderr.flush()
