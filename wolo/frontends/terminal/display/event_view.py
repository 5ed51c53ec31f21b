"""Draws the events of a turn: Markdown, tool calls with their results, running work, and the cost."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Literal

from msgspec.structs import replace
from rich.text import Text

from wolo.agent import events
from wolo.conversation.phrasing import describe, describe_retry, duration, in_words, sentence
from wolo.errors import WoloError
from wolo.frontends.terminal.display.activity import Activity, Announcements, BottomLine, Surface, newest_lines, progress_bar
from wolo.frontends.terminal.display.dialog_host import DialogHost
from wolo.frontends.terminal.display.folded_output import THINKING, FoldedOutput, Thinking
from wolo.frontends.terminal.display.styled_output import StyledOutput
from wolo.frontends.terminal.display.terminal_state import TerminalState
from wolo.frontends.terminal.io.terminal_marks import OUTPUT_BEGINS, OUTPUT_ENDS, PROMPT_BEGINS
from wolo.frontends.terminal.io.terminal_output import Stdout
from wolo.frontends.terminal.io.theme import STYLES
from wolo.frontends.terminal.render import tool_calls
from wolo.frontends.terminal.render.markdown import Drawn, MarkdownStream
from wolo.frontends.wrapping import lead_of_column, wrap
from wolo.messages.call_arguments import call_line
from wolo.messages.message import Message, Usage
from wolo.messages.terminal_text import clean, clean_line, escaped_line, quantity

TAIL_CHARS = 400
"""Thinking that is stored to show its newest line."""
MOST_SUBJECT = 60
"""Characters that name a running call."""
PROMPT_MARK = "› "
MARK_STYLE = STYLES["bold accent"] + STYLES["said"]
SAID_FROM_COLUMNS = 20
NEWEST_CHARS = 60
"""Of a long line of thinking, its end is shown."""
MOST_WRITTEN = 4000
"""Characters of a streamed call in which the name of its file is looked for."""
_FILE = re.compile(r'"(?:file_?)?path"\s*:\s*("(?:[^"\\]|\\.)*")|\*\*\* (?:Add|Update) File: ([^\\"\n]+)')

Kind = Literal["", "said", "text", "call", "block", "notice"]
"""The last thing that was printed; a block is a call with a result."""


def user_text(text: str, stdout: Stdout) -> Text:
    columns = stdout.columns - len(PROMPT_MARK) - 1
    if not stdout.can_move or columns < SAID_FROM_COLUMNS:
        mark = PROMPT_MARK if stdout.can_move else "> "
        return Text.assemble((mark, "bold accent"), clean(text).replace("\n", f"\n{' ' * len(PROMPT_MARK)}"))
    block = Text(no_wrap=True)
    for at, row in enumerate(wrap(clean(text), columns).split("\n")):
        block.append("\n" if at else "").append(PROMPT_MARK if not at else "  ", MARK_STYLE).append(row, "said")
    return block


class Screen:
    """Prints everything once: scrollback, wrapping and copying are the terminal's own."""

    def __init__(self, stdout: Stdout, state: TerminalState) -> None:
        self.stdout, self.state = stdout, state
        self.status = Activity(self._new_surface())
        self.region: DialogHost | None = None
        """The live region below the scrollback, while there is one; questions are asked there."""
        self._stdout_without_region = stdout
        self._output = StyledOutput(self.stdout, self.state)
        self._markdown = self._new_markdown()
        self._streamed: list[str] = []
        """Text of the answer that is drawn with the next frame of the region."""
        self._last: Kind = ""
        self._tail = ""
        self._chars = 0
        self.folded = FoldedOutput()
        self.has_marks = False
        """Prompts and output are marked for the terminal (OSC 133)."""
        self._mark = ""
        """Printed before the next text."""
        self._is_output = False
        """The output after a prompt has begun and is not over."""
        self.is_brief = True
        """Calls take two rows where keys expand them."""
        self.thinking = Thinking()
        self._has_text = False
        """Part of the current answer has been printed."""
        self._refusals: dict[str, str] = {}
        """The reason of a denied call, by its id."""
        self._written: dict[int, str] = {}
        """Arguments of the calls that are being written, by their slot, until the name of the file is known; then that name."""
        self._retried = ""
        """The row that reports failed attempts once a later one is answered."""
        self._last_usage: Usage | None = None
        """Of the newest answer in this turn."""
        self.says_more = False
        """Informative notices are shown, too."""
        self._notices: set[str] = set()
        """Those that were shown."""

    def attach(self, region: DialogHost) -> None:
        """Prints everything above the region from now on."""
        self._stdout_without_region = self.stdout
        self.region, self.stdout = region, region.stdout
        self.status.show_on(region.activity)
        self._output = StyledOutput(self.stdout, self.state)

    def detach(self) -> None:
        """Prints as before `attach`."""
        self.region, self.stdout = None, self._stdout_without_region
        self.status.show_on(self._new_surface())
        self._output = StyledOutput(self.stdout, self.state)

    def use_theme(self, theme: str) -> None:
        """Takes effect from the next line on."""
        self.state.theme = theme

    def make_plain(self, is_plain: bool) -> None:
        """Prints lines in turns, and nothing that moves; cannot be undone."""
        self.stdout.is_plain = self.stdout.is_plain or is_plain
        self.status.show_on(self._new_surface())
        self._markdown = self._new_markdown()
        self._output = StyledOutput(self.stdout, self.state)

    def show(self, event: events.Event) -> None:
        if self.region is not None:
            self.region.on_event(event)
        if not isinstance(event, events.TextStreamed):
            self.draw_streamed()
        if isinstance(event, events.TextStreamed | events.ThinkingStreamed | events.CallStreamed | events.AnswerEnded):
            self._end_retries()
        match event:
            case events.RequestStarted():
                self._draw(self._markdown.close())
                self._markdown = self._new_markdown()
                self._chars, self._tail, self._has_text, self._written = 0, "", False, {}
                self.thinking.begin()
                self.status.start(describe(event))
            case events.TextStreamed():
                self._end_thinking()
                self._streamed.append(event.text)
                if self.region is None:
                    self.draw_streamed()
                self._count(event.text)
            case events.ThinkingStreamed():
                self.thinking.add(event.text)
                self._count(event.text, is_thinking=True)
            case events.CallStreamed():
                self._end_thinking()
                self.status.note_data()
                self.status.describe(f"{self._call_in_words(event)} · {event.size_bytes / 1000:.1f} kB")
            case events.AnswerEnded():
                self._end_thinking()
                self._end_answer(event.message)
            case events.AttemptFailed():
                self._attempt_failed(event)
            case events.Compacted(reason="masked"):
                self._notice(events.Noticed(text=describe(event)))
            case events.ModelReplaced() | events.Compacted():
                self._show_void(describe(event))
            case events.TurnStarted() | events.CompactionStarted() | events.VerifyStarted() | events.HookAwaited():
                self.status.start(escaped_line(describe(event)))
            case events.CallStarted():
                self.status.start_call(event.part.id, call_line(event.part, most_chars=MOST_SUBJECT, most_of_change=0))
            case events.CallProgressed():
                self.status.add_output(event.part_id, event.text)
            case events.TaskEnded() if event.background:
                self.show_text(f"{escaped_line(describe(event))} The model gets its result with your next prompt.", "dim")
            case events.JobEnded() | events.ModeChanged():
                self.show_text(escaped_line(describe(event)), "dim")
            case events.CallDenied():
                self._refusals[event.part.id] = event.reason
            case events.CallEnded():
                self._call_ended(event)
            case events.MessageAdded() if event.message.is_from_user:
                self.show_user_text(self.state.typed_texts.get(event.message.id, event.message.text))
            case events.PromptRefused() if event.reason and not event.prompt.is_prompt:
                self.show_text(describe(event), "warning")
            case events.Verified():
                self.show_text(escaped_line(describe(event)), "warning" if event.new_failures else "dim")
            case events.Noticed():
                self._notice(event)
            case events.TurnEnded():
                self._turn_ended(event)

    def draw_streamed(self) -> None:
        if self._streamed:
            text, self._streamed = "".join(self._streamed), []
            self._draw(self._markdown.feed(text))
            self._show_unfinished(self._markdown.preview)

    def show_text(self, text: str, style: str = "") -> None:
        """Prints sentences and tables, cleaned of control characters."""
        text = clean(text)
        can_move = self.stdout.can_move
        text = wrap(text, self.stdout.columns, lead_of_column) if can_move else tool_calls.without_dots(text)
        self.print(Text.assemble((text, style)))

    def show_error(self, error: WoloError) -> None:
        self.show_text(error.message, "error")
        if error.hint:
            self.show_text(error.hint, "dim")

    def show_user_text(self, text: str) -> None:
        """Prints what the user said, set apart by a soft background."""
        self._mark = PROMPT_BEGINS if self.has_marks else ""
        self.print(user_text(text, self.stdout), kind="said")
        self._mark = OUTPUT_BEGINS if self.has_marks else ""
        self._is_output = self.has_marks

    def print(self, text: Text, *, kind: Kind = "notice", end: str = "\n") -> None:
        """Prints whole lines. Text to be copied has `no_wrap`: only the terminal wraps it."""
        self._end_line()
        # an empty row stands around what the user said, around text, and after a call with a result
        last = self._last
        if last and (last in ("said", "block") or kind == "said" or ("text" in (last, kind) and last != kind)):
            text = Text("\n", no_wrap=text.no_wrap).append_text(text)
        self._last = kind
        self._write(text.append(end) if end else text)

    def space(self) -> None:
        """Prints an empty line, unless nothing was printed since the last one; the next output needs no gap."""
        self._end_line()
        if not self._last:
            return
        self._mark = OUTPUT_ENDS if self._is_output else ""
        self._is_output = False
        self._write(Text("\n"))
        self._last = ""

    def fresh(self) -> None:
        """Called after other output: the next line needs no gap."""
        self._last = ""

    @property
    def dialog_host(self) -> DialogHost | None:
        """Shows panels. None: questions are printed, and a line is read."""
        return self.region if self.stdout.can_move else None

    def weights_progress(self) -> Callable[[int, int], None] | None:
        """Shows the progress of loading the embedded model, from any thread. None: nothing on the screen can change."""
        if not self.status.is_alive:
            return None
        loop = asyncio.get_running_loop()

        def show(done: int, total: int) -> None:
            loop.call_soon_threadsafe(self.status.describe, f"preparing the model {progress_bar(done, total)}")

        return show

    def ask_space(self) -> None:
        """Called before a question: nothing moves below it."""
        self._end_line()
        self.status.stop()

    def answer(self, text: str) -> None:
        """Prints a whole answer as if it had been streamed."""
        markdown = self._new_markdown()
        self._draw(markdown.feed(text))
        self._draw(markdown.close())
        self._has_text = False

    # Answers

    def _end_answer(self, message: Message) -> None:
        self._last_usage = message.usage or self._last_usage
        if not self._chars and message.text.strip():
            self._draw(self._markdown.feed(message.text))
        self._draw(self._markdown.close())
        self._markdown, self._has_text = self._new_markdown(), False
        self._show_unfinished("")
        self.status.is_held = False

    def _count(self, text: str, *, is_thinking: bool = False) -> None:
        self._chars += len(text)
        self.status.note_data()
        self._tail = (self._tail + text)[-TAIL_CHARS:] if is_thinking else ""
        self.status.describe(self._thinking if is_thinking else self._progress, is_thinking=is_thinking)

    def _end_thinking(self) -> None:
        """Reports the length of the thinking, which can be expanded."""
        if report := self.thinking.end():
            self.show_text(f"{report}{self.folded.hint}", "italic dim")
            self.folded.newest = THINKING

    def _progress(self) -> str:
        return f"writing · {quantity(max(self._chars // 4, 1), 'token')}"

    def _thinking(self) -> str:
        newest = "".join(newest_lines(self._tail, 1))
        if len(newest) > NEWEST_CHARS:
            newest = f"…{newest[-NEWEST_CHARS:].partition(' ')[2]}"  # it begins with a word
        return f"thinking · {quantity(max(self._chars // 4, 1), 'token')} · {newest}".rstrip(" ·")

    def _attempt_failed(self, event: events.AttemptFailed) -> None:
        if event.is_limit:
            self._show_void(describe(event))
            return
        if self._has_text or not self.status.is_alive:
            if event.tries or event.attempt == 1:
                self._show_void(describe(event))
        else:
            self._retried = f"{sentence(event.error.message)} Attempt {event.attempt + 1} was answered."
        due = time.monotonic() + event.delay_s
        self.status.start(lambda: describe_retry(event, max(due - time.monotonic(), 0)))

    def _end_retries(self) -> None:
        """Reports attempts that had failed before this answer began."""
        if row := self._retried:
            self._retried = ""
            self.show_text(row, "dim")

    def _call_in_words(self, event: events.CallStreamed) -> str:
        """`Writing big.py` as soon as the name is known."""
        if event.kind == "edit":
            name = self._written.get(event.slot, "")
            if not name.startswith("Writing ") and len(name) < MOST_WRITTEN:
                name += event.fragment
                if file := _FILE.search(name):
                    with suppress(ValueError):
                        name = f"Writing {escaped_line(json.loads(file[1]) if file[1] else file[2])}"
                self._written[event.slot] = name
            if name.startswith("Writing "):
                return name
        return f"writing the call of {clean_line(event.tool) or 'a tool'}"

    def _show_void(self, text: str) -> None:
        """Prints a notice that discards the answer so far."""
        void = " Discard the answer above." if self._has_text else ""
        self._markdown, self._has_text, self._retried = self._new_markdown(), False, ""
        self.thinking.begin()
        self.show_text(f"{text}{void}", "warning")

    # Calls

    def _call_ended(self, event: events.CallEnded) -> None:
        self.status.end_call(event.part.id)
        columns, rows = self.stdout.columns, tool_calls.MAX_DIFF_LINES
        if self.folded.hint:
            rows = max(min(self.stdout.rows // 2 - 2, rows), 1)  # half the window, with the call and how much is left
        has_rail = self.stdout.can_move and columns >= tool_calls.RAIL_FROM_COLUMNS
        is_brief, has_signs = self.is_brief and bool(self.folded.hint), self.stdout.can_move
        layout = tool_calls.ResultLayout(columns, rows, has_rail, self.folded.hint, is_brief, has_signs)
        below = tool_calls.result(event.part, event.view, layout)
        most_rows = 1 if below.text.plain.count("\n") == 1 else 2
        room = columns * most_rows if layout.is_brief else None
        reason = self._refusals.pop(event.part.id, "")
        line = tool_calls.headline(event.part, event.view, reason=reason, room=room, has_signs=has_signs)
        is_cut = room is not None and line.plain != tool_calls.headline(event.part, event.view, reason=reason).plain
        line.append("\n").append_text(below.text).no_wrap = True
        self.print(line, kind="block" if below.text else "call", end="")
        if self.folded.hint:
            self.folded.add(event.part.id, event.view)
        if below.is_folded or is_cut:
            self.folded.newest = event.part.id
        if event.part.terminate and not event.part.is_error:
            self.answer(event.part.output)  # it is the answer of the turn

    # The turn

    def _notice(self, event: events.Noticed) -> None:
        if (event.text not in self._notices or not event.once) and (event.level == "warning" or self.says_more):
            self._notices.add(event.text)
            self.show_text(describe(event), "warning" if event.level == "warning" else "dim")

    def _turn_ended(self, event: events.TurnEnded) -> None:
        self._end_thinking()
        self._draw(self._markdown.close())
        self._end_line()
        self.status.stop()
        used = f"{self._used(event)} · {duration(event.duration_s)}" if event.usage.context_tokens else ""
        self._last_usage, self._retried = None, ""
        if event.error is not None and event.cause == "interrupted" and not event.error.hint and self.stdout.can_move:
            facts = " · ".join(filter(None, [event.work.line, used]))
            self.print(Text.assemble((clean(describe(event)), "warning"), (f" {clean(facts)}".rstrip(), "dim")))
            return
        if event.error is not None:
            self.show_text(describe(event), "warning" if event.cause == "interrupted" else "error")
            if event.error.hint:
                self.show_text(event.error.hint, "dim")
        if event.work.line:
            self.show_text(event.work.line, "warning" if event.work.status == "failed" else "dim")
        if used:
            self.show_text(used, "dim")

    def _used(self, event: events.TurnEnded) -> str:
        """Tokens of the last request, and the cost of the whole turn."""
        last = self._last_usage
        if last is None or not last.context_tokens or event.num_answers < 2:
            return in_words(event.usage, tells_unknown=False)
        cost = event.usage.cost
        price = "" if cost is None else f"{f'${cost.total:.4f}' if cost.total else 'free'} "
        return f"{in_words(replace(last, cost=None), tells_unknown=False)} · {price}in {event.num_answers} requests"

    # Ink

    def _draw(self, drawn: list[Drawn]) -> None:
        for each in drawn:
            self._has_text = True
            self.status.clear()
            self._begin_text(has_gap=isinstance(each, Text) and each.plain.startswith("\n"))
            if isinstance(each, Text):
                self._write(each)
            else:
                self._output.table(each)
        self.status.is_held = self._markdown.is_mid_line

    def _begin_text(self, *, has_gap: bool) -> None:
        """Separates text from other output. `has_gap`: it begins with an empty row of its own."""
        if self._last not in ("", "text") and not has_gap:
            self._write(Text("\n"))
        self._last = "text"

    def _end_line(self) -> None:
        self.draw_streamed()
        self.status.clear()
        self._show_unfinished("")
        if self._markdown.is_mid_line:
            self._draw(self._markdown.close())
            self._markdown = self._new_markdown()

    def _write(self, text: Text) -> None:
        self.status.clear()
        if self._mark:
            self.stdout.write(self._mark)
            self._mark = ""
        self._output.write(text)

    def _new_surface(self) -> Surface:
        if self.stdout.can_move:
            return BottomLine(self.stdout, self.state)
        return Announcements(lambda line: self.print(Text(tool_calls.without_dots(line)), kind="call"))

    def _show_unfinished(self, line: str) -> None:
        """Shows the line that is being written, where there is a region for it."""
        if self.region is not None and line != self.state.unfinished:
            if line:
                self._begin_text(has_gap=self._markdown.is_blank_due)
            self.state.unfinished = line
            self.region.paint()

    def _new_markdown(self) -> MarkdownStream:
        return MarkdownStream(plain=not self.stdout.can_move)
