"""Draws the events of a turn: settled Markdown, tool lines, diffs, one moving status line, and what it cost."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.text import Text

from wolo.agent.events import (
    AnswerEnded,
    AttemptFailed,
    CallDenied,
    CallEnded,
    CallProgressed,
    CallStarted,
    CallStreamed,
    Event,
    Noticed,
    RequestStarted,
    TextStreamed,
    ThinkingStreamed,
    TurnEnded,
)
from wolo.frontends.terminal.clean import clean, clean_line
from wolo.frontends.terminal.render import tool
from wolo.frontends.terminal.render.markdown import SettledBlocks, render
from wolo.frontends.terminal.status import StatusLine
from wolo.messages.message import Usage


class Screen:
    """Everything printed stays printed: scrollback and copying are the terminal's own."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console(highlight=False)
        self.status = StatusLine()
        self._blocks = SettledBlocks()
        self._chars = 0
        self._superseded = False

    def show(self, event: Event) -> None:
        match event:
            case RequestStarted():
                self._chars = 0
                self.status.start("waiting for the model")
            case TextStreamed():
                self._stream(event.text)
            case ThinkingStreamed():
                self._count(event.text, "thinking")
            case CallStreamed():
                self.status.say(f"receiving {event.tool or 'a call'} · {event.size_bytes / 1000:.1f} kB")
            case AnswerEnded():
                self._settle(self._blocks.close())
            case AttemptFailed():
                self._retry(event)
            case CallStarted():
                self.status.start(f"{event.part.tool} {clean_line(tool.subject(event.part))[:60]}")
            case CallProgressed():
                self.status.say(_last_line(event.text) or "running")
            case CallEnded():
                self._call_ended(event)
            case CallDenied():
                self.print(Text(f"  not allowed: {clean(event.reason)}", style="yellow"))
            case Noticed():
                self.print(Text(clean(event.text), style="yellow" if event.level == "warning" else "dim"))
            case TurnEnded():
                self._turn_ended(event)

    def print(self, renderable: Text | str) -> None:
        self.status.hide()
        self.console.print(renderable, soft_wrap=True)

    def ask_space(self) -> None:
        """Before a person is asked something: nothing moves below the question."""
        self.status.stop()

    def _stream(self, text: str) -> None:
        self._count(text, "writing")
        self._settle(self._blocks.feed(text))

    def _settle(self, text: str) -> None:
        if text.strip():
            self.status.hide()
            self.console.print(render(text))
            self.console.print()

    def _count(self, text: str, what: str) -> None:
        self._chars += len(text)
        self.status.say(f"{what} · {max(self._chars // 4, 1)} tokens")

    def _retry(self, event: AttemptFailed) -> None:
        self._blocks = SettledBlocks()
        wait = f" Trying again in {event.delay_s:.0f} s ({event.attempt} of {event.tries})."
        self.print(Text(f"{clean(event.error.message)}{wait} What was shown of this answer is void.", style="yellow"))
        self.status.start("waiting to try again")

    def _call_ended(self, event: CallEnded) -> None:
        self.status.stop()
        self.print(tool.headline(event.part))
        if below := tool.details(event.part, event.view):
            self.print(below)

    def _turn_ended(self, event: TurnEnded) -> None:
        self.status.stop()
        self._settle(self._blocks.close())
        if event.error is not None:
            self.print(Text(clean(event.error.message), style="red"))
            if event.error.hint:
                self.print(Text(clean(event.error.hint), style="dim"))
        elif event.cause == "interrupted":
            self.print(Text("Interrupted.", style="yellow"))
        elif event.cause != "done":
            self.print(Text(f"Stopped: {event.cause.replace('_', ' ')} was reached.", style="yellow"))
        self.print(Text(cost_line(event.usage, event.duration_s), style="dim"))


def cost_line(usage: Usage, seconds: float) -> str:
    """`1,234 in (900 cached) · 56 out · $0.0012 · 8 s`; a guess carries a ~."""
    about = "~" if usage.estimated else ""
    into = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
    cached = f" ({usage.cache_read_tokens:,} cached)" if usage.cache_read_tokens else ""
    cost = "price unknown" if usage.cost is None else f"${usage.cost.total:.4f}" if usage.cost.total else "free"
    return f"{about}{into:,} in{cached} · {about}{usage.output_tokens:,} out · {cost} · {seconds:.0f} s"


def _last_line(text: str) -> str:
    lines = clean(text).strip().splitlines()
    return lines[-1][:80] if lines else ""


def where(path: Path) -> str:
    """A directory as people write it."""
    home = Path.home()
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) and path != home else str(path)
