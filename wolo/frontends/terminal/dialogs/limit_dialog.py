"""Asks the user what to do while a limit of the provider lasts: wait, ask now, use another model, or stop."""

from __future__ import annotations

import asyncio
import time
from typing import Literal

from wolo.agent.events import AttemptFailed
from wolo.conversation.conversation import Conversation
from wolo.errors import UsageError
from wolo.frontends.terminal.dialogs.menu_sources import models_menu
from wolo.frontends.terminal.dialogs.picker import pick
from wolo.frontends.terminal.display.line_prompt import PassedOver, ask_line
from wolo.frontends.terminal.display.terminal import Terminal
from wolo.messages.terminal_text import clean_line
from wolo.models.limit_wait import clock_time, countdown

AtLimit = Literal["now", "model", "stop"]


async def ask_at_limit(limit: AttemptFailed, terminal: Terminal, conversation: Conversation) -> AtLimit:
    """The wait was ended as the user chose, unless it is `stop`. Raises Dismissed for Ctrl-C."""
    end_at = time.time() + limit.delay_s
    while True:
        chosen = await _choose(end_at, terminal)
        if chosen == "now":
            conversation.resume_now()
        if chosen != "model":
            return chosen
        picked = await pick(await asyncio.to_thread(models_menu, conversation, ahead=True), terminal)
        try:
            if picked is not None:
                conversation.resume_now(picked.value)
                return chosen
        except UsageError as error:
            terminal.screen.show_text(clean_line(f"{error.message} {error.hint}"), "warning")


async def _choose(end_at: float, terminal: Terminal) -> AtLimit:
    screen = terminal.screen
    screen.ask_space()
    if screen.dialog_host is not None:
        from wolo.frontends.terminal.panels.limit_panel import LimitPanel  # noqa: PLC0415  # prompt_toolkit is for the REPL only

        return await screen.dialog_host.show_dialog(LimitPanel(end_at))
    now = time.time()
    stated = f"limit until {clock_time(end_at, now)} ({countdown(end_at - now)})"
    while True:
        try:
            typed = await ask_line(f"  {stated} · Enter now, [m]odel, [s]top › ", screen, terminal.keyboard, may_pass=True)
        except (PassedOver, EOFError):
            return "stop"
        match typed.strip().lower():
            case "":
                return "now"
            case "m" | "model":
                return "model"
            case "s" | "stop":
                return "stop"
