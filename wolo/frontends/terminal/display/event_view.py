"""Draws the events of a turn: settled Markdown, tool lines, diffs, one moving status line, and what it cost."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from functools import partial
from typing import Literal

from rich.text import Text

from wolo.agent.events import (
    AnswerEnded,
    AttemptFailed,
    CallDenied,
    CallEnded,
    CallProgressed,
    CallStarted,
    CallStreamed,
    Compacted,
    CompactionStarted,
    Event,
    HookAwaited,
    JobEnded,
    MessageAdded,
    ModelReplaced,
    Noticed,
    PromptRefused,
    RequestStarted,
    TextStreamed,
    ThinkingStreamed,
    TurnEnded,
    TurnStarted,
    Verified,
    VerifyStarted,
)
from wolo.commands.cost import in_words
from wolo.config.schema import Ui
from wolo.errors import WoloError
from wolo.frontends.phrasing import (
    compaction,
    hook_awaited,
    job_ended,
    replacement,
    retrying,
    sentence,
    summarising,
    verified,
)
from wolo.frontends.terminal.display.activity import newest_lines
from wolo.frontends.terminal.display.collapsed_output import Folded
from wolo.frontends.terminal.display.dialog_host import Stage
from wolo.frontends.terminal.display.spinner import Status, StatusLine, StatusLines
from wolo.frontends.terminal.display.styled_output import StyledOutput
from wolo.frontends.terminal.display.terminal_state import TerminalState
from wolo.frontends.terminal.display.thinking_view import ThinkingShown
from wolo.frontends.terminal.io.terminal_output import Stdout
from wolo.frontends.terminal.io.theme import is_light
from wolo.frontends.terminal.render import progress, tool_calls
from wolo.frontends.terminal.render.markdown import Drawn, MarkdownStream
from wolo.messages.call_arguments import call_line
from wolo.messages.message import Message
from wolo.messages.terminal_text import clean, clean_line, escaped_line

TAIL_CHARS = 400
"""How much of what is thought is kept to show its newest line."""
MOST_SUBJECT = 60
"""Characters of what a running call is about."""

Kind = Literal["", "text", "call", "block", "notice"]
"""What was printed last; a block is a call with something below its headline."""


class Screen:
    """Everything printed stays printed: scrollback, wrapping and copying are the terminal's own."""

    def __init__(self, stdout: Stdout, state: TerminalState) -> None:
        self.stdout, self.state = stdout, state
        self.status: Status = self._new_status()
        self.region: Stage | None = None
        """The live region below the scrollback, while there is one: questions are asked there."""
        self._without_region = stdout, self.status
        self._output = self._new_output()
        self._markdown = self._new_markdown()
        self._last: Kind = ""
        self._tail = ""
        self._chars = 0
        self.folded = Folded()
        self.thinking = ThinkingShown()
        self._has_text = False
        """Something of the answer under way has been printed."""
        self._refusals: dict[str, str] = {}
        """Why a call was refused, by its id."""
        self.says_more = False
        """Notices that are only good to know are shown, too."""
        self._told: set[str] = set()
        """Notices are said once."""

    def attach(self, region: Stage) -> None:
        """Prints everything above the region from now on."""
        self.status.stop()
        self._without_region = self.stdout, self.status
        self.region, self.stdout, self.status = region, region.stdout, region.activity
        self._output = self._new_output()

    def detach(self) -> None:
        """Prints as before `attach`."""
        self.status.stop()
        self.region = None
        self.stdout, self.status = self._without_region
        self._output = self._new_output()

    def dress(self, ui: Ui) -> None:
        """As the person wants it to look; before anything is under way."""
        self.use_theme(ui.theme)
        self.make_plain(ui.plain)

    def use_theme(self, theme: str) -> None:
        """From the next line on."""
        self.state.is_light = is_light(theme, os.environ)
        self._output = self._new_output()

    def make_plain(self, is_plain: bool) -> None:
        """Lines in turns, and nothing that moves; never taken back."""
        self.stdout.is_plain = self.stdout.is_plain or is_plain
        self.status, self._markdown = self._new_status(), self._new_markdown()
        self._output = self._new_output()

    def show(self, event: Event) -> None:
        if self.region is not None:
            self.region.on_event(event)
        match event:
            case TurnStarted():
                self.status.start("getting ready")
            case RequestStarted():
                self._begin_answer(event)
            case TextStreamed():
                self._end_thinking()
                self._count(event.text, "writing")
                self._draw(self._markdown.feed(event.text))
                self.status.unfinished(self._markdown.unfinished)
            case ThinkingStreamed():
                self.thinking.add(event.text)
                self._count(event.text, "thinking", tail=True)
            case CallStreamed():
                self._end_thinking()
                self.status.heard()
                self.status.say(f"writing the call of {clean_line(event.tool) or 'a tool'} · {event.size_bytes / 1000:.1f} kB")
            case AnswerEnded():
                self._end_thinking()
                self._end_answer(event.message)
            case AttemptFailed():
                self._attempt_failed(event)
            case ModelReplaced():
                self._say_void(f"{sentence(event.error.message)} {replacement(event)}")
            case CompactionStarted():
                self.status.start(summarising(event))
            case Compacted():
                self._say_void(compaction(event))
            case CallStarted():
                self._call_started(event)
            case CallProgressed():
                self.status.hear_call(event.part_id, event.text)
            case JobEnded():
                self.say(escaped_line(job_ended(event)), "dim")
            case CallDenied():
                self._refusals[event.part.id] = event.reason
            case CallEnded():
                self._call_ended(event)
            case MessageAdded() if event.message.is_from_user:
                self.print(Text.assemble(("› ", "bold"), clean(self.state.typed_texts.get(event.message.id, event.message.text))))
            case VerifyStarted():
                self.status.start(f"verifying with {escaped_line(event.command)}")
            case HookAwaited():
                self.status.start(escaped_line(hook_awaited(event)))
            case PromptRefused() if event.reason and not event.prompt.is_prompt:
                self.say(f"A hook keeps this back: {event.reason}", "warning")
            case Verified():
                self.say(escaped_line(verified(event)), "warning" if event.new_failures else "dim")
            case Noticed():
                self._notice(event)
            case TurnEnded():
                self._turn_ended(event)

    def say(self, words: str, style: str = "") -> None:
        """A sentence of wolo's own, or one from outside: it is cleaned."""
        self.print(Text.assemble((clean(words), style)))

    def show_error(self, error: WoloError) -> None:
        self.say(error.message, "error")
        if error.hint:
            self.say(error.hint, "dim")

    def print(self, text: Text, *, kind: Kind = "notice", end: str = "\n") -> None:
        """Whole lines. What one may want to copy has `no_wrap`, and is wrapped by nobody but the terminal."""
        self._end_line()
        if self._last == "block" or (self._last and "text" in (self._last, kind) and self._last != kind):
            text = Text("\n", no_wrap=text.no_wrap).append_text(text)
        self._last = kind
        self._write(text.append(end) if end else text)

    def space(self) -> None:
        """An empty line, before somebody else writes."""
        self._end_line()
        self._write(Text("\n"))
        self._last = ""

    def fresh(self) -> None:
        """Somebody else has written in between."""
        self._last = ""

    @property
    def stage(self) -> Stage | None:
        """Where panels stand; None: what is asked is printed, and a line read."""
        return self.region if self.stdout.can_move else None

    def weights_progress(self) -> Callable[[int, int], None] | None:
        """Shows how far the weights of the embedded model are; may be called from any thread. None: nothing can move here."""
        if not self.status.is_alive:
            return None
        loop = asyncio.get_running_loop()

        def tell(done: int, total: int) -> None:
            loop.call_soon_threadsafe(self.status.say, f"preparing the model {progress.in_words(done, total)}")

        return tell

    def ask_space(self) -> None:
        """Before a person is asked something: nothing moves below the question."""
        self._end_line()
        self.status.stop()

    def answer(self, text: str) -> None:
        """A whole answer at once, as it looked when it was streamed."""
        markdown = self._new_markdown()
        self._draw(markdown.feed(text))
        self._draw(markdown.close())
        self._has_text = False

    def unfold(self) -> bool:
        """Prints the newest thing in full that was only printed in short. False: there is none."""
        if (whole := self.folded.unfold()) is None:
            return False
        self.fresh()
        whole.no_wrap = True
        self.print(whole, end="" if whole.plain.endswith("\n") else "\n")
        return True

    # Answers

    def _begin_answer(self, event: RequestStarted) -> None:
        self._draw(self._markdown.close())
        self._markdown = self._new_markdown()
        self._chars, self._tail, self._has_text = 0, "", False
        self.thinking.begin()
        self.status.start(f"waiting for the model · ~{event.context_tokens:,} tokens sent")

    def _end_answer(self, message: Message) -> None:
        if not self._chars and message.text.strip():
            self._draw(self._markdown.feed(message.text))
        self._draw(self._markdown.close())
        self._markdown, self._has_text = self._new_markdown(), False
        self.status.unfinished("")
        self.status.hold(False)

    def _count(self, text: str, what: str, *, tail: bool = False) -> None:
        self._chars += len(text)
        self.status.heard()
        self._tail = (self._tail + text)[-TAIL_CHARS:] if tail else ""
        self.status.say(self._progress if what == "writing" else self._thinking)

    def _end_thinking(self) -> None:
        """What was thought is told in one line; the whole of it stays at hand."""
        if told := self.thinking.end():
            self.say(f"{told}{self.folded.hint}", "dim")
            self.folded.keep(partial(Text, self.thinking.text.strip(), "dim"))

    def _progress(self) -> str:
        return f"writing · {max(self._chars // 4, 1):,} tokens"

    def _thinking(self) -> str:
        return f"thinking · {max(self._chars // 4, 1):,} tokens · {''.join(newest_lines(self._tail, 1))}".rstrip(" ·")

    def _attempt_failed(self, event: AttemptFailed) -> None:
        if event.tries or event.attempt == 1:
            self._say_void(f"{sentence(event.error.message)} {retrying(event)}")
        due, why = time.monotonic() + event.delay_s, clean_line(event.error.message).rstrip(".")
        self.status.start(lambda: f"retrying in {max(due - time.monotonic(), 0):.0f} s · {why}")

    def _say_void(self, words: str) -> None:
        """A notice that takes back what was shown of the answer under way."""
        void = " What was shown of this answer is void." if self._has_text else ""
        self._markdown, self._has_text = self._new_markdown(), False
        self.thinking.begin()
        self.say(f"{words}{void}", "warning")

    # Calls

    def _call_started(self, event: CallStarted) -> None:
        self.status.begin_call(event.part.id, call_line(event.part, most_chars=MOST_SUBJECT, most_of_change=0))

    def _call_ended(self, event: CallEnded) -> None:
        self.status.end_call(event.part.id)
        below = tool_calls.result(event.part, event.view, self._layout())
        line = tool_calls.headline(event.part, event.view, reason=self._refusals.pop(event.part.id, "")).append("\n")
        line.append_text(below.text).no_wrap = True
        self.print(line, kind="block" if below.text else "call", end="")
        if below.is_folded:
            self.folded.keep(partial(tool_calls.whole_call, event.part, event.view))
        if event.part.terminate and not event.part.is_error:
            self.answer(event.part.output)  # it is what the turn ends with

    def _layout(self) -> tool_calls.Layout:
        """A change gets half the window, with the line of its call, where the rest can be expanded."""
        columns, rows = self.stdout.columns, tool_calls.MAX_DIFF_LINES
        if self.folded.hint:
            taken = 2  # the call, and how much is left
            rows = max(min(self.stdout.rows // 2 - taken, rows), 1)
        has_rail = self.stdout.can_move and columns >= tool_calls.RAIL_FROM_COLUMNS
        return tool_calls.Layout(columns, rows, has_rail, self.folded.hint)

    # The turn

    def _notice(self, event: Noticed) -> None:
        if event.text not in self._told and (event.level == "warning" or self.says_more):
            self._told.add(event.text)
            self.say(event.text, "warning" if event.level == "warning" else "dim")

    def _turn_ended(self, event: TurnEnded) -> None:
        self._end_thinking()
        self._draw(self._markdown.close())
        self._end_line()
        self.status.stop()
        if event.error is not None:
            self.say(event.error.message, "warning" if event.cause == "interrupted" else "error")
            if event.error.hint:
                self.say(event.error.hint, "dim")
        used = f"{in_words(event.usage, tells_unknown=False)} · " if event.usage.context_tokens else ""
        self.say(f"{used}{event.duration_s:.0f} s", "dim")

    # Ink

    def _draw(self, drawn: list[Drawn]) -> None:
        for each in drawn:
            self._has_text = True
            self.status.hide()
            if self._last not in ("", "text"):
                self._write(Text("\n"))
            self._last = "text"
            if isinstance(each, Text):
                self._write(each)
            else:
                self._output.table(each)
        self.status.hold(self._markdown.is_mid_line)

    def _end_line(self) -> None:
        """A line that was still being written ends where it is."""
        self.status.hide()
        self.status.unfinished("")
        if self._markdown.is_mid_line:
            self._draw(self._markdown.close())
            self._markdown = self._new_markdown()

    def _write(self, text: Text) -> None:
        self.status.hide()
        self._output.write(text)

    def _new_status(self) -> Status:
        return (
            StatusLine(self.stdout, self.state)
            if self.stdout.can_move
            else StatusLines(lambda line: self.print(Text(line), kind="call"))
        )

    def _new_output(self) -> StyledOutput:
        return StyledOutput(self.stdout, is_light=self.state.is_light)

    def _new_markdown(self) -> MarkdownStream:
        return MarkdownStream(plain=not self.stdout.has_colours)
