"""Asks the user what to do while a limit of the provider lasts: wait, ask now, use another model, or stop."""

from __future__ import annotations

import asyncio
import time
from typing import Literal

from rich.text import Text

from wolo.agent.events import AttemptFailed
from wolo.conversation.conversation import Conversation
from wolo.errors import UsageError
from wolo.frontends.streams import error_text
from wolo.frontends.terminal.dialogs.menu_sources import models_menu
from wolo.frontends.terminal.dialogs.picker import pick
from wolo.frontends.terminal.display.line_prompt import PassedOver, ask_line
from wolo.frontends.terminal.display.terminal import Terminal
from wolo.frontends.terminal.panels.panel import Panel, key_hints
from wolo.messages.terminal_text import clean_line
from wolo.models.limit_wait import clock_time, countdown


class LimitPanel(Panel[Literal["now", "model", "stop"]]):
    """Esc and Ctrl-D stop; other keys do nothing."""

    def __init__(self, end_at: float) -> None:
        """`end_at` is POSIX time."""
        self._end_at = end_at
        self._ticker: asyncio.TimerHandle | None = None
        super().__init__()

    def open(self) -> None:
        super().open()
        self._tick()

    def content(self) -> list[Text]:
        now = time.time()
        line = Text.assemble((f"limit until {clock_time(self._end_at, now)} ({countdown(self._end_at - now)})", "warning"))
        if self.ignores_keys:
            return [line]
        return [line.append(" · ", "dim").append_text(key_hints(("Enter", "now"), ("m", "other model"), ("Esc", "stop")))]

    def on_ready(self) -> None:
        self.redraw()

    def handle_key(self, key: str) -> None:
        if key == "enter":
            self.resolve("now")
        elif key.lower() == "m":
            self.resolve("model")
        elif key == "end-of-input":
            self.escape()

    def escape(self) -> None:
        self.resolve("stop")

    def close(self) -> None:
        super().close()
        if self._ticker is not None:
            self._ticker.cancel()

    def _tick(self) -> None:
        if self._ticker is not None:
            self._ticker.cancel()
        self._ticker = asyncio.get_running_loop().call_later(1.0, self._tick)
        self.redraw()


AtLimit = Literal["now", "model", "stop"]


async def ask_at_limit(limit: AttemptFailed, terminal: Terminal, conversation: Conversation) -> AtLimit:
    """The wait was ended as the user chose, unless it is `stop`. Raises Dismissed for Ctrl-C."""
    end_at = time.time() + limit.delay_s
    while True:
        if (chosen := await _choose(end_at, terminal)) == "now":
            conversation.resume_now()
        if chosen != "model":
            return chosen
        picked = await pick(await asyncio.to_thread(models_menu, conversation, ahead=True), terminal)
        try:
            if picked is not None:
                conversation.resume_now(picked.value)
                return chosen
        except UsageError as error:
            terminal.screen.show_text(clean_line(error_text(error)), "warning")


async def _choose(end_at: float, terminal: Terminal) -> AtLimit:
    screen = terminal.screen
    screen.ask_space()
    if screen.dialog_host is not None:
        return await screen.dialog_host.show_dialog(LimitPanel(end_at))
    now = time.time()
    stated = f"limit until {clock_time(end_at, now)} ({countdown(end_at - now)})"
    while True:
        try:
            typed = await ask_line(f"  {stated} · Enter now, [m]odel, [s]top › ", terminal, may_pass=True)
        except (PassedOver, EOFError):
            return "stop"
        match typed.strip().lower():
            case "":
                return "now"
            case "m" | "model":
                return "model"
            case "s" | "stop":
                return "stop"
